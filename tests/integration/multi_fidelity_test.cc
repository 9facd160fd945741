// Rungs and populations with real processes: a promoted trial makes only the steps that its parent
// has not made, and a loser of a population goes on from the winner's checkpoint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <sstream>
#include <string>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/file_io.h"
#include "experiment/spec/parse_spec.h"
#include "experiment/submission.h"
#include "tests/integration/small_experiment.h"
#include "tests/support/eventually.h"

namespace shirabe::experiment {
namespace {

// As in Katib's own hyperband example, the feasible space of the resource holds none of the rungs.
constexpr char kMultiFidelitySpec[] = R"(apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: small}
spec:
  parallelTrialCount: PARALLEL
  maxTrialCount: TRIALS
  maxFailedTrialCount: TRIALS
  objective: {type: maximize, objectiveMetricName: score}
  algorithm:
    algorithmName: ALGORITHM
    algorithmSettings: [SETTINGS]
  parameters:
    - {name: x, parameterType: double, feasibleSpace: {min: "0.1", max: "0.9"}}
    - {name: epochs, parameterType: int, feasibleSpace: FEASIBLE}
  shirabe: {seed: 7}
  trialTemplate:
    primaryContainerName: main
    trialParameters: [{name: x, reference: x}, {name: epochs, reference: epochs}]
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
        template:
          spec:
            containers:
              - name: main
                image: none
                env: [{name: MARKS, value: HOME/marks}]
                command: [/bin/sh, HOME/train.sh]
                args:
                  - "${trialParameters.x}"
                  - "${trialParameters.epochs}"
                  - "--checkpoint=/var/log/katib/checkpoints/"
)";

// The score is $1 at every step; the checkpoint remembers through which trials it went.
constexpr char kTrainer[] = R"(
step=0; way=
if [ -n "$SHIRABE_RESUME_FROM" ]; then
  step=$(cat "$SHIRABE_RESUME_FROM/step"); way=$(cat "$SHIRABE_RESUME_FROM/way")
fi
echo "$SHIRABE_TRIAL from $step to $2 way$way" >> "$MARKS/starts"
FAIL
while [ $step -lt $2 ]; do
  PAUSE
  step=$((step + 1))
  echo "$SHIRABE_TRIAL" >> "$MARKS/steps"
  echo "{\"step\":$step,\"metrics\":{\"score\":$1}}" >> "$SHIRABE_METRICS_FILE"
  mkdir "$SHIRABE_CHECKPOINT_DIR/$step.tmp"
  echo $step > "$SHIRABE_CHECKPOINT_DIR/$step.tmp/step"
  echo "$way ${SHIRABE_TRIAL#small-}" > "$SHIRABE_CHECKPOINT_DIR/$step.tmp/way"
  mv "$SHIRABE_CHECKPOINT_DIR/$step.tmp" "$SHIRABE_CHECKPOINT_DIR/$step"
done
echo '{"done": true}' >> "$SHIRABE_METRICS_FILE"
)";

// As programs of Katib's population-based training are: the folder is the same for all trials, and
// the file in it is written over. In it stand the trials that it went through.
constexpr char kKatibTrainer[] = R"(
dir=${3#--checkpoint=}; way=
[ ! -f "$dir/training.ckpt" ] || way=$(cat "$dir/training.ckpt")
steps=$(echo $way | wc -w)
echo "$SHIRABE_TRIAL from $steps to $((steps + 1)) way$way" >> "$MARKS/starts"
echo "score=$1"
echo "$way ${SHIRABE_TRIAL#small-}" > "$dir/training.ckpt"
)";

struct Search {
  std::string algorithm;
  std::string settings;
  int trials = 13;
  int parallel = 3;
  std::string feasible = "{min: \"20\", max: \"20\"}";
  std::string fail = ":";   // a line of the trainer, before the first step
  std::string pause = ":";  // before each step
  std::string trainer = kTrainer;
  v1::NodePools pools = {};
};

class MultiFidelity : public testing::Test {
 protected:
  ~MultiFidelity() override {
    if (!home_.empty()) {
      EXPECT_TRUE(RemoveFolder(home_));
    }
  }

