// Plays the programs and the sidecars of all trials of a cluster whose nodes are fake: beside a pod
// that runs nothing, nobody would tell the server anything.
//   scale_sidecars KUBECONFIG SECONDS SPREAD HOLD PART PARTS
// Each pod that runs has a connection of its own to the server, as a real sidecar has, with the
// address and certificate that its own variable SHIRABE_POD gives it and a token of its pod, as the
// kubelet would mount it, and asks as often as it is told to. After SECONDS, more or less by
// SPREAD, its program "ends": the last request brings its log and its exit, and then the pod's
// status says Succeeded, as a kubelet would make it. No program ends, and none of their times
// begins, before HOLD of them run at once. Of PARTS such processes, for which the open files of one
// are too few, it plays the trials whose number leaves PART. Prints what it sees, one line each,
// until it is killed:
//   SECONDS(monotonic) job|pod|running|end|lost EXPERIMENT TRIAL
#include <stdlib.h>

#include <condition_variable>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "base/rng.h"
#include "base/timestamp.h"
#include "kube/resource_path.h"
#include "kube/transport.h"
#include "kube/watch_cache.h"
#include "sidecar/pod_config.h"
#include "sidecar/server_link.h"
#include "trial/kubernetes/cluster_actions.h"
#include "trial/pod/pod_names.h"

namespace shirabe {
namespace {

using kube::Json;
using shirabe::At;
using shirabe::Text;

constexpr int kThreads = 48;
constexpr absl::Duration kPatience = absl::Seconds(20);  // of a request
constexpr absl::Duration kAgain = absl::Seconds(1);      // after one that had no answer
constexpr char kLog[] = "epoch 1\nloss=0.5\n";

struct Plan {
  std::string kubeconfig;
  double seconds = 0;
  double spread = 0;
  size_t hold = 0;
  int64_t part = 0;
  int64_t parts = 1;
};

// A pod whose program runs.
struct Played {
  kube::Ref ref;
  std::string uid;
  v1::PodConfig config;
  std::unique_ptr<sidecar::ServerLink> link;
  absl::Time began;
  // Guarded by Play::mutex_.
  absl::Duration end_at = absl::InfiniteDuration();  // monotonic
  bool ended = false;
};

// No more than is read below.
void TrimPod(Json& pod) {
  const Json phase = {{"phase", Text(pod, {"status", "phase"})}};
  Json init = At(pod, {"spec", "initContainers"});
  pod = {{"metadata", pod["metadata"]},
         {"spec", {{"initContainers", std::move(init)}}},
         {"status", phase}};
}

void TrimJob(Json& job) { job = {{"metadata", job["metadata"]}}; }

StatusOr<sidecar::Pod> ConfigOf(const Json& pod) {
  const Json& container = Named(At(pod, {"spec", "initContainers"}), trial::kSidecarContainer);
  const Json& variable = Named(At(container, "env"), trial::kPodVariable);
  return sidecar::ReadPod(absl::StrReplaceAll(Text(variable, {"value"}), {{"$$", "$"}}), "/");
}

class Play {
 public:
  explicit Play(Plan plan) : plan_(std::move(plan)), rng_(1) {
    auto config = kube::FindConfig(plan_.kubeconfig, "");
    CHECK(config.ok());
    auto client = kube::Client::Create(*std::move(config), RealClock());
    CHECK(client.ok());
    client_ = *std::move(client);
    auto transport =
        kube::Transport::Create(*kube::FindConfig(plan_.kubeconfig, ""), RealClock(), {});
    CHECK(transport.ok());
    transport_ = *std::move(transport);
    CHECK(mkdtemp(tokens_.data()) != nullptr);
  }

  // Does not return.
  void Run() {
    const kube::Query jobs{trial::Jobs(), "", trial::kAttemptLabel, ""};
    const kube::Query pods{trial::Pods(), "", trial::kAttemptLabel, ""};
    const auto job_cache =
        kube::WatchCache::Start({.client = client_.get(),
                                 .clock = RealClock(),
                                 .query = jobs,
                                 .trim = TrimJob,
                                 .on_change = [this](const Json& job, bool) { See(job, "job"); }});
    const auto pod_cache = kube::WatchCache::Start(
        {.client = client_.get(),
         .clock = RealClock(),
         .query = pods,
         .trim = TrimPod,
         .on_change = [this](const Json& pod, bool deleted) { OnPod(pod, deleted); }});
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back([this] { Work(); });
  }

 private:
  bool IsMine(const std::optional<AttemptKey>& key) const {
    return key && key->trial.number % plan_.parts == plan_.part;
  }

