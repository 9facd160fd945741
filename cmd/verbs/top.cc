// top: what runs now, and what it takes.
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/registry.h"
#include "base/sorting.h"
#include "client/records/enum_words.h"
#include "cmd/options.h"
#include "cmd/record_printer.h"
#include "cmd/session.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "experiment/conditions.h"
#include "experiment/submission.h"
#include "view/spending.h"

namespace shirabe::cmd {
namespace {

constexpr absl::Duration kDefaultInterval = absl::Seconds(2);

struct Load {
  v1::Experiment experiment;  // with what its running attempts have taken
  int64_t running = 0;        // attempts
  int64_t gpus = 0;           // that they were given
  double per_hour = 0;        // what they cost now
};

int64_t CountGpus(const v1::Placement& placement) {
  const std::vector<std::string> devices =
      absl::StrSplit(placement.devices(), ',', absl::SkipWhitespace());
  return static_cast<int64_t>(devices.size());
}

StatusOr<Load> ReadLoad(client::Client& client, v1::Experiment experiment) {
  Load load;
  if (!experiment::IsEnded(experiment)) {
    ASSIGN_OR_RETURN(
        const auto open,
        client.ListAttempts({.experiment = experiment::KeyOf(experiment), .open_only = true}));
    view::AddRunning(open, RealClock()->Now(), experiment);
    for (const v1::Attempt& attempt : open) {
      if (attempt.state() != v1::ATTEMPT_RUNNING) continue;
      ++load.running;
      if (attempt.placements().empty()) continue;
      const v1::Placement& last = *attempt.placements().rbegin();
      load.gpus += CountGpus(last);
      load.per_hour += last.price_per_hour();
    }
  }
  load.experiment = std::move(experiment);
  return load;
}

// The experiment that runs most comes first.
StatusOr<std::vector<Load>> ReadLoads(const Session& session, const ListFlags& flags) {
  ASSIGN_OR_RETURN(auto experiments,
                   session.client->ListExperiments(flags.all_namespaces ? "" : session.ns));
  std::vector<Load> loads;
  for (v1::Experiment& experiment : experiments) {
    ASSIGN_OR_RETURN(Load load, ReadLoad(*session.client, std::move(experiment)));
    loads.push_back(std::move(load));
  }
  StableSort(loads, [](const Load& a, const Load& b) {
    return std::tie(a.running, a.gpus, a.per_hour) > std::tie(b.running, b.gpus, b.per_hour);
  });
  const auto most = flags.limit.value_or(static_cast<int64_t>(loads.size()));
  if (static_cast<int64_t>(loads.size()) > most) loads.resize(most);
  return loads;
}

view::Cells Row(const Load& load, const view::RowStyle& style) {
  const v1::ShirabeStatus& status = load.experiment.status().shirabe();
  view::Cells cells;
  if (style.with_namespace) cells.push_back(load.experiment.metadata().namespace_());
  cells.insert(cells.end(), {load.experiment.metadata().name(), client::StateWord(load.experiment),
                             std::to_string(load.running), std::to_string(load.gpus),
                             load.per_hour > 0 ? view::AmountText(load.per_hour) + "/h" : "",
                             view::MoneyText(load.experiment, status.cost()),
                             std::to_string(status.preemptions()),
                             view::TrialsCell(load.experiment), view::BestCell(load.experiment)});
  return cells;
}

view::Json TopTree(const Load& load) {
  const v1::Experiment& experiment = load.experiment;
  const v1::ShirabeStatus& status = experiment.status().shirabe();
  return {{"namespace", experiment.metadata().namespace_()},
          {"name", experiment.metadata().name()},
          {"state", client::StateWord(experiment)},
          {"running", load.running},
          {"gpus", load.gpus},
          {"costPerHour", view::NumberJson(load.per_hour)},
          {"cost", view::NumberJson(status.cost())},
          {"seconds", view::NumberJson(status.seconds())},
          {"wastedSeconds", view::NumberJson(status.wasted_seconds())},
          {"preemptions", status.preemptions()},
          {"trials", view::FinishedTrials(experiment)},
          {"failed", experiment.status().trials_failed()}};
}

Printer<Load> MakeTopPrinter(const ListFlags& flags) {
  view::Cells header;
  if (flags.all_namespaces) header.push_back("NAMESPACE");
  header.insert(header.end(), {"NAME", "STATE", "RUNNING", "GPUS", "RATE", "COST", "PREEMPTED",
                               "TRIALS", "BEST"});
  return {.header = std::move(header), .row = Row, .tree = TopTree, .name = [](const Load& load) {
            return "experiment/" + load.experiment.metadata().name();
          }};
}

Status PrintOnce(const Session& session, const ListFlags& flags) {
  ASSIGN_OR_RETURN(const auto loads, ReadLoads(session, flags));
  Listing<Load>(flags, MakeTopPrinter(flags)).PrintAll(loads);
  if (loads.empty()) {
    ProgressLine("no experiments" + (flags.all_namespaces ? "" : " in namespace " + session.ns));
  }
  return FlushOut();
}

// For ever: on a terminal in place, else one table after the other.
StatusOr<int> WatchTop(const Session& session, const ListFlags& flags, absl::Duration interval) {
  constexpr char kHome[] = "\033[H\033[2J";
  for (;;) {
    if (StdoutIsTerminal()) Out(kHome);
    if (!StdoutIsTerminal() && flags.output == "yaml") Out("---\n");
    RETURN_IF_ERROR(PrintOnce(session, flags));
    SleepUninterrupted(interval);
  }
}

}  // namespace

StatusOr<int> Top(const Arguments& arguments) {
  Globals globals;
  ListFlags flags;
  std::string interval;
  Options options(
      "top",
      "Lists experiments by what they run now: trials, GPUs, price by the hour, cost so "
      "far and preemptions.");
  options.Arguments("nothing", nullptr, 0, 0);
  options.Flag("-A,--all-namespaces", &flags.all_namespaces, "experiments of all namespaces");
  options.Word("-o,--output", &flags.output, {"table", "json", "yaml", "name"}, "how to print");
  options.Flag("--no-headers", &flags.no_headers, "a table without its first line");
  options.Number("--limit", &flags.limit, 0, "at most so many");
  options.Flag("-w,--watch", &flags.watch, "again and again");
  options.Text("--interval", &interval, "TIME", "between looks (default 2s)");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  ASSIGN_OR_RETURN(const absl::Duration pause,
                   ParseDurationOr("--interval", interval, kDefaultInterval));
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/true));
  if (flags.watch) return WatchTop(session, flags, pause);
  RETURN_IF_ERROR(PrintOnce(session, flags));
  return 0;
}

SHIRABE_REGISTER(Verb, {.name = "top",
                        .group = VerbGroup::kRead,
                        .summary = "what runs now, and what it takes",
                        .run = Top});

}  // namespace shirabe::cmd
