// Pictures: what they show, and that they are SVG whatever the experiment holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <re2/re2.h>

#include <cmath>
#include <limits>

#include "base/timestamp.h"
#include "tests/support/records.h"
#include "view/analysis_text.h"
#include "view/plot/model_plots.h"
#include "view/plot/trial_plots.h"

namespace shirabe::view {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kEvil[] = "</text><script>alert(1)</script>\" onload=\"x\x1b[31m\x01";

// "" for a document whose elements are closed in their order, with nothing that runs or is fetched
// and no number that is none; else what is wrong.
std::string Fault(const std::string& svg) {
  std::vector<std::string> open;
  re2::StringPiece rest(svg);
  std::string closing, name, attributes, empty;
  while (RE2::FindAndConsume(&rest, R"(<(/?)([a-z]+)((?:\s+[a-zA-Z-]+="[^"<]*")*)\s*(/?)>)",
                             &closing, &name, &attributes, &empty)) {
    if (name == "script" || RE2::PartialMatch(attributes, R"(\son[a-z]+=|href)")) return name;
    if (RE2::PartialMatch(attributes, R"((^|[^a-z])(nan|inf))")) return attributes;
    if (!closing.empty()) {
      if (open.empty() || open.back() != name) return "</" + name;
      open.pop_back();
    } else if (empty.empty()) {
      open.push_back(name);
    }
  }
  // Every "<" began an element.
  if (rest.find('<') != re2::StringPiece::npos) return std::string(rest.substr(rest.find('<'), 40));
  for (const char c : svg) {
    if (c >= 0 && c < ' ' && c != '\n') return "a control character";
  }
  return open.empty() ? "" : "<" + open.back();
}

