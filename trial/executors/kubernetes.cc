// How attempts of the executor `kubernetes` begin, are found again, and are forgotten.
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/log.h"
#include "trial/kubernetes/capacity.h"
#include "trial/kubernetes/capacity_quote.h"
#include "trial/kubernetes/kubernetes_actions.h"
#include "trial/kubernetes/kubernetes_executor.h"
#include "trial/kubernetes/kubernetes_removals.h"
#include "trial/kubernetes/kubernetes_volume.h"
#include "trial/local/records.h"
#include "trial/log_file.h"

namespace shirabe::trial {
namespace {

constexpr absl::Duration kQuoteStands = absl::Seconds(5);
constexpr size_t kThreads = 16;   // for calls that nobody waits for
constexpr size_t kStarters = 16;  // for objects to be made
constexpr absl::Duration kStayAway = absl::Seconds(1);

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

KubernetesExecutor::KubernetesExecutor(const ExecutorOptions& options, const PodTimes& times)
    : options_(options),
      times_(times),
      layout_(options.home),
      client_(*options.pods.client),
      mirror_({.layout = &layout_, .trims = CanTrim(layout_.home())}),
      reviews_(options.pods.client, options.clock),
      began_(options.clock->Monotonic()),
      view_({.client = options.pods.client,
             .clock = options.clock,
             .on_attempt = [this](const AttemptKey& key, const Json* gone) { Examine(key, gone); },
             .on_node = [this](const std::string& name) { OnNode(name); },
             .stall = times.stall}) {
  kinds_ = FindRemovals(layout_);
  for (const auto& [experiment, kind] : kinds_) unfinished_.insert(experiment);
  background_ = std::make_unique<Background>(kThreads);
  starters_ = std::make_unique<Background>(kStarters);
  alarm_ = std::make_unique<Alarm>(options_.clock, [this] { return Ring(); });
  view_.Start();
}

// Each of them may still call the others while it ends, so they leave one by one: what is
// handed to one that has left is dropped.
KubernetesExecutor::~KubernetesExecutor() {
  view_.Stop();
  std::unique_ptr<Alarm> alarm;
  std::unique_ptr<Background> background, starters;
  {
    std::lock_guard lock(mutex_);
    alarm = std::move(alarm_);
    background = std::move(background_);
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
  if (background_) background_->Run(std::move(work));
}

void KubernetesExecutor::Wake() {
  if (alarm_) alarm_->Wake();
}

// ---- starting -----------------------------------------------------------------------------------

// Many are started one after the other, and an API server that is busy takes its time for each: the
// caller goes on after a while, and the object is made behind him. If that fails, the attempt is
// not to be seen any more, is started again for that, and the caller is told then; from there on he
// waits for the answer.
Status KubernetesExecutor::Start(const AttemptRequest& request) {
  RETURN_IF_ERROR(ValidateKey(request.key));
  RETURN_IF_ERROR(AwaitCleaned(request));
  ASSIGN_OR_RETURN(const absl::Duration patience, PatienceFor(request.key));
  PodAttempt attempt;
  attempt.key = attempt.sighting.key = request.key;
  attempt.id = AttemptId(request.key, request.token);
  ASSIGN_OR_RETURN(const bool reserved, Reserve(attempt));
  if (!reserved) return absl::OkStatus();
  auto built = Prepare(request, attempt);
  std::unique_lock lock(mutex_);
  if (!built.ok()) {
    starting_.erase(request.key);
    return Prefix(AttemptName(request.key), built.status());
  }
  starters_->Run([this, built = *std::move(built), attempt = std::move(attempt)]() mutable {
    const auto object = Make(built, attempt);
    TakeMade(object, std::move(attempt));
  });
  return AwaitMade(request.key, patience, lock);
}

// How long a caller waits; an error if the start before this one has failed and he does not know.
StatusOr<absl::Duration> KubernetesExecutor::PatienceFor(const AttemptKey& key) {
  std::lock_guard lock(mutex_);
  const auto refused = refused_.find(key);
  if (refused == refused_.end()) return times_.start;
  RETURN_IF_ERROR(std::exchange(refused->second, absl::OkStatus()));
  return absl::InfiniteDuration();
}

Status KubernetesExecutor::AwaitMade(const AttemptKey& key, absl::Duration patience,
                                     std::unique_lock<std::mutex>& lock) {
  Starting& starting = starting_.at(key);
  const auto answered = [&] { return starting.answer.has_value(); };
  if (patience == absl::InfiniteDuration()) {
    made_.wait(lock, answered);
  } else if (!made_.wait_for(lock, absl::ToChronoMicroseconds(patience), answered)) {
    starting.left = true;
    return absl::OkStatus();
  }
  const Status status = *starting.answer;
  starting_.erase(key);
  return status;
}

// Tells whoever waits for it, or keeps for later what he is to hear.
void KubernetesExecutor::TakeMade(const StatusOr<Json>& object, PodAttempt attempt) {
  const AttemptKey key = attempt.key;
  bool left = false;
  std::optional<Starting::Wanted> stop;
  {
    std::lock_guard lock(mutex_);
    const Status status = KeepMade(object, std::move(attempt));
    Starting& starting = starting_.at(key);
    starting.answer = status;
    stop = starting.stop;
    left = starting.left;
    if (left && !status.ok()) refused_[key] = status;
    if (left) starting_.erase(key);
  }
  made_.notify_all();
  if (object.ok()) Examine(key, nullptr);
  if (stop) Stop(key, stop->why, stop->grace).IgnoreError();
  if (left && !object.ok() && options_.on_change) options_.on_change(key.trial.experiment);
}

// With mutex_ held.
Status KubernetesExecutor::KeepMade(const StatusOr<Json>& object, PodAttempt attempt) {
  const AttemptKey key = attempt.key;
  if (absl::IsUnavailable(object.status())) {
    // It may exist all the same: its sidecar must not be sent away before we know.
    doubtful_.insert(key);
    away_ = Message(object.status());
    away_until_ = options_.clock->Monotonic() + kStayAway;
  }
  if (!object.ok()) return Prefix(AttemptName(key), object.status());
  doubtful_.erase(key);
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
  const auto left = leaving_.find(attempt.key);
  if (left != leaving_.end() && !left->second.deleted) {
    return absl::UnavailableError(name + " is just being deleted");
  }
  if (options_.clock->Monotonic() < away_until_) return absl::UnavailableError(away_);
  if (!starting_.try_emplace(attempt.key).second) return false;
  leaving_.erase(attempt.key);
  return true;
}

// All that need not be asked of the cluster.
StatusOr<AttemptObject> KubernetesExecutor::Prepare(const AttemptRequest& request,
                                                    PodAttempt& attempt) {
  ASSIGN_OR_RETURN(const PodPlace place, PlaceFor(request.placing, options_.pools));
  ASSIGN_OR_RETURN(AttemptObject built, BuildAttemptObject(request, options_.pods, place));
  ASSIGN_OR_RETURN(attempt.ref.resource, TrialKind(client_, built.api_version, built.kind));
  attempt.ref.namespace_name = NamespaceOf(built.object);
  attempt.ref.name = NameOf(built.object);
  attempt.sighting.placement.set_price_per_hour(
      Quote(request.key.trial.experiment, request.trial_spec, request.placing).price_per_hour);
  const AttemptPaths paths = layout_.Paths(request.key);
  RETURN_IF_ERROR(layout_.Create(request.key).status());
  RETURN_IF_ERROR(WriteFileAtomic(paths.params_file, request.parameters_json));
  RETURN_IF_ERROR(SaveObjectRecord(paths.dir, attempt.ref));
  // A program that prints nothing has a log all the same, as on a machine of ours.
  mirror_.AppendLog(request.key, "").IgnoreError();
  for (const std::string& warning : built.warnings) {
    Log(LogLevel::kWarning, "a trial's object may not be meant so",
        {{"attempt", AttemptName(request.key)}, {"warning", warning}});
  }
  NoteScope(request);
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
  if (state.ok()) TakeState(*state, attempt);
}

// ---- after a restart ----------------------------------------------------------------------------

void KubernetesExecutor::Adopt(const std::vector<v1::Attempt>& open) {
  for (const v1::Attempt& record : open) {
    PodAttempt attempt;
    attempt.key =
        attempt.sighting.key = {{ExperimentKeyOf(record), record.trial()}, record.number()};
    if (!ValidateKey(attempt.key).ok()) continue;
    attempt.id = AttemptId(attempt.key, record.token());
    const AttemptKey key = attempt.key;
    layout_.Create(key).IgnoreError();  // a later write says what is wrong
    attempt.ref = LoadObjectRecord(layout_.Paths(key).dir)
                      .value_or(kube::Ref{Jobs(), key.trial.experiment.ns, AttemptName(key)});
    view_.Follow(attempt.ref.resource);
    {
      std::lock_guard lock(mutex_);
      doubtful_.erase(key);
      if (!attempts_.try_emplace(key, std::move(attempt)).second) continue;
      Load(attempts_.at(key));
    }
    Examine(key, nullptr);
  }
}

// Looks for the object of an attempt that was adopted.
void KubernetesExecutor::Resolve(PodAttempt& attempt) {
  if (!view_.Synced()) {
    return LookAgain(attempt, options_.clock->Monotonic() + absl::Milliseconds(100));
  }
  const auto object = view_.FindObject(attempt.ref);
  if (!object) return ConfirmGone(attempt);
  if (AttemptIdOf(*object) == attempt.id) return Bind(*object, attempt);
  attempt.never_began = true;
  attempt.sighting.state = Sighting::State::kLost;
  attempt.sighting.message = "another attempt has its name; this one has never started";
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
      TakeConfirmed(object, found->second);
    }
    Examine(key, nullptr);
  });
}

