// How an experiment is getting on, followed through a client: what `run` shows while it waits.
// Used by one thread.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "client/client.h"

namespace shirabe::view {

class Progress {
 public:
  // The client must outlive it.
  Progress(client::Client* client, ExperimentKey key) : client_(client), key_(std::move(key)) {}

  // Reads what has changed. The trials that had ended before the first call are not news.
  Status Update();

  const v1::Experiment& experiment() const { return experiment_; }
  // Trials that have ended since this was last asked, in the order in which they were seen to.
  std::vector<v1::Trial> PopFinished();

  // One line that fits `width` columns:
  // [#########.......] 18/32  running 4  failed 1  best loss=0.2148 (trial 17: lr=0.0031)  ETA 6m
  std::string Line(int width) const;

  // Time until the last trial ends, going by how long they took so far; nullopt if there is no last
  // trial or none has ended.
  std::optional<absl::Duration> Remaining() const;

 private:
  void Count(const v1::Trial& trial);

  client::Client* client_;
  ExperimentKey key_;
  int64_t revision_ = -1;  // up to which everything has been read
  v1::Experiment experiment_;
  std::set<int64_t> ended_;
  std::vector<v1::Trial> finished_;
  absl::Duration total_;  // that the ended trials took
  int64_t timed_ = 0;     // of which this many are known
};

// trial digits-7 Succeeded validation-accuracy=0.951 lr=0.01 bs=32
std::string FinishedLine(const v1::Experiment& experiment, const v1::Trial& trial);

}  // namespace shirabe::view
