// The executor of trials that somebody else runs, who has asked for them and will tell their end
// (ask-and-tell): to start one is to note it down, and to stop one is to say that it has ended.
// Nothing is copied, read or removed. Called by the reconciler; thread-safe. It is not registered:
// what an executor promises about programs does not hold of it.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "trial/executor.h"

namespace shirabe::trial {

class AskedTrials : public Executor {
 public:
  explicit AskedTrials(Clock* clock) : clock_(clock) {}

  Status Start(const AttemptRequest& request) override;
  Status Stop(const AttemptKey& key, v1::Cause why, absl::Duration grace) override;
  void Adopt(const std::vector<v1::Attempt>& open) override;
  std::vector<Sighting> Observe(const ExperimentKey& experiment) override;
  void Forget(const AttemptKey& key) override;
  Status RemoveFiles(const ExperimentKey&, int64_t) override { return absl::OkStatus(); }
  AttemptPaths Paths(const AttemptKey&) const override { return {}; }
  Offer Quote(const ExperimentKey&, const google::protobuf::Struct&, const Placing&) override {
    return {};
  }
  void Prune(const v1::Checkpoint&) override {}

 private:
  void Note(const AttemptKey& key, absl::Time since);

  Clock* const clock_;
  std::mutex mutex_;
  std::map<AttemptKey, Sighting> attempts_;  // guarded by mutex_
};

}  // namespace shirabe::trial