void KubernetesExecutor::TakeConfirmed(const StatusOr<Json>& object, PodAttempt& attempt) {
  attempt.confirming = false;
  if (object.ok()) {
    const bool ours = AttemptIdOf(*object) == attempt.id &&
                      (attempt.uid.empty() || attempt.uid == UidOf(*object));
    if (ours) return Bind(*object, attempt);
    attempt.object_gone = true;  // its name is another's by now
  } else if (absl::IsNotFound(object.status())) {
    attempt.object_gone = true;
  } else {
    return LookAgain(attempt, options_.clock->Monotonic() + times_.retry);
  }
  if (!attempt.uid.empty()) return;
  for (const Json& pod : view_.PodsOf(attempt.key)) {
    // One that nobody owns is the object itself, or somebody's who has copied our labels.
    const Json& owners = Items(At(pod, {"metadata", "ownerReferences"}));
    if (owners.empty() && AttemptIdOf(pod) != attempt.id) continue;
    attempt.recipe = RecipeFromPod(pod);
    attempt.uid = owners.empty() ? UidOf(pod) : Text(owners.front(), {"uid"});
    return;
  }
  attempt.never_began = !attempt.state.has_exit();
  attempt.sighting.state = Sighting::State::kLost;
  attempt.sighting.message = "it has never started, or nothing of it is left in the cluster";
}

