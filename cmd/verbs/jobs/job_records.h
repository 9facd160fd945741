// Experiments as jobs of AI Platform: their states, and the objects that describe shows. Pure, but
// for JobLogs.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/names.h"
#include "base/status.h"
#include "client/client.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"
#include "view/record_json.h"

namespace shirabe::cmd {

// A training job without a search: one trial.
bool IsSingleJob(const v1::Experiment& experiment);

// QUEUED, PREPARING, RUNNING, SUCCEEDED, FAILED, CANCELLING or CANCELLED. One with a search that
// has found nothing has failed.
std::string JobState(const v1::Experiment& experiment);

// {jobId, state, createTime, …, trainingOutput: {trials: […]}}, the best trial first.
view::Json JobJson(const v1::Experiment& experiment, std::vector<v1::Trial> trials);

// The output of all trials of a job as it comes, line by line. Used by the main thread.
class JobLogs {
 public:
  // `client` must outlive it. With `prefix` a line begins with trial and attempt: "7.1  loss=…".
  JobLogs(client::Client* client, ExperimentKey key, bool prefix)
      : client_(client), key_(std::move(key)), prefix_(prefix) {}

  // Prints what is new. What cannot be read now is read the next time.
  Status Print();
  // The same, at most once in so long.
  void PrintSometimes(absl::Duration interval);

 private:
  struct Tail {
    int64_t offset = 0;
    std::string begun;  // a line without its end
  };
  Status PrintTrial(const v1::Trial& trial);
  Status PrintAttempt(const AttemptKey& key);
  void PrintLine(const AttemptKey& key, const std::string& line) const;

  client::Client* const client_;
  const ExperimentKey key_;
  const bool prefix_;
  std::map<std::pair<int64_t, int32_t>, Tail> tails_;
  std::set<int64_t> ended_;  // trials that have nothing more to say
  absl::Duration next_ = absl::ZeroDuration();
};

}  // namespace shirabe::cmd
