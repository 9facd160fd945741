#include "sidecar/sidecar.h"

#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/rng.h"
#include "base/timestamp.h"
#include "metrics/describe_source.h"
#include "proto/shirabe/v1/collector_traits.h"
#include "sidecar/file_uploader.h"
#include "sidecar/pod_config.h"
#include "sidecar/server_link.h"
#include "sidecar/trainer_endpoint.h"
#include "trial/checkpoint/checkpoint_committer.h"
#include "trial/checkpoint/checkpoint_folder.h"
#include "trial/checkpoint/katib_folder.h"
#include "trial/pod/final_sync_log.h"

namespace shirabe::sidecar {

MetricsScraper::MetricsScraper(const Pod& pod) {
  source_.metrics = {pod.config.metrics().begin(), pod.config.metrics().end()};
  source_.files.scrapes = pod.paths.scrapes_file;
  if (!v1::TraitsOf(pod.config.collector()).http()) return;
  auto collector = metrics::CreateCollector(pod.config.collector());
  if (!collector.ok()) last_error_ = Message(collector.status());
  if (collector.ok()) collector_ = *std::move(collector);
}

void MetricsScraper::Tick(bool ended) {
  if (collector_ == nullptr) return;
  source_.ended = ended;
  // What it reads is of no interest here: the server reads its copy. Asking is a part of it.
  const auto collected = collector_->Collect(source_, v1::CollectorCursor());
  last_error_ = Message(collected.status());
  if (ended) collector_ = nullptr;
}

namespace {

constexpr absl::Duration kTick = absl::Milliseconds(250);
constexpr absl::Duration kLastTick = absl::Milliseconds(50);  // once we are to end
constexpr int64_t kPieceBytes = 1 << 20;                      // of data, in a request
constexpr absl::Duration kNext = absl::Seconds(2);            // where the server names none
constexpr absl::Duration kMinBackoff = absl::Milliseconds(250);
constexpr absl::Duration kMaxBackoff = absl::Seconds(15);
constexpr absl::Duration kMaxUrgentBackoff = absl::Milliseconds(500);
// Between SIGTERM and SIGKILL where the program has used up the grace.
constexpr absl::Duration kShortFlushTime = absl::Milliseconds(1500);
constexpr int64_t kFinalSyncBytes = 6 << 20;  // of all last words; kubelets keep 10 MiB of a log
constexpr int64_t kFinalSyncPieceBytes = 256 << 10;

std::string StopFile(const Pod& pod) { return pod.run("stopping"); }

class Sidecar {
 public:
  Sidecar(const SidecarOptions& options, std::stop_token stop)
      : options_(options),
        pod_(*options.pod),
        stop_(std::move(stop)),
        began_(options.clock->Monotonic()),
        rng_(Fingerprint(RandomBytes(8))),
        layout_(pod_.home()),
        store_(&layout_),
        prune_worker_(&store_),
        uploader_(&pod_),
        scraper_(pod_),
        committer_(&layout_, options.clock, [this](const ExperimentKey&) { Wake(); },
                   {.stores = options.stores.copies, .retries = options.copies}) {
    committer_.copier().SetPolicy(pod_.key.trial.experiment, pod_.config.artifacts());
    if (pod_.checkpoints) committer_.Watch(pod_.key);
    auto endpoint = OpenTrainerEndpoint(pod_, [this] { Wake(); });
    if (endpoint.ok()) {
      trainer_endpoint_ = *std::move(endpoint);
    } else if (!absl::IsNotFound(endpoint.status())) {
      Log(LogLevel::kWarning, "the HTTP endpoint for trainer status is not available",
          {{"error", Message(endpoint.status())}});
    }
  }

  void Run() {
    for (;;) {
      Observe();
      const bool fresh = uploader_.Scan();
      if (Due(fresh)) Exchange();
      if (IsFinished()) return;
      Wait();
    }
  }

 private:
  absl::Duration Now() { return options_.clock->Monotonic(); }

  void Wake() {
    const MutexLock lock(mutex_);
    woken_ = true;
    changed_.NotifyAll();
  }

