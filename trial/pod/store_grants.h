// Which requests to a store the pod of an attempt may make, and the URLs with which it makes them:
// it has no credentials, and no say in where things lie. It names a kind of object and a step; the
// key follows from its experiment's specification and from who it is:
//   - the code package that the specification names: to read
//   - the copies of its own checkpoints and outputs: to read, put, list and remove
//   - the copies of checkpoints that it may go on from, of its trial's earlier attempts, or of
//     another trial where it was started from there: to read
// A URL is good for one request, of exactly so many bytes where something is put, and for a quarter
// of an hour. The store is asked for nothing but, once, whether URLs to put with are safe where
// several namespaces use its bucket (StoreTable::CheckPutsOfPods). Part of the executor
// `kubernetes`; thread-safe.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "artifacts/store_table.h"
#include "base/mutex.h"
#include "base/names.h"
#include "base/status.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/pod.pb.h"
#include "trial/attempt_status.h"
#include "trial/file_layout.h"

namespace shirabe::trial {

inline constexpr absl::Duration kGrantLifetime = absl::Minutes(15);
// Of one request that puts: a part of the largest file that a checkpoint may have, and some more.
inline constexpr int64_t kMaxGrantedBytes = 64 << 20;

class StoreGrants {
 public:
  using Stores = std::shared_ptr<const artifacts::StoreTable>;  // shared: by executors
  // The layout outlives it. No stores: there are none.
  StoreGrants(const FileLayout* layout, Stores stores)
      : layout_(layout), stores_(std::move(stores)) {}

  // What the experiment's specification says.
  void SetPolicy(const ExperimentKey& key, const v1::ShirabeSpec& spec);
  // It is removed: nothing is given for it any more.
  void Forget(const ExperimentKey& key);
  // Whether its attempts may start: kInvalidArgument, with field and fix.
  Status Check(const ExperimentKey& key) const;
  // Before the attempt starts: what it may go on from, kept with its files for the next process.
  Status Record(const AttemptRequest& request) const;

  // Writes down where a copy of outputs lies. False: its experiment has none made.
  bool Locate(v1::Checkpoint& outputs) const;

  // For the attempt `key`, which the caller has proved to be. The errors of rpc v1.Pods/Grant;
  // kUnavailable: its experiment is not known yet.
  StatusOr<v1::GrantReply> Grant(const AttemptKey& key, const v1::GrantRequest& request) const;

 private:
  struct Policy {
    v1::ArtifactPolicy artifacts;
    v1::CodePackage code;
  };
  StatusOr<Policy> PolicyOf(const ExperimentKey& key) const;
  StatusOr<artifacts::PresignedRequest> ForCode(const Policy& policy,
                                                const v1::GrantRequest& request) const;
  StatusOr<artifacts::PresignedRequest> ForCopy(const Policy& policy, const AttemptKey& key,
                                                const v1::GrantRequest& request) const;
  bool MayRead(const AttemptKey& key, const v1::CopiedObject& copy) const;

  const FileLayout* const layout_;
  const Stores stores_;
  mutable Mutex mutex_;
  std::map<ExperimentKey, Policy> policies_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shirabe::trial
