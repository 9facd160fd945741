#include "kube/namespace_cache.h"

#include <arpa/inet.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace shirabe::kube {
namespace {

const Resource kNamespaces{"", "v1", "namespaces", "Namespace", /*namespaced=*/false};
constexpr absl::Duration kCacheTtl = absl::Seconds(2);
constexpr size_t kMaxEntries = 4096;

bool IsKnown(const StatusOr<std::string>& answer) {
  return answer.ok() || absl::IsNotFound(answer.status());
}

}  // namespace

StatusOr<std::string> NamespaceCache::Uid(const std::string& name) {
  {
    const MutexLock lock(mutex_);
    if (entries_.size() >= kMaxEntries) {
      std::erase_if(entries_, [](const auto& entry) { return !entry.second.asking; });
    }
    Entry& entry = entries_[name];
    const bool ttl = clock_->Monotonic() < entry.until;
    if (ttl || (entry.asking && IsKnown(entry.answer))) return entry.answer;
    entry.asking = true;
  }
  const auto object = client_->Get({kNamespaces, "", name});
  const MutexLock lock(mutex_);
  Entry& entry = entries_[name];
  entry.asking = false;
  entry.until = clock_->Monotonic() + kCacheTtl;
  const StatusOr<std::string> answer =
      object.ok() ? StatusOr<std::string>(UidOf(*object)) : object.status();
  if (IsKnown(answer) || !IsKnown(entry.answer)) entry.answer = answer;
  return entry.answer;
}

namespace {

constexpr absl::Duration kFoundTtl = absl::Seconds(5);
constexpr absl::Duration kNotFoundTtl = absl::Seconds(2);
constexpr RateLimits kLookupRate{.requests_per_second = 20, .burst = 100};

bool IsAddress(const std::string& text) {
  in6_addr bytes;
  return inet_pton(AF_INET, text.c_str(), &bytes) == 1 ||
         inet_pton(AF_INET6, text.c_str(), &bytes) == 1;
}

// Whether the address is that of this pod alone, now.
bool Holds(const Json& pod, const std::string& address) {
  const Json* shared = FindAt(pod, {"spec", "hostNetwork"});
  const std::string phase = Text(pod, {"status", "phase"});
  return Text(pod, {"status", "podIP"}) == address && phase != "Succeeded" && phase != "Failed" &&
         (shared == nullptr || *shared != true);
}

}  // namespace

PodFinder::PodFinder(Client* client, Clock* clock)
    : client_(client), clock_(clock), limiter_(kLookupRate, clock) {}

StatusOr<std::string> PodFinder::NamespaceOf(const std::string& address) {
  if (auto known = answers_.Find(address, clock_->Monotonic())) return *std::move(known);
  if (!limiter_.Acquire("").ok()) {
    return absl::UnavailableError("too many unknown addresses call: try again in a second");
  }
  StatusOr<std::string> answer = Ask(address);
  answers_.Keep(address, answer, clock_->Monotonic() + (answer.ok() ? kFoundTtl : kNotFoundTtl));
  return answer;
}

StatusOr<std::string> PodFinder::Ask(const std::string& address) {
  const Status unknown = absl::PermissionDeniedError(
      absl::StrCat("no running pod has the address ", address,
                   ", so that its namespace is not known: call from a pod, or with a token at the ",
                   "address of --grpc"));
  if (!IsAddress(address)) return unknown;
  Query query;
  query.resource = {"", "v1", "pods", "Pod"};
  query.field_selector = "status.podIP=" + address;
  const auto pods = client_->List(query);
  if (!pods.ok()) {
    return absl::UnavailableError("the cluster cannot be asked whose address " + address +
                                  " is: " + Message(pods.status()));
  }
  std::string ns;
  const Json* items = FindAt(*pods, {"items"});
  if (items == nullptr || !items->is_array()) return unknown;
  for (const Json& pod : *items) {
    if (!Holds(pod, address)) continue;
    const std::string its = Text(pod, {"metadata", "namespace"});
    if (!ns.empty() && ns != its) return unknown;
    ns = its;
  }
  if (ns.empty()) return unknown;
  return ns;
}

}  // namespace shirabe::kube
