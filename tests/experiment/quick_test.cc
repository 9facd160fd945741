#include "experiment/spec/experiment_from_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiment/spec/parse_spec.h"
#include "tests/experiment/specs.h"
#include "trial/trial_template.h"

namespace shirabe::experiment {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

v1::ParameterSpec Parameter(const std::string& text) {
  const auto parameter = ParseParameterFlag(text);
  EXPECT_TRUE(parameter.ok()) << parameter.status();
  return parameter.value_or(v1::ParameterSpec());
}

std::string Problem(const std::string& text) { return Message(ParseParameterFlag(text).status()); }

FlagsExperimentOptions Options() {
  FlagsExperimentOptions options;
  options.params = {"lr=log:1e-5..1e-1", "bs=16,32,64"};
  options.minimize = {"loss"};
  options.command = {"python3", "train.py", "--lr", "{lr}", "--bs={bs}"};
  return options;
}

TEST(QuickParameter, Ranges) {
  const auto lr = Parameter("lr=0..1");
  EXPECT_EQ(lr.name(), "lr");
  EXPECT_EQ(lr.parameter_type(), v1::DOUBLE);
  EXPECT_EQ(lr.feasible_space().max(), 1);
  EXPECT_FALSE(lr.feasible_space().has_step());
  EXPECT_EQ(Parameter("n=int:1..10").parameter_type(), v1::INT);
  EXPECT_EQ(Parameter("x=-1.5..-.5").feasible_space().min(), -1.5);
  EXPECT_EQ(Parameter("x=log:1e-5..1e-1").feasible_space().distribution(), v1::LOG_UNIFORM);
  EXPECT_EQ(Parameter("x=0..1:0.1").feasible_space().step(), 0.1);
  EXPECT_EQ(Parameter("x=int:0..100:10").feasible_space().step(), 10);
  for (const char* both : {"x=log:int:1..1024", "x=int:log:1..1024"}) {
    EXPECT_EQ(Parameter(both).parameter_type(), v1::INT);
    EXPECT_EQ(Parameter(both).feasible_space().distribution(), v1::LOG_UNIFORM);
  }
}

TEST(QuickParameter, Lists) {
  const auto numbers = Parameter("bs=16,32,6.4e1");
  EXPECT_EQ(numbers.parameter_type(), v1::DISCRETE);
  EXPECT_THAT(numbers.feasible_space().numbers(), ElementsAre(16, 32, 64));
  const auto words = Parameter("opt=sgd,adam,16");
  EXPECT_EQ(words.parameter_type(), v1::CATEGORICAL);
  EXPECT_THAT(words.feasible_space().list(), ElementsAre("sgd", "adam", "16"));
}

TEST(QuickParameter, EveryWrongFormIsNamed) {
  EXPECT_THAT(Problem("lr"), HasSubstr("--param \"lr\": write NAME=RANGE"));
  EXPECT_THAT(Problem("=0..1"), HasSubstr("write NAME=RANGE"));
  EXPECT_THAT(Problem("lr=1.."), HasSubstr("has no end"));
  EXPECT_THAT(Problem("lr=..1"), HasSubstr("has no start"));
  EXPECT_THAT(Problem("lr=0..one"), HasSubstr("end \"one\" is not a number"));
  EXPECT_THAT(Problem("lr=0..1:"), HasSubstr("has no step"));
  EXPECT_THAT(Problem("lr=0..1..2"), HasSubstr("end \"1..2\" is not a number"));
  EXPECT_THAT(Problem("lr=log:0..1"),
              HasSubstr("min: must be greater than 0 for logUniform, not 0"));
  EXPECT_THAT(Problem("lr=1..0"), HasSubstr("min: 1 is greater than max 0"));
  EXPECT_THAT(Problem("lr=0..1:0"), HasSubstr("step: must be greater than 0"));
  EXPECT_THAT(Problem("lr=0..inf"), HasSubstr("finite"));
  EXPECT_THAT(Problem("n=int:0.5..3"), HasSubstr("min: 0.5 is not an integer"));
  EXPECT_THAT(Problem("n=int:1,2"), HasSubstr("int: needs a range"));
  EXPECT_THAT(Problem("n=log:log:1..2"), HasSubstr("start \"log:1\" is not a number"));
  EXPECT_THAT(Problem("n="), HasSubstr("empty value"));
  EXPECT_THAT(Problem("n=5"), HasSubstr("\"5\" is one value only"));
  EXPECT_THAT(Problem("n=a,,b"), HasSubstr("empty value"));
  EXPECT_THAT(Problem("n=a,a"), HasSubstr("\"a\" is listed twice"));
  EXPECT_THAT(Problem("n{=1,2"), HasSubstr("braces"));
}

TEST(Quick, MakesAnExperimentThatIsValidAndPrintable) {
  const auto experiment = ExperimentFromFlags(Options());
  ASSERT_TRUE(experiment.ok()) << experiment.status();
  EXPECT_THAT(Lines(Validate(*experiment)), IsEmpty());
  EXPECT_THAT(experiment->metadata().name(), MatchesRegex("quick-[0-9a-f]{4}"));
  EXPECT_EQ(experiment->spec().max_trial_count(), 12);
  EXPECT_EQ(experiment->spec().parallel_trial_count(), 1);
  EXPECT_EQ(ToYaml(ParseOnly(ToYaml(*experiment))), ToYaml(*experiment));
}

// What the program gets, with lr = 0.1 and bs = 32.
std::vector<std::string> Argv(const v1::Experiment& experiment) {
  std::vector<v1::Assignment> values(2);
  values[0].set_name("lr");
  values[0].set_number(0.1);
  values[1].set_name("bs");
  values[1].set_number(32);
  const auto& trial = experiment.spec().trial_template();
  const auto rendered = trial::Render(trial, {{"default", "e"}, 1}, values);
  EXPECT_TRUE(rendered.ok()) << rendered.status();
  const auto command =
      trial::ReadCommand(*rendered, trial.primary_container_name(), {{"HOME", "/home/x"}});
  EXPECT_TRUE(command.ok()) << command.status();
  return command->argv;
}

TEST(Quick, TheCommandIsPassedAsItWasTyped) {
  FlagsExperimentOptions options = Options();
  options.command = {"sh", "-c", "echo $$ $(HOME) $HOME $$$(HOME) {{x} {lr}{bs} }}", "$", "$("};
  const auto experiment = ExperimentFromFlags(options);
  ASSERT_TRUE(experiment.ok()) << experiment.status();
  EXPECT_THAT(Argv(*experiment),
              ElementsAre("sh", "-c", "echo $$ $(HOME) $HOME $$$(HOME) {x} 0.132 }}", "$", "$("));
}

TEST(Quick, TheNameIsThatOfTheSearch) {
  const std::string name = ExperimentFromFlags(Options())->metadata().name();
  FlagsExperimentOptions options = Options();
  options.max_trials = 50;
  options.parallel = 4;
  EXPECT_EQ(ExperimentFromFlags(options)->metadata().name(), name);
  options.seed = 3;
  EXPECT_NE(ExperimentFromFlags(options)->metadata().name(), name);
  options.name = "mine";
  EXPECT_EQ(ExperimentFromFlags(options)->metadata().name(), "mine");
}

TEST(Quick, ASmallSpaceHasFewerTrials) {
  FlagsExperimentOptions options = Options();
  options.params = {"lr=0.1,0.2", "bs=16,32"};
  EXPECT_EQ(ExperimentFromFlags(options)->spec().max_trial_count(), 4);
  options.params = {"lr=0..1", "bs=16,32"};
  options.parallel = 16;
  EXPECT_EQ(ExperimentFromFlags(options)->spec().max_trial_count(), 16);
}

std::string Problem(const FlagsExperimentOptions& options) {
  return Message(ExperimentFromFlags(options).status());
}

TEST(Quick, SeveralObjectivesAndConstraints) {
  FlagsExperimentOptions options = Options();
  options.minimize = {"loss", "latency"};
  options.maximize = {"accuracy"};
  options.constraints = {"memory=..16e9", "recall=0.9..", "size=1..5"};
  const auto made = ExperimentFromFlags(options);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->spec().objective().objective_metric_name(), "loss");
  const v1::ShirabeSpec& spec = made->spec().shirabe();
  ASSERT_EQ(spec.additional_objectives_size(), 2);
  EXPECT_EQ(spec.additional_objectives(0).metric_name(), "latency");
  EXPECT_EQ(spec.additional_objectives(1).type(), v1::MAXIMIZE);
  ASSERT_EQ(spec.constraints_size(), 3);
  EXPECT_FALSE(spec.constraints(0).has_min());
  EXPECT_EQ(spec.constraints(0).max(), 16e9);
  EXPECT_EQ(spec.constraints(1).min(), 0.9);
  EXPECT_FALSE(spec.constraints(1).has_max());
  EXPECT_EQ(spec.constraints(2).max(), 5);
  for (const char* wrong :
       {"memory", "=..3", "memory=3", "memory=..", "memory=a..3", "memory=1..b"}) {
    options.constraints = {wrong};
    EXPECT_THAT(Problem(options), HasSubstr("--constraint \"")) << wrong;
  }
  options.constraints = {"memory=3..1"};
  EXPECT_THAT(Problem(options), HasSubstr("--constraint: min 3 is greater than max 1: swap them"));
}

