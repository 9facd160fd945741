// plot: a picture of an experiment, as an SVG file.
#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file_io.h"
#include "base/registry.h"
#include "base/sorting.h"
#include "client/records/enum_words.h"
#include "cmd/session.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "experiment/spec/field_rules.h"
#include "view/plot/model_plots.h"
#include "view/plot/trial_plots.h"
#include "view/wait_condition.h"

namespace shirabe::cmd {
namespace {

constexpr size_t kMaxPanels = 24;
constexpr int kPanelsOfModel = 9;  // each is a call
constexpr size_t kDefaultCurves = 20, kMaxCurves = 200;
constexpr size_t kMaxPointsOfCurve = 1000;

struct PlotFlags {
  std::vector<std::string> words;  // the experiment and the kind
  std::string output;
  std::vector<std::string> parameters;
  std::string metric;
  std::string method = "gp";
  std::optional<int64_t> curves, from, to;
  bool logarithmic = false;

  view::PlotOptions options() const { return {.logarithmic = logarithmic}; }
};

// What a picture is made from.
struct PlotSubject {
  client::Client& client;
  const ExperimentKey& key;
  const v1::Experiment& experiment;
  const PlotFlags& flags;

  StatusOr<view::PlottedTrials> Trials() const {
    view::PlottedTrials trials(experiment);
    RETURN_IF_ERROR(view::EachTrialPage(client, key, [&](const std::vector<v1::Trial>& page) {
      for (const v1::Trial& trial : page) trials.Add(trial);
      return true;
    }));
    return trials;
  }
  template <class Reply, class Request>
  StatusOr<Reply> Ask(const char* method, Request request) const {
    request.set_namespace_(key.ns);
    request.set_experiment(key.name);
    return client.Get<Reply>(method, request);
  }
};

// The parameters that are named, else all that vary.
StatusOr<std::vector<int>> PlottedParameters(const view::PlottedTrials& trials,
                                             const std::vector<std::string>& names) {
  if (names.empty()) return trials.Varying();
  std::vector<std::string> known;
  for (const auto& parameter : trials.experiment().spec().parameters()) {
    known.push_back(parameter.name());
  }
  std::vector<int> found;
  for (const std::string& name : names) {
    const auto at = std::find(known.begin(), known.end(), name);
    if (at == known.end()) {
      return UsageError(absl::StrCat("--parameter: \"", name, "\" is not a parameter of ",
                                     trials.experiment().metadata().name(),
                                     experiment::DidYouMean(name, known)));
    }
    found.push_back(static_cast<int>(at - known.begin()));
  }
  return found;
}

StatusOr<v1::Importance> ImportanceOf(const PlotSubject& subject) {
  v1::ImportanceRequest request;
  request.set_method(subject.flags.method == "ped" ? v1::IMPORTANCE_PED : v1::IMPORTANCE_GP);
  return subject.Ask<v1::Importance>("GetImportance", request);
}

// Of a model: those that are named, else the most important ones.
StatusOr<std::vector<std::string>> ModelledParameters(const PlotSubject& subject, int most) {
  if (!subject.flags.parameters.empty()) return subject.flags.parameters;
  ASSIGN_OR_RETURN(const v1::Importance importance, ImportanceOf(subject));
  std::vector<std::string> names;
  for (const v1::ParameterImportance& one : importance.parameters()) {
    if (static_cast<int>(names.size()) < most) names.push_back(one.parameter());
  }
  // Nothing is known yet: the picture will say why.
  for (const auto& parameter : subject.experiment.spec().parameters()) {
    if (importance.parameters().empty() && static_cast<int>(names.size()) < most) {
      names.push_back(parameter.name());
    }
  }
  return names;
}

StatusOr<v1::PartialDependence> DependenceOn(const PlotSubject& subject,
                                             const std::vector<std::string>& names) {
  v1::PartialDependenceRequest request;
  request.mutable_parameters()->Assign(names.begin(), names.end());
  return subject.Ask<v1::PartialDependence>("GetPartialDependence", request);
}

// ---- the kinds ---------------------------------------------------------------------------------

StatusOr<std::string> PlotHistory(const PlotSubject& subject) {
  ASSIGN_OR_RETURN(const view::PlottedTrials trials, subject.Trials());
  return view::HistoryPlot(trials, subject.flags.options());
}

StatusOr<std::string> PlotParallel(const PlotSubject& subject) {
  ASSIGN_OR_RETURN(const view::PlottedTrials trials, subject.Trials());
  return view::ParallelPlot(trials, subject.flags.options());
}

StatusOr<std::string> PlotSlice(const PlotSubject& subject) {
  ASSIGN_OR_RETURN(const view::PlottedTrials trials, subject.Trials());
  ASSIGN_OR_RETURN(std::vector<int> parameters,
                   PlottedParameters(trials, subject.flags.parameters));
  if (parameters.size() > kMaxPanels) {
    ProgressLine(absl::StrCat(kMaxPanels, " of ", parameters.size(),
                              " parameters shown; choose others with --parameter"));
    parameters.resize(kMaxPanels);
  }
  return view::SlicePlot(trials, parameters, subject.flags.options());
}

StatusOr<std::string> PlotImportance(const PlotSubject& subject) {
  ASSIGN_OR_RETURN(const v1::Importance importance, ImportanceOf(subject));
  return view::ImportancePlot(subject.experiment, importance);
}

StatusOr<std::string> PlotAblation(const PlotSubject& subject) {
  v1::AblationRequest request;
  request.set_from(subject.flags.from.value_or(0));
  request.set_to(subject.flags.to.value_or(0));
  ASSIGN_OR_RETURN(const auto ablation, subject.Ask<v1::Ablation>("GetAblation", request));
  return view::AblationPlot(subject.experiment, ablation);
}

StatusOr<std::string> PlotDependence(const PlotSubject& subject) {
  ASSIGN_OR_RETURN(const auto names, ModelledParameters(subject, kPanelsOfModel));
  std::vector<v1::PartialDependence> dependences;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(dependences.emplace_back(), DependenceOn(subject, {name}));
  }
  return view::DependencePlot(subject.experiment, dependences);
}

StatusOr<std::string> PlotContour(const PlotSubject& subject) {
  ASSIGN_OR_RETURN(const auto names, ModelledParameters(subject, 2));
  if (names.size() != 2) {
    return UsageError(absl::StrCat("a contour is of two parameters, not of ", names.size(),
                                   ": name both with --parameter"));
  }
  ASSIGN_OR_RETURN(const auto dependence, DependenceOn(subject, names));
  ASSIGN_OR_RETURN(const view::PlottedTrials trials, subject.Trials());
  return view::ContourPlot(trials, dependence);
}

// At most so many of its points, the last one among them.
void ThinOut(std::vector<std::pair<double, double>>& points) {
  const size_t step = (points.size() + kMaxPointsOfCurve - 1) / kMaxPointsOfCurve;
  if (step < 2) return;
  std::vector<std::pair<double, double>> kept;
  for (size_t i = 0; i < points.size(); i += step) kept.push_back(points[i]);
  if (kept.back() != points.back()) kept.push_back(points.back());
  points = std::move(kept);
}

StatusOr<std::string> PlotCurves(const PlotSubject& subject) {
  ASSIGN_OR_RETURN(const view::PlottedTrials trials, subject.Trials());
  const std::string metric =
      subject.flags.metric.empty() ? trials.objective() : subject.flags.metric;
  const auto most = std::min<size_t>(
      static_cast<size_t>(subject.flags.curves.value_or(kDefaultCurves)), kMaxCurves);
  // The best, then those under way.
  std::vector<int64_t> chosen = trials.Ranked();
  for (size_t i = 0; i < trials.trials().size(); ++i) {
    if (!trials.trials()[i].ended) chosen.push_back(static_cast<int64_t>(i));
  }
  if (chosen.size() > most) chosen.resize(most);
  view::PlottedCurves plotted{.metric = metric,
                              .trials = static_cast<int64_t>(trials.trials().size())};
  for (const int64_t index : chosen) {
    const view::PlottedTrial& trial = trials.trials()[index];
    ASSIGN_OR_RETURN(
        const auto rows,
        subject.client.ListObservations({.trial = {subject.key, trial.number}, .metric = metric}));
    view::PlottedCurve curve{.trial = trial.number, .ended = trial.ended};
    for (const db::StoredObservation& row : rows) {
      if (std::isfinite(row.value)) {
        curve.points.emplace_back(static_cast<double>(row.step), row.value);
      }
    }
    StableSort(curve.points);
    ThinOut(curve.points);
    plotted.curves.push_back(std::move(curve));
  }
  const auto points = [](const view::PlottedCurve& curve) { return !curve.points.empty(); };
  if (!subject.flags.metric.empty() && !plotted.curves.empty() &&
      std::none_of(plotted.curves.begin(), plotted.curves.end(), points)) {
    return absl::NotFoundError(absl::StrCat(
        "--metric: no trial has a value of \"", metric,
        "\"; what is collected: ", absl::StrJoin(client::MetricNames(subject.experiment), ", ")));
  }
  return view::CurvesPlot(subject.experiment, plotted, subject.flags.options());
}

StatusOr<std::string> PlotTimeline(const PlotSubject& subject) {
  ASSIGN_OR_RETURN(const auto attempts, subject.client.ListAttempts({.experiment = subject.key}));
  return view::TimelinePlot(subject.experiment, attempts, RealClock()->Now());
}

using PlotKind = StatusOr<std::string> (*)(const PlotSubject& subject);

const std::map<std::string, PlotKind>& PlotKinds() {
  static const std::map<std::string, PlotKind> kinds = {
      {"ablation", PlotAblation},     {"contour", PlotContour},   {"curves", PlotCurves},
      {"history", PlotHistory},       {"parallel", PlotParallel}, {"pdp", PlotDependence},
      {"importance", PlotImportance}, {"slice", PlotSlice},       {"timeline", PlotTimeline}};
  return kinds;
}

std::vector<std::string> KindNames() {
  std::vector<std::string> names;
  for (const auto& [name, kind] : PlotKinds()) names.push_back(name);
  return names;
}

std::vector<std::string> CompletePlot(const Arguments& words) {
  return words.size() == 3 ? KindNames() : CompleteExperiments(words);
}

Status CheckOutput(const std::string& output) {
  if (output == "-" || absl::EndsWith(output, ".svg")) return absl::OkStatus();
  if (!output.empty()) {
    return UsageError("-o: " + output + " does not end in .svg: pictures are SVG files");
  }
  if (!StdoutIsTerminal()) return absl::OkStatus();
  return UsageError("give -o FILE.svg, or -o - for the standard output");
}

}  // namespace

