#include "trial/kubernetes/kubernetes_executor.h"

#include <algorithm>
#include <utility>

#include "base/file_io.h"
#include "trial/checkpoint/checkpoint_copy.h"
#include "trial/log_file.h"
#include "trial/pod/operator_kinds.h"

namespace shirabe::trial {
namespace {

constexpr size_t kThreads = 16;  // for calls that no thread waits for

}  // namespace

KubernetesExecutor::KubernetesExecutor(const ExecutorOptions& options, const PodTimeouts& timeouts)
    : options_(options),
      layout_(options.home),
      began_(options.clock->Monotonic()),
      context_(MakeContext(timeouts)),
      copies_({.layout = &layout_,
               .stores = options.stores,
               .on_removed = [this](const ExperimentKey& key) { context_.notify(key); }}),
      grants_(&layout_, options.stores),
      view_(ViewOptions()),
      mirror_({.layout = &layout_, .trims = CanTrim(layout_.home())}),
      attempts_({.clock = options.clock,
                 .start = timeouts.start,
                 .settle = timeouts.settle,
                 .wake = [this] { timer_.Wake(); }}),
      watcher_(&context_, &attempts_, &mirror_),
      teardowns_(&context_),
      removals_(&context_),
      cleaner_(&context_),
      pruner_(&context_),
      quotes_(&context_),
      orphans_(&context_, &attempts_, &teardowns_),
      sidecars_(&context_, {&attempts_, &watcher_, &pruner_, &mirror_, &grants_}),
      starter_(&context_, {&attempts_, &watcher_, &teardowns_, &cleaner_, &pruner_, &quotes_,
                           &mirror_, &grants_}),
      background_(kThreads),
      timer_(options.clock, [this] { return OnTimer(); }) {
  view_.Start();
}

// Each of them may still call the others while it ends: what is handed to one that has ended is
// dropped.
KubernetesExecutor::~KubernetesExecutor() {
  view_.Stop();
  copies_.End();
  starter_.End();
  timer_.End();
  background_.End();
}

StatusOr<std::unique_ptr<Executor>> KubernetesExecutor::Create(const ExecutorOptions& options) {
  if (options.pods == nullptr || options.pods->client == nullptr) {
    return absl::FailedPreconditionError(
        "trials run in a cluster where `shirabe controller` is started, not with this verb");
  }
  RETURN_IF_ERROR(MakeDirs(FileLayout(options.home).home()));
  return std::make_unique<KubernetesExecutor>(options);
}

ClusterContext KubernetesExecutor::MakeContext(const PodTimeouts& timeouts) {
  return {.clock = options_.clock,
          .client = options_.pods->client,
          .view = &view_,
          .layout = &layout_,
          .pods = options_.pods.get(),
          .pools = &options_.pools,
          .timeouts = timeouts,
          .status_handlers = options_.status_handlers,
          .run = [this](std::function<void()> work) { background_.Run(std::move(work)); },
          .wake = [this] { timer_.Wake(); },
          .notify =
              [this](const ExperimentKey& experiment) {
                if (options_.on_change) options_.on_change(experiment);
              },
          .notify_output =
              [this](const ExperimentKey& experiment) {
                if (options_.on_output) options_.on_output(experiment);
              }};
}

ClusterView::Options KubernetesExecutor::ViewOptions() {
  return {.client = context_.client,
          .clock = context_.clock,
          .on_attempt =
              [this](const AttemptKey& key, const Json* gone) {
                teardowns_.Continue(key);
                watcher_.Examine(key, gone);
              },
          .on_made = [this](const std::string& ns, const std::string& owner,
                            const Json* gone) { OnMadePod(ns, owner, gone); },
          .on_node =
              [this](const std::string& name) {
                for (const AttemptKey& key : attempts_.RunningOn(name)) watcher_.Examine(key);
              },
          .stall = context_.timeouts.stall,
          .only_namespace = context_.pods->only_namespace};
}

// The owner has its attempt's name, or its trial's: then it says itself which of its attempts' pods
// these are. Those of a controller before 0.2 have the attempt's, whatever their kind.
void KubernetesExecutor::OnMadePod(const std::string& ns, const std::string& owner,
                                   const Json* gone) {
  if (const auto key = ParseAttemptName(owner, ns)) return watcher_.Examine(*key, gone);
  const auto trial = ParseTrialName(owner, ns);
  if (!trial) return;
  for (const AttemptKey& key : attempts_.WatchedOf(*trial)) watcher_.Examine(key, gone);
}

std::optional<absl::Duration> KubernetesExecutor::OnTimer() {
  const absl::Duration now = options_.clock->Monotonic();
  teardowns_.OnTimer(now);
  removals_.OnTimer(now);
  cleaner_.OnTimer(now);
  pruner_.OnTimer(now);
  const bool looked = orphans_.OnTimer(now);
  if (looked && now >= began_ + context_.timeouts.orphan) {
    removals_.Resume([this](const ExperimentKey& key) { return attempts_.Owns(key); });
  }
  watcher_.OnTimer(now);
  absl::Duration next = orphans_.NextDue();
  for (const auto& due : {teardowns_.NextDue(), removals_.NextDue(), cleaner_.NextDue(),
                          pruner_.NextDue(), watcher_.NextDue()}) {
    next = std::min(next, due.value_or(next));
  }
  return next;
}

Status KubernetesExecutor::Start(const AttemptRequest& request) {
  RETURN_IF_ERROR(grants_.Check(request.key.trial.experiment));
  return starter_.Start(request);
}

Status KubernetesExecutor::Stop(const AttemptKey& key, v1::Cause why, absl::Duration grace) {
  attempts_.DeferStop(key, why, grace);
  watcher_.Stop(key, why, grace);
  return absl::OkStatus();
}

void KubernetesExecutor::Adopt(const std::vector<v1::Attempt>& open) {
  for (const v1::Attempt& record : open) starter_.Adopt(record);
}

std::vector<AttemptStatus> KubernetesExecutor::Observe(const ExperimentKey& experiment) {
  std::vector<AttemptStatus> all = attempts_.Observe(experiment);
  for (AttemptStatus& observed : all) {
    if (observed.outputs && !grants_.Locate(*observed.outputs)) observed.outputs.reset();
  }
  return all;
}

void KubernetesExecutor::Forget(const AttemptKey& key) {
  mirror_.Forget(key);
  const std::optional<PodAttempt> attempt = attempts_.Take(key);
  if (!attempt || attempt->uid.empty()) return;
  const bool stays = attempt->object_gone || attempt->recipe.retain;
  // One that the platform ended may be tried again by its operator, beside the next attempt.
  const bool suspend = stays && !attempt->object_gone &&
                       attempt->observed.platform != v1::CAUSE_NONE &&
                       SharesObjectName(attempt->ref.resource.group, attempt->ref.resource.kind);
  teardowns_.Add(key,
                 {.ref = attempt->ref, .uid = attempt->uid, .deleted = stays, .suspend = suspend});
  teardowns_.Continue(key);
}

// Its folder says that there may be more of it, also to the next process: see OrphanFinder. It
// stands before any process may come to take it away again.
Status KubernetesExecutor::RemoveFiles(const ExperimentKey& experiment, int64_t trial) {
  RETURN_IF_ERROR(ValidateKey(experiment));
  if (copies_.IsRemoving(experiment)) {
    return absl::UnavailableError("the copies of its checkpoints are being deleted; try again");
  }
  RETURN_IF_ERROR(attempts_.CheckStopped(experiment, trial));
  if (trial == 0) {
    pruner_.Forget(experiment);
    grants_.Forget(experiment);
    removals_.Record(experiment);
  }
  RETURN_IF_ERROR(layout_.Remove(experiment, trial));
  if (trial == 0) RETURN_IF_ERROR(MakeDirs(layout_.ExperimentDir(experiment)));
  removals_.Begin({experiment, trial});
  return absl::OkStatus();
}

void KubernetesExecutor::CleanVolume(const ExperimentKey& experiment,
                                     const v1::ExperimentSpec& spec) {
  removals_.RecordKind(experiment, spec.trial_template().trial_spec());
  cleaner_.Clean(experiment, spec);
  const v1::ArtifactPolicy& policy = spec.shirabe().artifacts();
  if (!policy.store().empty()) copies_.RemoveAllOf(experiment, policy);
}

// What is copied elsewhere is in no pod's way.
void KubernetesExecutor::Prune(const v1::Checkpoint& checkpoint) {
  if (checkpoint.step() != kOutputsStep) pruner_.Prune(checkpoint);
  copies_.Prune(checkpoint);
}

void KubernetesExecutor::UseVolume(const ExperimentKey& experiment,
                                   const v1::ExperimentSpec& spec) {
  pruner_.UseVolume(experiment, spec);
  copies_.SetPolicy(experiment, spec.shirabe().artifacts());
  grants_.SetPolicy(experiment, spec.shirabe());
}

AttemptPaths KubernetesExecutor::Paths(const AttemptKey& key) const {
  AttemptPaths paths = layout_.Paths(key);
  paths.root = FileMirror::RootOf(paths);
  return paths;
}

// A cluster has room sooner or later: what waits there says so itself.
PlacementQuote KubernetesExecutor::QuotePlacement(const ExperimentKey&,
                                                  const google::protobuf::Struct& trial_spec,
                                                  const PlacementRequest& placement_request) {
  return {.price_per_hour = quotes_.Estimate(trial_spec, placement_request)};
}

}  // namespace shirabe::trial
