#include "kube/leader_election.h"

#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/rng.h"

namespace shirabe::kube {
namespace {

const Resource kLease{"coordination.k8s.io", "v1", "leases", "Lease"};

// With microseconds, as Kubernetes writes a MicroTime.
std::string MicroTime(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", time, absl::UTCTimeZone());
}

class LeaseElection : public Election {
 public:
  explicit LeaseElection(ElectionOptions options);
  ~LeaseElection() override;

  bool Await(absl::Duration timeout) override;
  bool leads() const override;
  std::string holder() const override;
  int64_t transitions() const override;
  std::string LastError() const override;

 private:
  void Stand(const std::stop_token& stop);
  // One look at the lease, and one try to take or renew it where that is allowed.
  Status Try();
  StatusOr<Json> ReadOrCreate();
  // Takes note of what the lease says. Its times are of another machine's clock and are compared
  // with nothing: only that they change is seen, and when, by our clock.
  void Observe(const Json& lease);
  bool MayTake(const Json& lease) const;
  Json Claim(const Json& lease) const;
  StatusOr<Json> Write(const Json& lease, Json spec);
  void Hold(const Json& lease, absl::Duration since);
  void Release();
  bool LeadsNow() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ElectionOptions options_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::string holder_ ABSL_GUARDED_BY(mutex_);
  int64_t transitions_ ABSL_GUARDED_BY(mutex_) = 0;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  // Begin of the call that last succeeded.
  absl::Duration renewed_ ABSL_GUARDED_BY(mutex_) = absl::ZeroDuration();
  Status last_ ABSL_GUARDED_BY(mutex_);

  // Of the thread.
  std::string seen_;  // the lease's spec, when it last changed
  absl::Duration seen_at_ = absl::ZeroDuration();
  Json lease_;  // as last seen
  Rng rng_;
  std::jthread thread_;  // last: it uses all of the above
};

LeaseElection::LeaseElection(ElectionOptions options)
    : options_(std::move(options)),
      rng_(RandomSeed()),
      thread_([this](std::stop_token stop) { Stand(stop); }) {}

LeaseElection::~LeaseElection() {
  thread_.request_stop();
  thread_.join();
  Release();
}

void LeaseElection::Stand(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const Status status = Try();
    MutexLock lock(mutex_);
    last_ = status;
    if (held_ && !LeadsNow()) held_ = false;
    // With jitter while waiting, so that candidates do not ask at the same instant.
    const absl::Duration wait = options_.retry * (held_ ? 1 : 1 + 0.5 * rng_.Uniform());
    changed_.SleepFor(lock, stop, wait);
  }
}

Status LeaseElection::Try() {
  const absl::Duration begun = options_.clock->Monotonic();
  ASSIGN_OR_RETURN(const Json lease, ReadOrCreate());
  Observe(lease);
  if (!MayTake(lease)) return absl::OkStatus();
  // The write names the version that was read: of two who try, one is refused.
  auto written = Write(lease, Claim(lease));
  if (absl::IsAborted(written.status())) return absl::OkStatus();
  RETURN_IF_ERROR(written.status());
  Observe(*written);
  Hold(*written, begun);
  return absl::OkStatus();
}

StatusOr<Json> LeaseElection::ReadOrCreate() {
  const Ref ref{kLease, options_.namespace_name, options_.name};
  auto lease = options_.client->Get(ref);
  if (!absl::IsNotFound(lease.status())) return lease;
  const Json empty = {
      {"apiVersion", kLease.ApiVersion()},
      {"kind", kLease.kind},
      {"metadata", {{"namespace", ref.namespace_name}, {"name", ref.name}}},
      {"spec", Json::object()},
  };
  auto created = options_.client->Create(kLease, empty);
  return absl::IsAlreadyExists(created.status()) ? options_.client->Get(ref) : created;
}

void LeaseElection::Observe(const Json& lease) {
  const Json* spec = FindAt(lease, {"spec"});
  std::string seen = spec == nullptr ? "" : Dump(*spec);
  if (seen != seen_ || lease_.is_null()) {
    seen_ = std::move(seen);
    seen_at_ = options_.clock->Monotonic();
  }
  lease_ = lease;
  const MutexLock lock(mutex_);
  holder_ = Text(lease, {"spec", "holderIdentity"});
  transitions_ = Number(lease, {"spec", "leaseTransitions"});
  if (holder_ != options_.identity) held_ = false;
}

bool LeaseElection::MayTake(const Json& lease) const {
  const std::string holder = Text(lease, {"spec", "holderIdentity"});
  if (holder.empty() || holder == options_.identity) return true;
  const absl::Duration promised = absl::Seconds(Number(lease, {"spec", "leaseDurationSeconds"}));
  return options_.clock->Monotonic() - seen_at_ > std::max(promised, options_.lease);
}

Json LeaseElection::Claim(const Json& lease) const {
  const std::string now = MicroTime(options_.clock->Now());
  Json spec = {{"holderIdentity", options_.identity},
               {"leaseDurationSeconds", absl::ToInt64Seconds(options_.lease)},
               {"renewTime", now}};
  if (Text(lease, {"spec", "holderIdentity"}) != options_.identity) {
    spec["acquireTime"] = now;
    spec["leaseTransitions"] = Number(lease, {"spec", "leaseTransitions"}) + 1;
  }
  return spec;
}

StatusOr<Json> LeaseElection::Write(const Json& lease, Json spec) {
  const Json patch = {{"metadata", {{"resourceVersion", VersionOf(lease)}}},
                      {"spec", std::move(spec)}};
  return options_.client->Patch({kLease, options_.namespace_name, options_.name}, PatchType::kMerge,
                                patch, "");
}

void LeaseElection::Hold(const Json& lease, absl::Duration since) {
  const MutexLock lock(mutex_);
  held_ = Text(lease, {"spec", "holderIdentity"}) == options_.identity;
  renewed_ = since;
  changed_.NotifyAll();
}

void LeaseElection::Release() {
  if (!leads()) return;
  // The next leader need not wait. If it cannot be told, it waits for the lease's end.
  const Json released = {{"holderIdentity", ""},
                         {"leaseDurationSeconds", 1},
                         {"renewTime", MicroTime(options_.clock->Now())}};
  (void)Write(lease_, released).status();
}

bool LeaseElection::LeadsNow() const {
  return held_ && options_.clock->Monotonic() - renewed_ < options_.renew;
}

bool LeaseElection::Await(absl::Duration timeout) {
  MutexLock lock(mutex_);
  return changed_.WaitFor(lock, timeout,
                          [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return LeadsNow(); });
}

bool LeaseElection::leads() const {
  const MutexLock lock(mutex_);
  return LeadsNow();
}

std::string LeaseElection::holder() const {
  const MutexLock lock(mutex_);
  return holder_;
}

int64_t LeaseElection::transitions() const {
  const MutexLock lock(mutex_);
  return transitions_;
}

std::string LeaseElection::LastError() const {
  const MutexLock lock(mutex_);
  return last_.ok() ? "" : Message(last_);
}

}  // namespace

std::unique_ptr<Election> Election::Start(ElectionOptions options) {
  return std::make_unique<LeaseElection>(std::move(options));
}

}  // namespace shirabe::kube
