#include "artifacts/store_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "artifacts/s3_replies.h"
#include "artifacts/s3_request.h"
#include "base/names.h"
#include "base/printable.h"
#include "net/http_client.h"

namespace shirabe::artifacts {
namespace {

using SharedStore = std::shared_ptr<ArtifactStore>;  // shared: by a store's namespaces

// Those keys of another store that begin with a prefix, without it.
class StorePart : public ArtifactStore {
 public:
  StorePart(SharedStore whole, std::string prefix)
      : whole_(std::move(whole)), prefix_(std::move(prefix)) {}

  Status Put(const std::string& key, const PutSource& source, std::stop_token stop) override {
    return whole_->Put(prefix_ + key, source, std::move(stop));
  }
  Status Get(const std::string& key, const ByteRange& range, const PieceSink& sink,
             std::stop_token stop) override {
    return whole_->Get(prefix_ + key, range, sink, std::move(stop));
  }
  StatusOr<ObjectInfo> Head(const std::string& key, std::stop_token stop) override {
    ASSIGN_OR_RETURN(ObjectInfo info, whole_->Head(prefix_ + key, std::move(stop)));
    info.key = key;
    return info;
  }
  StatusOr<ObjectPage> List(const std::string& prefix, const std::string& after,
                            std::stop_token stop) override {
    ASSIGN_OR_RETURN(
        ObjectPage page,
        whole_->List(prefix_ + prefix, after.empty() ? "" : prefix_ + after, std::move(stop)));
    for (ObjectInfo& object : page.objects) object.key = object.key.substr(prefix_.size());
    if (!page.next.empty()) page.next = page.next.substr(prefix_.size());
    return page;
  }
  Status Remove(const std::string& key, std::stop_token stop) override {
    return whole_->Remove(prefix_ + key, std::move(stop));
  }
  StatusOr<PresignedUrl> Presign(const PresignedRequest& request,
                                 absl::Duration lifetime) override {
    PresignedRequest whole = request;
    whole.key = prefix_ + request.key;
    if (!request.after.empty()) whole.after = prefix_ + request.after;
    return whole_->Presign(whole, lifetime);
  }