  // Prints it the first time.
  void See(const Json& object, const char* what) {
    const auto key = trial::KeyOf(object);
    if (!IsMine(key)) return;
    std::lock_guard lock(mutex_);
    if (seen_.insert(std::string(what) + kube::UidOf(object)).second) Say(what, *key);
  }

  void Say(const char* what, const AttemptKey& key) {
    absl::FPrintF(stdout, "%.4f %s %s %d\n", absl::ToDoubleSeconds(RealClock()->Monotonic()), what,
                  key.trial.experiment.name, key.trial.number);
  }

  void OnPod(const Json& pod, bool deleted) {
    if (!IsMine(trial::KeyOf(pod))) return;
    See(pod, "pod");
    const std::string uid = kube::UidOf(pod);
    const std::string phase = Text(pod, {"status", "phase"});
    std::lock_guard lock(mutex_);
    const auto found = played_.find(uid);
    if (deleted && found != played_.end()) {
      if (!found->second->ended) Say("lost", *trial::KeyOf(pod));
      played_.erase(found);
    }
    if (deleted || phase != "Running" || !begun_.insert(uid).second) return;
    auto read = ConfigOf(pod);
    CHECK(read.ok());
    auto played = std::make_shared<Played>();  // shared: a pod may go while it is played
    played->ref = {trial::Pods(), kube::NamespaceOf(pod), kube::NameOf(pod)};
    played->config = std::move(read->config);
    played->uid = uid;
    played->began = RealClock()->Now();
    played_[uid] = std::move(played);
    Say("running", *trial::KeyOf(pod));
    SetEnds();
    due_.emplace(RealClock()->Monotonic(), uid);
    changed_.notify_one();
  }

  // With mutex_ held. Whoever has asked hears of its end when it asks next.
  void SetEnds() {
    if (played_.size() < plan_.hold) return;
    plan_.hold = 0;
    const absl::Duration now = RealClock()->Monotonic();
    for (auto& [uid, played] : played_) {
      if (played->end_at != absl::InfiniteDuration()) continue;
      const double spread = plan_.spread * (2 * rng_.Uniform() - 1);
      played->end_at = now + absl::Seconds(plan_.seconds + spread);
    }
  }

  void Work() {
    for (;;) {
      std::string uid;
      std::shared_ptr<Played> pod;  // shared: see OnPod
      absl::Duration end_at;
      {
        std::unique_lock lock(mutex_);
        const absl::Duration now = RealClock()->Monotonic();
        if (due_.empty() || due_.begin()->first > now) {
          const absl::Duration nap = due_.empty() ? absl::Seconds(1) : due_.begin()->first - now;
          changed_.wait_for(lock, absl::ToChronoMicroseconds(nap + absl::Microseconds(1)));
          continue;
        }
        uid = due_.begin()->second;
        due_.erase(due_.begin());
        const auto found = played_.find(uid);
        if (found == played_.end()) continue;
        pod = found->second;
        end_at = pod->end_at;
      }
      const auto again = Ask(*pod, end_at);
      std::lock_guard lock(mutex_);
      if (again) {
        due_.emplace(*again, uid);
      } else {
        played_.erase(uid);
      }
    }
  }

  static v1::SyncRequest RequestOf(const Played& pod) {
    v1::SyncRequest request;
    request.set_namespace_(pod.config.namespace_());
    request.set_experiment(pod.config.experiment());
    request.set_trial(pod.config.trial());
    request.set_attempt(pod.config.attempt());
    request.set_token(pod.config.token());
    return request;
  }

  static void AddEnd(const Played& pod, v1::SyncRequest& request) {
    v1::FilePiece& piece = *request.add_files();
    piece.set_name("log");
    piece.set_data(kLog);
    piece.set_size(sizeof kLog - 1);
    const absl::Time now = RealClock()->Now();
    v1::ProgramExit& exit = *request.mutable_state()->mutable_exit();
    *exit.mutable_began() = ToProto(pod.began);
    *exit.mutable_ended() = ToProto(now);
    *exit.mutable_ran() = ToProto(now - pod.began);
    request.mutable_state()->set_complete(true);
  }