  void Wait() {
    const auto woken = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return woken_; };
    MutexLock lock(mutex_);
    if (stop_.stop_requested()) {
      changed_.WaitFor(lock, kLastTick, woken);
    } else {
      changed_.WaitFor(lock, stop_, kTick, woken);
    }
    woken_ = false;
  }

  // ---- what is the case -------------------------------------------------------------------------

  // Before the files are looked at: what the program has written by its end is seen then.
  void Observe() {
    program_state_ = ReadProgramState(pod_);
    const bool asked = stop_.stop_requested();
    if (asked && !acknowledged_at_) acknowledged_at_ = Now();
    if (!ending_at_) ending_at_ = BeginOfEnd(asked);
    const bool over = program_state_.ended || (asked && !program_state_.started);
    scraper_.Tick(over);
    if (over && !ended_) EndCheckpoints();
    ended_ = over;
    NoteCopies();
  }

  void EndCheckpoints() {
    if (!pod_.checkpoints) return;
    const auto& exit = program_state_.exit;
    const bool well = exit && exit->code() == 0 && exit->signal() == 0;
    const Status saved = well ? trial::SaveKatibFolder(layout_, pod_.key) : absl::OkStatus();
    if (!saved.ok()) {
      Log(LogLevel::kWarning, "the program's checkpoint is not kept", {{"error", Message(saved)}});
    }
    if (well) committer_.copier().CopyOutputs(pod_.key);
    committer_.End(pod_.key);
  }

  // When the grace of the pod began to run, as far as we know.
  std::optional<absl::Duration> BeginOfEnd(bool asked) {
    struct stat info;
    if (stat(StopFile(pod_).c_str(), &info) != 0) {
      return asked ? std::optional(Now()) : std::nullopt;
    }
    const absl::Duration age = options_.clock->Now() - absl::TimeFromTimespec(info.st_mtim);
    return Now() - std::clamp(age, absl::ZeroDuration(), Grace());
  }

  absl::Duration Grace() const { return FromProto(pod_.config.grace()); }

  bool urgent() const { return ended_ || ending_at_.has_value(); }

  v1::PodState State(bool& committed) {
    trial::AttemptStatus observed;
    observed.key = pod_.key;
    observed.state =
        ended_ ? trial::AttemptStatus::State::kExited : trial::AttemptStatus::State::kRunning;
    committer_.Describe(observed);
    committed = observed.state == trial::AttemptStatus::State::kExited;
    v1::PodState state;
    if (observed.resumed) *state.mutable_resumed() = *observed.resumed;
    for (const v1::Checkpoint& one : observed.damaged) *state.add_damaged() = one;
    for (const v1::Checkpoint& one : observed.checkpoints) *state.add_checkpoints() = one;
    for (const std::string& one : observed.refused) state.add_refused(one);
    for (const v1::Checkpoint& one : prune_worker_.Done()) *state.add_pruned() = one;
    state.set_copying(AwaitsCopies(committed));
    state.set_copied(observed.copied);
    state.set_uncopied(observed.uncopied);
    if (observed.outputs) *state.mutable_outputs() = *observed.outputs;
    state.set_outputs_uncopied(observed.outputs_uncopied);
    if (program_state_.exit) *state.mutable_exit() = *program_state_.exit;
    state.set_heeded(acknowledged_);
    state.set_trouble(LastError());
    return state;
  }

  std::string LastError() const {
    std::vector<std::string> errors = {uploader_.last_error(), scraper_.last_error(),
                                       request_error_};
    if (program_state_.ended && !program_state_.exit) {
      errors.push_back("its supervisor is gone and has left no exit record");
    }
    std::erase(errors, "");
    return absl::StrJoin(errors, "; ");
  }

  // ---- the exchange -----------------------------------------------------------------------------

  bool Due(bool fresh) {
    const absl::Duration since = Now() - last_;
    if (denied_ || Now() < retry_at_) return false;
    if (!server_reached_ || sync_now_ || failures_ > 0) return true;
    bool committed = false;
    const bool news = fresh || State(committed).SerializeAsString() != acknowledged_state_ ||
                      (committed && !completed_);
    return since >= (news ? urgent() ? options_.urgent : options_.interval : next_);
  }

