// The executor of tests of the reconciler: it runs nothing.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "trial/executor.h"

namespace shirabe::experiment {

// An executor that starts everything, and shows its last attempt as a test says.
class ShownExecutor : public trial::Executor {
 public:
  std::optional<trial::Sighting> sighting;  // without its key
  trial::Offer offer;
  std::vector<AttemptKey> forgotten;

  Status Start(const trial::AttemptRequest& request) override {
    started_ = request.key;
    return absl::OkStatus();
  }
  Status Stop(const AttemptKey&, v1::Cause, absl::Duration) override { return absl::OkStatus(); }
  void Adopt(const std::vector<v1::Attempt>&) override {}
  std::vector<trial::Sighting> Observe(const ExperimentKey&) override {
    if (!started_ || !sighting) return {};
    trial::Sighting seen = *sighting;
    seen.key = *started_;
    return {seen};
  }
  void Forget(const AttemptKey& key) override {
    forgotten.push_back(key);
    started_.reset();
  }
  Status RemoveFiles(const ExperimentKey&, int64_t) override { return absl::OkStatus(); }
  trial::AttemptPaths Paths(const AttemptKey&) const override {
    const std::string dir = testing::TempDir() + "/nothing-is-here/";
    return {.dir = dir,
            .log = dir + "log",
            .metrics_file = dir + "metrics",
            .hypertune_file = dir + "hypertune",
            .scrapes_file = dir + "scrapes",
            .params_file = dir + "params",
            .control_file = dir + "control",
            .checkpoint_dir = dir + "checkpoints",
            .output_dir = dir + "output",
            .root = ""};
  }
  trial::Offer Quote(const ExperimentKey&, const google::protobuf::Struct&,
                     const trial::Placing&) override {
    return offer;
  }
  void Prune(const v1::Checkpoint&) override {}

 private:
  std::optional<AttemptKey> started_;
};

}  // namespace shirabe::experiment
