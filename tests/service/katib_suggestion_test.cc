// Katib's Suggestion service, asked as Katib's controller asks it: all trials of the experiment in
// every request, numbers as text.
#include "service/katib/katib_suggestion.h"

#include <gmock/gmock.h>

#include <cmath>
#include <set>
#include <thread>

#include "base/text/number.h"
#include "experiment/spec/spec_limits.h"
#include "experiment/state/experiment_state.h"
#include "service/katib/katib_codec.h"
#include "suggestion/algorithm.h"
#include "tests/service/katib_testing.h"

namespace shirabe::service {
namespace {

using ::testing::HasSubstr;
using Condition = katib::TrialStatus;

class KatibSuggestionTest : public ::testing::Test {
 protected:
  katib::GetSuggestionsRequest Request(const katib::Experiment& experiment, int count) const {
    katib::GetSuggestionsRequest request;
    *request.mutable_experiment() = experiment;
    *request.mutable_trials() = {trials_.begin(), trials_.end()};
    request.set_current_request_number(count);
    request.set_total_request_number(static_cast<int>(trials_.size()) + count);
    return request;
  }

  std::vector<Point> Next(const katib::Experiment& experiment, int count) {
    const Answered answered = Ask(*stub_, Request(experiment, count));
    EXPECT_TRUE(answered.status.ok()) << answered.status.error_message();
    outcome_ = answered.outcome;
    return {answered.reply.parameter_assignments().begin(),
            answered.reply.parameter_assignments().end()};
  }

  void Start(const Point& point) {
    trials_.push_back(TrialOf("exp-" + std::to_string(trials_.size() + 1), point));
  }

  grpc::Status Validate(const katib::Experiment& experiment) {
    grpc::ClientContext context;
    katib::ValidateAlgorithmSettingsRequest request;
    katib::ValidateAlgorithmSettingsReply reply;
    *request.mutable_experiment() = experiment;
    return stub_->ValidateAlgorithmSettings(&context, request, &reply);
  }

  void ExpectRefused(const katib::Experiment& experiment, const std::string& words) {
    const grpc::Status status = Validate(experiment);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << words;
    EXPECT_THAT(status.error_message(), HasSubstr(words));
  }

  Status allowed_ = absl::OkStatus();
  StatusOr<std::string> Gate() const {
    if (!allowed_.ok()) return allowed_;
    return std::string("caller");
  }
  SuggestionScheduler turns_{SuggestionLimits::Default(), RealClock()};
  InProcess server_{MakeKatibSuggestion(
      [this](const grpc::ServerContext&, const std::string&) { return Gate(); }, &turns_)};
  std::unique_ptr<katib::Suggestion::Stub> stub_ = katib::Suggestion::NewStub(server_.channel());
  std::vector<katib::Trial> trials_;
  std::string outcome_;
};

// Best where lr is 0.3 and the optimiser is adam.
double Loss(const Point& point) {
  const double lr = *ParseNumber(ValueOf(point, "lr"));
  const double units = *ParseNumber(ValueOf(point, "units"));
  return std::abs(lr - 0.3) + (ValueOf(point, "opt") == "adam" ? 0 : 0.5) + 1 / units;
}

std::vector<std::string> Algorithms() { return Registry<suggestion::AlgorithmInfo>::Get().Names(); }

// The same experiment, run without a wire: typed values, one history that grows.
class InHouse {
 public:
  explicit InHouse(const katib::Experiment& experiment)
      : search_(*ReadSearch(experiment)), known_{.history = suggestion::History(search_.space)} {}

  std::vector<Point> Next(int count) {
    const Rng root(experiment::SeedOf(search_.experiment));
    const auto proposal = search_.algorithm->Propose(known_.history, count, root);
    EXPECT_TRUE(proposal.ok()) << proposal.status();
    std::vector<Point> points;
    for (const suggestion::Suggestion& suggestion : proposal->suggestions) {
      points.push_back(suggestion::FormatSuggestion(search_.experiment.spec(), known_, suggestion));
      pending_.push_back(suggestion);
    }
    return points;
  }
  void Tell(double loss) {
    const suggestion::Suggestion& one = pending_.at(known_.history.size());
    const int64_t parent = one.parent ? one.parent->trial() : 0;
    known_.names.push_back("exp-" + std::to_string(known_.history.size() + 1));
    known_.history.Add(
        one.point, {.state = suggestion::TrialState::kCompleted, .loss = loss, .parent = parent});
    known_.history.SetLabels(known_.history.size() - 1, one.labels);
  }

