#include "cmd/verbs/page/report.h"

#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/file_io.h"
#include "cmd/session.h"
#include "cmd/terminal.h"
#include "cmd/verbs/page/report_content.h"
#include "cmd/verbs/page/report_file.h"
#include "cmd/verbs/page/route_replies.h"

namespace shirabe::cmd {
namespace {

struct ReportFlags {
  std::string experiment;
  std::string output;
  std::optional<int64_t> trials;
  bool logs = false;
};

Status CheckReportOutput(const std::string& output) {
  if (output == "-" || absl::EndsWith(output, ".html") || absl::EndsWith(output, ".htm")) {
    return absl::OkStatus();
  }
  if (!output.empty()) {
    return UsageError("-o: " + output + " does not end in .html: a report is an HTML file");
  }
  if (!StdoutIsTerminal()) return absl::OkStatus();
  return UsageError("give -o FILE.html, or -o - for the standard output");
}

// NAME=value of this process: local trials have inherited it, and may have printed it.
std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) all.emplace_back(*entry);
  return all;
}

Status WriteReport(const std::string& output, const std::string& page) {
  if (output.empty() || output == "-") {
    Out(page);
    return FlushOut();
  }
  RETURN_IF_ERROR(WriteFileAtomic(output, page));
  constexpr double kMegabyte = 1e6;
  ProgressLine(
      absl::StrFormat("wrote %s (%.1f MB)", output, static_cast<double>(page.size()) / kMegabyte));
  return absl::OkStatus();
}

}  // namespace

StatusOr<int> ReportExperiment(const Arguments& arguments) {
  Globals globals;
  ReportFlags flags;
  std::vector<std::string> names;
  Options options(
      "report EXPERIMENT -o FILE.html | report TRIAL METRIC=VALUE…",
      "Writes the dashboard's pages of an experiment, as they are now, into one file: it needs no "
      "server and no network, and can be mailed. Values of environment variables, and what is "
      "named as a secret or looks like one, are left out; what else is left out, the page says. In "
      "the form with METRIC=VALUE it is the "
      "program of a trial that reports values: see shirabe report TRIAL METRIC=VALUE --help.");
  options.Arguments("EXPERIMENT", &names, 1, 1);
  options.Text("-o,--output", &flags.output, "FILE", "where to write it; - is the standard output");
  options.Number("--trials", &flags.trials, 0,
                 "trials with a page of their own: the best, some that run and some that failed "
                 "(default 200); the table has all of them");
  options.Flag("--logs", &flags.logs, "with the end of the logs of these trials");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  if (absl::StrContains(names[0], '/') && !absl::StartsWith(names[0], "exp/") &&
      !absl::StartsWith(names[0], "experiment/")) {
    return UsageError("\"" + names[0] +
                      "\" is a trial: give at least one METRIC=VALUE of it, or an experiment");
  }
  RETURN_IF_ERROR(CheckReportOutput(flags.output));
  RETURN_IF_ERROR(CheckReportPage());
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/true));
  ASSIGN_OR_RETURN(const ExperimentKey key, ExperimentArgument(names[0], session.ns));
  ASSIGN_OR_RETURN(const v1::Experiment experiment, session.client->GetExperiment(key));
  RouteReplies routes(*session.client, view::Redactor(experiment, OwnEnvironment()));
  ReportContent content(*session.client, experiment, routes);
  ReportFile file;
  ReportChoice choice{.logs = flags.logs};
  if (flags.trials) choice.trial_pages = *flags.trials;
  RETURN_IF_ERROR(content.Collect(choice, file));
  ASSIGN_OR_RETURN(const std::string page, file.Finish(content.facts()));
  RETURN_IF_ERROR(WriteReport(flags.output, page));
  for (const std::string& sentence : content.facts().left_out) Hint("left out: " + sentence);
  return 0;
}

}  // namespace shirabe::cmd