  v1::SyncRequest Request(int64_t bytes, bool& all) {
    v1::SyncRequest request;
    request.set_namespace_(pod_.config.namespace_());
    request.set_experiment(pod_.config.experiment());
    request.set_trial(pod_.config.trial());
    request.set_attempt(pod_.config.attempt());
    request.set_token(pod_.config.token());
    bool committed = false;
    *request.mutable_state() = State(committed);
    all = uploader_.FillRequest(bytes, request);
    request.mutable_state()->set_complete(committed && all);
    return request;
  }

  // Until all is sent that was there when it was looked at. The first question brings nothing: how
  // much the server has is not known yet.
  void Exchange() {
    sync_now_ = false;
    for (bool all = false; !all && !IsGraceOver();) {
      const bool first = !server_reached_;
      v1::SyncRequest request = Request(first ? 0 : kPieceBytes, all);
      if (first) request.mutable_state()->set_complete(false);
      const bool stuck = !first && request.files().empty();  // what is left needs another look
      const auto reply = options_.link->Sync(request, SyncTimeout());
      last_ = Now();
      if (!reply.ok()) return Fail(reply.status());
      Accept(request, *reply);
      if (first) all = all && !ended_ && !uploader_.Scan();
      if (stuck) return;
    }
  }

  void Accept(const v1::SyncRequest& request, const v1::SyncReply& reply) {
    server_reached_ = true;
    failures_ = 0;
    retry_at_ = absl::ZeroDuration();
    uploader_.Acknowledge(reply, request);
    prune_worker_.Acknowledged(request.state());
    completed_ = request.state().complete() && !uploader_.Scan();
    v1::PodState state = request.state();
    state.set_complete(false);
    acknowledged_state_ = state.SerializeAsString();
    next_ = reply.has_next() ? FromProto(reply.next()) : kNext;
    next_ = std::clamp(next_, options_.urgent, absl::Minutes(1));
    for (const v1::Checkpoint& checkpoint : reply.prune()) {
      prune_worker_.Prune(checkpoint);
      if (trial::KeyOf(checkpoint) != pod_.key) continue;
      // The server removes its copy, too; what is only being made is not there for it to see.
      if (unwanted_.insert(checkpoint.step()).second) committer_.copier().Prune(checkpoint);
    }
    if (reply.has_request() && reply.request().id() != acknowledged_)
      HandleRequest(reply.request());
  }

  void HandleRequest(const v1::PodRequest& request) {
    const Status passed = ForwardRequest(request, pod_.paths.control_file);
    request_error_ = Message(passed);
    if (!passed.ok()) return;
    acknowledged_ = request.id();
    sync_now_ = true;  // the server waits for our word before the pod is asked to end
    Wake();
  }

  void Fail(const Status& status) {
    // A token that is not known may be one that the kubelet is about to renew.
    if (absl::IsPermissionDenied(status)) {
      denied_ = true;
      Log(LogLevel::kWarning, "the attempt is no longer current: sending nothing more",
          {{"error", Message(status)}});
      return;
    }
    if (failures_ == 0) {
      Log(LogLevel::kWarning, "the server does not answer; trying again",
          {{"server", pod_.config.server()}, {"error", Message(status)}});
    }
    const absl::Duration most = urgent() ? kMaxUrgentBackoff : kMaxBackoff;
    const absl::Duration pause = Backoff{kMinBackoff, most}.Delay(failures_);
    ++failures_;
    retry_at_ = Now() + pause * (0.5 + rng_.Uniform() / 2);
  }

  absl::Duration SyncTimeout() {
    if (!ending_at_) return options_.patience;
    return std::clamp(Deadline() - Now(), options_.urgent, options_.patience);
  }

  // ---- the end ----------------------------------------------------------------------------------

  // Of what the pod has left, once it is to end. A program that still runs at SIGTERM has used up
  // its share, and ours.
  absl::Duration Deadline() {
    NoteCopies();
    const absl::Duration copied = std::min(copying_until_, *ending_at_ + options_.copy_time);
    const absl::Duration by_grace = std::max(*ending_at_, copied) + trial::FlushGrace(Grace());
    if (!acknowledged_at_) return by_grace;
    const absl::Duration least = *acknowledged_at_ + kShortFlushTime;
    return ended_ ? std::max(by_grace, least) : least;
  }

