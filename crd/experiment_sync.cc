#include "crd/experiment_sync.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/timestamp.h"
#include "crd/event_forwarder.h"
#include "crd/object_conversion.h"
#include "crd/object_status.h"
#include "crd/resource_kinds.h"
#include "experiment/attempt_request.h"
#include "experiment/conditions.h"
#include "experiment/spec/findings.h"
#include "experiment/submission.h"
#include "trial/kubernetes/checkpoint_volume.h"

namespace shirabe::crd {
namespace {

using kube::Json;

constexpr absl::Duration kDependencyRetry = absl::Seconds(30);  // where only another's change helps
constexpr absl::Duration kTemplateRetry = absl::Seconds(10);
constexpr absl::Duration kUnsynced = absl::Seconds(2);
// Between two writes of nothing but counts; and where the budget of such writes is used up.
constexpr absl::Duration kSums = absl::Seconds(5);
constexpr absl::Duration kOldSums = absl::Seconds(15);
constexpr size_t kMaxProblems = 8;
constexpr char kReconciled[] = "lastReconcileTime";

std::string OwnerUid(const v1::Experiment& stored) {
  const auto& annotations = stored.metadata().annotations();
  const auto found = annotations.find(experiment::kObjectUid);
  return found == annotations.end() ? "" : found->second;
}

int64_t GenerationOf(const Json& object) { return Number(object, {"metadata", "generation"}); }

// Whether its records have existed: its status has their uid.
bool HasRecords(const Json& object) { return !Text(object, {"status", "shirabe", "uid"}).empty(); }

Json WithoutTime(const Json& object) {
  const Json* status = FindAt(object, {"status"});
  if (status == nullptr) return Json::object();
  Json copy = *status;
  copy.erase(kReconciled);
  return copy;
}

// The condition in which this has been said before; null if it has not.
const Json* StandingCondition(const Json& object, const std::string& reason) {
  const Json* conditions = FindAt(object, {"status", "conditions"});
  if (conditions == nullptr || !conditions->is_array()) return nullptr;
  for (const Json& condition : *conditions) {
    const bool timed = !Text(condition, {"lastTransitionTime"}).empty();
    if (Text(condition, {"reason"}) == reason && timed) return &condition;
  }
  return nullptr;
}

// When this was first said, so that saying it again changes nothing.
std::string Since(const Json* standing, absl::Time now) {
  return standing == nullptr ? FormatTime(ToProto(now)) : Text(*standing, {"lastTransitionTime"});
}

}  // namespace

struct ExperimentSync::SyncState {
  explicit SyncState(int finished) : window(finished) {}

