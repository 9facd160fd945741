// spec.shirabe.warmStart: which trials of which experiments an algorithm learns from.
#include "experiment/state/warm_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/timestamp.h"
#include "experiment/conditions.h"
#include "experiment/spec/algorithm_setup.h"
#include "experiment/state/experiment_state.h"
#include "experiment/submission.h"

namespace shirabe::experiment {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::Time kThen = absl::FromUnixSeconds(100'000);

v1::Experiment Named(const std::string& name, std::vector<v1::ParameterSpec> parameters) {
  v1::Experiment experiment;
  experiment.mutable_metadata()->set_name(name);
  experiment.mutable_metadata()->set_namespace_("ns");
  *experiment.mutable_metadata()->mutable_creation_timestamp() = ToProto(kThen);
  v1::ExperimentSpec& spec = *experiment.mutable_spec();
  spec.mutable_objective()->set_type(v1::MINIMIZE);
  spec.mutable_objective()->set_objective_metric_name("loss");
  spec.mutable_algorithm()->set_algorithm_name("random");
  for (v1::ParameterSpec& parameter : parameters) *spec.add_parameters() = std::move(parameter);
  return experiment;
}

v1::ParameterSpec Ranged(const std::string& name, v1::ParameterType type, double min, double max) {
  v1::ParameterSpec parameter;
  parameter.set_name(name);
  parameter.set_parameter_type(type);
  parameter.mutable_feasible_space()->set_min(min);
  parameter.mutable_feasible_space()->set_max(max);
  return parameter;
}

v1::ParameterSpec Choice(const std::string& name, const std::vector<std::string>& list) {
  v1::ParameterSpec parameter;
  parameter.set_name(name);
  parameter.set_parameter_type(v1::CATEGORICAL);
  for (const std::string& item : list) parameter.mutable_feasible_space()->add_list(item);
  return parameter;
}

class WarmStartTest : public testing::Test {
 protected:
  void Put(const v1::Experiment& experiment, const std::vector<v1::Trial>& trials = {}) {
    db::Batch batch;
    batch.experiment = KeyOf(experiment);
    batch.put = {experiment, 0};
    int64_t number = 0;
    for (v1::Trial trial : trials) {
      trial.set_namespace_("ns");
      trial.set_experiment(experiment.metadata().name());
      trial.set_number(++number);
      batch.trials.push_back({trial, 0});
    }
    ASSERT_TRUE(store_->Commit(batch).ok());
  }

  // Ended an hour before the new experiments are made.
  static v1::Trial Ended(double lr, double loss, v1::TrialPhase phase = v1::TRIAL_SUCCEEDED) {
    v1::Trial trial;
    v1::Assignment& assignment = *trial.add_assignments();
    assignment.set_name("lr");
    assignment.set_number(lr);
    trial.mutable_point()->add_x(0.5);
    trial.set_phase(phase);
    trial.set_objective(loss);
    *trial.mutable_completion_time() = ToProto(kThen - absl::Hours(1));
    return trial;
  }

  // A new experiment that starts from these.
  static v1::Experiment From(const std::vector<std::string>& names,
                             std::vector<v1::ParameterSpec> parameters = {
                                 Ranged("lr", v1::DOUBLE, 0, 1)}) {
    v1::Experiment experiment = Named("new", std::move(parameters));
    for (const std::string& name : names) {
      experiment.mutable_spec()->mutable_shirabe()->mutable_warm_start()->add_experiments(name);
    }
    return experiment;
  }

  WarmStart Read(const v1::Experiment& experiment) {
    const auto space = SearchSpaceOf(experiment.spec());
    auto found = ReadWarmStart(*store_, experiment, *space);
    EXPECT_TRUE(found.ok()) << found.status();
    return *std::move(found);
  }

  std::string Refusal(const v1::Experiment& experiment) {
    const Status status = CheckWarmStart(*store_, experiment);
    EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << status;
    return Message(status);
  }

  std::unique_ptr<db::Store> store_ = *db::Open("memory:");
};

TEST_F(WarmStartTest, TakesEndedTrialsOfEachSourceInOrder) {
  v1::Trial nothing = Ended(0.4, 9);
  nothing.clear_objective();
  v1::Trial later = Ended(0.3, 9);
  *later.mutable_completion_time() = ToProto(kThen + absl::Seconds(1));
  Put(Named("a", {Ranged("lr", v1::DOUBLE, 0, 1)}),
      {Ended(0.1, 1), Ended(0.2, 2, v1::TRIAL_EARLY_STOPPED), later, nothing,
       Ended(0.5, 9, v1::TRIAL_FAILED), Ended(0.6, 9, v1::TRIAL_RUNNING)});
  Put(Named("b", {Ranged("lr", v1::DOUBLE, 0, 1)}), {Ended(0.7, 3)});
  const WarmStart found = Read(From({"b", "a"}));
  ASSERT_EQ(found.trials.size(), 3u);
  EXPECT_EQ(found.trials[0].point, suggestion::Point{0.7});
  EXPECT_EQ(found.trials[0].source, 0);
  EXPECT_EQ(found.trials[1].point, suggestion::Point{0.1});
  EXPECT_EQ(found.trials[1].loss, 1);
  EXPECT_EQ(found.trials[2].loss, 2);
  EXPECT_EQ(found.trials[2].source, 1);
  EXPECT_EQ(found.left_out, 0);
  EXPECT_THAT(found.notes, IsEmpty());
}

TEST_F(WarmStartTest, UniformIsTheDefaultAndIsNoDifference) {
  v1::ParameterSpec uniform = Ranged("lr", v1::DOUBLE, 0, 1);
  uniform.mutable_feasible_space()->set_distribution(v1::UNIFORM);
  Put(Named("a", {uniform}), {Ended(0.1, 1)});
  EXPECT_THAT(Read(From({"a"})).notes, IsEmpty());
}

TEST_F(WarmStartTest, LeavesOutAndCountsWhatLiesOutside) {
  Put(Named("a", {Ranged("lr", v1::DOUBLE, 0, 10), Ranged("bs", v1::INT, 1, 9)}),
      {Ended(0.1, 1), Ended(2, 2), Ended(10, 3)});
  const WarmStart found = Read(From({"a"}));
  EXPECT_EQ(found.trials.size(), 1u);
  EXPECT_EQ(found.left_out, 2);
  EXPECT_THAT(found.notes,
              ElementsAre("a: \"lr\" had other values", "a: \"bs\" is not searched here"));
  EXPECT_THAT(ToString(found), AllOf(HasSubstr("1 trials"), HasSubstr("2 lie outside")));
}

TEST_F(WarmStartTest, LossesAreMinimisedWhereTheMetricIsMaximised) {
  v1::Experiment old = Named("a", {Ranged("lr", v1::DOUBLE, 0, 1)});
  old.mutable_spec()->mutable_objective()->set_type(v1::MAXIMIZE);
  Put(old, {Ended(0.1, 0.9)});
  v1::Experiment experiment = From({"a"});
  experiment.mutable_spec()->mutable_objective()->set_type(v1::MAXIMIZE);
  EXPECT_EQ(Read(experiment).trials[0].loss, -0.9);
}

TEST_F(WarmStartTest, IntegersAndNumbersMatchWhereTheyAreTheSame) {
  Put(Named("a", {Ranged("lr", v1::DOUBLE, 0, 9)}), {Ended(3, 1), Ended(3.5, 2)});
  const WarmStart found = Read(From({"a"}, {Ranged("lr", v1::INT, 0, 9)}));
  EXPECT_EQ(found.trials.size(), 1u);
  EXPECT_EQ(found.left_out, 1);
}

TEST_F(WarmStartTest, MismatchesAreListedByParameter) {
  Put(Named("a", {Ranged("lr", v1::DOUBLE, 0, 1), Choice("opt", {"sgd"})}));
  EXPECT_EQ(Refusal(From({"a"})), "");
  EXPECT_EQ(Refusal(From({"a"}, {Choice("lr", {"0.1"}), Ranged("otp", v1::INT, 0, 1)})),
            "spec.shirabe.warmStart.experiments[0]: experiment \"a\": parameter \"lr\" is numeric "
            "there and categorical here; it has no parameter \"otp\", only \"opt\": search the "
            "same parameters, or remove it");
  EXPECT_EQ(Refusal(From({"a", "c"})),
            "spec.shirabe.warmStart.experiments[1]: experiment \"c\" does not exist: see `shirabe "
            "get exp`");
}

TEST_F(WarmStartTest, TheObjectiveMustBeTheSame) {
  v1::Experiment old = Named("a", {Ranged("lr", v1::DOUBLE, 0, 1)});
  old.mutable_spec()->mutable_objective()->set_type(v1::MAXIMIZE);
  Put(old);
  EXPECT_THAT(Refusal(From({"a"})), HasSubstr("objective.type must be the same"));
  v1::Experiment other = Named("b", {Ranged("lr", v1::DOUBLE, 0, 1)});
  other.mutable_spec()->mutable_objective()->set_objective_metric_name("error");
  Put(other);
  EXPECT_THAT(Refusal(From({"b"})), HasSubstr("its objective is \"error\", not \"loss\""));
}

// Deleted, or made anew with another space, while the new experiment lasts.
TEST_F(WarmStartTest, ASourceThatIsGoneIsANoteAndNoError) {
  Put(Named("a", {Choice("lr", {"x"})}));
  const WarmStart found = Read(From({"a", "gone"}));
  EXPECT_TRUE(found.trials.empty());
  EXPECT_THAT(found.notes, ElementsAre(HasSubstr("a: parameter \"lr\" is categorical there"),
                                       HasSubstr("gone: ")));
}

TEST_F(WarmStartTest, TheHistoryHasThemAndTheExperimentSaysSoOnce) {
  Put(Named("a", {Ranged("lr", v1::DOUBLE, 0, 1)}), {Ended(0.1, 1), Ended(0.2, 2)});
  v1::Experiment experiment = From({"a"});
  experiment.mutable_spec()->mutable_metrics_collector_spec()->mutable_collector()->set_kind(
      v1::STD_OUT);
  Put(experiment);
  const ExperimentKey key = KeyOf(experiment);
  const int64_t epoch =
      store_->AcquireLease({.experiment = key, .holder = "h", .now = kThen, .ttl = absl::Hours(1)})
          ->epoch();
  for (int i = 0; i < 2; ++i) {
    auto state = ExperimentState::Load(*store_, key, epoch);
    ASSERT_TRUE(state.ok()) << state.status();
    ASSERT_EQ((*state)->history().prior().size(), 2u);
    EXPECT_EQ((*state)->history().prior()[1].loss, 2);
    EXPECT_EQ((*state)->history().size(), 0);
    EXPECT_EQ((*state)->Changed(), i == 0);
    ASSERT_TRUE((*state)->Commit(*store_).ok());
  }
  EXPECT_EQ(store_->GetExperiment(key)->record.status().shirabe().prior_trials(), 2);
  const auto events = store_->ListEvents({.experiment = key});
  ASSERT_EQ(events->size(), 1u);
  EXPECT_EQ(events->front().reason(), "WarmStarted");
  EXPECT_FALSE(events->front().warning());
}

}  // namespace
}  // namespace shirabe::experiment