StatusOr<int> Plot(const Arguments& arguments) {
  Globals globals;
  PlotFlags flags;
  Options options(
      "plot EXPERIMENT KIND -o FILE.svg",
      "Draws an experiment. history: the objective by trial; slice: by parameter; parallel: a line "
      "for each trial; curves: a metric by step; timeline: every attempt. By a model of the "
      "trials, with bands of 90 %: importance: how much each parameter matters; ablation: what "
      "brought the gain; pdp: the objective by a parameter, averaged over all others; contour: "
      "the same by two.");
  options.Arguments("EXPERIMENT KIND", &flags.words, 2, 2);
  options.Text("-o,--output", &flags.output, "FILE", "where to write it; - is the standard output");
  options.Texts("-p,--parameter", &flags.parameters, "NAME",
                "of slice, pdp and contour: for these (default: those that vary, or matter most)");
  options.Text("--metric", &flags.metric, "NAME", "of curves (default: the objective)");
  options.Number("--trials", &flags.curves, 1, "of curves: how many, the best ones (default 20)");
  options.Word("--method", &flags.method, {"gp", "ped"}, "of importance, as shirabe importance");
  options.Number("--from", &flags.from, 1, "of ablation: number of a trial (default: the median)");
  options.Number("--to", &flags.to, 1, "of ablation: number of a trial (default: the best)");
  options.Flag("--log", &flags.logarithmic, "a logarithmic axis for the objective or metric");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  const auto kind = PlotKinds().find(flags.words[1]);
  if (kind == PlotKinds().end()) {
    return UsageError(absl::StrCat("\"", flags.words[1], "\" is not a kind of plot",
                                   experiment::DidYouMean(flags.words[1], KindNames())));
  }
  RETURN_IF_ERROR(CheckOutput(flags.output));
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/true));
  ASSIGN_OR_RETURN(const ExperimentKey key, ExperimentArgument(flags.words[0], session.ns));
  ASSIGN_OR_RETURN(const v1::Experiment experiment, session.client->GetExperiment(key));
  ASSIGN_OR_RETURN(const std::string picture,
                   kind->second({*session.client, key, experiment, flags}));
  if (flags.output.empty() || flags.output == "-") {
    Out(picture);
    return 0;
  }
  RETURN_IF_ERROR(WriteFileAtomic(flags.output, picture));
  Hint("wrote " + flags.output);
  return 0;
}

SHIRABE_REGISTER(Verb, {.name = "plot",
                        .group = VerbGroup::kRead,
                        .summary = "a picture of an experiment, as an SVG file",
                        .completes = CompletePlot,
                        .outputs = {},
                        .run = Plot});

}  // namespace shirabe::cmd
