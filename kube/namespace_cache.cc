#include "kube/namespace_cache.h"

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

}  // namespace shirabe::kube
