#include "experiment/submission.h"

#include <cmath>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/text/number.h"
#include "base/timestamp.h"
#include "db/bulk_leases.h"
#include "db/commit_rules.h"
#include "experiment/annotations.h"
#include "experiment/conditions.h"
#include "experiment/spec/algorithm_setup.h"
#include "experiment/spec/parse_spec.h"
#include "experiment/spec/range_changes.h"
#include "experiment/spec/spec_limits.h"
#include "experiment/spec/trial_point.h"
#include "experiment/state/warm_start.h"

namespace shirabe::experiment {
namespace {

constexpr size_t kMaxPointBytes = 64 << 10;
constexpr size_t kMaxIntentBytes = 128 << 10;  // with everything that comes beside a point
// That users may have asked for beyond those that could run.
constexpr int64_t kMaxWaitingTrials = 1000;

bool SameCounts(const v1::ExperimentSpec& a, const v1::ExperimentSpec& b) {
  return a.parallel_trial_count() == b.parallel_trial_count() &&
         a.has_max_trial_count() == b.has_max_trial_count() &&
         a.max_trial_count() == b.max_trial_count() &&
         a.has_max_failed_trial_count() == b.has_max_failed_trial_count() &&
         a.max_failed_trial_count() == b.max_failed_trial_count() &&
         a.objective().has_goal() == b.objective().has_goal() &&
         a.objective().goal() == b.objective().goal();
}

v1::Intent ScaleTo(const v1::Experiment& wanted, const ParameterChanges& ranges) {
  const v1::ExperimentSpec& spec = wanted.spec();
  v1::Intent intent;
  *intent.mutable_parameters() = ranges;
  *intent.mutable_actor() = wanted.status().shirabe().created_by();
  intent.set_verb(v1::Intent::SCALE);
  intent.set_parallel_trial_count(spec.parallel_trial_count());
  if (spec.has_max_trial_count()) intent.set_max_trial_count(spec.max_trial_count());
  if (spec.has_max_failed_trial_count()) {
    intent.set_max_failed_trial_count(spec.max_failed_trial_count());
  }
  if (spec.objective().has_goal()) intent.set_goal(spec.objective().goal());
  intent.set_replace(true);
  return intent;
}

// What may not be meant as it is written is said where everybody looks.
std::string Acceptance(const v1::Experiment& experiment) {
  std::string words = "the experiment was accepted";
  for (const Finding& finding : Validate(experiment)) {
    if (finding.warning) absl::StrAppend(&words, "; ", finding.path, ": ", finding.message);
  }
  return words;
}

std::string HasEnded(const v1::Experiment& experiment) {
  return absl::StrCat("experiment ", ToString(KeyOf(experiment)), " has ended (",
                      CurrentCondition(experiment).reason(), ")");
}

// Katib's rules: one that was not made to be resumed stays as it ended, and so does one that ended
// for another reason than that it had all its trials.
Status CheckCanContinue(const v1::Experiment& experiment) {
  const v1::ResumePolicy policy = experiment.spec().resume_policy();
  if (policy != v1::LONG_RUNNING && policy != v1::FROM_VOLUME) {
    return absl::FailedPreconditionError(absl::StrCat(
        HasEnded(experiment), ", and its spec.resumePolicy is Never: only one with LongRunning or ",
        "FromVolume goes on with other counts; give a new one another metadata.name, and learn ",
        "from this one by spec.shirabe.warmStart"));
  }
  if (CurrentCondition(experiment).reason() == "ExperimentMaxTrialsReached") {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      HasEnded(experiment), ": only one that has reached its maxTrialCount goes on with other ",
      "counts; give a new one another metadata.name"));
}

Status CheckWithin(const v1::Experiment& experiment, const v1::Trial& trial) {
  ASSIGN_OR_RETURN(const suggestion::Space space, SearchSpaceOf(experiment.spec()));
  return CheckedPoint(space, experiment.status().shirabe().space_changes(), trial).status();
}

Status CheckMayRetry(db::Store& store, const v1::Experiment& experiment, int64_t number) {
  const TrialKey key{KeyOf(experiment), number};
  ASSIGN_OR_RETURN(const auto trial, store.GetTrial(key));
  RETURN_IF_ERROR(CheckWithin(experiment, trial.record));
  const v1::TrialPhase phase = trial.record.phase();
  if (phase == v1::TRIAL_PENDING || phase == v1::TRIAL_RUNNING) {
    return absl::FailedPreconditionError(
        absl::StrCat("trial ", TrialName(key), " has not ended (it is ",
                     phase == v1::TRIAL_PENDING ? "Pending" : "Running",
                     "): only one that has ended is tried again; wait for it"));
  }
  if (IsEnded(experiment)) {
    return absl::FailedPreconditionError(absl::StrCat(
        HasEnded(experiment), ": nothing of it is tried again; give a new one another ",
        "metadata.name, with this point in spec.shirabe.start"));
  }
  return CheckHasRoom(experiment);
}

Status CheckTrial(db::Store& store, const v1::Experiment& experiment, int64_t number) {
  if (number < 1) return absl::InvalidArgumentError(absl::StrCat("trial: ", number, " is none"));
  return store.GetTrial({KeyOf(experiment), number}).status();
}

Status CheckMayTry(db::Store& store, const v1::Experiment& experiment, const v1::Intent& intent) {
  if (IsEnded(experiment)) {
    return absl::FailedPreconditionError(absl::StrCat(
        HasEnded(experiment), ": nothing more is tried; give a new one another metadata.name, ",
        "with this point in spec.shirabe.start"));
  }
  if (intent.point().ByteSizeLong() > kMaxPointBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("parameters: more than ", kMaxPointBytes, " bytes are no point of a space"));
  }
  if (intent.trial() != 0) {
    RETURN_IF_ERROR(CheckTrial(store, experiment, intent.trial()));
    ASSIGN_OR_RETURN(const auto like, store.GetTrial({KeyOf(experiment), intent.trial()}));
    RETURN_IF_ERROR(CheckWithin(experiment, like.record));
  }
  if (intent.trial() == 0 && intent.point().fields().empty()) {
    return absl::InvalidArgumentError(
        "parameters: give the value of one at least, or the trial to be like");
  }
  ASSIGN_OR_RETURN(const suggestion::Space space, SearchSpaceOf(experiment.spec()));
  RETURN_IF_ERROR(SampleWithValues(experiment.spec(), space, intent.point(), Rng(0)).status());
  ASSIGN_OR_RETURN(const auto sent, store.ListIntents(KeyOf(experiment)));
  if (static_cast<int64_t>(sent.size()) >= kMaxWaitingTrials) {
    return absl::ResourceExhaustedError(
        absl::StrCat(sent.size(), " requests wait for the owner of experiment ",
                     ToString(KeyOf(experiment)), ": run it, or try again later"));
  }
  return CheckHasRoom(experiment);
}