 private:
  KatibSearch search_;
  suggestion::KatibHistory known_;
  std::vector<suggestion::Suggestion> pending_;
};

TEST_F(KatibSuggestionTest, EveryAlgorithmSuggestsWhatItDoesInHouse) {
  for (const std::string& name : Algorithms()) {
    SCOPED_TRACE(name);
    trials_.clear();
    const katib::Experiment experiment = Mixed(name, Needed(name));
    ASSERT_TRUE(Validate(experiment).ok()) << Validate(experiment).error_message();
    InHouse house(experiment);
    for (int round = 0; round < 8; ++round) {
      const std::vector<Point> points = Next(experiment, 2);
      const std::vector<Point> expected = house.Next(2);
      ASSERT_EQ(points.size(), expected.size());
      for (size_t i = 0; i < points.size(); ++i) {
        ASSERT_EQ(TextOf(points[i]), TextOf(expected[i])) << "round " << round;
        ASSERT_EQ(points[i].labels_size(), expected[i].labels_size());
        Start(points[i]);
        const double loss = Loss(points[i]);
        End(trials_.back(), Condition::SUCCEEDED, FormatNumber(loss));
        house.Tell(loss);
      }
    }
    EXPECT_GE(trials_.size(), 5u);
  }
}

TEST_F(KatibSuggestionTest, ValuesComeBackAsTheSpecificationWritesThem) {
  std::set<std::string> batches;
  for (const Point& point : Next(Mixed("grid"), 6)) batches.insert(ValueOf(point, "batch"));
  EXPECT_EQ(batches, (std::set<std::string>{"16", "32.0", "6.40e1"}));
}

TEST_F(KatibSuggestionTest, ARequestRepeatedAndAtTheSameTimeIsAnsweredTheSame) {
  for (const char* name : {"random", "tpe", "bayesianoptimization", "cmaes"}) {
    trials_.clear();
    const katib::Experiment experiment = Mixed(name);
    for (const Point& point : Next(experiment, 12)) {
      Start(point);
      End(trials_.back(), Condition::SUCCEEDED, FormatNumber(Loss(point)));
    }
    const auto request = Request(experiment, 3);
    std::vector<std::string> answers(6);
    {
      std::vector<std::jthread> threads;
      for (std::string& answer : answers) {
        threads.emplace_back([&] { answer = Ask(*stub_, request).reply.SerializeAsString(); });
      }
    }
    EXPECT_FALSE(answers[0].empty());
    for (const std::string& answer : answers) EXPECT_EQ(answer, answers[0]) << name;
  }
}

// Suggestions that Katib has not made trials of yet are counted in the totals and not in the list.
TEST_F(KatibSuggestionTest, PointsThatAreNotTrialsYetAreNotGivenAgain) {
  for (const char* name : {"random", "sobol", "grid", "tpe", "bayesianoptimization"}) {
    SCOPED_TRACE(name);
    trials_.clear();
    const katib::Experiment experiment = Mixed(name);
    std::set<std::string> given;
    for (const Point& point : Next(experiment, 4)) given.insert(TextOf(point));
    ASSERT_EQ(given.size(), 4u);
    auto request = Request(experiment, 4);
    request.set_total_request_number(8);
    const Answered more = Ask(*stub_, request);
    for (const Point& point : more.reply.parameter_assignments()) {
      EXPECT_TRUE(given.insert(TextOf(point)).second) << TextOf(point);
    }
    EXPECT_EQ(given.size(), 8u);
  }
}

TEST_F(KatibSuggestionTest, TheSeedIsTheSettingElseTheName) {
  const auto first = [this](const katib::Experiment& experiment) {
    return TextOf(Next(experiment, 1).at(0));
  };
  katib::Experiment other = Mixed("random");
  other.set_name("other");
  EXPECT_NE(first(Mixed("random")), first(other));
  EXPECT_NE(first(Mixed("random")), first(Mixed("random", {{"random_state", "7"}})));
  *other.mutable_spec() = Mixed("random", {{"random_state", "7"}}).spec();
  EXPECT_EQ(first(other), first(Mixed("random", {{"random_state", "7"}})));
}

TEST_F(KatibSuggestionTest, ThereAreFewerPointsWhenThereAreNoMore) {
  katib::Experiment experiment = Bare("grid");
  AddRange(experiment, "n", katib::INT, {"1", "3"});
  const std::vector<Point> points = Next(experiment, 5);
  ASSERT_EQ(points.size(), 3u);
  for (const Point& point : points) Start(point);
  EXPECT_TRUE(Next(experiment, 1).empty());
  EXPECT_EQ(outcome_, "exhausted");
  EXPECT_TRUE(Next(experiment, 0).empty());
}

TEST_F(KatibSuggestionTest, HyperbandWaitsAndThenPromotesByName) {
  const katib::Experiment experiment = Mixed("hyperband", Needed("hyperband"));
  int promoted = 0;
  for (int round = 0; round < 12; ++round) {
    for (const Point& point : Next(experiment, 3)) {
      Start(point);
      // Katib names trials at random and lists them by name.
      trials_.back().set_name("exp-" + std::string(1, "qzxkbm"[round % 6]) +
                              std::to_string(trials_.size()));
      End(trials_.back(), Condition::SUCCEEDED, FormatNumber(Loss(point)));
      const auto parent = point.labels().find("shirabe.io/parent");
      if (parent == point.labels().end()) continue;
      ++promoted;
      const bool known = std::any_of(trials_.begin(), trials_.end(), [&](const auto& trial) {
        return trial.name() == parent->second;
      });
      EXPECT_TRUE(known) << parent->second;
    }
  }
  EXPECT_GT(promoted, 2);
}

TEST_F(KatibSuggestionTest, ConditionsAndValuesAreReadAsTheyAreMeant) {
  const KatibSearch search = *ReadSearch(Mixed("random"));
  const std::vector<Point> points = Next(Mixed("random"), 10);
  const std::vector<std::pair<katib::TrialStatus::TrialConditionType, std::string>> ends = {
      {Condition::SUCCEEDED, "0.5"},
      {Condition::SUCCEEDED, "NaN"},
      {Condition::SUCCEEDED, "unavailable"},
      {Condition::EARLYSTOPPED, "1e-3"},
      {Condition::KILLED, "0.1"},
      {Condition::FAILED, ""},
      {Condition::METRICSUNAVAILABLE, ""},
      {Condition::CREATED, ""},
      {Condition::RUNNING, "0.2"},
      {Condition::UNKNOWN, ""}};
  for (size_t i = 0; i < ends.size(); ++i) {
    Start(points[i]);
    End(trials_.back(), ends[i].first, ends[i].second);
  }
  const auto known = ReadHistory(search, Request(Mixed("random"), 1));
  ASSERT_TRUE(known.ok()) << known.status();
  std::string states;
  for (int64_t i = 0; i < known->history.size(); ++i) {
    states += "aci"[static_cast<int>(known->history.trial(i).state)];
  }
  EXPECT_EQ(states, "ciiciiiaaa");
  EXPECT_EQ(known->history.trial(0).loss, 0.5);
  EXPECT_TRUE(known->history.trial(3).early_stopped);
  EXPECT_EQ(known->history.next_ordinal(), 10);
}

TEST_F(KatibSuggestionTest, MaximisedObjectivesAreLosses) {
  katib::Experiment experiment = Mixed("random");
  experiment.mutable_spec()->mutable_objective()->set_type(katib::MAXIMIZE);
  Start(Next(experiment, 1).at(0));
  End(trials_.back(), Condition::SUCCEEDED, "0.75");
  const KatibSearch search = *ReadSearch(experiment);
  EXPECT_EQ(ReadHistory(search, Request(experiment, 1))->history.trial(0).loss, -0.75);
}

TEST_F(KatibSuggestionTest, TrialsOutsideOfTheSpaceAreLeftOutAndSaid) {
  const katib::Experiment experiment = Mixed("tpe");
  for (const Point& point : Next(experiment, 4)) Start(point);
  trials_[1].mutable_spec()->mutable_parameter_assignments()->mutable_assignments(0)->set_value(
      "7e5");
  trials_[2].mutable_spec()->clear_parameter_assignments();
  const Answered answered = Ask(*stub_, Request(experiment, 2));
  EXPECT_EQ(answered.reply.parameter_assignments_size(), 2);
  EXPECT_EQ(answered.left_out, "2");
  EXPECT_THAT(answered.reason, HasSubstr("trial exp-2: parameter \"lr\": 7e+05 is not within"));
}

TEST_F(KatibSuggestionTest, TheOrderIsThatOfTheStarts) {
  const katib::Experiment experiment = Mixed("random");
  for (const Point& point : Next(experiment, 3)) Start(point);
  trials_[0].mutable_status()->set_start_time("2026-11-21T08:30:05Z");
  trials_[2].mutable_status()->set_start_time("2026-11-21T08:30:00Z");
  const KatibSearch search = *ReadSearch(experiment);
  const auto known = ReadHistory(search, Request(experiment, 1));
  EXPECT_EQ(known->names, (std::vector<std::string>{"exp-3", "exp-1", "exp-2"}));
}

// Katib's controller lists trials in any order, and its times have whole seconds.
TEST_F(KatibSuggestionTest, TrialsThatStartedTogetherAreInTheOrderOfTheirNames) {
  const katib::Experiment experiment = Mixed("bayesianoptimization");
  for (const Point& point : Next(experiment, 9)) {
    Start(point);
    trials_.back().set_name("exp-" + std::string(1, "qzxkbmatc"[trials_.size() - 1]));
    End(trials_.back(), Condition::SUCCEEDED, FormatNumber(Loss(point)));
    trials_.back().mutable_status()->set_start_time("2026-11-21T08:30:00Z");
    trials_.back().mutable_status()->set_completion_time("2026-11-21T08:31:00Z");
  }
  const std::string answer = TextOf(Next(experiment, 1).at(0));
  const KatibSearch search = *ReadSearch(experiment);
  EXPECT_EQ(ReadHistory(search, Request(experiment, 1))->names.at(0), "exp-a");
  for (int i = 0; i < 3; ++i) {
    std::rotate(trials_.begin(), trials_.begin() + 2, trials_.end());
    EXPECT_EQ(TextOf(Next(experiment, 1).at(0)), answer);
  }
}

TEST_F(KatibSuggestionTest, TheHistoryKnowsWhichTrialsEndedFirst) {
  const katib::Experiment experiment = Mixed("random");
  for (const Point& point : Next(experiment, 6)) Start(point);
  const std::vector<std::string> ends = {
      "2026-11-21T08:35:05Z", "", "2026-11-21T08:35:00Z", "not a time", "2026-11-21T08:35:05Z", ""};
  for (size_t i = 0; i < ends.size(); ++i) {
    trials_[i].mutable_status()->set_completion_time(ends[i]);
    if (i != 5) End(trials_[i], i == 2 ? Condition::FAILED : Condition::SUCCEEDED, "0.5");
  }
  const auto known = ReadHistory(*ReadSearch(experiment), Request(experiment, 1));
  std::vector<int64_t> ended;
  for (int64_t i = 0; i < 6; ++i) ended.push_back(known->history.trial(i).ended);
  EXPECT_EQ(ended, (std::vector<int64_t>{4, 1, 3, 2, 5, 0}));
}

// ---- verdicts ----------------------------------------------------------------------------------

TEST_F(KatibSuggestionTest, RefusesWhatKatibsServicesRefuse) {
  katib::Experiment small = Bare("grid");
  AddRange(small, "n", katib::INT, {"1", "3"});
  ExpectRefused(small, "spec.maxTrialCount: 20 is more than the 3 points of the grid");
  ExpectRefused(
      [] {
        katib::Experiment continuous = Bare("grid");
        AddRange(continuous, "x", katib::DOUBLE, {"0", "1"});
        return continuous;
      }(),
      "parameter \"x\" is continuous");

  katib::Experiment one = Bare("cmaes");
  AddRange(one, "x", katib::DOUBLE, {"0", "1"});
  AddList(one, "opt", katib::CATEGORICAL, {"a", "b"});
  ExpectRefused(one, "it needs at least 2");

  ExpectRefused(Mixed("random", {{"random_state", "-1"}}), "\"random_state\" is \"-1\"");
  ExpectRefused(Mixed("tpe", {{"n_startup_trails", "5"}}), "did you mean \"n_startup_trials\"");
  ExpectRefused(Mixed("tpe", {{"n_startup_trials", "-5"}}), "spec.algorithm.algorithmSettings[0]");
  ExpectRefused(Mixed("bayesianoptimization", {{"acq_func", "magic"}}), "acq_func");
  ExpectRefused(Mixed("cmaes", {{"restart_strategy", "never"}}), "restart_strategy");
  ExpectRefused(Mixed("hyperband"), "resource_name is missing");
  ExpectRefused(Mixed("pbt", {{"truncation_threshold", "1.5"}}), "truncation_threshold");
  ExpectRefused(Mixed("darts"), "darts");
  ExpectRefused(Mixed("tpee"), "did you mean \"tpe\"");
}

TEST_F(KatibSuggestionTest, TakesTheSettingsOfKatibsServices) {
  const std::vector<std::pair<std::string, Settings>> good = {
      {"tpe", {{"n_startup_trials", "5"}, {"n_ei_candidates", "24"}, {"random_state", "3"}}},
      {"multivariate-tpe", {{"n_startup_trials", "5"}}},
      {"cmaes", {{"restart_strategy", "ipop"}, {"sigma", "0.3"}}},
      {"cmaes", {{"restart_strategy", "none"}}},
      {"bayesianoptimization",
       {{"base_estimator", "GP"},
        {"n_initial_points", "10"},
        {"acq_func", "gp_hedge"},
        {"acq_optimizer", "auto"},
        {"random_state", "10"}}},
      {"hyperband", {{"resource_name", "units"}, {"r_l", "9"}, {"eta", "3"}}},
      {"sobol", {}},
      {"random", {{"random_state", "10"}}}};
  for (const auto& [name, settings] : good) {
    const grpc::Status status = Validate(Mixed(name, settings));
    EXPECT_TRUE(status.ok()) << name << ": " << status.error_message();
  }
}

TEST_F(KatibSuggestionTest, BadRequestsNameTheField) {
  katib::Experiment text = Bare("random");
  AddRange(text, "x", katib::DOUBLE, {"zero", "1"});
  ExpectRefused(text, "spec.parameters[0].feasibleSpace.min \"zero\" is not a number");
  katib::Experiment untyped = Mixed("random");
  untyped.mutable_spec()->mutable_parameter_specs()->mutable_parameters(1)->clear_parameter_type();
  ExpectRefused(untyped, "spec.parameters[1].parameterType is required");
  katib::Experiment beyond = Mixed("random");
  beyond.mutable_spec()->mutable_objective()->set_type(static_cast<katib::ObjectiveType>(7));
  ExpectRefused(beyond, "spec.objective.type");
  katib::Experiment stepped = Mixed("random");
  stepped.mutable_spec()
      ->mutable_parameter_specs()
      ->mutable_parameters(1)
      ->mutable_feasible_space()
      ->set_step("2.5");
  ExpectRefused(stepped, "spec.parameters[1].feasibleSpace.step: 2.5 is not an integer");
  ExpectRefused(katib::Experiment(), "spec.algorithm.algorithmName");
}

// ---- as lenient as Katib's services ------------------------------------------------------------

// Of settings alone, without an objective, parameters or counts.
katib::Experiment SettingsAlone(const std::string& algorithm, const Settings& settings) {
  katib::Experiment experiment = Bare(algorithm, settings);
  const katib::AlgorithmSpec spec = experiment.spec().algorithm();
  *experiment.mutable_spec() = {};
  *experiment.mutable_spec()->mutable_algorithm() = spec;
  return experiment;
}

TEST_F(KatibSuggestionTest, ValidationNeedsNothingButTheSettings) {
  const std::vector<std::pair<std::string, Settings>> good = {
      {"random", {{"random_state", "10"}}},
      {"tpe", {{"gamma", "0.25"}, {"prior_weight", "1.0"}, {"n_EI_candidates", "24"}}},
      {"tpe", {{"n_startup_trials", "0"}, {"n_ei_candidates", "0"}}},
      {"multivariate-tpe", {{"n_startup_trials", "20"}, {"n_ei_candidates", "10"}}},
      {"bayesianoptimization", {{"base_estimator", "GP"}, {"n_initial_points", "0"}}},
      {"grid", {{"random_state", "1"}}},
      {"sobol", {}},
      {"pbt",
       {{"suggestion_trial_dir", "/opt"},
        {"n_population", "8"},
        {"truncation_threshold", "0.3"},
        {"resample_probability", "0.5"}}}};
  for (const auto& [name, settings] : good) {
    const grpc::Status status = Validate(SettingsAlone(name, settings));
    EXPECT_TRUE(status.ok()) << name << ": " << status.error_message();
  }
  ExpectRefused(SettingsAlone("random", {{"seed", "1"}}), "setting \"seed\" is not known");
  ExpectRefused(SettingsAlone("random", {{"random_state", "-1"}}), "\"random_state\" is \"-1\"");
  ExpectRefused(SettingsAlone("tpe", {{"gamma", "1.5"}}), "gamma");
  ExpectRefused(SettingsAlone("tpe", {{"prior_weight", "aaa"}}), "prior_weight");
  ExpectRefused(SettingsAlone("bayesianoptimization", {{"n_initial_points", "-1"}}), "within 0");
  ExpectRefused(SettingsAlone("pbt", {{"resample_probability", "1.5"}}), "resample_probability");
  ExpectRefused(SettingsAlone("unheard", {}), "unknown name \"unheard\"");
  // These look at parameters as well.
  ExpectRefused(SettingsAlone("cmaes", {{"sigma", "0.2"}}), "it needs at least 2");
  ExpectRefused(SettingsAlone("hyperband", {{"r_l", "9"}, {"resource_name", "epochs"}}), "epochs");
  katib::Experiment grid = SettingsAlone("grid", {});
  grid.mutable_spec()->set_max_trial_count(2);
  ExpectRefused(grid, "spec.maxTrialCount: 2 is more than the 1 points of the grid");
}

TEST_F(KatibSuggestionTest, SettingsOfKatibsOwnSpellingAreTaken) {
  for (const Settings& settings : {Settings{{"sigma", "2"}, {"restart_strategy", "None"}},
                                   Settings{{"sigma", "0"}, {"restart_strategy", "ipop"}}}) {
    const grpc::Status status = Validate(Mixed("cmaes", settings));
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(Next(Mixed("cmaes", settings), 2).size(), 2u);
  }
}

// A model can tell only if the value it is to learn from is found: the same trials with objectives
// that are told in other ways give the same point, and without the values another one.
TEST_F(KatibSuggestionTest, TheMetricIsTheExperimentsElseTheTrialsElseTheFirst) {
  const katib::Experiment full = Mixed("bayesianoptimization");
  for (const Point& point : Next(full, 8)) {
    Start(point);
    End(trials_.back(), Condition::SUCCEEDED, FormatNumber(Loss(point)));
    katib::Metric& other = *trials_.back().mutable_status()->mutable_observation()->add_metrics();
    other.set_name("other");
    other.set_value(FormatNumber(-Loss(point)));
  }
  const std::string minimised = TextOf(Next(full, 1).at(0));
  katib::Experiment maximised = full;
  maximised.mutable_spec()->mutable_objective()->set_type(katib::MAXIMIZE);
  maximised.mutable_spec()->mutable_objective()->set_objective_metric_name("other");
  const std::string from_other = TextOf(Next(maximised, 1).at(0));
  EXPECT_EQ(from_other, minimised);

  katib::Experiment aimless = full;
  aimless.mutable_spec()->clear_objective();
  EXPECT_EQ(TextOf(Next(aimless, 1).at(0)), minimised) << "the first metric, to be minimised";

  maximised.mutable_spec()->mutable_objective()->clear_objective_metric_name();
  EXPECT_NE(TextOf(Next(maximised, 1).at(0)), minimised) << "the first metric is not this one";
  for (katib::Trial& trial : trials_) {
    trial.mutable_spec()->mutable_objective()->set_objective_metric_name("other");
  }
  EXPECT_EQ(TextOf(Next(maximised, 1).at(0)), minimised) << "the one that the trials name";
  EXPECT_EQ(TextOf(Next(full, 1).at(0)), minimised) << "the experiment comes before them";
}

TEST_F(KatibSuggestionTest, SettingsThatAnAlgorithmDoesNotHaveAreLeftOutAndSaid) {
  const Settings kept = {{"n_startup_trials", "3"}};
  Settings more = kept;
  more.emplace_back("evaluating_trials", "4");
  more.emplace_back("current_s\x01", "1");
  for (const Point& point : Next(Mixed("tpe", kept), 6)) {
    Start(point);
    End(trials_.back(), Condition::SUCCEEDED, FormatNumber(Loss(point)));
  }
  const Answered answered = Ask(*stub_, Request(Mixed("tpe", more), 1));
  ASSERT_TRUE(answered.status.ok()) << answered.status.error_message();
  EXPECT_EQ(TextOf(answered.reply.parameter_assignments(0)),
            TextOf(Next(Mixed("tpe", kept), 1)[0]));
  EXPECT_THAT(answered.reason, HasSubstr("tpe does not have were left out: evaluating_trials, "));
  ExpectRefused(Mixed("tpe", more), "setting \"evaluating_trials\" is not known");
}

TEST_F(KatibSuggestionTest, AWholeNumberWithAStepBelowOneTakesEachOfThem) {
  katib::Experiment experiment = Bare("grid");
  AddRange(experiment, "n", katib::INT, {"1", "4", "0.8"});
  experiment.mutable_spec()->set_max_trial_count(4);
  EXPECT_TRUE(Validate(experiment).ok()) << Validate(experiment).error_message();
  std::set<std::string> values;
  for (const Point& point : Next(experiment, 10)) values.insert(ValueOf(point, "n"));
  EXPECT_EQ(values, (std::set<std::string>{"1", "2", "3", "4"}));
}

// Katib's hyperband refuses such an experiment when it is made, and then answers for it.
TEST_F(KatibSuggestionTest, HyperbandPromotesWithoutAParameterForItsResource) {
  const katib::Experiment experiment =
      Mixed("hyperband", {{"resource_name", "--num-epochs"}, {"r_l", "9"}, {"eta", "3"}});
  ExpectRefused(experiment, "--num-epochs");
  std::set<std::string> promoted_to;
  for (int round = 0; round < 12; ++round) {
    for (const Point& point : Next(experiment, 3)) {
      EXPECT_EQ(point.assignments_size(), 4);
      const std::string resource = point.labels().at("shirabe.io/resource");
      if (point.labels().count("shirabe.io/parent") > 0) promoted_to.insert(resource);
      Start(point);
      End(trials_.back(), Condition::SUCCEEDED, FormatNumber(Loss(point)));
    }
  }
  EXPECT_EQ(promoted_to, (std::set<std::string>{"3", "9"}));
  // Labels are a client's: what is no rung, or is missing, is a trial left out.
  (*trials_[0].mutable_spec()->mutable_labels())["shirabe.io/resource"] = "1e300";
  trials_[1].mutable_spec()->clear_labels();
  const Answered answered = Ask(*stub_, Request(experiment, 1));
  EXPECT_TRUE(answered.status.ok()) << answered.status.error_message();
  EXPECT_EQ(answered.left_out, "2");
}

TEST_F(KatibSuggestionTest, WhoMayNotCallIsRefused) {
  allowed_ = absl::UnauthenticatedError("a token is required");
  EXPECT_EQ(Validate(Mixed("random")).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Ask(*stub_, Request(Mixed("random"), 1)).status.error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(KatibSuggestionTest, LimitsAreSaid) {
  auto request = Request(Mixed("random"), -1);
  EXPECT_EQ(Ask(*stub_, request).status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  request.set_current_request_number(kMaxKatibSuggestions + 1);
  EXPECT_EQ(Ask(*stub_, request).status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  katib::Experiment wide = Bare("random");
  for (int i = 0; i <= experiment::kMaxParameters; ++i) {
    AddRange(wide, "x" + std::to_string(i), katib::DOUBLE, {"0", "1"});
  }
  ExpectRefused(wide, "at most 1000 are taken");
}

}  // namespace
}  // namespace shirabe::service