  std::string uid;             // of the object that the rest is about
  int64_t generation = 0;      // of the spec that was looked at last
  std::string problem;         // why it is not carried out
  std::optional<Json> wanted;  // the status as it was last written,
  Json written;                // and as the server then had it,
  absl::Duration put;          // and when (monotonic)
  TrialWindow window;
  TrialObjects objects;
  EventForwarder events;
  absl::Duration asked_to_end = -absl::InfiniteDuration();  // monotonic
};

// What an object asks for, complete; else what is waited for.
struct ExperimentSync::PreparedObject {
  ConvertedObject admission;
  std::string waits_for;
};

ExperimentSync::ExperimentSync(const SyncContext& context) : context_(context) {}
ExperimentSync::~ExperimentSync() = default;

ExperimentSync::SyncState& ExperimentSync::SyncStateOf(const ExperimentKey& key) {
  const MutexLock lock(mutex_);
  std::unique_ptr<SyncState>& tracked = sync_states_[key];
  if (tracked == nullptr) tracked = std::make_unique<SyncState>(context_.finished_trials);
  return *tracked;
}

bool ExperimentSync::IsWanted(const Json& object) const {
  return !context_.labelled_only || LabelOf(object, kManagedLabel) == "true";
}

StatusOr<absl::Duration> ExperimentSync::Reconcile(const ExperimentKey& key) {
  if (!context_.namespace_name.empty() && key.ns != context_.namespace_name) {
    return absl::InfiniteDuration();
  }
  // In this order: an object that is there, and whose records are made meanwhile, is not mistaken.
  std::optional<Json> object = context_.experiments->Find(key.ns, key.name);
  if (object && FindAt(*object, {"metadata", "deletionTimestamp"}) != nullptr) object.reset();
  const auto stored = context_.store->GetExperiment(key);
  if (!stored.ok() && !absl::IsNotFound(stored.status())) return stored.status();
  if (!object && !stored.ok()) {
    context_.presence->Drain(key);
    const MutexLock lock(mutex_);
    sync_states_.erase(key);
    return absl::InfiniteDuration();
  }
  SyncState& tracked = SyncStateOf(key);
  if (!object) return EndOf(tracked, *stored);
  if (!stored.ok()) return IsWanted(*object) ? Begin(tracked, *object) : absl::InfiniteDuration();
  const std::string owner = OwnerUid(*stored);
  if (owner == UidOf(*object)) return Follow(tracked, *object, *stored);
  if (!owner.empty()) return EndOf(tracked, *stored);  // of an earlier object of this name
  if (!IsWanted(*object)) return absl::InfiniteDuration();
  RETURN_IF_ERROR(Refuse(tracked, *object, "NameInUse",
                         absl::StrCat("metadata.name: an experiment \"", key.name,
                                      "\" was made through the API of Shirabe: choose another "
                                      "name, or remove that one with `shirabe delete ",
                                      key.name, " -n ", key.ns, "`")));
  return kDependencyRetry;
}

// Its object is gone, so it goes as well, with all that runs of it.
StatusOr<absl::Duration> ExperimentSync::EndOf(SyncState& tracked, const v1::Experiment& stored) {
  const std::string uid = OwnerUid(stored);
  if (uid.empty()) return absl::InfiniteDuration();
  if (!context_.experiments->LastError().empty()) return kUnsynced;
  // The copy may lag behind; the server itself does not.
  const ExperimentKey key = experiment::KeyOf(stored);
  const auto there = context_.kube->Get({Experiments(), key.ns, key.name});
  if (!there.ok() && !absl::IsNotFound(there.status())) return there.status();
  const bool leaving = there.ok() && FindAt(*there, {"metadata", "deletionTimestamp"}) != nullptr;
  if (there.ok() && UidOf(*there) == uid && !leaving) {
    context_.experiments->Put(*there);
    return absl::ZeroDuration();
  }
  const absl::Duration now = context_.clock->Monotonic();
  if (now < tracked.asked_to_end + kDependencyRetry) return absl::Seconds(1);
  tracked.asked_to_end = now;
  Log(LogLevel::kInfo, "the object of an experiment was deleted: deleting the experiment",
      {{"experiment", ToString(key)}});
  v1::Intent intent;
  intent.set_verb(v1::Intent::DELETE);
  *intent.mutable_actor() = UnnamedDeleter();
  const Status sent = context_.store->Send(key, intent);
  if (!sent.ok() && !absl::IsNotFound(sent)) return sent;
  return absl::Seconds(1);
}

// ---- an object without records -----------------------------------------------------------------

StatusOr<ExperimentSync::PreparedObject> ExperimentSync::Prepare(const Json& object) {
  const auto source = FindTemplateSource(object);
  if (!source) return PreparedObject{ConvertObject(object), ""};
  const auto config_map = context_.kube->Get({ConfigMaps(), source->namespace_name, source->name});
  const std::string shown = absl::StrCat("ConfigMap ", source->namespace_name, "/", source->name);
  // We may read what the author of the experiment may not: of other namespaces only what Katib's
  // own label offers to all, and no word of the rest.
  const bool elsewhere = source->namespace_name != NamespaceOf(object);
  const bool kept =
      config_map.ok() && elsewhere && LabelOf(*config_map, kComponentLabel) != kTrialTemplates;
  if (absl::IsNotFound(config_map.status()) || kept) {
    const std::string offered = absl::StrCat(" labelled ", kComponentLabel, "=", kTrialTemplates,
                                             ", as one of another namespace must be");
    return PreparedObject{
        {},
        absl::StrCat("spec.trialTemplate.configMap: there is no ", shown,
                     elsewhere ? offered + ": create or label it" : ": create it")};
  }
  if (absl::IsInvalidArgument(config_map.status())) {
    return PreparedObject{{}, "spec.trialTemplate.configMap: " + Message(config_map.status())};
  }
  if (absl::IsPermissionDenied(config_map.status())) {
    return PreparedObject{{},
                          absl::StrCat("spec.trialTemplate.configMap: ", shown,
                                       " may not be read: ", Message(config_map.status()))};
  }
  RETURN_IF_ERROR(config_map.status());
  auto whole = WithTemplate(object, *source, *config_map);
  if (!whole.ok()) return PreparedObject{{}, Message(whole.status())};
  return PreparedObject{ConvertObject(*whole), ""};
}

StatusOr<absl::Duration> ExperimentSync::Begin(SyncState& tracked, const Json& object) {
  if (HasRecords(object)) {
    RETURN_IF_ERROR(Refuse(tracked, object, "RecordsGone",
                           "its records are not in the database of Shirabe: deleted there, or it "
                           "is another database; to run it again, delete this object and apply it "
                           "again"));
    return kDependencyRetry;
  }
  ASSIGN_OR_RETURN(const PreparedObject ready, Prepare(object));
  if (!ready.waits_for.empty()) {
    RETURN_IF_ERROR(Await(tracked, object, "WaitingForConfigMap", ready.waits_for));
    return kTemplateRetry;
  }
  if (!ready.admission.problems.empty()) {
    RETURN_IF_ERROR(Refuse(tracked, object, "InvalidSpec",
                           experiment::JoinProblems(ready.admission.problems, kMaxProblems)));
    return absl::InfiniteDuration();
  }
  std::vector<std::string> warnings = ready.admission.warnings;
  v1::Experiment wanted = ready.admission.experiment;
  *wanted.mutable_status()->mutable_shirabe()->mutable_created_by() =
      ActorOf(*context_.kube, object, kCreatedBy);
  const Status claim =
      trial::CheckSharedClaim(*context_.kube, experiment::KeyOf(wanted), wanted.spec());
  if (absl::IsFailedPrecondition(claim)) warnings.push_back(Message(claim));
  const auto submitted = context_.store->Submit(wanted, {});
  if (absl::IsInvalidArgument(submitted.status())) {
    RETURN_IF_ERROR(Refuse(tracked, object, "InvalidSpec", Message(submitted.status())));
    return kDependencyRetry;
  }
  if (absl::IsAlreadyExists(submitted.status())) {  // its files: it has no record
    RETURN_IF_ERROR(Await(tracked, object, "WaitingForRemoval",
                          "an earlier experiment of this name is still being removed; if that does "
                          "not end: " +
                              Message(submitted.status())));
    return kUnsynced;
  }
  if (absl::IsResourceExhausted(submitted.status())) {  // of its namespace, or a full disk
    RETURN_IF_ERROR(Await(tracked, object, "WaitingForRoom", Message(submitted.status())));
    return kDependencyRetry;
  }
  if (absl::IsFailedPrecondition(submitted.status())) {
    RETURN_IF_ERROR(Refuse(tracked, object, "NameInUse", Message(submitted.status())));
    return kDependencyRetry;
  }
  RETURN_IF_ERROR(submitted.status());
  Log(LogLevel::kInfo, "an experiment was created from its object",
      {{"experiment", ToString(KeyOfObject(object))}});
  tracked = SyncState(context_.finished_trials);  // nothing of an earlier one of this name
  tracked.uid = UidOf(object);
  tracked.generation = GenerationOf(object);
  for (const std::string& warning : warnings) {
    (void)CreateEvent(context_, object,
                      {.warning = true,
                       .reason = "SpecWarning",
                       .note = warning,
                       .id = absl::StrCat("spec-", absl::Hex(Fingerprint(warning))),
                       .time = context_.clock->Now()});
  }
  return absl::ZeroDuration();
}

Status ExperimentSync::Refuse(SyncState& tracked, const Json& object, const std::string& reason,
                              const std::string& message) {
  const absl::Time now = context_.clock->Now();
  const int64_t generation = GenerationOf(object);
  const Json* standing = StandingCondition(object, reason);
  Json status = PendingStatusJson({.reason = reason,
                                   .message = message,
                                   .generation = generation,
                                   .since = Since(standing, now)});
  // Kept, so that what was said of its records stays said.
  const std::string uid = Text(object, {"status", "shirabe", "uid"});
  if (!uid.empty() && reason == "RecordsGone") status["shirabe"]["uid"] = uid;
  RETURN_IF_ERROR(PutStatus(tracked, object, std::move(status)));
  if (standing == nullptr) {  // from now on its condition says it
    Log(LogLevel::kWarning, "an Experiment is refused",
        {{"experiment", ToString(KeyOfObject(object))}, {"reason", reason}, {"error", message}});
  }
  const Status written =
      CreateEvent(context_, object,
                  {.warning = true,
                   .reason = reason,
                   .note = message,
                   .id = absl::StrCat(generation, "-", absl::Hex(Fingerprint(message))),
                   .time = now});
  if (!written.ok())
    Log(LogLevel::kWarning, "failed to write an event", {{"error", Message(written)}});
  return absl::OkStatus();
}

Status ExperimentSync::Await(SyncState& tracked, const Json& object, const std::string& reason,
                             const std::string& message) {
  const absl::Time now = context_.clock->Now();
  RETURN_IF_ERROR(
      PutStatus(tracked, object,
                PendingStatusJson({.reason = reason,
                                   .message = message,
                                   .failed = false,
                                   .generation = GenerationOf(object),
                                   .since = Since(StandingCondition(object, reason), now)})));
  (void)CreateEvent(context_, object,
                    {.warning = true,
                     .reason = reason,
                     .note = message,
                     .id = absl::StrCat("wait-", absl::Hex(Fingerprint(message))),
                     .time = now});
  return absl::OkStatus();
}

// ---- an object and its records -----------------------------------------------------------------

// Carries out what has changed in the spec, as far as it may change.
Status ExperimentSync::FollowSpec(SyncState& tracked, const Json& object,
                                  const v1::Experiment& stored) {
  const int64_t generation = GenerationOf(object);
  if (tracked.uid != UidOf(object)) {
    tracked = SyncState(context_.finished_trials);
    tracked.uid = UidOf(object);
    tracked.generation = Number(object, {"status", "shirabe", "observedGeneration"});
    tracked.problem = Text(object, {"status", "shirabe", "specProblem"});
  }
  if (tracked.generation == generation) return absl::OkStatus();
  const bool borrowed = FindTemplateSource(object).has_value();
  const ConvertedObject admission =
      ConvertObject(borrowed ? WithTemplateOf(object, stored) : object);
  std::string problem = experiment::JoinProblems(admission.problems, kMaxProblems);
  if (problem.empty()) {
    v1::Experiment wanted = admission.experiment;
    *wanted.mutable_status()->mutable_shirabe()->mutable_created_by() =
        ActorOf(*context_.kube, object, kChangedBy);
    Status submitted = context_.store->Submit(wanted, {}).status();
    const bool refused = absl::IsAlreadyExists(submitted) || absl::IsInvalidArgument(submitted) ||
                         absl::IsFailedPrecondition(submitted);  // it has ended for good
    if (!submitted.ok() && !refused) return submitted;
    if (refused) problem = Message(submitted);
  }
  if (!problem.empty()) {
    (void)CreateEvent(context_, object,
                      {.warning = true,
                       .reason = "SpecNotApplied",
                       .note = "the experiment goes on as it was: " + problem,
                       .id = absl::StrCat("edit-", generation),
                       .time = context_.clock->Now()});
  }
  tracked.generation = generation;
  tracked.problem = std::move(problem);
  return absl::OkStatus();
}

StatusOr<absl::Duration> ExperimentSync::Follow(SyncState& tracked, const Json& object,
                                                const v1::Experiment& stored) {
  RETURN_IF_ERROR(FollowSpec(tracked, object, stored));
  RETURN_IF_ERROR(tracked.window.Update(*context_.store, stored));
  Json status =
      ExperimentStatusJson(stored, tracked.window.Names(),
                           {.generation = tracked.generation, .problem = tracked.problem});
  const bool sums =
      tracked.wanted && *tracked.wanted != status && OnlySumsDiffer(*tracked.wanted, status);
  const absl::Duration age = context_.clock->Monotonic() - tracked.put;
  const absl::Duration wait =
      sums ? ProgressWait(context_, age, kSums, kOldSums) : absl::ZeroDuration();
  if (wait <= absl::ZeroDuration()) RETURN_IF_ERROR(PutStatus(tracked, object, std::move(status)));
  const ExperimentKey key = KeyOfObject(object);
  const TrialObjectNames presence = context_.presence->Drain(key);
  auto again = tracked.objects.Put(context_, {stored, tracked.window, object, presence});
  if (!again.ok()) {
    context_.presence->Restore(key, presence.touched);
    return again;
  }
  const Status written = tracked.events.Forward(context_, object);
  if (!written.ok())
    Log(LogLevel::kWarning, "failed to write events", {{"error", Message(written)}});
  return wait > absl::ZeroDuration() ? std::min(*again, wait) : *again;
}

// Only what has changed is written; what another writer changed is put right, once a change.
Status ExperimentSync::PutStatus(SyncState& tracked, const Json& object, Json wanted) {
  const Json there = WithoutTime(object);
  const bool same =
      tracked.wanted ? *tracked.wanted == wanted && tracked.written == there : wanted == there;
  if (same) return absl::OkStatus();
  Json status = wanted;
  status[kReconciled] = FormatTime(ToProto(context_.clock->Now()));
  // With the uid, so that an object of the same name that came later is left alone.
  const Json body = {
      {"apiVersion", kApiVersion},
      {"kind", "Experiment"},
      {"metadata",
       {{"name", NameOf(object)}, {"namespace", NamespaceOf(object)}, {"uid", UidOf(object)}}},
      {"status", std::move(status)}};
  const auto applied = context_.kube->Apply(Experiments(), body, kFieldManager, "status");
  if (absl::IsNotFound(applied.status())) return absl::OkStatus();
  RETURN_IF_ERROR(applied.status());
  tracked.wanted = std::move(wanted);
  tracked.written = WithoutTime(*applied);
  tracked.put = context_.clock->Monotonic();
  context_.experiments->Put(*applied);
  return absl::OkStatus();
}

}  // namespace shirabe::crd