// ---- looking and forgetting ---------------------------------------------------------------------

std::vector<Sighting> KubernetesExecutor::Observe(const ExperimentKey& experiment) {
  std::lock_guard lock(mutex_);
  owned_.insert(experiment);
  std::vector<Sighting> sightings;
  for (auto it = attempts_.lower_bound({{experiment, 0}, 0}); it != attempts_.end(); ++it) {
    if (it->first.trial.experiment != experiment) break;
    sightings.push_back(it->second.sighting);
  }
  for (auto it = starting_.lower_bound({{experiment, 0}, 0}); it != starting_.end(); ++it) {
    if (it->first.trial.experiment != experiment) break;
    if (attempts_.count(it->first) == 0) sightings.push_back({.key = it->first});
  }
  return sightings;
}

AttemptPaths KubernetesExecutor::Paths(const AttemptKey& key) const {
  AttemptPaths paths = layout_.Paths(key);
  paths.root = Mirror::RootOf(paths);
  return paths;
}

// A cluster has room sooner or later: what waits there says so itself.
Offer KubernetesExecutor::Quote(const ExperimentKey&, const google::protobuf::Struct& trial_spec,
                                const Placing& placing) {
  const auto place = PlaceFor(placing, options_.pools);
  if (!place.ok() || place->price_per_hour == 0) return {};
  const std::string question =
      absl::StrCat(trial_spec.SerializeAsString(), absl::StrJoin(place->pools, ","));
  const absl::Duration now = options_.clock->Monotonic();
  {
    std::lock_guard lock(mutex_);
    const auto known = quotes_.find(question);
    if (known != quotes_.end() && now < known->second.until) return known->second.offer;
  }
  Offer offer;
  offer.price_per_hour =
      QuotePrice(FromStruct(trial_spec), *place, view_.AllNodes(), options_.pools);
  std::lock_guard lock(mutex_);
  std::erase_if(quotes_, [&](const auto& entry) { return entry.second.until <= now; });
  quotes_[question] = {offer, now + kQuoteStands};
  return offer;
}

namespace {

SHIRABE_REGISTER(ExecutorInfo, {.name = "kubernetes",
                                .help = "Jobs, or other objects, of a Kubernetes cluster",
                                .create = KubernetesExecutor::Create});

}  // namespace
}  // namespace shirabe::trial