Status CheckMayAnnotate(db::Store& store, const v1::Experiment& experiment,
                        const v1::Intent& intent) {
  RETURN_IF_ERROR(CheckAnnotation(intent));
  if (intent.trial() == 0) {
    v1::ShirabeStatus status = experiment.status().shirabe();
    return Annotate(intent, status).status();
  }
  RETURN_IF_ERROR(CheckTrial(store, experiment, intent.trial()));
  ASSIGN_OR_RETURN(auto trial, store.GetTrial({KeyOf(experiment), intent.trial()}));
  return Annotate(intent, trial.record).status();
}

// The rule of Validate, for counts that change.
Status CheckCounts(const v1::ExperimentSpec& spec, const v1::Intent& intent) {
  const bool bounded =
      intent.has_max_trial_count() || (!intent.replace() && spec.has_max_trial_count());
  const int32_t most =
      intent.has_max_trial_count() ? intent.max_trial_count() : spec.max_trial_count();
  const int32_t parallel = intent.has_parallel_trial_count() ? intent.parallel_trial_count()
                                                             : spec.parallel_trial_count();
  RETURN_IF_ERROR(Prefix("spec.parallelTrialCount", CheckParallel(parallel)));
  if (!bounded || parallel <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "spec.parallelTrialCount: ", parallel, " is more than maxTrialCount ", most,
      ": lower it (--parallel ", most, "), or raise maxTrialCount (--max-trials ", parallel, ")"));
}

// Where there is nothing to commit, so that the store does not say it.
Status CheckUnchanged(db::Store& store, const v1::Experiment& stored, const v1::Intent& change) {
  if (change.generation() == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto waiting, store.ListIntents(KeyOf(stored)));
  db::Batch batch;
  batch.experiment = KeyOf(stored);
  batch.intents.push_back(change);
  return db::CheckConditions(batch, stored.metadata().generation(), waiting);
}

Status Exists(const ExperimentKey& key) {
  return absl::AlreadyExistsError(absl::StrCat(
      "experiment ", ToString(key),
      " is there already: apply changes its counts and ranges, or give another metadata.name"));
}

