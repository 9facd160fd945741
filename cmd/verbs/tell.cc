// tell and report: the results of a trial, from the program that runs it. tell ends it, report does
// not.
#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/registry.h"
#include "base/text/number.h"
#include "client/records/enum_words.h"
#include "cmd/record_printer.h"
#include "cmd/session.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "cmd/verbs/page/report.h"

namespace shirabe::cmd {
namespace {

using experiment::Report;
using End = experiment::Report::End;

struct TellFlags {
  std::vector<std::string> words;  // TRIAL METRIC=VALUE…
  std::optional<int64_t> step;
  std::optional<int64_t> attempt;
  std::string token;
  std::string message;
  std::string output = "table";
  bool completed = false;
  bool failed = false;
};

StatusOr<metrics::Observation> ParsePoint(const std::string& word, const TellFlags& flags) {
  const size_t cut = word.rfind('=');
  const auto value = cut == std::string::npos ? std::nullopt : ParseNumber(word.substr(cut + 1));
  if (cut == 0 || !value) {
    return UsageError("\"" + word + "\" is not a METRIC=VALUE with a number, like loss=0.12");
  }
  return metrics::Observation{.metric = word.substr(0, cut),
                              .value = *value,
                              .step = flags.step.value_or(0),
                              .implicit_step = !flags.step,
                              .time = RealClock()->Now()};
}

// The flag, else what `ask -o env` has set for this very trial.
StatusOr<std::string> TokenFor(const TrialKey& trial, const std::string& flag) {
  std::string text = flag;
  const client::Environment environment = client::ProcessEnvironment();
  if (text.empty() && environment("SHIRABE_TRIAL") == TrialName(trial)) {
    text = environment(kTrialTokenVariable).value_or("");
  }
  for (const char c : text) {
    if (!absl::ascii_isxdigit(c)) return UsageError("--token is not what ask has printed");
  }
  if (text.size() % 2 != 0) return UsageError("--token is not what ask has printed");
  return absl::HexStringToBytes(text);
}

StatusOr<Report> MakeReport(const Session& session, const TellFlags& flags, End end) {
  Report report{.end = end, .message = flags.message};
  ASSIGN_OR_RETURN(report.trial, TrialArgument(flags.words[0], session.ns));
  ASSIGN_OR_RETURN(report.token, TokenFor(report.trial, flags.token));
  report.attempt = static_cast<int32_t>(flags.attempt.value_or(0));
  for (size_t i = 1; i < flags.words.size(); ++i) {
    ASSIGN_OR_RETURN(metrics::Observation point, ParsePoint(flags.words[i], flags));
    report.points.push_back(std::move(point));
  }
  return report;
}

void AddTelling(Options& options, TellFlags* flags) {
  options.Arguments("TRIAL METRIC=VALUE", &flags->words, 1, 1000);
  options.Number("--step", &flags->step, 0, "step that the values are of (default: counted)");
  options.Number("--attempt", &flags->attempt, 1, "only as this attempt (default: the newest)");
  options.Text("--token", &flags->token, "HEX",
               "of the attempt (default: $SHIRABE_TRIAL_TOKEN, if $SHIRABE_TRIAL is the trial)");
  options.Word("-o,--output", &flags->output, {"table", "json", "yaml"}, "how to print");
}

// Without a value, one that was never reported is most likely a variable that is empty.
Status CheckHasResult(client::Client& client, const Report& report, const TellFlags& flags) {
  if (flags.failed || flags.completed || !report.points.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const v1::Trial trial, client.GetTrial(report.trial));
  if (trial.observation().metrics_size() > 0) return absl::OkStatus();
  return UsageError(
      "give its result as METRIC=VALUE, or --failed; --completed ends it without one");
}

// A result without a step comes after all that was reported on the way, and replaces none of it.
// One that is told again, to a trial that has ended, is compared by its values.
Status AddStep(client::Client& client, Report& report) {
  ASSIGN_OR_RETURN(const v1::Trial trial, client.GetTrial(report.trial));
  if (client::IsTerminal(trial.phase()) || trial.last_step() == 0) return absl::OkStatus();
  for (metrics::Observation& point : report.points) {
    if (!point.implicit_step) continue;
    point.step = trial.last_step() + 1;
    point.implicit_step = false;
  }
  return absl::OkStatus();
}

// A trial that was stopped takes no result but the last that it has.
Status CheckCounts(const Report& report, const experiment::ReportReply& told) {
  if (!told.ignored) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat("trial ", TrialName(report.trial),
                                               " was stopped before (", told.stop,
                                               "): this result does not count"));
}

// As it is afterwards.
Status PrintTold(const Session& session, const TrialKey& key, const std::string& output) {
  ASSIGN_OR_RETURN(const v1::Experiment experiment, session.client->GetExperiment(key.experiment));
  ASSIGN_OR_RETURN(const v1::Trial trial, session.client->GetTrial(key));
  if (output != "table") {
    PrintTree({.output = output}, view::TrialRenderer(experiment)(trial));
    return absl::OkStatus();
  }
  const auto objective = client::ShownObjective(experiment, trial);
  Out(absl::StrCat("trial/", TrialName(key), " ", client::PhaseWord(trial.phase()),
                   objective ? absl::StrCat(" ", client::MetricNames(experiment)[0], "=",
                                            client::ShortNumber(objective->value))
                             : "",
                   "\n"));
  return absl::OkStatus();
}

}  // namespace

