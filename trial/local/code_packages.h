// Code packages of experiments (spec.shirabe.code) on this machine: fetched once each, in threads
// of its own, from the store that the experiment names, into $SHIRABE_HOME/code
// (artifacts/package/code_cache.h), where all of its trials find them.
//
// What cannot be had now is tried again, later and later, and given up after a while: then the
// attempt that asks fails with the reason, and the next one begins from the start. Nothing is
// remembered across a restart but what is in the cache. Owned by an executor; thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>

#include "artifacts/package/code_cache.h"
#include "artifacts/retries.h"
#include "artifacts/store_table.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/names.h"
#include "base/status.h"
#include "base/task_pool.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::trial {

struct CodePackagesOptions {
  std::string home;                                             // $SHIRABE_HOME
  Clock* clock = nullptr;                                       // outlives it
  using Stores = std::shared_ptr<const artifacts::StoreTable>;  // shared: by executors
  Stores stores;                                                // null = there are none
  // A package that trials of the experiment wait for is there, or is not to be had now.
  std::function<void(const ExperimentKey&)> on_change;
  artifacts::RetryPolicy calls{.attempts = 4};  // of one call of the store
  artifacts::PackageLimits limits = {};
  Backoff pause{.first = absl::Seconds(1), .max = absl::Minutes(1)};  // between two tries
  int tries = 8;                                                      // before an attempt fails
};

class CodePackages {
 public:
  explicit CodePackages(CodePackagesOptions options);
  ~CodePackages();

  // What the experiment's specification says.
  void SetPackage(const ExperimentKey& key, const v1::CodePackage& package);
  // kInvalidArgument, with field and fix: its trials can have none here.
  Status Check(const ExperimentKey& key) const;

  // The folder for SHIRABE_CODE_DIR; "" if the experiment names no package. Else an error of
  // trial/start_error.h: kUnavailable: it is being fetched; kResourceExhausted: it cannot be had
  // now, with the reason, and is tried again; kDataLoss: it is given up for this attempt. on_change
  // follows the first.
  StatusOr<std::string> Prepare(const ExperimentKey& key);

 private:
  struct Fetching {
    bool under_way = false;
    int failures = 0;                             // in a row
    Status last;                                  // why it has failed
    absl::Duration again = absl::ZeroDuration();  // not before
    std::set<ExperimentKey> waiting;
  };

  Status FetchNow(const v1::CodePackage& package, const std::string& ns);
  void Finish(const std::string& place, const Status& status);

  const CodePackagesOptions options_;
  artifacts::CodeCache cache_;
  std::stop_source stop_;
  mutable Mutex mutex_;
  std::map<ExperimentKey, v1::CodePackage> packages_ ABSL_GUARDED_BY(mutex_);
  // By digest, and where it comes from: another's store may lack what ours has.
  std::map<std::string, Fetching> fetching_ ABSL_GUARDED_BY(mutex_);
  TaskPool threads_;  // last: its threads use all of the above
};

}  // namespace shirabe::trial