  // Takes the experiment to its end.
  void Run(const Search& search) {
    char name[] = "/tmp/shirabe-fidelity-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    home_ = name;
    ASSERT_TRUE(MakeDirs(home_ + "/marks").ok());
    const std::string trainer =
        absl::StrReplaceAll(search.trainer, {{"FAIL", search.fail}, {"PAUSE", search.pause}});
    ASSERT_TRUE(WriteFileAtomic(home_ + "/train.sh", trainer).ok());
    const auto parsed = ParseExperiments(
        absl::StrReplaceAll(kMultiFidelitySpec, {{"HOME", home_},
                                                 {"ALGORITHM", search.algorithm},
                                                 {"SETTINGS", search.settings},
                                                 {"FEASIBLE", search.feasible},
                                                 {"PARALLEL", std::to_string(search.parallel)},
                                                 {"TRIALS", std::to_string(search.trials)}}));
    for (const Finding& finding : parsed[0].findings) {
      ASSERT_TRUE(finding.warning) << FormatFinding(finding, "spec");
    }
    store_ = OpenHome(home_);
    ASSERT_TRUE(Submit(*store_, *RealClock(), parsed[0].experiment).ok());
    const Status status = RunSmall(home_, {.pools = search.pools});
    ASSERT_TRUE(status.ok()) << status;
    const auto trials = store_->ListTrials({.experiment = kSmall});
    for (const auto& [trial, revision] : *trials) trials_[trial.number()] = trial;
    const std::string starts = ReadFile(home_ + "/marks/starts").value();
    for (const auto& line : absl::StrSplit(starts, '\n', absl::SkipEmpty())) {
      std::istringstream words{std::string(line)};
      std::string trial, from, to, way;
      Start start;
      words >> trial >> from >> start.from >> to >> start.to;
      std::getline(words, start.way);
      starts_[std::stoll(trial.substr(trial.find('-') + 1))] = start;
    }
  }

  // How a trial's program began.
  struct Start {
    int64_t from = 0;
    int64_t to = 0;
    std::string way;
  };

  int64_t Steps() const {
    const std::string steps = ReadFile(home_ + "/marks/steps").value();
    return std::count(steps.begin(), steps.end(), '\n');
  }

  std::map<int64_t, int> CountByEpochs() const {
    std::map<int64_t, int> counts;
    for (const auto& [number, trial] : trials_) ++counts[trial.assignments(1).integer()];
    return counts;
  }

  std::string home_;
  std::unique_ptr<db::Store> store_;
  std::map<int64_t, v1::Trial> trials_;  // by number
  std::map<int64_t, Start> starts_;
};

TEST_F(MultiFidelity, HyperbandGoesOnFromTheCheckpointsOfWhomItPromotes) {
  Run({.algorithm = "hyperband",
       .settings = "{name: resource_name, value: epochs}, {name: r_l, value: \"9\"}, "
                   "{name: eta, value: \"3\"}"});
  EXPECT_EQ(CountByEpochs(), (std::map<int64_t, int>{{1, 9}, {3, 3}, {9, 1}}));
  EXPECT_EQ(Steps(), 9 * 1 + 3 * (3 - 1) + 1 * (9 - 3)) << "from scratch it is 27";
  double best = 0;
  for (const auto& [number, trial] : trials_) {
    EXPECT_EQ(trial.phase(), v1::TRIAL_SUCCEEDED);
    best = std::max(best, trial.objective());
    EXPECT_EQ(starts_[number].to, trial.assignments(1).integer());
    if (!trial.has_parent()) {
      EXPECT_EQ(starts_[number].from, 0);
      continue;
    }
    const v1::Trial& parent = trials_[trial.parent().trial()];
    EXPECT_EQ(starts_[number].from, parent.assignments(1).integer());
    EXPECT_EQ(trial.assignments(0).number(), parent.assignments(0).number());
    const auto attempts = store_->ListAttempts({.experiment = kSmall, .trial = number});
    EXPECT_EQ((*attempts)[0].record.resumed_from_trial(), parent.number());
    EXPECT_EQ(trial.labels().at("promoted-from"), std::to_string(parent.number()));
  }
  EXPECT_EQ(trials_.rbegin()->second.objective(), best) << "the best was trained to the end";
}

// Machines that are taken away cost no rung: a promoted trial goes on from its own checkpoint once
// it has one, and stops where its rung ends.
TEST_F(MultiFidelity, RungsSurviveMachinesThatVanish) {
  Search search{.algorithm = "hyperband",
                .settings = "{name: resource_name, value: epochs}, {name: r_l, value: \"9\"}",
                .pause = "sleep 0.05"};
  v1::NodePool& pool = *search.pools.add_pools();
  pool.set_name("spot");
  pool.set_capacity(v1::SPOT);
  pool.set_slots(3);
  for (int i = 1; i <= 6; ++i) pool.mutable_reclaim()->add_times(0.3 * i);
  Run(search);
  EXPECT_EQ(CountByEpochs(), (std::map<int64_t, int>{{1, 9}, {3, 3}, {9, 1}}));
  int32_t preemptions = 0;
  for (const auto& [number, trial] : trials_) {
    EXPECT_EQ(trial.phase(), v1::TRIAL_SUCCEEDED) << number;
    EXPECT_EQ(trial.last_step(), trial.assignments(1).integer()) << number;
    preemptions += trial.preemptions();
  }
  EXPECT_GE(preemptions, 1);
  EXPECT_GE(Steps(), 21);
  EXPECT_LE(Steps(), 21 + preemptions) << "a step at most for each machine that was taken";
}