// The table's limits of the counts, for those that change.
Status CheckScale(const v1::Intent& intent) {
  const auto least = [](const char* field, int32_t count, int32_t smallest) {
    if (count >= smallest) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("spec.", field, ": must be at least ", smallest, ", not ", count));
  };
  if (intent.has_parallel_trial_count()) {
    RETURN_IF_ERROR(least("parallelTrialCount", intent.parallel_trial_count(), 1));
  }
  if (intent.has_max_trial_count()) {
    RETURN_IF_ERROR(least("maxTrialCount", intent.max_trial_count(), 1));
  }
  if (intent.has_max_failed_trial_count()) {
    RETURN_IF_ERROR(least("maxFailedTrialCount", intent.max_failed_trial_count(), 0));
  }
  if (!intent.has_goal() || std::isfinite(intent.goal())) return absl::OkStatus();
  return absl::InvalidArgumentError("spec.objective.goal: must be a finite number, not " +
                                    FormatNumber(intent.goal()));
}

// What the owner would pass over in silence, said to the caller.
Status CheckIntentBytes(size_t bytes) {
  if (bytes <= kMaxIntentBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the request has ", bytes, " bytes, and at most ",
                                                 kMaxIntentBytes, " are taken: shorten it"));
}

// One that ended while it was paused may be resumed; one that is about to go on, with other counts
// that have been asked for, may be either.
Status CheckMayPause(db::Store& store, const v1::Experiment& experiment, const v1::Intent& intent) {
  const bool resumes = intent.verb() == v1::Intent::RESUME;
  if (!IsEnded(experiment) || (resumes && experiment.status().shirabe().paused())) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const auto pending, store.ListIntents(KeyOf(experiment)));
  for (const v1::Intent& one : pending) {
    if (one.verb() == v1::Intent::SCALE) return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      HasEnded(experiment), ": there is nothing to ", resumes ? "resume" : "pause",
      CheckCanContinue(experiment).ok() ? "; with more trials (scale) it goes on" : ""));
}

Status CheckIntent(db::Store& store, const v1::Experiment& experiment, const v1::Intent& intent) {
  RETURN_IF_ERROR(CheckIntentBytes(intent.ByteSizeLong()));
  switch (intent.verb()) {
    case v1::Intent::RETRY: return CheckMayRetry(store, experiment, intent.trial());
    case v1::Intent::TRY: return CheckMayTry(store, experiment, intent);
    case v1::Intent::STOP_TRIAL: return CheckTrial(store, experiment, intent.trial());
    case v1::Intent::ANNOTATE: return CheckMayAnnotate(store, experiment, intent);
    case v1::Intent::PAUSE:
    case v1::Intent::RESUME: return CheckMayPause(store, experiment, intent);
    default: break;
  }
  if (intent.verb() == v1::Intent::VERB_NONE || !v1::Intent::Verb_IsValid(intent.verb())) {
    return absl::InvalidArgumentError(
        absl::StrCat("verb: ", static_cast<int>(intent.verb()), " asks for nothing"));
  }
  if (intent.verb() != v1::Intent::SCALE) return absl::OkStatus();
  RETURN_IF_ERROR(CheckScale(intent));
  RETURN_IF_ERROR(CheckCounts(experiment.spec(), intent));
  RETURN_IF_ERROR(WithChanges(experiment, intent.parameters()).status());
  return IsEnded(experiment) ? CheckCanContinue(experiment) : absl::OkStatus();
}

v1::Event CreatedBy(const ExperimentKey& key, const v1::Actor& actor) {
  v1::Event event;
  event.set_namespace_(key.ns);
  event.set_experiment(key.name);
  event.set_reason("ExperimentCreated");
  event.set_message("the experiment was created");
  *event.mutable_actor() = actor;
  *event.mutable_time() = actor.time();
  return event;
}

}  // namespace

db::Batch CreationOf(Clock& clock, v1::Experiment experiment) {
  const google::protobuf::Timestamp now = ToProto(clock.Now());
  v1::Actor actor = experiment.status().shirabe().created_by();
  const std::string namespace_uid = experiment.status().shirabe().namespace_uid();
  experiment.clear_status();
  if (!namespace_uid.empty()) {
    experiment.mutable_status()->mutable_shirabe()->set_namespace_uid(namespace_uid);
  }
  experiment.mutable_metadata()->set_generation(1);
  experiment.mutable_metadata()->set_uid(absl::BytesToHexString(RandomBytes(16)));
  *experiment.mutable_metadata()->mutable_creation_timestamp() = now;
  v1::Condition* created = experiment.mutable_status()->add_conditions();
  created->set_type("Created");
  created->set_status("True");
  created->set_reason("ExperimentCreated");
  created->set_message(Acceptance(experiment));
  *created->mutable_last_update_time() = now;
  *created->mutable_last_transition_time() = now;
  db::Batch batch;
  batch.experiment = KeyOf(experiment);
  if (!actor.name().empty()) {
    *actor.mutable_time() = now;
    batch.events.push_back(CreatedBy(batch.experiment, actor));
    *experiment.mutable_status()->mutable_shirabe()->mutable_created_by() = std::move(actor);
  }
  batch.put = {std::move(experiment), 0};
  return batch;
}

