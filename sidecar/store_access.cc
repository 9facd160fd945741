#include "sidecar/store_access.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "artifacts/s3_store.h"
#include "base/mutex.h"
#include "trial/checkpoint/checkpoint_copy.h"

namespace shirabe::sidecar {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(10);  // with the server, for a URL
// Several are in memory at the same time, and the container has little; the least that S3 takes.
constexpr int64_t kStorePieceBytes = 5 << 20;
constexpr char kCodeFolder[] = "code/";

// A server that is away or about to leave, or that is asked too often, and a token that the kubelet
// is about to renew: another try may end otherwise.
Status Passing(const Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kAborted: return absl::UnavailableError(Message(status));
    default: return status;
  }
}

Status Unknown(const std::string& key) {
  return absl::InvalidArgumentError(key + " is not a key of what a pod may have");
}

class UrlRequests {
 public:
  UrlRequests(const v1::PodConfig& config, std::unique_ptr<ServerLink> link)
      : config_(config), link_(std::move(link)) {}

  StatusOr<artifacts::PresignedUrl> Ask(const artifacts::PresignedRequest& wanted) {
    ASSIGN_OR_RETURN(const v1::GrantRequest request, RequestFor(wanted));
    StatusOr<v1::GrantReply> reply = absl::UnavailableError("");
    {
      const MutexLock lock(mutex_);
      reply = link_->Grant(request, kPatience);
    }
    RETURN_IF_ERROR(Passing(reply.status()));
    return artifacts::PresignedUrl{.url = reply->url(),
                                   .headers = {reply->headers().begin(), reply->headers().end()},
                                   .key = reply->key(),
                                   .ca = reply->ca()};
  }

 private:
  StatusOr<v1::GrantRequest> RequestFor(const artifacts::PresignedRequest& wanted) const;

  const v1::PodConfig config_;
  Mutex mutex_;
  const std::unique_ptr<ServerLink> link_ ABSL_PT_GUARDED_BY(mutex_);
};

StatusOr<v1::GrantRequest> UrlRequests::RequestFor(
    const artifacts::PresignedRequest& wanted) const {
  v1::GrantRequest request;
  request.set_namespace_(config_.namespace_());
  request.set_experiment(config_.experiment());
  request.set_trial(config_.trial());
  request.set_attempt(config_.attempt());
  request.set_action(wanted.action);
  if (!config_.code().empty() && wanted.key == CodeKey(config_)) {
    request.set_code(true);
    return request;
  }
  const auto key = trial::ParseCopiedKey(wanted.key);
  if (!key) return Unknown(wanted.key);
  v1::CopiedObject& copy = *request.mutable_copy();
  copy.set_trial(key->checkpoint.trial());
  copy.set_attempt(key->checkpoint.attempt());
  copy.set_step(key->checkpoint.step());
  const bool lists = wanted.action == v1::LIST_OBJECTS;
  const std::string files = trial::kCopiedFiles;
  if (lists) {
    copy.set_files(key->rest == files);
  } else if (key->rest != trial::kCopiedManifest) {
    if (key->rest.size() <= files.size()) return Unknown(wanted.key);
    copy.set_sha256(key->rest.substr(files.size()));
  }
  if (!wanted.after.empty()) {
    const auto after = trial::ParseCopiedKey(wanted.after);
    if (!after || after->rest.size() <= files.size()) return Unknown(wanted.after);
    request.set_after(after->rest.substr(files.size()));
  }
  request.set_bytes(wanted.bytes);
  request.set_md5(wanted.md5);
  request.set_upload(wanted.upload);
  request.set_part(wanted.part);
  return request;
}

}  // namespace

std::string CodeKey(const v1::PodConfig& config) { return kCodeFolder + config.code(); }

StatusOr<PodStores::Store> OpenGrantedStore(const v1::PodConfig& config,
                                            std::unique_ptr<ServerLink> link) {
  const auto requests =
      std::make_shared<UrlRequests>(config, std::move(link));  // shared: a copyable function has it
  artifacts::S3Options options;
  options.piece_bytes = kStorePieceBytes;
  options.urls = [requests](const artifacts::PresignedRequest& wanted) {
    return requests->Ask(wanted);
  };
  ASSIGN_OR_RETURN(auto store, artifacts::S3Store::Create(std::move(options)));
  return PodStores::Store(std::move(store));
}

StatusOr<PodStores> OpenStores(const v1::PodConfig& config) {
  PodStores stores;
  const std::string& copies = config.artifacts().store();
  if (copies.empty() && config.code().empty()) return stores;
  ASSIGN_OR_RETURN(const PodStores::Store store, OpenGrantedStore(config, MakeServerLink(config)));
  if (!config.code().empty()) stores.code = store;
  if (copies.empty()) return stores;
  v1::ArtifactStore entry;
  entry.set_name(copies);
  entry.add_namespaces(config.namespace_());
  stores.copies = artifacts::StoreTable::Of(entry, store);
  return stores;
}

}  // namespace shirabe::sidecar
