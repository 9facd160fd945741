// Trying again what a store could not do just now: a few times, later and later, and no longer
// than what is worth waiting for. Thread-safe; the store outlives it.
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "absl/time/time.h"
#include "artifacts/artifact_store.h"
#include "base/backoff.h"
#include "base/status.h"

namespace shirabe::artifacts {

struct RetryPolicy {
  int attempts = 6;
  Backoff backoff{.first = absl::Milliseconds(500), .max = absl::Seconds(8)};  // 16 s in all
};

// Whether another try may end otherwise.
bool IsWorthRetrying(const Status& status);

// What the last try came to. kCancelled as soon as `stop` is requested.
Status WithRetries(const RetryPolicy& policy, const std::stop_token& stop,
                   const std::function<Status()>& attempt);

// A store, each call of which is tried so often. Get goes on where it broke off: whether the object
// is still the same is for the caller to find out, by its digest.
class RetryingStore : public ArtifactStore {
 public:
  RetryingStore(ArtifactStore* store, const RetryPolicy& policy) : store_(store), policy_(policy) {}

  Status Put(const std::string& key, const PutSource& source, std::stop_token stop) override;
  Status Get(const std::string& key, const ByteRange& range, const PieceSink& sink,
             std::stop_token stop) override;
  StatusOr<ObjectInfo> Head(const std::string& key, std::stop_token stop) override;
  StatusOr<ObjectPage> List(const std::string& prefix, const std::string& after,
                            std::stop_token stop) override;
  Status Remove(const std::string& key, std::stop_token stop) override;
  StatusOr<PresignedUrl> Presign(const PresignedRequest& request,
                                 absl::Duration lifetime) override {
    return store_->Presign(request, lifetime);
  }

 private:
  ArtifactStore* const store_;
  const RetryPolicy policy_;
};

}  // namespace shirabe::artifacts