TEST(Quick, MistakesNameTheOption) {
  FlagsExperimentOptions options = Options();
  options.maximize = {"loss"};
  EXPECT_THAT(Problem(options),
              HasSubstr("--minimize or --maximize: \"loss\" is an objective already"));
  options.minimize = options.maximize = {};
  EXPECT_THAT(Problem(options), HasSubstr("add --minimize METRIC or --maximize METRIC"));
  options = Options();
  options.command.clear();
  EXPECT_THAT(Problem(options), HasSubstr("no command is given"));
  options = Options();
  options.params.clear();
  EXPECT_THAT(Problem(options), HasSubstr("add --param"));
  options = Options();
  options.params.push_back("lr=1,2");
  EXPECT_THAT(Problem(options), HasSubstr("--param lr is given twice"));
  options = Options();
  options.params.push_back("dropout=0..1");
  EXPECT_THAT(Problem(options),
              HasSubstr("--param dropout is not used: put {dropout} into the command"));
  options = Options();
  options.command.push_back("{ls}");
  EXPECT_THAT(Problem(options), HasSubstr("{ls} is not a parameter"));
  options = Options();
  options.command.push_back("{epochs}");
  EXPECT_THAT(Problem(options), HasSubstr("write {{ for a brace, or add --param epochs=RANGE"));
  options.command = {"awk", "BEGIN {print 1}"};
  EXPECT_THAT(Problem(options),
              AllOf(HasSubstr("write {{ for a brace"), Not(HasSubstr("--param"))));
  EXPECT_THAT(Problem(options), EndsWith("; a closing brace is written once"));
  options = Options();
  options.algorithm = "randm";
  EXPECT_THAT(Problem(options),
              HasSubstr("--algorithm: unknown name \"randm\"; did you mean \"random\"?"));
  options = Options();
  options.max_trials = 0;
  EXPECT_THAT(Problem(options), HasSubstr("--max-trials: must be at least 1"));
  options = Options();
  options.max_trials = 2;
  options.parallel = 3;
  EXPECT_THAT(Problem(options), HasSubstr("--parallel: 3 is more than"));
  options = Options();
  options.seed = -1;
  EXPECT_THAT(Problem(options), HasSubstr("--seed: must be at least 0"));
  options = Options();
  options.name = "Not_Good";
  EXPECT_THAT(Problem(options), HasSubstr("--name: experiment name \"Not_Good\""));
}

}  // namespace
}  // namespace shirabe::experiment
