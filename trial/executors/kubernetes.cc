// How attempts of the executor `kubernetes` begin, are found again, and are forgotten.
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file_io.h"
#include "base/log.h"
#include "trial/kubernetes/checkpoint_volume.h"
#include "trial/kubernetes/cluster_actions.h"
#include "trial/kubernetes/kubernetes_executor.h"
#include "trial/kubernetes/pod_scheduling.h"
#include "trial/kubernetes/price_quote.h"
#include "trial/kubernetes/removal_records.h"
#include "trial/local/supervisor_records.h"
#include "trial/log_file.h"

namespace shirabe::trial {
namespace {

constexpr absl::Duration kQuoteTtl = absl::Seconds(5);
constexpr size_t kThreads = 16;   // for calls that no thread waits for
constexpr size_t kStarters = 16;  // for objects to be made
constexpr absl::Duration kApiRetryInterval = absl::Seconds(1);

Status MakeClaim(kube::Client& client, const AttemptObject& built) {
  if (!built.claim) return absl::OkStatus();
  const Status status = client.Create(Claims(), *built.claim).status();
  if (status.ok() || absl::IsAlreadyExists(status)) return absl::OkStatus();
  const Status told =
      absl::IsPermissionDenied(status) ? absl::ResourceExhaustedError(Message(status)) : status;
  return Prefix("the claim for its checkpoints", told);
}

// Of a pod whose object, and with it the recipe, is gone.
AttemptRecipe RecipeFromPod(const Json& pod) {
  AttemptRecipe recipe;
  for (const Json& container : Items(At(pod, {"spec", "containers"}))) {
    if (recipe.primary_container.empty()) recipe.primary_container = Text(container, {"name"});
  }
  recipe.instrumented = Named(At(pod, {"spec", "initContainers"}), kSidecarContainer).is_object();
  return recipe;
}

}  // namespace

KubernetesExecutor::KubernetesExecutor(const ExecutorOptions& options, const PodTimeouts& times)
    : options_(options),
      timeouts_(times),
      layout_(options.home),
      client_(*options.pods.client),
      mirror_({.layout = &layout_, .trims = CanTrim(layout_.home())}),
      token_reviewer_(options.pods.client, options.clock),
      began_(options.clock->Monotonic()),
      view_({.client = options.pods.client,
             .clock = options.clock,
             .on_attempt = [this](const AttemptKey& key, const Json* gone) { Examine(key, gone); },
             .on_node = [this](const std::string& name) { OnNode(name); },
             .stall = times.stall}) {
  kinds_ = FindRemovals(layout_);
  for (const auto& [experiment, kind] : kinds_) unfinished_.insert(experiment);
  task_pool_ = std::make_unique<TaskPool>(kThreads);
  starters_ = std::make_unique<TaskPool>(kStarters);
  timer_ = std::make_unique<WakeupTimer>(options_.clock, [this] { return OnTimer(); });
  view_.Start();
}

// Each of them may still call the others while it ends, so they leave one by one: what is
// handed to one that has left is dropped.
KubernetesExecutor::~KubernetesExecutor() {
  view_.Stop();
  std::unique_ptr<WakeupTimer> alarm;
  std::unique_ptr<TaskPool> background, starters;
  {
    std::lock_guard lock(mutex_);
    alarm = std::move(timer_);
    background = std::move(task_pool_);
    starters = std::move(starters_);
  }
  starters.reset();
  alarm.reset();
  background.reset();
}

StatusOr<std::unique_ptr<Executor>> KubernetesExecutor::Create(const ExecutorOptions& options) {
  if (options.pods.client == nullptr) {
    return absl::FailedPreconditionError(
        "trials run in a cluster where `shirabe controller` is started, not with this verb");
  }
  RETURN_IF_ERROR(MakeDirs(Layout(options.home).home()));
  return std::make_unique<KubernetesExecutor>(options);
}

// With mutex_ held, as the three below. What it does may take its time.
void KubernetesExecutor::Do(std::function<void()> work) {
  if (task_pool_) task_pool_->Run(std::move(work));
}

void KubernetesExecutor::Wake() {
  if (timer_) timer_->Wake();
}

// ---- starting -----------------------------------------------------------------------------------

// Many are started one after the other, and an API server that is busy takes its time for each: the
// caller goes on after a while, and the object is made meanwhile. If that fails, the attempt is not
// to be seen any more, is started again for that, and the caller is told then; from there on it
// waits for the answer.
Status KubernetesExecutor::Start(const AttemptRequest& request) {
  RETURN_IF_ERROR(ValidateKey(request.key));
  RETURN_IF_ERROR(AwaitCleaned(request));
  ASSIGN_OR_RETURN(const absl::Duration patience, PatienceFor(request.key));
  PodAttempt attempt;
  attempt.key = attempt.observed.key = request.key;
  attempt.id = AttemptId(request.key, request.token);
  ASSIGN_OR_RETURN(const bool reserved, Reserve(attempt));
  if (!reserved) return absl::OkStatus();
  auto built = Prepare(request, attempt);
  std::unique_lock lock(mutex_);
  if (!built.ok()) {
    pending_starts_.erase(request.key);
    return Prefix(AttemptName(request.key), built.status());
  }
  starters_->Run([this, built = *std::move(built), attempt = std::move(attempt)]() mutable {
    const auto object = Make(built, attempt);
    OnCreated(object, std::move(attempt));
  });
  return AwaitCreated(request.key, patience, lock);
}

// How long a caller waits; an error if the start before this one has failed and it was not told.
StatusOr<absl::Duration> KubernetesExecutor::PatienceFor(const AttemptKey& key) {
  std::lock_guard lock(mutex_);
  const auto refused = refused_.find(key);
  if (refused == refused_.end()) return timeouts_.start;
  RETURN_IF_ERROR(std::exchange(refused->second, absl::OkStatus()));
  return absl::InfiniteDuration();
}

Status KubernetesExecutor::AwaitCreated(const AttemptKey& key, absl::Duration patience,
                                        std::unique_lock<std::mutex>& lock) {
  PendingStart& starting = pending_starts_.at(key);
  const auto answered = [&] { return starting.answer.has_value(); };
  if (patience == absl::InfiniteDuration()) {
    created_.wait(lock, answered);
  } else if (!created_.wait_for(lock, absl::ToChronoMicroseconds(patience), answered)) {
    starting.left = true;
    return absl::OkStatus();
  }
  const Status status = *starting.answer;
  pending_starts_.erase(key);
  return status;
}

// Tells the caller that waits for it, or keeps for later what it is to be told.
void KubernetesExecutor::OnCreated(const StatusOr<Json>& object, PodAttempt attempt) {
  const AttemptKey key = attempt.key;
  bool left = false;
  std::optional<PendingStart::RequestedStop> stop;
  {
    std::lock_guard lock(mutex_);
    const Status status = RecordCreated(object, std::move(attempt));
    PendingStart& starting = pending_starts_.at(key);
    starting.answer = status;
    stop = starting.stop;
    left = starting.left;
    if (left && !status.ok()) refused_[key] = status;
    if (left) pending_starts_.erase(key);
  }
  created_.notify_all();
  if (object.ok()) Examine(key, nullptr);
  if (stop) Stop(key, stop->why, stop->grace).IgnoreError();
  if (left && !object.ok() && options_.on_change) options_.on_change(key.trial.experiment);
}

// With mutex_ held.
Status KubernetesExecutor::RecordCreated(const StatusOr<Json>& object, PodAttempt attempt) {
  const AttemptKey key = attempt.key;
  if (absl::IsUnavailable(object.status())) {
    // It may exist all the same: its sidecar must not be sent away before we know.
    unconfirmed_.insert(key);
    away_ = Message(object.status());
    away_until_ = options_.clock->Monotonic() + kApiRetryInterval;
  }
  if (!object.ok()) return Prefix(AttemptName(key), object.status());
  unconfirmed_.erase(key);
  refused_.erase(key);
  PodAttempt& kept = attempts_[key] = std::move(attempt);
  Bind(*object, kept);
  Load(kept);
  return absl::OkStatus();
}

// True if the attempt is new to us and its place is taken now; false if there is nothing to do.
StatusOr<bool> KubernetesExecutor::Reserve(const PodAttempt& attempt) {
  std::lock_guard lock(mutex_);
  const std::string name = AttemptName(attempt.key);
  const auto found = attempts_.find(attempt.key);
  if (found != attempts_.end()) {
    if (found->second.id == attempt.id) {
      if (!found->second.never_began) return false;
    } else if (!found->second.never_began) {
      return absl::AlreadyExistsError(name + " exists with another token");
    }
    Drop(found);
  }
  const auto left = teardowns_.find(attempt.key);
  if (left != teardowns_.end() && !left->second.deleted) {
    return absl::UnavailableError(name + " is just being deleted");
  }
  if (options_.clock->Monotonic() < away_until_) return absl::UnavailableError(away_);
  if (!pending_starts_.try_emplace(attempt.key).second) return false;
  teardowns_.erase(attempt.key);
  return true;
}

// All that need not be asked of the cluster.
StatusOr<AttemptObject> KubernetesExecutor::Prepare(const AttemptRequest& request,
                                                    PodAttempt& attempt) {
  ASSIGN_OR_RETURN(const PodScheduling place,
                   SchedulingFor(request.placement_request, options_.pools));
  ASSIGN_OR_RETURN(AttemptObject built, BuildAttemptObject(request, options_.pods, place));
  ASSIGN_OR_RETURN(attempt.ref.resource, TrialKind(client_, built.api_version, built.kind));
  attempt.ref.namespace_name = NamespaceOf(built.object);
  attempt.ref.name = NameOf(built.object);
  attempt.observed.placement.set_price_per_hour(
      QuotePlacement(request.key.trial.experiment, request.trial_spec, request.placement_request)
          .price_per_hour);
  const AttemptPaths paths = layout_.Paths(request.key);
  RETURN_IF_ERROR(layout_.Create(request.key).status());
  RETURN_IF_ERROR(WriteFileAtomic(paths.params_file, request.parameters_json));
  RETURN_IF_ERROR(SaveObjectRecord(paths.dir, attempt.ref));
  // A program that prints nothing has a log all the same, as on a machine of ours.
  mirror_.AppendLog(request.key, "").IgnoreError();
  for (const std::string& warning : built.warnings) {
    Log(LogLevel::kWarning, "a trial's object has questionable fields",
        {{"attempt", AttemptName(request.key)}, {"warning", warning}});
  }
  RecordPruneScope(request);
  return built;
}

// The object in the cluster, made now or before.
StatusOr<Json> KubernetesExecutor::Make(const AttemptObject& built, const PodAttempt& attempt) {
  RETURN_IF_ERROR(MakeClaim(client_, built));
  view_.Follow(attempt.ref.resource);
  return CreateOrAdopt(client_, attempt.ref.resource, built.object, attempt.id);
}

void KubernetesExecutor::Bind(const Json& object, PodAttempt& attempt) {
  attempt.uid = UidOf(object);
  attempt.recipe = RecipeOf(object);
  attempt.never_began = false;
  attempt.object_gone = false;
  view_.Put(attempt.ref.resource, object);
}

// What an earlier process of ours was told by its sidecar.
void KubernetesExecutor::Load(PodAttempt& attempt) {
  const auto state = LoadStateRecord(layout_.Paths(attempt.key).dir);
  if (state.ok()) ApplyPodState(*state, attempt);
}

// ---- after a restart ----------------------------------------------------------------------------

void KubernetesExecutor::Adopt(const std::vector<v1::Attempt>& open) {
  for (const v1::Attempt& record : open) {
    PodAttempt attempt;
    attempt.key =
        attempt.observed.key = {{ExperimentKeyOf(record), record.trial()}, record.number()};
    if (!ValidateKey(attempt.key).ok()) continue;
    attempt.id = AttemptId(attempt.key, record.token());
    const AttemptKey key = attempt.key;
    layout_.Create(key).IgnoreError();  // a later write says what is wrong
    attempt.ref = LoadObjectRecord(layout_.Paths(key).dir)
                      .value_or(kube::Ref{Jobs(), key.trial.experiment.ns, AttemptName(key)});
    view_.Follow(attempt.ref.resource);
    {
      std::lock_guard lock(mutex_);
      unconfirmed_.erase(key);
      if (!attempts_.try_emplace(key, std::move(attempt)).second) continue;
      Load(attempts_.at(key));
    }
    Examine(key, nullptr);
  }
}

// Looks for the object of an attempt that was adopted.
void KubernetesExecutor::Resolve(PodAttempt& attempt) {
  if (!view_.Synced()) {
    return ScheduleCheck(attempt, options_.clock->Monotonic() + absl::Milliseconds(100));
  }
  const auto object = view_.FindObject(attempt.ref);
  if (!object) return ConfirmGone(attempt);
  if (AttemptIdOf(*object) == attempt.id) return Bind(*object, attempt);
  attempt.never_began = true;
  attempt.observed.state = AttemptStatus::State::kLost;
  attempt.observed.message = "another attempt has its name; this one has never started";
}

// Its object is not to be seen. That is believed once the API server itself says so.
void KubernetesExecutor::ConfirmGone(PodAttempt& attempt) {
  if (std::exchange(attempt.confirming, true)) return;
  Do([this, key = attempt.key, ref = attempt.ref] {
    const auto object = client_.Get(ref);
    {
      std::lock_guard lock(mutex_);
      const auto found = attempts_.find(key);
      if (found == attempts_.end()) return;
      OnConfirmed(object, found->second);
    }
    Examine(key, nullptr);
  });
}

void KubernetesExecutor::OnConfirmed(const StatusOr<Json>& object, PodAttempt& attempt) {
  attempt.confirming = false;
  if (object.ok()) {
    const bool ours = AttemptIdOf(*object) == attempt.id &&
                      (attempt.uid.empty() || attempt.uid == UidOf(*object));
    if (ours) return Bind(*object, attempt);
    attempt.object_gone = true;  // its name is another's by now
  } else if (absl::IsNotFound(object.status())) {
    attempt.object_gone = true;
  } else {
    return ScheduleCheck(attempt, options_.clock->Monotonic() + timeouts_.retry);
  }
  if (!attempt.uid.empty()) return;
  for (const Json& pod : view_.PodsOf(attempt.key)) {
    // One without an owner is the object itself, or that of a user who has copied our labels.
    const Json& owners = Items(At(pod, {"metadata", "ownerReferences"}));
    if (owners.empty() && AttemptIdOf(pod) != attempt.id) continue;
    attempt.recipe = RecipeFromPod(pod);
    attempt.uid = owners.empty() ? UidOf(pod) : Text(owners.front(), {"uid"});
    return;
  }
  attempt.never_began = !attempt.state.has_exit();
  attempt.observed.state = AttemptStatus::State::kLost;
  attempt.observed.message = "it has never started, or nothing of it is left in the cluster";
}

// ---- looking and forgetting ---------------------------------------------------------------------

std::vector<AttemptStatus> KubernetesExecutor::Observe(const ExperimentKey& experiment) {
  std::lock_guard lock(mutex_);
  owned_.insert(experiment);
  std::vector<AttemptStatus> statuses;
  for (auto it = attempts_.lower_bound({{experiment, 0}, 0}); it != attempts_.end(); ++it) {
    if (it->first.trial.experiment != experiment) break;
    statuses.push_back(it->second.observed);
  }
  for (auto it = pending_starts_.lower_bound({{experiment, 0}, 0}); it != pending_starts_.end();
       ++it) {
    if (it->first.trial.experiment != experiment) break;
    if (attempts_.count(it->first) == 0) statuses.push_back({.key = it->first});
  }
  return statuses;
}

AttemptPaths KubernetesExecutor::Paths(const AttemptKey& key) const {
  AttemptPaths paths = layout_.Paths(key);
  paths.root = Mirror::RootOf(paths);
  return paths;
}

// A cluster has room sooner or later: what waits there says so itself.
PlacementQuote KubernetesExecutor::QuotePlacement(const ExperimentKey&,
                                                  const google::protobuf::Struct& trial_spec,
                                                  const PlacementRequest& placement_request) {
  const auto place = SchedulingFor(placement_request, options_.pools);
  if (!place.ok() || place->price_per_hour == 0) return {};
  const std::string question =
      absl::StrCat(trial_spec.SerializeAsString(), absl::StrJoin(place->pools, ","));
  const absl::Duration now = options_.clock->Monotonic();
  {
    std::lock_guard lock(mutex_);
    const auto known = quotes_.find(question);
    if (known != quotes_.end() && now < known->second.until) return known->second.quote;
  }
  PlacementQuote quote;
  quote.price_per_hour =
      EstimatePrice(FromStruct(trial_spec), *place, view_.AllNodes(), options_.pools);
  std::lock_guard lock(mutex_);
  std::erase_if(quotes_, [&](const auto& entry) { return entry.second.until <= now; });
  quotes_[question] = {quote, now + kQuoteTtl};
  return quote;
}

namespace {

SHIRABE_REGISTER(ExecutorInfo, {.name = "kubernetes",
                                .help = "Jobs, or other objects, of a Kubernetes cluster",
                                .create = KubernetesExecutor::Create});

}  // namespace
}  // namespace shirabe::trial
