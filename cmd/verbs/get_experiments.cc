#include <set>

#include "cmd/record_printer.h"
#include "cmd/verbs/get_nouns.h"
#include "experiment/conditions.h"
#include "view/record_filter.h"
#include "view/spending.h"

namespace shirabe::cmd {
namespace {

using ExperimentSelection = view::Selection<v1::Experiment>;

Printer<v1::Experiment> MakeExperimentPrinter(const ListFlags& flags) {
  return {.header = view::ExperimentHeader(StyleOf(flags)),
          .row = view::ExperimentRow,
          .tree = view::ExperimentJson,
          .name = [](const v1::Experiment& e) { return "experiment/" + e.metadata().name(); }};
}

StatusOr<ExperimentSelection> MakeSelection(const ListFlags& flags) {
  auto selection = ExperimentSelection::Create(view::ExperimentFields(RealClock()->Now()),
                                               flags.filter, flags.sort_by);
  if (!selection.ok()) return AsUsage(selection.status());
  return selection;
}

StatusOr<std::vector<v1::Experiment>> ReadExperiments(const Session& session,
                                                      const GetRequest& request) {
  if (request.names.empty()) {
    return session.client->ListExperiments(request.flags.all_namespaces ? "" : session.ns);
  }
  std::vector<v1::Experiment> experiments;
  for (const std::string& name : request.names) {
    ASSIGN_OR_RETURN(const ExperimentKey key, ExperimentArgument(name, session.ns));
    ASSIGN_OR_RETURN(v1::Experiment experiment, session.client->GetExperiment(key));
    experiments.push_back(std::move(experiment));
  }
  return experiments;
}

// The wide table shows what is spent by now, running attempts included.
Status AddSpending(const Session& session, const ListFlags& flags,
                   std::vector<v1::Experiment>& experiments) {
  if (flags.output != "wide") return absl::OkStatus();
  for (v1::Experiment& experiment : experiments) {
    if (experiment::IsEnded(experiment)) continue;
    ASSIGN_OR_RETURN(const auto open,
                     session.client->ListAttempts(
                         {.experiment = experiment::KeyOf(experiment), .open_only = true}));
    view::AddRunning(open, RealClock()->Now(), experiment);
  }
  return absl::OkStatus();
}

// For ever: prints the experiments of which something has changed since `revision`.
StatusOr<int> WatchExperiments(const Session& session, const GetRequest& request, int64_t revision,
                               Listing<v1::Experiment>& listing) {
  for (;;) {
    RETURN_IF_ERROR(FlushOut());
    RETURN_IF_ERROR(session.client->AwaitChange(revision, kMaxWatchWait).status());
    ASSIGN_OR_RETURN(const auto changes, session.client->Changes(revision));
    if (changes.empty()) continue;
    revision = changes.back().revision;
    std::set<ExperimentKey> changed;
    for (const db::Change& change : changes) {
      if (change.kind == db::Change::Kind::kExperiment) changed.insert(change.experiment);
    }
    ASSIGN_OR_RETURN(auto experiments, ReadExperiments(session, request));
    std::erase_if(experiments, [&](const v1::Experiment& experiment) {
      return !changed.contains(experiment::KeyOf(experiment));
    });
    ASSIGN_OR_RETURN(const ExperimentSelection selection, MakeSelection(request.flags));
    selection.Apply(experiments, -1);
    RETURN_IF_ERROR(AddSpending(session, request.flags, experiments));
    listing.PrintChanged(experiments);
  }
}

}  // namespace

StatusOr<int> GetExperiments(const Session& session, const GetRequest& request) {
  const ListFlags& flags = request.flags;
  ASSIGN_OR_RETURN(const ExperimentSelection selection, MakeSelection(flags));
  ASSIGN_OR_RETURN(const int64_t revision, session.client->Revision());
  ASSIGN_OR_RETURN(auto experiments, ReadExperiments(session, request));
  selection.Apply(experiments, flags.limit.value_or(-1));
  RETURN_IF_ERROR(AddSpending(session, flags, experiments));
  Listing<v1::Experiment> listing(flags, MakeExperimentPrinter(flags));
  if (flags.watch) {
    listing.PrintChanged(experiments);
    return WatchExperiments(session, request, revision, listing);
  }
  if (request.names.size() == 1 && experiments.size() == 1) {
    listing.PrintOne(experiments[0]);
  } else {
    listing.PrintAll(experiments);
  }
  if (experiments.empty() && request.names.empty()) {
    Hint("no experiments" + (flags.all_namespaces ? "" : " in namespace " + session.ns));
  }
  return 0;
}

}  // namespace shirabe::cmd