  // Whether copies of an ended program are on their way; a thread of its own writes them down.
  bool AwaitsCopies(bool committed) {
    const v1::ArtifactPolicy& policy = pod_.config.artifacts();
    if (!ended_ || (!policy.checkpoints() && !policy.outputs())) return false;
    return !committed || committer_.copier().Busy(pod_.key);
  }

  // The pod is there until they are made where its program has ended by itself, and then for as
  // long again as their news may take: what takes a machine away does not wait for them.
  void NoteCopies() {
    const bool by_itself = program_state_.exit && !program_state_.exit->told();
    if (!ended_ || !by_itself) return;
    trial::AttemptStatus observed;
    observed.key = pod_.key;
    observed.state = trial::AttemptStatus::State::kExited;
    committer_.Describe(observed);
    const bool committed = observed.state == trial::AttemptStatus::State::kExited;
    if (AwaitsCopies(committed)) copying_until_ = Now();
  }

  bool IsGraceOver() { return acknowledged_at_.has_value() && Now() >= Deadline(); }

  // Whatever the collector waits for, as Katib's do: of the processes that it found when it began,
  // ours is one. A life is long enough not to be one of many.
  bool MakesWay() {
    return ended_ && completed_ && v1::TraitsOf(pod_.config.collector()).container() &&
           Now() >= began_ + options_.stay;
  }

  bool IsFinished() {
    if (!acknowledged_at_) return MakesWay();
    if (completed_ || denied_) return true;
    // Asked to end alone, beside a program that runs on: our successor sends the rest.
    const bool nothing_left = server_reached_ && failures_ == 0 && !ended_ && !uploader_.Scan();
    if (nothing_left) return true;
    if (!IsGraceOver()) return false;
    PrintFinalSync();
    return true;
  }

  void PrintFinalSync() {
    uploader_.Scan();
    bool all = false;
    for (int64_t left = kFinalSyncBytes; left > 0 && !all; left -= kFinalSyncPieceBytes) {
      const v1::SyncRequest request = Request(kFinalSyncPieceBytes, all);
      options_.print(trial::FinalSyncLine(request));
      uploader_.MarkSent(request);
    }
    Log(LogLevel::kError, "the server could not be reached: unsent data was printed above",
        {{"server", pod_.config.server()}, {"complete", all ? "yes" : "no"}});
  }

  const SidecarOptions options_;
  const Pod& pod_;
  const std::stop_token stop_;
  const absl::Duration began_;
  Rng rng_;
  const trial::FileLayout layout_;
  const trial::CheckpointStore store_;
  PruneWorker prune_worker_;
  FileUploader uploader_;
  MetricsScraper scraper_;
  ProgramState program_state_;
  bool ended_ = false;                             // nothing more will come of the program
  std::optional<absl::Duration> ending_at_;        // the pod's grace runs since
  std::optional<absl::Duration> acknowledged_at_;  // SIGTERM
  absl::Duration copying_until_;                   // copies were on their way then
  bool server_reached_ = false;                    // the server has said what it has
  bool denied_ = false;                            // it wants nothing of us
  bool completed_ = false;                         // it has all
  bool sync_now_ = false;
  int failures_ = 0;  // in a row
  absl::Duration last_, next_ = kNext, retry_at_;
  std::string acknowledged_state_;  // what the server knows
  int64_t acknowledged_ = 0;
  std::string request_error_;
  std::set<int64_t> unwanted_;  // steps whose copies were given up
  Mutex mutex_;
  CondVar changed_;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  // Last, because their threads use all of the above.
  trial::CheckpointCommitter committer_;
  std::unique_ptr<TrainerEndpoint> trainer_endpoint_;
};

}  // namespace

void RunSidecar(const SidecarOptions& options, std::stop_token stop) {
  Sidecar(options, std::move(stop)).Run();
}

Status SignalStop(const Pod& pod) { return WriteFileAtomic(StopFile(pod), ""); }

}  // namespace shirabe::sidecar
