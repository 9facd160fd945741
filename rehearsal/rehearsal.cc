#include "rehearsal/rehearsal.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/rng.h"
#include "base/temporary_folder.h"
#include "client/local_client.h"
#include "client/records/enum_words.h"
#include "experiment/conditions.h"
#include "experiment/plan.h"
#include "experiment/spec/algorithm_setup.h"
#include "experiment/spec/parse_spec.h"
#include "trial/file_layout.h"
#include "trial/trial_template.h"
#include "view/record_rows.h"

namespace shirabe::rehearsal {
namespace {

constexpr absl::Duration kPollInterval = absl::Milliseconds(50);
constexpr double kNeverReturns = 1e6;     // seconds until a machine taken away is back
constexpr double kFirstPreemption = 0.2;  // of the work, before anything is taken away
constexpr double kLastPreemption = 0.8;
constexpr char kLastPool[] = "rehearsal-steady";

// ---- the experiment of one trial ----------------------------------------------------------------

// The point as spec.shirabe.start has it, with the user's values over the algorithm's.
StatusOr<google::protobuf::Struct> StartOf(
    const google::protobuf::RepeatedPtrField<v1::Assignment>& assignments,
    const std::vector<std::string>& params) {
  google::protobuf::Struct start;
  auto& fields = *start.mutable_fields();
  for (const v1::Assignment& assignment : assignments) {
    fields[assignment.name()].set_string_value(trial::FormatAssignment(assignment));
  }
  for (const std::string& param : params) {
    const size_t cut = param.find('=');
    if (cut == std::string::npos || cut == 0) {
      return absl::InvalidArgumentError("--param " + param + " is not NAME=VALUE");
    }
    fields[param.substr(0, cut)].set_string_value(param.substr(cut + 1));
  }
  return start;
}

// What would end, delay or vary the one trial is taken out; all that it sees of the experiment
// stays.
StatusOr<v1::Experiment> OneTrial(const RehearsalOptions& options, client::LocalClient& client) {
  v1::Experiment experiment = options.experiment;
  ASSIGN_OR_RETURN(const auto suggested, client.Suggest(experiment, 1));
  if (suggested.points().empty()) {
    return absl::FailedPreconditionError("the algorithm has no point to try: " +
                                         suggested.reason());
  }
  v1::ExperimentSpec& spec = *experiment.mutable_spec();
  ASSIGN_OR_RETURN(const auto start, StartOf(suggested.points(0).assignments(), options.params));
  spec.mutable_shirabe()->clear_start();
  *spec.mutable_shirabe()->add_start() = start;
  ASSIGN_OR_RETURN(const auto values, experiment::StartPoint(spec, 0));
  ASSIGN_OR_RETURN(const auto space, experiment::SearchSpaceOf(spec));
  RETURN_IF_ERROR(space.Encode(values).status());
  spec.set_parallel_trial_count(1);
  spec.set_max_trial_count(1);
  spec.set_max_failed_trial_count(0);
  spec.mutable_objective()->clear_goal();
  for (auto& further : *spec.mutable_shirabe()->mutable_additional_objectives()) {
    further.clear_goal();
  }
  spec.clear_early_stopping();
  v1::ShirabeSpec& shirabe = *spec.mutable_shirabe();
  shirabe.clear_budget();
  // A rehearsal deploys nothing, and tells no endpoint of it.
  shirabe.clear_on_success();
  shirabe.clear_notifications();
  // Nothing of it is kept, neither here nor elsewhere.
  shirabe.clear_artifacts();
  shirabe.clear_capacity();
  shirabe.clear_warm_start();
  v1::AttemptPolicy& attempts = *shirabe.mutable_attempts();
  attempts.clear_on_demand_after();
  attempts.set_max_preemptions(std::max(attempts.max_preemptions(), 2 * options.reclaims + 8));
  return experiment;
}

// A pool for each strike, used in their order, and one that stays.
v1::NodePools PoolsFor(const std::vector<PlannedPreemption>& preemptions,
                       v1::Experiment& experiment) {
  v1::NodePools pools;
  v1::CapacityPolicy& policy = *experiment.mutable_spec()->mutable_shirabe()->mutable_capacity();
  const auto add = [&](const std::string& name) {
    v1::NodePool& pool = *pools.add_pools();
    pool.set_name(name);
    pool.set_capacity(v1::SPOT);
    pool.set_price_per_hour(0);
    pool.set_slots(1);
    policy.add_pools(name);
    return &pool;
  };
  for (const PlannedPreemption& preemption : preemptions) {
    v1::Reclaim& reclaim = *add(preemption.pool)->mutable_reclaim();
    reclaim.add_times(preemption.at);
    reclaim.set_notice_seconds(preemption.notice);
    reclaim.set_returns_after_seconds(kNeverReturns);
  }
  add(kLastPool);
  return pools;
}

// ---- running it ---------------------------------------------------------------------------------

Status RunToItsEnd(const RehearsalOptions& options, client::LocalClient& client,
                   const ExperimentKey& key, v1::NodePools pools) {
  ASSIGN_OR_RETURN(const auto controller,
                   client.MakeController({.devices = options.devices,
                                          .pools = std::move(pools),
                                          .working_dir = options.working_dir},
                                         1));
  RETURN_IF_ERROR(controller->Own(key));
  bool interrupted = false;
  Status over;
  do {
    over = controller->Await(key, kPollInterval);
    if (interrupted || options.wait(absl::ZeroDuration())) continue;
    interrupted = true;
    controller->Suspend(key, /*now=*/true);
  } while (absl::IsDeadlineExceeded(over));
  if (interrupted) return absl::CancelledError("interrupted; nothing of the rehearsal is left");
  return over;
}

// From the creation of the checkpoint's folder, as <step>.tmp, to its last file. nullopt where it
// has been pruned, or the file system does not know when a folder was created.
std::optional<double> CheckpointSaveSeconds(const trial::FileLayout& layout,
                                            const v1::Checkpoint& checkpoint) {
  const AttemptKey key{{ExperimentKeyOf(checkpoint), checkpoint.trial()}, checkpoint.attempt()};
  const std::string folder = absl::StrCat(layout.Paths(key).checkpoint_dir, "/", checkpoint.step());
  struct statx facts = {};
  const bool known = statx(AT_FDCWD, folder.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BTIME, &facts) == 0;
  if (!known || (facts.stx_mask & STATX_BTIME) == 0) return std::nullopt;
  const absl::Time begun =
      absl::FromUnixSeconds(facts.stx_btime.tv_sec) + absl::Nanoseconds(facts.stx_btime.tv_nsec);
  const double seconds = absl::ToDoubleSeconds(FromProto(checkpoint.time()) - begun);
  if (seconds < 0) return std::nullopt;  // it was linked here, not saved
  return seconds;
}

StatusOr<RehearsalRun> Collect(client::LocalClient& client, const TrialKey& key,
                               const trial::FileLayout& layout) {
  RehearsalRun run;
  ASSIGN_OR_RETURN(run.trial, client.GetTrial(key));
  ASSIGN_OR_RETURN(run.attempts,
                   client.ListAttempts({.experiment = key.experiment, .trial = key.number}));
  ASSIGN_OR_RETURN(run.checkpoints, client.ListCheckpoints(key));
  ASSIGN_OR_RETURN(run.rows, client.ListObservations({.trial = key, .include_superseded = true}));
  for (const v1::Checkpoint& checkpoint : run.checkpoints) {
    if (const auto seconds = CheckpointSaveSeconds(layout, checkpoint))
      run.save_seconds.push_back(*seconds);
  }
  return run;
}

// Without strikes: undisturbed.
StatusOr<RehearsalRun> RunOnce(const RehearsalOptions& options,
                               const std::vector<PlannedPreemption>& preemptions) {
  ASSIGN_OR_RETURN(const auto home, TemporaryFolder::Create("shirabe-rehearsal"));
  const ExperimentKey key = experiment::KeyOf(options.experiment);
  ASSIGN_OR_RETURN(
      const auto client,
      client::LocalClient::Open({.place = {.home = home->path(), .db = "memory:", .ns = key.ns},
                                 .read_only = false,
                                 .clock = options.clock,
                                 .stores = options.stores}));
  ASSIGN_OR_RETURN(v1::Experiment experiment, OneTrial(options, *client));
  v1::NodePools pools;
  if (!preemptions.empty()) pools = PoolsFor(preemptions, experiment);
  RETURN_IF_ERROR(client->Submit(experiment, {}).status());
  RETURN_IF_ERROR(RunToItsEnd(options, *client, key, std::move(pools)));
  auto run = Collect(*client, {key, 1}, trial::FileLayout(home->path()));
  if (run.ok()) return run;
  ASSIGN_OR_RETURN(experiment, client->GetExperiment(key));
  return absl::FailedPreconditionError("no trial could be run: " +
                                       experiment::CurrentCondition(experiment).message());
}

std::string PlanText(const std::vector<PlannedPreemption>& preemptions) {
  std::string text = "2/2 its machine is taken away";
  for (const PlannedPreemption& preemption : preemptions) {
    absl::StrAppendFormat(&text, "\n    after %.1f s, with %.4g s of notice", preemption.at,
                          preemption.notice);
  }
  return text;
}

bool AllPreempted(const Rehearsal& rehearsal) {
  const auto& attempts = rehearsal.preempted.attempts;
  return std::all_of(
      rehearsal.preemptions.begin(), rehearsal.preemptions.end(),
      [&](const PlannedPreemption& preemption) {
        return std::any_of(attempts.begin(), attempts.end(), [&](const v1::Attempt& attempt) {
          return WasPreempted(attempt) && view::PlacementOf(attempt).pool() == preemption.pool;
        });
      });
}

Status CheckSucceeded(const RehearsalRun& run) {
  if (run.trial.phase() == v1::TRIAL_SUCCEEDED && !run.attempts.empty()) return absl::OkStatus();
  const std::string tail = run.attempts.empty() ? "" : run.attempts.back().log_tail();
  return absl::FailedPreconditionError(absl::StrCat(
      "the program does not succeed even undisturbed: ", client::PhaseWord(run.trial.phase()), " (",
      run.trial.reason(), run.trial.message().empty() ? "" : ": ", run.trial.message(), ")",
      tail.empty() ? "" : "; its last lines:\n", tail));
}

}  // namespace

bool WasPreempted(const v1::Attempt& attempt) {
  return attempt.cause() == v1::PREEMPTED_SPOT || attempt.cause() == v1::PREEMPTED_NODE;
}

double WholeSeconds(const RehearsalRun& run) {
  if (run.attempts.empty()) return 0;
  return absl::ToDoubleSeconds(FromProto(run.attempts.back().end_time()) -
                               FromProto(run.attempts.front().start_time()));
}

double StartupSeconds(const RehearsalRun& run) {
  if (run.attempts.empty() || run.rows.empty()) return 0;
  absl::Time first = absl::InfiniteFuture();
  for (const db::StoredObservation& row : run.rows) first = std::min(first, row.time);
  for (const auto& saved : run.checkpoints) first = std::min(first, FromProto(saved.time()));
  const absl::Duration time = first - FromProto(run.attempts.front().start_time());
  return std::clamp(absl::ToDoubleSeconds(time), 0.0, WholeSeconds(run));
}

std::vector<PlannedPreemption> PlanPreemptions(const RehearsalOptions& options,
                                               const Timing& timing) {
  const double grace = absl::ToDoubleSeconds(experiment::GraceOf(options.experiment));
  Rng rng(options.seed);
  std::vector<PlannedPreemption> preemptions;
  for (int i = 0; i < options.reclaims; ++i) {
    const double share = kFirstPreemption + (kLastPreemption - kFirstPreemption) *
                                                (i + rng.Uniform()) / options.reclaims;
    preemptions.push_back(
        {.pool = absl::StrCat("rehearsal-spot-", i + 1),
         .at = timing.startup + i * timing.restart + share * (timing.whole - timing.startup),
         .notice = i == 0 ? 0 : options.notice.value_or(grace)});
  }
  return preemptions;
}

StatusOr<Rehearsal> Rehearse(const RehearsalOptions& options) {
  Rehearsal rehearsal;
  options.say("1/2 undisturbed");
  ASSIGN_OR_RETURN(rehearsal.baseline, RunOnce(options, {}));
  RETURN_IF_ERROR(CheckSucceeded(rehearsal.baseline));
  Timing timing{.startup = StartupSeconds(rehearsal.baseline),
                .whole = WholeSeconds(rehearsal.baseline)};
  options.say(absl::StrFormat("    it took %.1f s", timing.whole));
  // Restarts may be quicker than the first start, so that a late reclaim finds the work done: then
  // once more, with earlier ones. Or all of it is quicker than the first time, which a busy machine
  // or a cold cache has slowed down: then a run that was not disturbed either says how long it
  // takes.
  for (const double share_of_startup : {1.0, 0.7, 0.4}) {
    timing.restart = share_of_startup * timing.startup;
    rehearsal.preemptions = PlanPreemptions(options, timing);
    options.say(PlanText(rehearsal.preemptions));
    ASSIGN_OR_RETURN(rehearsal.preempted, RunOnce(options, rehearsal.preemptions));
    if (AllPreempted(rehearsal)) break;
    if (rehearsal.preempted.attempts.size() > 1) continue;
    timing.startup = std::min(timing.startup, StartupSeconds(rehearsal.preempted));
    timing.whole = std::min(timing.whole, WholeSeconds(rehearsal.preempted));
  }
  return rehearsal;
}

double YoungInterval(double cost, double mean_time_between_preemptions) {
  if (cost <= 0 || mean_time_between_preemptions <= 0) return 0;
  return std::sqrt(2 * cost * mean_time_between_preemptions);
}

double DalyInterval(double cost, double mean_time_between_preemptions) {
  const double young = YoungInterval(cost, mean_time_between_preemptions);
  if (young == 0) return 0;
  const double ratio = cost / (2 * mean_time_between_preemptions);
  if (ratio >= 1) return mean_time_between_preemptions;
  return young * (1 + std::sqrt(ratio) / 3 + ratio / 9) - cost;
}

double ExpectedOverhead(double interval, double cost, double mean_time_between_preemptions) {
  if (interval <= 0 || mean_time_between_preemptions <= 0) return 0;
  return cost / interval + interval / (2 * mean_time_between_preemptions);
}

}  // namespace shirabe::rehearsal
