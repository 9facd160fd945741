// Tests of single passes of the reconciler, over an executor that runs nothing.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "experiment/reconciler.h"
#include "experiment/submission.h"
#include "tests/experiment/specs.h"
#include "trial/executor.h"

namespace shirabe::experiment {

// An executor that starts everything, and shows attempts as a test says.
class ShownExecutor : public trial::Executor {
 public:
  std::optional<trial::AttemptStatus> observed;       // the last one, without its key
  std::map<int64_t, trial::AttemptStatus> of_trials;  // or, by trial, the last one of each
  trial::PlacementQuote quote;
  Status start;                        // what it answers; an error: it has started nothing
  std::vector<absl::Duration> graces;  // of each Stop
  std::vector<AttemptKey> forgotten;

  Status Start(const trial::AttemptRequest& request) override {
    if (!start.ok()) return start;
    started_ = request.key;
    last_of_[request.key.trial.number] = request.key;
    return start;
  }
  Status Stop(const AttemptKey&, v1::Cause, absl::Duration grace) override {
    graces.push_back(grace);
    return absl::OkStatus();
  }
  void Adopt(const std::vector<v1::Attempt>&) override {}
  std::vector<trial::AttemptStatus> Observe(const ExperimentKey&) override {
    std::vector<trial::AttemptStatus> all;
    for (const auto& [number, status] : of_trials) {
      if (!last_of_.contains(number)) continue;
      all.push_back(status);
      all.back().key = last_of_.at(number);
    }
    if (!started_ || !observed) return all;
    trial::AttemptStatus seen = *observed;
    seen.key = *started_;
    all.push_back(std::move(seen));
    return all;
  }
  void Forget(const AttemptKey& key) override {
    forgotten.push_back(key);
    started_.reset();
    last_of_.erase(key.trial.number);
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
  trial::PlacementQuote QuotePlacement(const ExperimentKey&, const google::protobuf::Struct&,
                                       const trial::PlacementRequest&) override {
    return quote;
  }
  void Prune(const v1::Checkpoint&) override {}

 private:
  std::optional<AttemptKey> started_;
  std::map<int64_t, AttemptKey> last_of_;
};

// The reconciler over one experiment, kGood with `spec` before its parameters, in a store in
// memory, by a clock that stands still.
class ReconcilerTest : public testing::Test {
 protected:
  static inline const ExperimentKey kKey{"default", "good"};

  void Create(const std::string& spec) {
    CreateFrom(ParseOnly(Replaced(kGood, "  parameters:", spec + "  parameters:")));
  }
  void CreateFrom(v1::Experiment experiment) {
    ASSERT_TRUE(Submit(*store_, clock_, experiment).ok());
    const auto lease = store_->AcquireLease({.experiment = kKey,
                                             .holder = "test",
                                             .now = clock_.Now(),
                                             .ttl = absl::Hours(9),
                                             .dead_epoch = std::nullopt});
    epoch_ = lease->epoch();
    reconciler_.Own(kKey, epoch_);
  }

  // As another controller would: nothing is known of it but what is in the store.
  void TakeOver() {
    reconciler_.ReleaseOwnership(kKey);
    reconciler_.Own(kKey, epoch_);
  }

  void Send(v1::Intent::Verb verb) {
    v1::Intent intent;
    intent.set_verb(verb);
    const Status sent = experiment::Send(*store_, clock_, kKey, intent);
    ASSERT_TRUE(sent.ok()) << sent;
    reconciler_.NotifyIntent(kKey);
  }

  // How long until the next pass is due.
  absl::Duration Pass() {
    const auto result = reconciler_.Reconcile(kKey);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? result->requeue_after : absl::InfiniteDuration();
  }

  ManualClock clock_;
  int64_t epoch_ = 0;
  std::unique_ptr<db::Store> store_ = db::Open("memory:").value();
  ShownExecutor executor_;
  AlgorithmWorkers workers_{0};
  Reconciler reconciler_{{.store = store_.get(),
                          .executor = &executor_,
                          .clock = &clock_,
                          .algorithm_workers = &workers_,
                          .working_dir = "/tmp",
                          .enqueue = {},
                          .at_step = {}}};
};

}  // namespace shirabe::experiment
