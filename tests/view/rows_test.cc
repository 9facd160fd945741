#include "view/record_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/records.h"
#include "view/text_table.h"

namespace shirabe::view {
namespace {

using ::testing::ElementsAre;

TEST(RowsTest, Experiments) {
  v1::Experiment experiment = MakeExperiment();
  SetCondition("Running", experiment);
  SetBest(MakeTrial(3, v1::TRIAL_SUCCEEDED, 0.2148), experiment);
  v1::ExperimentStatus& status = *experiment.mutable_status();
  status.set_trials_succeeded(16);
  status.set_trials_failed(1);
  status.set_trials_early_stopped(1);
  status.set_trials_running(4);
  RowStyle style{.now = At(840)};
  EXPECT_THAT(ExperimentHeader(style),
              ElementsAre("NAME", "STATE", "BEST", "TRIALS", "RUNNING", "FAILED", "AGE"));
  EXPECT_THAT(ExperimentRow(experiment, style),
              ElementsAre("digits", "Running", "loss=0.2148", "18/32", "4", "1", "14m"));
  style.wide = style.with_namespace = true;
  EXPECT_THAT(ExperimentRow(experiment, style),
              ElementsAre("default", "digits", "Running", "loss=0.2148", "18/32", "4", "1", "14m",
                          "random", "digits-3", "ExperimentRunning", "", "", "", "", "", ""));
  EXPECT_EQ(ExperimentRow(experiment, style).size(), ExperimentHeader(style).size());
}

TEST(RowsTest, AnExperimentThatIsHeldUpSaysSo) {
  v1::Experiment experiment = MakeExperiment();
  EXPECT_EQ(ExperimentRow(experiment, {.now = At(0)})[1], "Created");
  SetCondition("Running", experiment);
  experiment.mutable_status()->mutable_shirabe()->set_paused(true);
  EXPECT_EQ(ExperimentRow(experiment, {.now = At(0)})[1], "Paused");
  experiment.mutable_status()->mutable_shirabe()->set_stopping(true);
  EXPECT_EQ(ExperimentRow(experiment, {.now = At(0)})[1], "Stopping");
  SetCondition("Failed", experiment);
  EXPECT_EQ(ExperimentRow(experiment, {.now = At(0)})[1], "Failed");
}

TEST(RowsTest, WideShowsWhatAnExperimentHasTaken) {
  v1::Experiment experiment = MakeExperiment();
  experiment.mutable_spec()->mutable_shirabe()->mutable_budget()->set_max_cost(25);
  v1::ShirabeStatus& status = *experiment.mutable_status()->mutable_shirabe();
  status.set_cost(12.5);
  status.set_on_demand_cost(30);
  status.set_preemptions(4);
  status.set_wasted_seconds(12.5);
  status.set_wasted_cost(0.25);
  status.set_refused_writes(2);
  const Cells cells = ExperimentRow(experiment, {.now = At(0), .wide = true});
  EXPECT_THAT(Cells(cells.end() - 6, cells.end()),
              ElementsAre("12.50 USD", "25.00 USD", "30.00 USD", "4", "12.5s, 0.2500 USD", "2"));
}

TEST(RowsTest, WideSaysWhyATrialWaits) {
  v1::Trial trial = MakeTrial(9, v1::TRIAL_PENDING);
  trial.set_waiting("no free slot");
  EXPECT_EQ(TrialRow(MakeExperiment(), trial, {.now = At(0), .wide = true}).back(), "no free slot");
  trial.set_phase(v1::TRIAL_KILLED);
  trial.set_reason("TooManyPreemptions");
  EXPECT_EQ(TrialRow(MakeExperiment(), trial, {.now = At(0), .wide = true}).back(),
            "TooManyPreemptions");
}

TEST(RowsTest, Trials) {
  const v1::Experiment experiment = MakeExperiment();
  RowStyle style{.now = At(140)};
  EXPECT_THAT(TrialHeader(experiment, style),
              ElementsAre("TRIAL", "STATE", "loss", "STEP", "lr", "bs", "opt", "RAN"));
  EXPECT_THAT(TrialRow(experiment, MakeTrial(7, v1::TRIAL_SUCCEEDED, 0.25), style),
              ElementsAre("digits-7", "Succeeded", "0.25", "2", "0.0031", "32", "sgd", "60s"));
  EXPECT_THAT(TrialRow(experiment, MakeTrial(8, v1::TRIAL_RUNNING, 1.0 / 3), style),
              ElementsAre("digits-8", "Running", "0.333333", "2", "0.0031", "32", "sgd", "2m"));
  style.wide = true;
  const Cells pending = TrialRow(experiment, MakeTrial(9, v1::TRIAL_PENDING), style);
  EXPECT_THAT(pending, ElementsAre("digits-9", "Pending", "", "", "0.0031", "32", "sgd", "", "",
                                   "0", "0", "", "2m10s", ""));
  EXPECT_EQ(pending.size(), TrialHeader(experiment, style).size());
}

TEST(RowsTest, Events) {
  v1::Event event;
  event.set_namespace_("default");
  event.set_experiment("digits");
  event.set_reason("BadMetricLine");
  event.set_message("loss=abc");
  event.set_warning(true);
  *event.mutable_time() = ToProto(At(0));
  EXPECT_THAT(EventRow(event, {.now = At(5)}),
              ElementsAre("5s", "Warning", "BadMetricLine", "experiment/digits", "loss=abc"));
  event.set_trial(3);
  EXPECT_EQ(EventRow(event, {.now = At(5)})[3], "trial/digits-3");
  event.set_attempt(1);
  EXPECT_EQ(EventRow(event, {.now = At(5)})[3], "attempt/digits-3-a1");
}

TEST(RowsTest, AClockThatWentBackMakesNoNegativeAge) {
  EXPECT_EQ(ExperimentRow(MakeExperiment(), {.now = At(-50)}).back(), "0s");
}

}  // namespace
}  // namespace shirabe::view
