// Katib's messages and our values, both ways.
#include "suggestion/remote/katib_wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "google/protobuf/util/message_differencer.h"
#include "suggestion/remote/katib_trials.h"
#include "tests/suggestion/spaces.h"

namespace shirabe::suggestion {
namespace {

using ::testing::HasSubstr;

v1::Experiment Full() {
  v1::Experiment experiment;
  experiment.mutable_metadata()->set_name("exp");
  experiment.mutable_metadata()->set_namespace_("default");
  v1::ExperimentSpec& spec = *experiment.mutable_spec();
  *spec.add_parameters() = Double("lr", {1e-5, 0.1}, v1::LOG_UNIFORM);
  *spec.add_parameters() = Double("m", {0, 1, 0.1}, v1::NORMAL);
  *spec.add_parameters() = Int("n", {-3, 8, 1});
  v1::ParameterSpec& list = *spec.add_parameters() = Discrete("bs", {0.1, 32});
  list.mutable_feasible_space()->add_list("0.10");
  list.mutable_feasible_space()->add_list("3.2e1");
  *spec.add_parameters() = Categorical("opt", {"sgd", "it's \"adam\""});
  spec.mutable_objective()->set_type(v1::MAXIMIZE);
  spec.mutable_objective()->set_goal(0.99);
  spec.mutable_objective()->set_objective_metric_name("acc");
  spec.mutable_objective()->add_additional_metric_names("loss");
  spec.mutable_algorithm()->set_algorithm_name("tpe");
  v1::Setting& setting = *spec.mutable_algorithm()->add_algorithm_settings();
  setting.set_name("random_state");
  setting.set_value("7");
  spec.mutable_early_stopping()->set_algorithm_name("medianstop");
  spec.set_parallel_trial_count(3);
  spec.set_max_trial_count(12);
  spec.mutable_nas_config()->mutable_graph_config()->set_num_layers(8);
  spec.mutable_nas_config()->mutable_graph_config()->add_input_sizes(32);
  v1::Operation& operation = *spec.mutable_nas_config()->add_operations();
  operation.set_operation_type("convolution");
  *operation.add_parameters() = Int("filters", {8, 64, 8});
  return experiment;
}

TEST(KatibWire, AnExperimentComesBackAsItWas) {
  const v1::Experiment experiment = Full();
  const auto back = FromKatib(ToKatib(experiment));
  ASSERT_TRUE(back.ok()) << back.status();
  google::protobuf::util::MessageDifferencer differencer;
  std::string difference;
  differencer.ReportDifferencesToString(&difference);
  EXPECT_TRUE(differencer.Compare(experiment, *back)) << difference;
}

TEST(KatibWire, NumbersAreTheShortestTextThatReadsBack) {
  const katib::Experiment wire = ToKatib(Full());
  const auto& parameters = wire.spec().parameter_specs().parameters();
  EXPECT_EQ(parameters[0].feasible_space().min(), "1e-05");
  EXPECT_EQ(parameters[1].feasible_space().step(), "0.1");
  EXPECT_EQ(parameters[1].feasible_space().distribution(), katib::NORMAL);
  EXPECT_EQ(parameters[2].feasible_space().min(), "-3");
}

TEST(KatibWire, PointsComeBackExactly) {
  const v1::ExperimentSpec spec = Full().spec();
  const Space space = *Space::Create(spec.parameters());
  Rng rng(5);
  for (int i = 0; i < 2000; ++i) {
    const Point point = space.Sample(rng);
    const auto back = ParsePoint(space, FormatPoint(spec, space, point));
    ASSERT_TRUE(back.ok()) << back.status();
    ASSERT_EQ(*back, point);
  }
}

KatibAssignments Assignments(const std::vector<std::pair<std::string, std::string>>& values) {
  KatibAssignments assignments;
  for (const auto& [name, value] : values) {
    katib::ParameterAssignment& one = *assignments.Add();
    one.set_name(name);
    one.set_value(value);
  }
  return assignments;
}

TEST(KatibWire, ReadsNumbersAsPythonPrintsThem) {
  const Space space = Make({Double("m", {0, 1, 0.1}), Int("n", {1, 64})});
  const auto point = ParsePoint(space, Assignments({{"m", "0.30000000000000004"}, {"n", "32.0"}}));
  ASSERT_TRUE(point.ok()) << point.status();
  EXPECT_EQ(space.Decode(*point)[0].number(), 0.3);
  EXPECT_EQ(space.Decode(*point)[1].integer(), 32);
}

TEST(KatibWire, BadPointsSayWhatIsWrong) {
  const Space space = Make({Double("x", {0, 1}), Categorical("c", {"a", "b"})});
  const auto why = [&space](const std::vector<std::pair<std::string, std::string>>& values) {
    return Message(ParsePoint(space, Assignments(values)).status());
  };
  EXPECT_THAT(why({{"x", "0.5"}}), HasSubstr("parameter \"c\" is missing"));
  EXPECT_THAT(why({{"x", "0.5"}, {"x", "0.5"}, {"c", "a"}}), HasSubstr("given twice"));
  EXPECT_THAT(why({{"x", "0.5"}, {"c", "a"}, {"y", "1"}}), HasSubstr("\"y\" is not a parameter"));
  EXPECT_THAT(why({{"x", "1.5"}, {"c", "a"}}), HasSubstr("1.5 is not within 0 … 1"));
  EXPECT_THAT(why({{"x", "nan"}, {"c", "a"}}), HasSubstr("\"nan\" is not finite"));
  EXPECT_THAT(why({{"x", "inf"}, {"c", "a"}}), HasSubstr("\"inf\" is not finite"));
  EXPECT_THAT(why({{"x", "0,5"}, {"c", "a"}}), HasSubstr("\"0,5\" is not a number"));
  EXPECT_THAT(why({{"x", ""}, {"c", "a"}}), HasSubstr("\"\" is not a number"));
  EXPECT_THAT(why({{"x", std::string(9000, '7') + "\x1b[2J"}, {"c", "a"}}), HasSubstr("…\""));
  EXPECT_THAT(why({{"x", "0.5"}, {"c", "A"}}), HasSubstr("\"A\" is not in its list"));
}

TEST(KatibLabels, AnyTextBecomesALabelAndComesBack) {
  const std::string all = [] {
    std::string text;
    for (int c = 0; c < 256; ++c) text += static_cast<char>(c);
    return text;
  }();
  for (const std::string& text :
       {std::string(""), std::string("0.3"), std::string("3 0.5 1e-05"), std::string("x"),
        std::string("x y"), std::string("_"), std::string("-a-"), std::string(".5."), all}) {
    const std::string label = EscapeLabel(text);
    EXPECT_EQ(UnescapeLabel(label), text);
    if (label.empty()) continue;
    EXPECT_TRUE(std::isalnum(static_cast<unsigned char>(label.front()))) << label;
    EXPECT_TRUE(std::isalnum(static_cast<unsigned char>(label.back()))) << label;
    EXPECT_EQ(label.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                      "0123456789-._"),
              std::string::npos);
  }
  EXPECT_EQ(EscapeLabel("3 0.5"), "3_200.5");
}

TEST(KatibTrials, AHistoryComesBackAsItWas) {
  const v1::Experiment experiment = Full();
  const Space space = *Space::Create(experiment.spec().parameters());
  History history(space);
  Rng rng(3);
  for (const TrialState state :
       {TrialState::kCompleted, TrialState::kActive, TrialState::kInfeasible}) {
    history.Add(space.Sample(rng), {.state = state, .loss = -0.25});
  }
  history.Add(space.Sample(rng),
              {.state = TrialState::kCompleted, .early_stopped = true, .loss = 1e-300});
  history.SetLabels(1, {{kKatibName, "exp-uuid"}, {"theirs", "1"}});
  const KatibTrials trials = FormatTrials(experiment, history);
  EXPECT_EQ(trials[0].name(), "exp-1");
  EXPECT_EQ(trials[1].name(), "exp-uuid");
  EXPECT_EQ(trials[1].spec().labels().at("theirs"), "1");
  EXPECT_EQ(trials[0].status().observation().metrics(0).value(), "0.25");  // it is maximised
  const KatibHistory known = ReadTrials(space, experiment.spec().objective(), trials);
  ASSERT_EQ(known.history.size(), history.size());
  for (int64_t i = 0; i < history.size(); ++i) {
    EXPECT_EQ(known.history.point(i), history.point(i));
    EXPECT_EQ(known.history.trial(i).state, history.trial(i).state);
    EXPECT_EQ(known.history.trial(i).early_stopped, history.trial(i).early_stopped);
    if (history.trial(i).state != TrialState::kCompleted) continue;
    EXPECT_EQ(known.history.trial(i).loss, history.trial(i).loss);
  }
}

}  // namespace
}  // namespace shirabe::suggestion