TEST_F(MultiFidelity, AshaPromotesPastFailuresAndNeverThem) {
  Run({.algorithm = "asha",
       .settings = "{name: resource_name, value: epochs}, {name: max_resource, value: \"4\"}, "
                   "{name: reduction_factor, value: \"2\"}",
       .trials = 14,
       .fail = "case $SHIRABE_TRIAL in small-1|small-3) exit 1;; esac"});
  EXPECT_EQ(trials_[1].phase(), v1::TRIAL_FAILED);
  const auto counts = CountByEpochs();
  EXPECT_GE(counts.at(2), 2);
  EXPECT_GE(counts.at(4), 1);
  for (const auto& [number, trial] : trials_) {
    if (!trial.has_parent()) continue;
    EXPECT_EQ(trials_[trial.parent().trial()].phase(), v1::TRIAL_SUCCEEDED);
    EXPECT_EQ(starts_[number].from * 2, starts_[number].to);
  }
}

TEST_F(MultiFidelity, ALoserOfAPopulationGoesOnFromTheWinnersCheckpoint) {
  Run({.algorithm = "pbt",
       .settings = "{name: resource_name, value: epochs}, {name: n_population, value: \"4\"}, "
                   "{name: truncation_threshold, value: \"0.5\"}, "
                   "{name: suggestion_trial_dir, value: /opt/katib/data/}",
       .trials = 12,
       .parallel = 1,  // so that everyone is compared with all, whoever is quicker
       .feasible = "{min: \"2\", max: \"6\", step: \"2\"}"});
  EXPECT_EQ(CountByEpochs(), (std::map<int64_t, int>{{2, 4}, {4, 4}, {6, 4}}));
  EXPECT_EQ(Steps(), 4 * 6) << "nobody begins again";
  int exploits = 0;
  for (const auto& [number, trial] : trials_) {
    if (!trial.has_parent()) continue;
    const v1::Trial& parent = trials_[trial.parent().trial()];
    EXPECT_EQ(starts_[number].from, parent.assignments(1).integer());
    EXPECT_THAT(starts_[number].way, testing::EndsWith(" " + std::to_string(parent.number())));
    const bool same_member = trial.labels().at("member") == parent.labels().at("member");
    EXPECT_EQ(trial.labels().at("move"), same_member ? "continue" : "exploit");
    if (same_member) {
      EXPECT_EQ(trial.assignments(0).number(), parent.assignments(0).number());
    } else {
      ++exploits;
      EXPECT_NE(trial.assignments(0).number(), parent.assignments(0).number());
    }
  }
  EXPECT_GE(exploits, 1);
}

// Each generation goes on from its parent's, and never writes into it.
TEST_F(MultiFidelity, KatibsProgramsFindTheCheckpointOfTheirParent) {
  Run({.algorithm = "pbt",
       .settings = "{name: n_population, value: \"3\"}, "
                   "{name: truncation_threshold, value: \"0.34\"}, "
                   "{name: suggestion_trial_dir, value: /var/log/katib/checkpoints/}",
       .trials = 9,
       .feasible = "{min: \"2\", max: \"6\", step: \"2\"}",
       .trainer = kKatibTrainer});
  int children = 0;
  for (const auto& [number, trial] : trials_) {
    EXPECT_EQ(trial.phase(), v1::TRIAL_SUCCEEDED) << number;
    EXPECT_EQ(starts_[number].from, std::stoi(trial.labels().at("generation"))) << number;
    if (!trial.has_parent()) continue;
    ++children;
    EXPECT_THAT(starts_[number].way,
                testing::EndsWith(" " + std::to_string(trial.parent().trial())));
    const auto attempts = store_->ListAttempts({.experiment = kSmall, .trial = number});
    EXPECT_EQ((*attempts)[0].record.resumed_from_step(), starts_[number].from);
    EXPECT_EQ((*attempts)[0].record.resumed_from_trial(), trial.parent().trial());
  }
  EXPECT_EQ(children, 6);
}

}  // namespace
}  // namespace shirabe::experiment