 private:
  const SharedStore whole_;
  const std::string prefix_;  // ends with '/'
};

Status CheckNamespaces(const v1::ArtifactStore& entry) {
  if (entry.namespaces().empty()) {
    return InvalidField("namespaces", "must be given: names of namespaces, or '*' for all");
  }
  for (const std::string& ns : entry.namespaces()) {
    if (ns == "*") continue;
    const Status valid = ValidateNamespace(ns);
    if (!valid.ok()) return InvalidField("namespaces", Message(valid));
  }
  return absl::OkStatus();
}

StatusOr<SharedStore> OpenEntry(const v1::ArtifactStore& entry) {
  const StoreType* type = Registry<StoreType>::Get().Find(entry.type());
  if (type == nullptr) {
    return InvalidField("type",
                        absl::StrCat(Quoted(Printable(entry.type())), " is not one of ",
                                     absl::StrJoin(Registry<StoreType>::Get().Names(), ", ")));
  }
  if (!entry.folder().empty()) {
    const Status valid = ValidateObjectKey(entry.folder());
    if (!valid.ok()) return InvalidField("folder", Message(valid));
    if (entry.folder().size() > kMaxObjectNameBytes) return InvalidField("folder", "is too long");
  }
  RETURN_IF_ERROR(CheckNamespaces(entry));
  ASSIGN_OR_RETURN(auto store, type->open(entry));
  return SharedStore(std::move(store));
}

}  // namespace

bool MayUse(const v1::ArtifactStore& entry, const std::string& ns) {
  const auto& allowed = entry.namespaces();
  return std::any_of(allowed.begin(), allowed.end(),
                     [&](const std::string& one) { return one == "*" || one == ns; });
}

std::unique_ptr<StoreTable> StoreTable::Of(const v1::ArtifactStore& entry, SharedStore store) {
  std::map<std::string, Entry> entries;
  entries[entry.name()] = {entry, std::move(store)};
  return std::unique_ptr<StoreTable>(new StoreTable(std::move(entries)));  // private
}

StatusOr<std::unique_ptr<StoreTable>> StoreTable::Create(const v1::ArtifactStores& stores) {
  std::map<std::string, Entry> entries;
  for (const v1::ArtifactStore& entry : stores.stores()) {
    const std::string shown = "store " + Quoted(Printable(entry.name()));
    RETURN_IF_ERROR(Prefix(shown, ValidatePoolName(entry.name())));
    auto store = OpenEntry(entry);
    RETURN_IF_ERROR(Prefix(shown, store.status()));
    if (!entries.emplace(entry.name(), Entry{entry, *std::move(store)}).second) {
      return absl::InvalidArgumentError(shown + ": name: is that of another store: rename one");
    }
  }
  return std::unique_ptr<StoreTable>(new StoreTable(std::move(entries)));  // private
}

const StoreTable::Entry* StoreTable::FindAllowed(const std::string& store,
                                                 const std::string& ns) const {
  const auto found = entries_.find(store);
  if (found == entries_.end() || !MayUse(found->second.entry, ns)) return nullptr;
  return &found->second;
}

Status StoreTable::Check(const std::string& store, const std::string& ns, const char* field) const {
  if (FindAllowed(store, ns) != nullptr) return absl::OkStatus();
  return InvalidField(field,
                      absl::StrCat(Quoted(Printable(store)), " is not a store that namespace ", ns,
                                   " may use: the administrator names them with --stores FILE"));
}

Status StoreTable::CheckForPods(const std::string& store, const std::string& ns,
                                const char* field) const {
  RETURN_IF_ERROR(Check(store, ns, field));
  const std::string& type = FindAllowed(store, ns)->entry.type();
  const StoreType* known = Registry<StoreType>::Get().Find(type);
  if (known != nullptr && known->presigns) return absl::OkStatus();
  return InvalidField(field,
                      absl::StrCat(Quoted(Printable(store)), " is a ", type,
                                   " of the server's machine, which no pod can reach: where "
                                   "trials run in a cluster name a store of type s3 or gcs"));
}

bool StoreTable::IsShared(const v1::ArtifactStore& entry) const {
  if (entry.namespaces_size() != 1 || entry.namespaces(0) == "*") return true;
  const std::string key = entry.credentials().SerializeAsString();
  return std::any_of(entries_.begin(), entries_.end(), [&](const auto& named) {
    const v1::ArtifactStore& other = named.second.entry;
    return other.name() != entry.name() &&
           (other.bucket() == entry.bucket() || other.credentials().SerializeAsString() == key);
  });
}

// The server's answer to the one question, asked by one thread.
StatusOr<bool> StoreTable::AskForUnsignedCopies(const std::string& store, const std::string& bucket,
                                                ArtifactStore& part) const {
  {
    const MutexLock lock(mutex_);
    const auto [known, first] = unsigned_copies_.emplace(store, std::nullopt);
    if (!first && known->second) return *known->second;
    if (!first) return absl::UnavailableError("the store is being asked; try again");
  }
  const auto takes = TakesUnsignedCopies(part, bucket);
  const MutexLock lock(mutex_);
  if (takes.ok()) {
    unsigned_copies_[store] = *takes;
  } else {
    unsigned_copies_.erase(store);
  }
  return takes;
}

Status StoreTable::CheckPutsOfPods(const std::string& store, const std::string& ns) const {
  ASSIGN_OR_RETURN(const auto part, Find(store, ns));
  const v1::ArtifactStore& entry = FindAllowed(store, ns)->entry;
  if (!IsShared(entry)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const bool takes, AskForUnsignedCopies(store, entry.bucket(), *part));
  if (!takes) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "store ", Quoted(Printable(store)),
      ": its server takes x-amz-copy-source unsigned, as MinIO ",
      "does: with a URL to put with, a pod could read what others have in bucket ",
      Printable(entry.bucket()), ". Give each namespace a store with a bucket and a key of its ",
      "own, and name that namespace alone in its entry"));
}

std::vector<std::string> StoreTable::NamesFor(const std::string& ns) const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) {
    if (FindAllowed(name, ns) != nullptr) names.push_back(name);
  }
  return names;
}

std::optional<double> StoreTable::KeepDays(const std::string& store) const {
  const auto found = entries_.find(store);
  if (found == entries_.end() || !found->second.entry.has_keep_days()) return std::nullopt;
  return found->second.entry.keep_days();
}

