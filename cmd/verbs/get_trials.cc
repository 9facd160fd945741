#include <limits>

#include "cmd/record_printer.h"
#include "cmd/verb_flags.h"
#include "cmd/verbs/get_nouns.h"
#include "experiment/conditions.h"
#include "view/record_filter.h"
#include "view/record_rows.h"
#include "view/wait_condition.h"

namespace shirabe::cmd {

namespace {

using TrialSelection = view::Selection<v1::Trial>;

// The experiment must outlive the printer.
Printer<v1::Trial> MakeTrialPrinter(const v1::Experiment& experiment, const ListFlags& flags) {
  return {.header = view::TrialHeader(experiment, StyleOf(flags)),
          .row =
              [&experiment](const v1::Trial& trial, const view::RowStyle& style) {
                return view::TrialRow(experiment, trial, style);
              },
          .tree = view::TrialRenderer(experiment),
          .name =
              [](const v1::Trial& trial) {
                return "trial/" + TrialName({ExperimentKeyOf(trial), trial.number()});
              }};
}

// Until the experiment has ended, so that a script that follows a run ends with it.
StatusOr<int> WatchTrials(client::Client& client, const ExperimentKey& key,
                          const TrialSelection& selection, Listing<v1::Trial>& listing) {
  // The revision is read before the trials: what changes in between is printed twice rather than
  // not at all.
  ASSIGN_OR_RETURN(int64_t revision, client.Revision());
  int64_t seen = 0;
  for (;;) {
    ASSIGN_OR_RETURN(const v1::Experiment experiment, client.GetExperiment(key));
    ASSIGN_OR_RETURN(auto trials, client.ListTrials({.experiment = key, .changed_after = seen}));
    selection.Apply(trials, -1);
    listing.PrintChanged(trials);
    RETURN_IF_ERROR(FlushOut());
    if (experiment::IsEnded(experiment)) return 0;
    seen = revision;
    ASSIGN_OR_RETURN(revision, client.AwaitChange(seen, kMaxWatchWait));
  }
}

// In the order of their numbers, filtered as they come.
Status PrintInPages(client::Client& client, const ExperimentKey& key,
                    const TrialSelection& selection, Listing<v1::Trial>& listing) {
  int64_t left = listing.flags().limit.value_or(std::numeric_limits<int64_t>::max());
  if (left > 0) {
    RETURN_IF_ERROR(view::EachTrialPage(client, key, [&](std::vector<v1::Trial>& trials) {
      selection.Apply(trials, left);
      listing.Print(trials);
      left -= static_cast<int64_t>(trials.size());
      return left > 0;
    }));
  }
  listing.Finish();
  return absl::OkStatus();
}

StatusOr<int> GetTrialsOf(client::Client& client, const ExperimentKey& key,
                          const ListFlags& flags) {
  ASSIGN_OR_RETURN(const v1::Experiment experiment, client.GetExperiment(key));
  const auto selection =
      TrialSelection::Create(view::TrialFields(experiment), flags.filter, flags.sort_by);
  if (!selection.ok()) return AsUsage(selection.status());
  Listing<v1::Trial> listing(flags, MakeTrialPrinter(experiment, flags));
  if (flags.watch) return WatchTrials(client, key, *selection, listing);
  if (!selection->sorts()) {
    RETURN_IF_ERROR(PrintInPages(client, key, *selection, listing));
    return 0;
  }
  ASSIGN_OR_RETURN(auto trials, client.ListTrials({.experiment = key}));
  selection->Apply(trials, flags.limit.value_or(-1));
  listing.PrintAll(trials);
  return 0;
}

StatusOr<int> GetOneTrial(client::Client& client, const TrialKey& key, const ListFlags& flags) {
  ASSIGN_OR_RETURN(const v1::Experiment experiment, client.GetExperiment(key.experiment));
  ASSIGN_OR_RETURN(const v1::Trial trial, client.GetTrial(key));
  Listing<v1::Trial>(flags, MakeTrialPrinter(experiment, flags)).PrintOne(trial);
  return 0;
}

}  // namespace

StatusOr<int> GetTrials(const Session& session, const GetRequest& request) {
  if (request.names.size() != 1) {
    return UsageError("get trials takes one experiment or trial: shirabe get trials EXPERIMENT");
  }
  ASSIGN_OR_RETURN(const auto trial, TrialUnlessExperiment(session, request.names[0]));
  if (trial) return GetOneTrial(*session.client, *trial, request.flags);
  ASSIGN_OR_RETURN(const ExperimentKey key, ExperimentArgument(request.names[0], session.ns));
  return GetTrialsOf(*session.client, key, request.flags);
}

// The lists of what belongs to trials: attempts, checkpoints and metrics.

namespace {

template <class Record>
void Cut(const ListFlags& flags, std::vector<Record>& records) {
  if (flags.limit && static_cast<int64_t>(records.size()) > *flags.limit) {
    records.resize(*flags.limit);
  }
}

// What neither has fields to sort by nor is watched says so.
Status CheckPlain(const ListFlags& flags, const std::string& noun) {
  if (flags.filter.empty() && flags.sort_by.empty() && !flags.watch) return absl::OkStatus();
  return UsageError("--filter, --sort-by and --watch are for experiments and trials, not for " +
                    noun);
}

AttemptKey KeyOf(const v1::Attempt& attempt) {
  return {{ExperimentKeyOf(attempt), attempt.trial()}, attempt.number()};
}

// An attempt's trial, or all trials of an experiment. kNotFound if there is no such record.
StatusOr<db::AttemptQuery> FindQuery(const Session& session, const std::string& name) {
  ASSIGN_OR_RETURN(const auto trial, TrialUnlessExperiment(session, name));
  if (trial) {
    RETURN_IF_ERROR(session.client->GetTrial(*trial).status());
    return db::AttemptQuery{.experiment = trial->experiment, .trial = trial->number};
  }
  ASSIGN_OR_RETURN(const ExperimentKey key, ExperimentArgument(name, session.ns));
  RETURN_IF_ERROR(session.client->GetExperiment(key).status());
  return db::AttemptQuery{.experiment = key};
}

}  // namespace

StatusOr<int> GetAttempts(const Session& session, const GetRequest& request) {
  if (request.names.size() != 1) {
    return UsageError("get attempts takes one experiment or trial: shirabe get attempts TRIAL");
  }
  RETURN_IF_ERROR(CheckPlain(request.flags, "attempts"));
  ASSIGN_OR_RETURN(const db::AttemptQuery query, FindQuery(session, request.names[0]));
  ASSIGN_OR_RETURN(auto attempts, session.client->ListAttempts(query));
  Cut(request.flags, attempts);
  client::Client& client = *session.client;
  const view::RowStyle style = StyleOf(request.flags);
  const Printer<v1::Attempt> printer{
      .header = view::AttemptHeader(style),
      .row = view::AttemptRow,
      .tree =
          [&client, now = style.now](const v1::Attempt& attempt) {
            return view::AttemptJson(attempt,
                                     {.log = client.LogLocation(KeyOf(attempt)), .now = now});
          },
      .name = [](const v1::Attempt& attempt) { return "attempt/" + AttemptName(KeyOf(attempt)); }};
  Listing<v1::Attempt>(request.flags, printer).PrintAll(attempts);
  return 0;
}

StatusOr<int> GetCheckpoints(const Session& session, const GetRequest& request) {
  if (request.names.size() != 1) {
    return UsageError("get checkpoints takes one trial: shirabe get checkpoints EXPERIMENT/7");
  }
  RETURN_IF_ERROR(CheckPlain(request.flags, "checkpoints"));
  ASSIGN_OR_RETURN(const TrialKey key, TrialArgument(request.names[0], session.ns));
  RETURN_IF_ERROR(session.client->GetTrial(key).status());
  ASSIGN_OR_RETURN(auto checkpoints, session.client->ListCheckpoints(key));
  Cut(request.flags, checkpoints);
  const Printer<v1::Checkpoint> printer{.header = view::CheckpointHeader(StyleOf(request.flags)),
                                        .row = view::CheckpointRow,
                                        .tree = view::CheckpointJson,
                                        .name = [&key](const v1::Checkpoint& checkpoint) {
                                          return "checkpoint/" +
                                                 AttemptName({key, checkpoint.attempt()}) + "/" +
                                                 std::to_string(checkpoint.step());
                                        }};
  Listing<v1::Checkpoint>(request.flags, printer).PrintAll(checkpoints);
  return 0;
}

StatusOr<int> GetMetrics(const Session& session, const GetRequest& request) {
  if (request.names.size() != 1) {
    return UsageError("get metrics takes one trial: shirabe get metrics EXPERIMENT/7");
  }
  RETURN_IF_ERROR(CheckPlain(request.flags, "metrics"));
  ASSIGN_OR_RETURN(const TrialKey key, TrialArgument(request.names[0], session.ns));
  RETURN_IF_ERROR(session.client->GetTrial(key).status());
  ASSIGN_OR_RETURN(auto rows, session.client->ListObservations(
                                  {.trial = key, .include_superseded = request.all_attempts}));
  Cut(request.flags, rows);
  const Printer<db::StoredObservation> printer{
      .header = view::ObservationHeader(),
      .row = view::ObservationRowCells,
      .tree = [&key](const db::StoredObservation& row) { return view::ObservationJson(key, row); },
      .name = [](const db::StoredObservation& row) { return row.metric; }};
  Listing<db::StoredObservation>(request.flags, printer).PrintAll(rows);
  return 0;
}

}  // namespace shirabe::cmd
