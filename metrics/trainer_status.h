// What a program tells of itself by Kubeflow Trainer's status call (KEP-2779), which Hugging Face's
// Trainer makes without any code of the user's:
//   POST {"trainerStatus": {"progressPercentage": 40, "estimatedRemainingSeconds": 60,
//         "lastUpdatedTime": "2026-11-21T08:30:00Z",
//         "metrics": [{"name": "loss", "value": "0.25"}, {"name": "current_step", "value": "20"}]}}
// Each call holds the last value of everything that was ever logged, under the step of the call: an
// eval_loss of step 500 is sent again at 501, 502, …. Those are not new points. A metric has a new
// point when its value has changed, or when one has that is logged together with it: of the same
// kind (evaluation or not) and first seen in the same call. The last call has no step: it has what
// was logged after the call before it, at the end of the training.
//
// Used by the endpoint for such calls (sidecar/trainer_endpoint.h). Pure: what must be remembered
// of an attempt between two calls is in a TrainerState, which its owner keeps; one that was lost
// costs one repeated point.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"

namespace shirabe::metrics {

constexpr size_t kMaxTrainerStatusBytes = 1 << 20;
constexpr size_t kMaxTrainerMetrics = 1000;  // in a call, and in all calls of an attempt
constexpr size_t kMaxTrainerMetricName = 256;

struct TrainerStatus {
  std::optional<int> progress_percent;
  std::optional<int64_t> remaining_seconds;
  std::optional<absl::Time> time;
  std::optional<int64_t> step;
  std::vector<std::pair<std::string, double>> metrics;  // those that are numbers, without the step
};

// kInvalidArgument, naming the field, for what is no such call.
StatusOr<TrainerStatus> ParseTrainerStatus(std::string_view body);

struct TrainerState {
  struct Seen {
    double value = 0;
    int64_t since = 0;  // the call that it was first seen in
  };
  std::map<std::string, Seen> metrics;
  std::optional<int64_t> step;
  int64_t calls = 0;
};

struct TrainerObservation {
  std::string metric;
  double value = 0;
  std::optional<int64_t> step;  // nullopt: no call has named one
};

// What is new in a call, in its order. kInvalidArgument, and nothing is remembered, if the attempt
// has then named more than kMaxTrainerMetrics.
StatusOr<std::vector<TrainerObservation>> NewObservations(const TrainerStatus& status,
                                                          TrainerState& memory);

// What is new in the status calls of one attempt as lines of its metrics
// file, as if the program had written them there. Used by the endpoints that such calls come to: on
// one machine that of the executor (trial/local/status_endpoint.h), in a pod the sidecar's. One
// thread at a time.
class TrainerStatusWriter {
 public:
  // `mode` is that of the file where the program has made none; others may belong to another user.
  TrainerStatusWriter(std::string metrics_file, unsigned mode)
      : file_(std::move(metrics_file)), mode_(mode) {}

  // Whether the call had anything new. kInvalidArgument, naming the field, for what is no such
  // call; any other error: it could not be written, and counts as new when it comes again.
  StatusOr<bool> Write(const std::string& body);

 private:
  const std::string file_;
  const unsigned mode_;
  TrainerState state_;
};

}  // namespace shirabe::metrics