Status CheckMayCreate(db::Store& store, const ExperimentKey& key, int64_t most) {
  if (most == 0 || store.GetExperiment(key).ok()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const int64_t count, db::BulkOf(store).CountExperiments(key.ns));
  if (count < most) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "namespace ", key.ns, " has ", count,
      " experiments, the most that this server keeps for one ",
      "(--max-experiments): delete some that have ended, or ask its administrator for more"));
}

Status CheckHasRoom(const v1::Experiment& experiment) {
  const v1::ExperimentSpec& spec = experiment.spec();
  const int64_t made = experiment.status().trials();
  const int64_t waiting = experiment.status().trials_pending();
  if (waiting >= spec.parallel_trial_count() + kMaxWaitingTrials) {
    return absl::ResourceExhaustedError(absl::StrCat(
        waiting, " trials of experiment ", ToString(KeyOf(experiment)),
        " wait already: try again once some of them run, or raise parallelTrialCount"));
  }
  if (!spec.has_max_trial_count() || made < spec.max_trial_count()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("all ", spec.max_trial_count(), " trials (spec.maxTrialCount) of experiment ",
                   ToString(KeyOf(experiment)), " have been made: raise it first: shirabe scale ",
                   experiment.metadata().name(), " --max-trials ", made + 1));
}

StatusOr<Submitted> Submit(db::Store& store, Clock& clock, const v1::Experiment& experiment,
                           const Precondition& precondition) {
  const ExperimentKey key = KeyOf(experiment);
  RETURN_IF_ERROR(ValidateExperimentName(key.name));
  RETURN_IF_ERROR(ValidateNamespace(key.ns));
  auto existing = store.GetExperiment(key);
  if (absl::IsNotFound(existing.status())) {
    if (precondition.present || precondition.generation != 0) return existing.status();
    RETURN_IF_ERROR(CheckWarmStart(store, experiment));
    const Status created = store.Commit(CreationOf(clock, experiment)).status();
    if (!absl::IsAborted(created)) {
      RETURN_IF_ERROR(created);
      return Submitted{.created = true, .changed = false};
    }
    existing = store.GetExperiment(key);  // another caller made it in between
  }
  RETURN_IF_ERROR(existing.status());
  if (precondition.absent) return Exists(key);
  RETURN_IF_ERROR(CheckSameExperiment(existing->record, experiment));
  v1::Intent change =
      ScaleTo(experiment, ChangesBetween(existing->record.spec(), experiment.spec()));
  change.set_generation(precondition.generation);
  if (change.parameters().empty() && SameCounts(existing->record.spec(), experiment.spec())) {
    RETURN_IF_ERROR(CheckUnchanged(store, existing->record, change));
    return Submitted{};
  }
  RETURN_IF_ERROR(Send(store, clock, key, change));
  return Submitted{.created = false, .changed = true};
}

Status CheckCaller(const std::string& caller) {
  if (caller.empty()) return absl::InvalidArgumentError("who asks must have a name");
  return CheckIntentBytes(caller.size());
}

Status CheckAsked(const v1::Experiment& experiment) {
  if (experiment.spec().shirabe().ask_and_tell()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("experiment ", ToString(KeyOf(experiment)),
                   " runs its trials itself: only one with "
                   "spec.shirabe.askAndTell: true is asked for them"));
}

Status Send(db::Store& store, Clock& clock, const ExperimentKey& key, v1::Intent intent) {
  ASSIGN_OR_RETURN(const auto stored, store.GetExperiment(key));
  // Fewer in all than at the same time: those, where no other number is given.
  const bool fewer = intent.has_max_trial_count() && !intent.has_parallel_trial_count() &&
                     intent.max_trial_count() < stored.record.spec().parallel_trial_count();
  if (fewer) intent.set_parallel_trial_count(intent.max_trial_count());
  RETURN_IF_ERROR(CheckIntent(store, stored.record, intent));
  intent.set_namespace_(key.ns);
  intent.set_experiment(key.name);
  *intent.mutable_time() = ToProto(clock.Now());
  if (intent.has_actor()) *intent.mutable_actor()->mutable_time() = intent.time();
  db::Batch batch;
  batch.experiment = key;
  if (intent.verb() == v1::Intent::DELETE) {
    Log(LogLevel::kInfo, "the deletion of an experiment was asked for",
        {{"experiment", ToString(key)}, {"by", intent.actor().name()}});
  }
  if (intent.verb() == v1::Intent::ANNOTATE) {
    ASSIGN_OR_RETURN(const bool written, AnnotateUnowned(store, clock, key, intent));
    if (written) return absl::OkStatus();
  }
  batch.intents.push_back(std::move(intent));
  return store.Commit(batch).status();
}

}  // namespace shirabe::experiment