StatusOr<int> Tell(const Arguments& arguments) {
  Globals globals;
  TellFlags flags;
  Options options("tell TRIAL METRIC=VALUE… [--failed] [--message TEXT]",
                  "Tells the result of a trial that was asked for, and ends it. Telling the same "
                  "again changes nothing; telling another result is refused (exit code 4).");
  AddTelling(options, &flags);
  options.Flag("--completed", &flags.completed,
               "it has done its work (the default), even without a value");
  options.Flag("--failed", &flags.failed, "it has failed: no values are needed");
  options.Text("--message", &flags.message, "TEXT", "why, for people");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  if (flags.completed && flags.failed) {
    return UsageError("--completed and --failed do not go together");
  }
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/false));
  ASSIGN_OR_RETURN(Report report,
                   MakeReport(session, flags, flags.failed ? End::kFailed : End::kCompleted));
  RETURN_IF_ERROR(CheckHasResult(*session.client, report, flags));
  RETURN_IF_ERROR(AddStep(*session.client, report));
  ASSIGN_OR_RETURN(const auto told, session.client->Tell(report));
  RETURN_IF_ERROR(PrintTold(session, report.trial, flags.output));
  RETURN_IF_ERROR(CheckCounts(report, told));
  return kOk;
}

StatusOr<int> ReportMetrics(const Arguments& arguments) {
  Globals globals;
  TellFlags flags;
  Options options("report TRIAL METRIC=VALUE… [--step N]",
                  "Reports values of a trial that goes on. Exits with 9, and prints why, if the "
                  "trial should stop now; it has ended then, and need not be told.");
  AddTelling(options, &flags);
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  if (flags.words.size() < 2) return UsageError("give at least one METRIC=VALUE");
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/false));
  ASSIGN_OR_RETURN(const Report report, MakeReport(session, flags, End::kNone));
  ASSIGN_OR_RETURN(const auto reported, session.client->Tell(report));
  const bool stop = !reported.stop.empty();
  if (flags.output != "table") {
    PrintTree({.output = flags.output},
              {{"trial", TrialName(report.trial)}, {"stop", stop}, {"reason", reported.stop}});
  } else if (stop) {
    Out("stop: " + reported.stop + "\n");
  }
  return stop ? kShouldStop : kOk;
}

// A name for people and one for programs: values have an "=", which no file of a report has.
StatusOr<int> ReportVerb(const Arguments& arguments) {
  const bool values = std::any_of(arguments.begin(), arguments.end(), [](const std::string& word) {
    return absl::StrContains(word, '=') && !absl::StartsWith(word, "-") &&
           !absl::EndsWith(word, ".html") && !absl::EndsWith(word, ".htm");
  });
  // Which of the two it will be is not known yet: the flags of both are offered.
  if (arguments.size() == 1 && absl::StartsWith(arguments[0], kFlagNamesOption)) {
    RETURN_IF_ERROR(ReportMetrics(arguments).status());
  }
  return values ? ReportMetrics(arguments) : ReportExperiment(arguments);
}

std::vector<std::string> CompleteReported(const Arguments& words) {
  std::vector<std::string> names = CompleteExperiments(words);
  for (std::string& name : CompleteTrials(words)) names.push_back(std::move(name));
  return names;
}

SHIRABE_REGISTER(Verb, {.name = "report",
                        .group = VerbGroup::kRead,
                        .summary = "an experiment as an HTML file; or a trial's values",
                        .completes = CompleteReported,
                        .outputs = {},
                        .run = ReportVerb});

SHIRABE_REGISTER(Verb, {.name = "tell",
                        .group = VerbGroup::kAskAndTell,
                        .summary = "the result of a trial that was asked for",
                        .completes = CompleteTrials,
                        .run = Tell});

}  // namespace shirabe::cmd