StatusOr<std::shared_ptr<ArtifactStore>> StoreTable::Find(  // shared: with threads
    const std::string& store, const std::string& ns) const {
  RETURN_IF_ERROR(Check(store, ns));
  const Entry& entry = *FindAllowed(store, ns);
  const std::string& folder = entry.entry.folder();
  return std::make_shared<StorePart>(entry.store,
                                     absl::StrCat(folder, folder.empty() ? "" : "/", ns, "/"));
}

namespace {

constexpr char kProbeSource[] = "shirabe-probe";
constexpr char kProbeTarget[] = "shirabe-probe-copy";
constexpr absl::Duration kPatience = absl::Seconds(4);

class Prober {
 public:
  static StatusOr<Prober> Create(ArtifactStore& store) {
    ASSIGN_OR_RETURN(auto http, net::HttpClient::Create());
    return Prober(store, std::move(http));
  }

  // kUnavailable for an answer that says nothing of the request: busy, or broken.
  StatusOr<net::HttpResponse> Send(const PresignedRequest& presigned, S3Request request,
                                   std::string* key = nullptr) {
    ASSIGN_OR_RETURN(const PresignedUrl url, store_.Presign(presigned, absl::Minutes(1)));
    if (key != nullptr) *key = url.key;
    ASSIGN_OR_RETURN(net::HttpCall call, CallOf(url, std::move(request)));
    call.limits.answer = kPatience;
    net::HttpExchange exchange = http_->Do(call, nullptr, {});
    if (!exchange.status.ok()) return absl::UnavailableError(Message(exchange.status));
    const int status = exchange.answer.status;
    if (status < 500 && status != 408 && status != 429) return std::move(exchange.answer);
    return absl::UnavailableError(Words(exchange.answer));
  }
  void Remove(const char* key) {
    (void)Send({.action = v1::REMOVE_OBJECT, .key = key}, {.method = "DELETE"});
  }
  static std::string Words(const net::HttpResponse& answer) {
    return absl::StrCat("the store answers ", answer.status, " ", ReadErrorCode(answer.body));
  }

 private:
  Prober(ArtifactStore& store, std::unique_ptr<net::HttpClient> http)
      : store_(store), http_(std::move(http)) {}

  ArtifactStore& store_;
  std::unique_ptr<net::HttpClient> http_;
};

Status Put(Prober& prober, const char* key, const std::string& bytes, std::string* real) {
  const PresignedRequest presigned{
      .action = v1::PUT_OBJECT, .key = key, .bytes = static_cast<int64_t>(bytes.size())};
  ASSIGN_OR_RETURN(const net::HttpResponse answer,
                   prober.Send(presigned, {.method = "PUT", .body = bytes}, real));
  if (answer.status == 200) return absl::OkStatus();
  return absl::PermissionDeniedError(Prober::Words(answer) + " to a URL to put with");
}

// Whether the first object has arrived in place of the other, which is empty.
StatusOr<bool> Copy(Prober& prober, const std::string& from) {
  S3Request copy{.method = "PUT"};
  copy.headers.emplace_back("x-amz-copy-source", from);
  RETURN_IF_ERROR(
      prober.Send({.action = v1::PUT_OBJECT, .key = kProbeTarget}, std::move(copy)).status());
  ASSIGN_OR_RETURN(
      const net::HttpResponse found,
      prober.Send({.action = v1::READ_OBJECT, .key = kProbeTarget}, {.method = "GET"}));
  if (found.status == 200) return !found.body.empty();
  return absl::UnavailableError(Prober::Words(found));
}

}  // namespace

StatusOr<bool> TakesUnsignedCopies(ArtifactStore& store, const std::string& bucket) {
  ASSIGN_OR_RETURN(Prober prober, Prober::Create(store));
  std::string source;
  RETURN_IF_ERROR(Put(prober, kProbeSource, "probe", &source));
  RETURN_IF_ERROR(Put(prober, kProbeTarget, "", nullptr));
  auto arrived = Copy(prober, absl::StrCat("/", bucket, "/", source));
  prober.Remove(kProbeTarget);
  prober.Remove(kProbeSource);
  return arrived;
}

}  // namespace shirabe::artifacts