  // As the kubelet does for the volume of the pod.
  Status MakeToken(Played& pod) {
    const Json bound = {
        {"apiVersion", "v1"}, {"kind", "Pod"}, {"name", pod.ref.name}, {"uid", pod.uid}};
    const Json request = {
        {"apiVersion", "authentication.k8s.io/v1"},
        {"kind", "TokenRequest"},
        {"spec", {{"audiences", Json::array({trial::kPodAudience})}, {"boundObjectRef", bound}}}};
    const kube::Resource accounts{"", "v1", "serviceaccounts", "ServiceAccount"};
    const auto reply = transport_->Call(
        {.method = "POST",
         .target = kube::PathOf(accounts, pod.ref.namespace_name, "default", "token"),
         .content_type = "application/json",
         .body = kube::Dump(request)},
        kube::Idempotency::kIdempotent);
    RETURN_IF_ERROR(reply.status());
    const Json made = Json::parse(reply->answer.body, nullptr, /*allow_exceptions=*/false);
    const std::string token = Text(made, {"status", "token"});
    if (token.empty()) return absl::UnavailableError("the API server made no token");
    pod.config.set_token_path(tokens_ + "/" + pod.uid);
    return WriteFileAtomic(pod.config.token_path(), token);
  }

  // One request; when the next is due (monotonic), or never.
  std::optional<absl::Duration> Ask(Played& pod, absl::Duration end_at) {
    if (pod.link == nullptr) {
      const Status made = MakeToken(pod);
      if (!made.ok()) {
        Complain(pod, made);
        return RealClock()->Monotonic() + kAgain;
      }
      pod.link = sidecar::MakeServerLink(pod.config);
    }
    v1::SyncRequest request = RequestOf(pod);
    request.mutable_state();
    const absl::Duration now = RealClock()->Monotonic();
    const bool last = now >= end_at;
    if (last) AddEnd(pod, request);
    const auto reply = pod.link->Sync(request, kPatience);
    if (absl::IsPermissionDenied(reply.status())) return std::nullopt;
    if (!reply.ok()) {
      Complain(pod, reply.status());
      return now + kAgain;
    }
    if (!last) return std::min(now + FromProto(reply->next()), end_at);
    {
      std::lock_guard lock(mutex_);
      pod.ended = true;
      absl::FPrintF(stdout, "%.4f end %s %d\n", absl::ToDoubleSeconds(now), pod.config.experiment(),
                    pod.config.trial());
    }
    End(pod);
    return std::nullopt;
  }

  // What the kubelet would make of the pod's status.
  void End(const Played& pod) {
    const std::string now = FormatTime(ToProto(RealClock()->Now()));
    const Json state = {{"terminated",
                         {{"exitCode", 0},
                          {"reason", "Completed"},
                          {"startedAt", FormatTime(ToProto(pod.began))},
                          {"finishedAt", now}}}};
    const auto status_of = [&](const char* name) {
      return Json{{"name", name},    {"ready", false}, {"restartCount", 0},
                  {"image", "none"}, {"imageID", ""},  {"state", state}};
    };
    const Json status = {
        {"status",
         {{"phase", "Succeeded"},
          {"containerStatuses", Json::array({status_of("main")})},
          {"initContainerStatuses",
           Json::array({status_of(trial::kInitContainer), status_of(trial::kSidecarContainer)})}}}};
    const Status patched =
        client_->Patch(pod.ref, kube::PatchType::kMerge, status, "status").status();
    if (!patched.ok() && !absl::IsNotFound(patched)) Complain(pod, patched);
  }

  static void Complain(const Played& pod, const Status& status) {
    absl::FPrintF(stderr, "%s: %s\n", pod.ref.name, Message(status));
  }

  Plan plan_;  // its `hold` is guarded by mutex_
  std::unique_ptr<kube::Client> client_;
  std::unique_ptr<kube::Transport> transport_;
  std::string tokens_ = "/tmp/scale-tokens-XXXXXX";  // a folder
  std::mutex mutex_;
  std::condition_variable changed_;
  // These are guarded by mutex_.
  Rng rng_;
  std::set<std::string> seen_;
  std::set<std::string> begun_;                            // uids
  std::map<std::string, std::shared_ptr<Played>> played_;  // by uid; shared: see OnPod
  std::multimap<absl::Duration, std::string> due_;
};

int Main(int argc, char** argv) {
  Plan plan;
  if (argc != 7 || !absl::SimpleAtoi(argv[4], &plan.hold) ||
      !absl::SimpleAtod(argv[2], &plan.seconds) || !absl::SimpleAtod(argv[3], &plan.spread) ||
      !absl::SimpleAtoi(argv[5], &plan.part) || !absl::SimpleAtoi(argv[6], &plan.parts) ||
      plan.parts < 1) {
    std::fputs("usage: scale_sidecars KUBECONFIG SECONDS SPREAD HOLD PART PARTS\n", stderr);
    return 2;
  }
  plan.kubeconfig = argv[1];
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  Play(plan).Run();
  return 0;
}

}  // namespace
}  // namespace shirabe

int main(int argc, char** argv) { return shirabe::Main(argc, argv); }
