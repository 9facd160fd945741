// prune: what a store and its folder no longer need, deleted.
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/registry.h"
#include "base/text/number.h"
#include "base/timestamp.h"
#include "client/retention.h"
#include "client/store_prune.h"
#include "cmd/session.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "experiment/conditions.h"

namespace shirabe::cmd {
namespace {

constexpr absl::Duration kPruneTimeout = absl::Seconds(60);

struct PruneRequest {
  std::string ended_before;
  std::optional<int64_t> keep;
  bool orphans = false;
  bool copies = false;
  bool all_namespaces = false;
  bool dry_run = false;
};

const char* Done(const PruneRequest& request) { return request.dry_run ? " would be" : ""; }

// Those that nothing runs any more, and whose last change of condition is that long ago.
Status DeleteEnded(const LocalSession& session, const PruneRequest& request) {
  if (request.ended_before.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const absl::Duration age,
                   ParseDurationOr("--ended-before", request.ended_before, absl::ZeroDuration()));
  const absl::Time limit = RealClock()->Now() - age;
  ASSIGN_OR_RETURN(const auto all,
                   session.client->ListExperiments(request.all_namespaces ? "" : session.place.ns));
  for (const v1::Experiment& experiment : all) {
    const v1::ExperimentStatus& status = experiment.status();
    if (!experiment::IsEnded(experiment) || !status.has_completion_time()) continue;
    if (FromProto(status.completion_time()) >= limit) continue;
    const ExperimentKey key = experiment::KeyOf(experiment);
    if (!request.dry_run) {
      RETURN_IF_ERROR(session.client->Delete(key, kPruneTimeout, SleepUninterrupted));
    }
    Out(absl::StrCat("experiment/", key.name, request.all_namespaces ? " -n " + key.ns : "",
                     Done(request), " deleted, ended ", FormatTime(status.completion_time()),
                     "\n"));
  }
  return absl::OkStatus();
}

Status Thin(const LocalSession& session, const PruneRequest& request) {
  if (!request.keep) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      const client::Thinned thinned,
      client::ThinObservations(session.client->store(),
                               {.ns = request.all_namespaces ? "" : session.place.ns,
                                .keep = *request.keep,
                                .ended_before = RealClock()->Now() - client::kRowsUntouched,
                                .dry_run = request.dry_run}));
  Out(absl::StrCat(thinned.observations, " observations of ", thinned.trials, " trials",
                   Done(request), " deleted\n"));
  return absl::OkStatus();
}

Status DeleteOrphans(const LocalSession& session, const PruneRequest& request) {
  if (!request.orphans) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto orphans,
                   client::RemoveOrphans(*session.client, session.place.home, request.dry_run));
  for (const client::OrphanedFiles& one : orphans) {
    Out(absl::StrCat(one.path, Done(request), " deleted, ", FormatBytes(one.bytes), "\n"));
  }
  return absl::OkStatus();
}

Status DeleteCopies(const LocalSession& session, const PruneRequest& request) {
  if (!request.copies) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto removed,
                   client::RemoveOldCopies(*session.client,
                                           {.ns = request.all_namespaces ? "" : session.place.ns,
                                            .clock = RealClock(),
                                            .dry_run = request.dry_run}));
  Status status;
  for (const client::RemovedCopies& one : removed) {
    const std::string shown = absl::StrCat("copies of experiment/", one.experiment.name,
                                           request.all_namespaces ? " -n " + one.experiment.ns : "",
                                           " in store ", one.store);
    if (one.error.empty()) {
      Out(absl::StrCat(shown, Done(request), " deleted\n"));
    } else {
      status = absl::UnavailableError(absl::StrCat(shown, ": ", one.error));
    }
  }
  return status;
}

}  // namespace

StatusOr<int> Prune(const Arguments& arguments) {
  Globals globals;
  PruneRequest request;
  Options options(
      "prune [--ended-before AGE] [--keep-observations N] [--orphans] [--copies]",
      "Deletes what is no longer needed from this machine's store, or that of --db, while servers "
      "and trials go on, and gives the space back to the disk. Of observations stay the first, "
      "the last, the least and the greatest of each metric of a trial, and others evenly spaced; "
      "none goes of a trial that runs or ended within the last hour, nor of an objective that an "
      "early-stopping rule reads. An SQLite file that release 0.1 made is rewritten once to give "
      "its space back, or, with more than 64 MB left in it, uses the space again.");
  options.Arguments("nothing", nullptr, 0, 0);
  options.Text("--ended-before", &request.ended_before, "AGE",
               "experiments that ended longer ago than 30d, 12h or 90m, with their files");
  options.Number("--keep-observations", &request.keep, client::kMinKeptObservations,
                 "observations of each metric of a trial that has ended beyond so many");
  options.Flag(
      "--orphans", &request.orphans,
      "folders in the home of experiments and trials that this store does not have, and of "
      "code packages that no experiment of it names; those of another database that shares "
      "the home are such folders, too");
  options.Flag("--copies", &request.copies,
               "what experiments have had copied to stores (spec.shirabe.artifacts) and whose time "
               "there is over: keepDays of the store and of the experiment, whichever is less, "
               "after its end");
  AddStores(options, &globals);
  options.Flag("-A,--all-namespaces", &request.all_namespaces, "of all namespaces");
  options.Flag("--dry-run", &request.dry_run, "only say what would be deleted");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  if (request.ended_before.empty() && !request.keep && !request.orphans && !request.copies) {
    return UsageError(
        "prune deletes nothing by itself: say what with --ended-before, --keep-observations, "
        "--orphans or --copies");
  }
  RETURN_IF_ERROR(ParseDurationOr("--ended-before", request.ended_before, {}).status());
  ASSIGN_OR_RETURN(const LocalSession session, OpenLocal(globals, request.dry_run));
  RETURN_IF_ERROR(DeleteEnded(session, request));
  RETURN_IF_ERROR(Thin(session, request));
  RETURN_IF_ERROR(DeleteOrphans(session, request));
  RETURN_IF_ERROR(DeleteCopies(session, request));
  if (!request.dry_run) RETURN_IF_ERROR(client::ReleaseSpace(*session.client));
  return kOk;
}

SHIRABE_REGISTER(Verb, {.name = "prune",
                        .group = VerbGroup::kTools,
                        .summary = "delete old experiments, rows and files that are not needed",
                        .outputs = {},
                        .run = Prune});

}  // namespace shirabe::cmd