int Count(const std::string& text, const std::string& what) {
  int count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

v1::Experiment Searched() {
  v1::Experiment experiment;
  experiment.mutable_metadata()->set_name("digits");
  experiment.mutable_spec()->mutable_objective()->set_objective_metric_name("loss");
  experiment.mutable_spec()->mutable_objective()->set_type(v1::MINIMIZE);
  v1::ParameterSpec& lr = *experiment.mutable_spec()->add_parameters();
  lr.set_name("lr");
  lr.set_parameter_type(v1::DOUBLE);
  lr.mutable_feasible_space()->set_min(1e-4);
  lr.mutable_feasible_space()->set_max(1);
  lr.mutable_feasible_space()->set_distribution(v1::LOG_UNIFORM);
  v1::ParameterSpec& kind = *experiment.mutable_spec()->add_parameters();
  kind.set_name(kEvil);
  kind.set_parameter_type(v1::CATEGORICAL);
  kind.mutable_feasible_space()->add_list(kEvil);
  kind.mutable_feasible_space()->add_list("plain, \"quoted\"");
  return experiment;
}

v1::Trial TrialOf(int number, double lr, int kind, std::optional<double> objective) {
  v1::Trial trial;
  trial.set_number(number);
  trial.set_phase(objective ? v1::TRIAL_SUCCEEDED : v1::TRIAL_FAILED);
  if (objective) trial.set_objective(*objective);
  v1::Assignment& first = *trial.add_assignments();
  first.set_name("lr");
  first.set_number(lr);
  v1::Assignment& second = *trial.add_assignments();
  second.set_name(kEvil);
  second.set_category(kind == 0 ? kEvil : "plain, \"quoted\"");
  return trial;
}

void SetEstimate(double value, double width, v1::Estimate* estimate) {
  estimate->set_value(value);
  estimate->set_low(value - width);
  estimate->set_high(value + width);
}

v1::PartialDependence Dependence(bool two) {
  v1::PartialDependence dependence;
  dependence.mutable_basis()->set_results(9);
  v1::GridAxis& lr = *dependence.add_axes();
  lr.set_parameter("lr");
  for (const char* value : {"0.0001", "0.01", "1"}) lr.add_values(value);
  for (const double x : {0.0, 0.5, 1.0}) lr.add_coordinates(x);
  if (two) {
    v1::GridAxis& kind = *dependence.add_axes();
    kind.set_parameter(kEvil);
    kind.add_values(kEvil);
    kind.add_values("plain");
    kind.add_coordinates(0);
    kind.add_coordinates(1);
  }
  for (int i = 0; i < (two ? 6 : 3); ++i) {
    dependence.add_mean(i);
    dependence.add_low(i - 0.1);
    dependence.add_high(i == 1 ? i + 9 : i + 0.1);
  }
  return dependence;
}

TEST(SvgTest, TextIsNeverMarkup) {
  Svg svg(10, 10, kEvil, kEvil);
  svg.Write({1, 2}, {.text = kEvil, .upwards = true});
  const std::string text = svg.Finish();
  EXPECT_EQ(Fault(text), "");
  EXPECT_THAT(text, AllOf(HasSubstr("&lt;script&gt;"), HasSubstr("&quot; onload")));
  EXPECT_EQ(EscapeXml("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
}

TEST(SvgTest, NumbersAreNumbers) {
  Svg svg(10, 10, "t", "s");
  svg.Line({std::nan(""), 1}, {std::numeric_limits<double>::infinity(), -0.0001}, {});
  EXPECT_THAT(svg.Finish(), HasSubstr("x1=\"0\" y1=\"1\" x2=\"0\" y2=\"0\""));
}

TEST(PlotScaleTest, MarksAreRoundAndWithin) {
  const auto labels = [](const PlotScale& scale) {
    std::vector<std::string> names;
    for (const auto& tick : scale.Ticks()) {
      EXPECT_GE(tick.at, -1e-9);
      EXPECT_LE(tick.at, 1 + 1e-9);
      names.push_back(tick.label);
    }
    return names;
  };
  using Labels = std::vector<std::string>;
  EXPECT_EQ(labels(PlotScale::Linear(0, 1)), (Labels{"0", "0.2", "0.4", "0.6", "0.8", "1"}));
  EXPECT_EQ(labels(PlotScale::Linear(-3, 42)), (Labels{"0", "10", "20", "30", "40"}));
  EXPECT_EQ(labels(PlotScale::Logarithmic(1e-4, 1)),
            (Labels{"0.0001", "0.001", "0.01", "0.1", "1"}));
  EXPECT_EQ(labels(PlotScale::Logarithmic(2, 5)), (Labels{"2", "5"}));
  EXPECT_EQ(labels(PlotScale::Categories({"a", "b"})), (Labels{"a", "b"}));
  for (const auto& [low, high] : std::vector<std::pair<double, double>>{
           {5, 5}, {0, 0}, {3, 1}, {-1.7e308, 1.7e308}, {std::nan(""), 1}, {1e-320, 2e-320}}) {
    EXPECT_LE(labels(PlotScale::Linear(low, high)).size(), 13u);
    EXPECT_TRUE(std::isfinite(PlotScale::Linear(low, high).At(low)));
    EXPECT_TRUE(std::isfinite(PlotScale::Logarithmic(low, high).At(low)));
  }
  EXPECT_NEAR(PlotScale::Logarithmic(1e-4, 1).At(1e-2), 0.5, 1e-12);
  EXPECT_NEAR(PlotScale::Categories({"a", "b"}).At(1), 0.75, 1e-12);
}

class TrialPlotTest : public testing::Test {
 protected:
  TrialPlotTest() {
    for (int i = 1; i <= 9; ++i) {
      const bool failed = i == 4;
      trials_.Add(TrialOf(i, std::pow(10, -i % 4), i % 2,
                          failed ? std::nullopt : std::optional<double>(10.0 / i - 3)));
    }
    v1::Trial running = TrialOf(10, 0.1, 0, std::nullopt);
    running.set_phase(v1::TRIAL_RUNNING);
    trials_.Add(running);
    v1::Trial stopped = TrialOf(11, 0.1, 1, 2);
    stopped.set_phase(v1::TRIAL_EARLY_STOPPED);
    trials_.Add(stopped);
  }

  const v1::Experiment experiment_ = Searched();
  PlottedTrials trials_{experiment_};
};

TEST_F(TrialPlotTest, HistoryHasAMarkForEachTrialAndSaysWhichAreNot) {
  const std::string svg = HistoryPlot(trials_, {});
  EXPECT_EQ(Fault(svg), "");
  EXPECT_EQ(Count(svg, "<circle"), 9);
  EXPECT_THAT(svg, HasSubstr("of 11 trials, 9 with a result, 1 without one, 1 under way"));
  EXPECT_EQ(Count(svg, "<polyline"), 1);
}

TEST_F(TrialPlotTest, SliceAndParallelDrawEveryResult) {
  const std::string slice = SlicePlot(trials_, trials_.Varying(), {.logarithmic = true});
  EXPECT_EQ(Fault(slice), "");
  EXPECT_EQ(Count(slice, "<circle"), 2 * 9);
  const std::string parallel = ParallelPlot(trials_, {});
  EXPECT_EQ(Fault(parallel), "");
  EXPECT_EQ(Count(parallel, "<polyline"), 9);
}

// In a space with conditions.
TEST_F(TrialPlotTest, AParameterThatATrialLacksHasNoMarkAndALaneOfItsOwn) {
  EXPECT_THAT(ParallelPlot(trials_, {}), Not(HasSubstr(">none<")));
  v1::Trial lacking = TrialOf(12, 0.1, 1, 2);
  lacking.mutable_assignments()->DeleteSubrange(0, 1);
  trials_.Add(lacking);
  const std::string slice = SlicePlot(trials_, trials_.Varying(), {});
  EXPECT_EQ(Count(slice, "<circle"), 10 + 9);
  const std::string parallel = ParallelPlot(trials_, {});
  EXPECT_EQ(Fault(parallel), "");
  EXPECT_EQ(Count(parallel, "<polyline"), 10);
  EXPECT_THAT(parallel, HasSubstr(">none<"));
}

TEST_F(TrialPlotTest, ThinsOutWhatIsTooMuchAndSaysSo) {
  PlottedTrials many(experiment_);
  for (int i = 1; i <= 20'000; ++i) many.Add(TrialOf(i, 0.1, i % 2, i));
  const std::string history = HistoryPlot(many, {});
  EXPECT_THAT(history, HasSubstr("5000 of 20000 shown"));
  EXPECT_LE(Count(history, "<circle"), 5000);
  const std::string parallel = ParallelPlot(many, {});
  EXPECT_LE(Count(parallel, "<polyline"), 1001);
  EXPECT_THAT(parallel, HasSubstr(" of 20000 shown"));
}

TEST_F(TrialPlotTest, NothingToShowIsSaid) {
  const PlottedTrials none(experiment_);
  for (const std::string& svg :
       {HistoryPlot(none, {}), SlicePlot(none, {}, {}), ParallelPlot(none, {}),
        CurvesPlot(experiment_, {"loss", {}, 0}, {}), TimelinePlot(experiment_, {}, absl::Now()),
        ImportancePlot(experiment_, {}), AblationPlot(experiment_, {}),
        DependencePlot(experiment_, {}), DependencePlot(experiment_, {v1::PartialDependence()}),
        ContourPlot(none, {})}) {
    EXPECT_EQ(Fault(svg), "");
    EXPECT_TRUE(
        RE2::PartialMatch(svg, "no trial|there is no|no attempt|too few trials|no parameter"))
        << svg;
  }
}

TEST_F(TrialPlotTest, CurvesAreLinesBySteps) {
  const std::vector<PlottedCurve> curves = {
      {1, true, {{1, 3}, {2, 2}, {3, 1}}}, {2, false, {{1, 3}, {2, 4}}}, {3, true, {}}};
  const std::string svg = CurvesPlot(experiment_, {kEvil, curves, 30}, {.logarithmic = true});
  EXPECT_EQ(Fault(svg), "");
  EXPECT_THAT(svg, HasSubstr("3 of 30 shown"));
  EXPECT_EQ(Count(svg, "stroke-dasharray"), 1);
}

TEST_F(TrialPlotTest, TimelineHasABarForEachAttempt) {
  std::vector<v1::Attempt> attempts;
  const absl::Time start = absl::FromUnixSeconds(1'700'000'000);
  for (int i = 0; i < 400; ++i) {
    v1::Attempt& attempt = attempts.emplace_back();
    attempt.set_trial(i + 1);
    attempt.set_number(1);
    *attempt.mutable_start_time() = ToProto(start + absl::Seconds(i));
    if (i == 399) continue;
    *attempt.mutable_end_time() = ToProto(start + absl::Seconds(i + 30));
    attempt.set_cause(i % 5 == 0 ? v1::PREEMPTED_SPOT : v1::COMPLETED);
  }
  const std::string svg = TimelinePlot(experiment_, attempts, start + absl::Hours(1));
  EXPECT_EQ(Fault(svg), "");
  EXPECT_THAT(svg, AllOf(HasSubstr("the latest 300 of 400 trials"), HasSubstr("preempted"),
                         HasSubstr("under way"), HasSubstr("minutes since")));
  // The ground, and one for each word of the legend.
  EXPECT_EQ(Count(svg, "<rect"), 300 + 1 + 3);
}

TEST(ModelPlotTest, ImportanceSaysWhatCannotBeTold) {
  v1::Importance importance;
  importance.mutable_basis()->set_results(9);
  const v1::ImportanceVerdict verdicts[] = {v1::MATTERS, v1::TOO_FEW_TRIALS, v1::DOES_NOT_MATTER};
  for (int i = 0; i < 3; ++i) {
    v1::ParameterImportance& one = *importance.add_parameters();
    one.set_parameter(i == 0 ? kEvil : "p" + std::to_string(i));
    SetEstimate(0.5 - 0.2 * i, 0.05, one.mutable_total());
    SetEstimate(0.4 - 0.2 * i, 0.05, one.mutable_first_order());
    one.set_verdict(verdicts[i]);
  }
  const std::string svg = ImportancePlot(Searched(), importance);
  EXPECT_EQ(Fault(svg), "");
  EXPECT_THAT(svg, AllOf(HasSubstr("50 %"), HasSubstr("too few trials to tell"),
                         HasSubstr("does not matter"), HasSubstr("from 9 results")));
  EXPECT_EQ(Count(svg, "stroke-dasharray"), 1);  // the bar that cannot be told
  const std::string table = ImportanceTable(importance, true);
  EXPECT_THAT(table, AllOf(HasSubstr("50 % (45 to 55)"), HasSubstr("too few trials to tell"),
                           Not(HasSubstr("\x1b"))));
}

TEST(ModelPlotTest, AblationGoesFromOneTrialToTheOther) {
  v1::Ablation ablation;
  ablation.set_from_trial(3);
  ablation.set_to_trial(8);
  SetEstimate(10, 1, ablation.mutable_from());
  for (int i = 0; i < 2; ++i) {
    v1::AblationStep& step = *ablation.add_steps();
    step.set_parameter("lr");
    step.set_from_value(kEvil);
    step.set_to_value("1");
    SetEstimate(i == 0 ? 4 : 6, 1, step.mutable_objective());
    SetEstimate(i == 0 ? 6 : -2, 1, step.mutable_gain());
  }
  const std::string svg = AblationPlot(Searched(), ablation);
  EXPECT_EQ(Fault(svg), "");
  EXPECT_THAT(svg, AllOf(HasSubstr("from trial 3 to trial 8"), HasSubstr(kPlotGreen)));
  EXPECT_EQ(Count(svg, std::string("fill=\"") + kPlotOrange), 1);  // the step that lost
  EXPECT_THAT(AblationTable(ablation, false), HasSubstr("-2 (-3 to -1)"));
}

TEST(ModelPlotTest, DependenceHasItsBandAndContoursAreHatchedWhereItIsWide) {
  const v1::Experiment experiment = Searched();
  const std::string one = DependencePlot(experiment, {Dependence(false), Dependence(false)});
  EXPECT_EQ(Fault(one), "");
  EXPECT_EQ(Count(one, "<polygon"), 2);
  PlottedTrials trials(experiment);
  trials.Add(TrialOf(1, 0.01, 1, 5));
  const std::string two = ContourPlot(trials, Dependence(true));
  EXPECT_EQ(Fault(two), "");
  EXPECT_EQ(Count(two, "<rect"), 1 + 6 + 32);                      // the ground, the cells, the key
  EXPECT_GT(Count(two, std::string("stroke=\"") + kPlotGrey), 3);  // the one cell
  EXPECT_EQ(Count(two, "<circle"), 1);
}

TEST(AnalysisTextTest, SaysWhatItIsFrom) {
  v1::ModelBasis basis;
  basis.set_results(40);
  basis.set_explained(0.873);
  basis.set_failed(1);
  basis.set_active(2);
  EXPECT_EQ(BasisLine(basis),
            "from 40 results, of whose variance the model explains 87 %; 1 trial without a result "
            "not used; 2 still under way");
  basis.set_explained(-0.2);
  basis.clear_failed();
  basis.clear_active();
  EXPECT_EQ(BasisLine(basis), "from 40 results, of whose variance the model explains nothing");
  basis.set_too_few("no trial has a result yet");
  EXPECT_EQ(BasisLine(basis), "too few trials to tell: no trial has a result yet");
}

}  // namespace
}  // namespace shirabe::view
