#include "service/common/long_polls.h"

#include <algorithm>
#include <set>
#include <utility>

#include "client/wire_format.h"

namespace shirabe::service {
namespace {

constexpr Workers::Limits kCheckWorkers{
    .threads = 8, .queue = 16'384, .caller_threads = 2, .caller_queue = 4096};
constexpr absl::Duration kTryAgain = absl::Milliseconds(100);
constexpr absl::Duration kMaxSleep = absl::Seconds(5);

}  // namespace

LongPollQueue::LongPollQueue(ChangeHub* hub, Clock* clock)
    : hub_(hub), clock_(clock), workers_(kCheckWorkers) {
  listener_ = hub_->Listen([this](const auto& changes) { OnChanges(changes); });
  thread_ = std::thread([this] { Run(); });
}

LongPollQueue::~LongPollQueue() {
  hub_->Unlisten(listener_);
  End();
  {
    const MutexLock lock(mutex_);
    closed_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

int64_t LongPollQueue::Add(LongPoll wait) {
  const absl::Duration now = clock_->Monotonic();
  const MutexLock lock(mutex_);
  const int64_t id = ++last_id_;
  entries_[id] = Entry{.wait = std::move(wait), .due = now};
  entries_[id].deadline = now + entries_[id].wait.patience;
  changed_.NotifyAll();
  return id;
}

void LongPollQueue::CheckNow(int64_t id) {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  found->second.again = true;
  found->second.due = absl::ZeroDuration();
  changed_.NotifyAll();
}

void LongPollQueue::End() {
  const MutexLock lock(mutex_);
  ending_ = true;
  changed_.NotifyAll();
}

void LongPollQueue::OnChanges(const std::vector<db::Change>& changes) {
  std::set<ExperimentKey> keys;
  for (const db::Change& change : changes) keys.insert(change.experiment);
  const MutexLock lock(mutex_);
  bool any = false;
  for (auto& [id, entry] : entries_) {
    const ExperimentKey& key = entry.wait.experiment;
    if (!key.name.empty() && keys.count(key) == 0) continue;
    entry.again = true;
    entry.due = std::min(entry.due, entry.looked + entry.breath);
    any = true;
  }
  if (any) changed_.NotifyAll();
}

void LongPollQueue::Run() {
  MutexLock lock(mutex_);
  while (!closed_ || !entries_.empty()) {
    const absl::Duration sleep = StartDue(clock_->Monotonic());
    if (sleep > absl::ZeroDuration()) changed_.WaitFor(lock, sleep);
  }
}

absl::Duration LongPollQueue::StartDue(absl::Duration now) {
  absl::Duration next = now + kMaxSleep;
  for (auto& [id, entry] : entries_) {
    if (entry.running) continue;
    if (ending_ || std::min(entry.due, entry.deadline) <= now) StartCheck(id, entry, now);
    if (!entry.running) next = std::min({next, entry.due, entry.deadline});
  }
  return std::max(next - now, absl::Milliseconds(1));
}

void LongPollQueue::StartCheck(int64_t id, Entry& entry, absl::Duration now) {
  const bool last = ending_ || now >= entry.deadline;
  entry.again = false;
  entry.breath = std::min(2 * entry.breath, kLastBreath);
  entry.looked = now;
  // The entry stays where it is until this look is over.
  entry.running = workers_.Run(entry.wait.caller, [this, id, last, check = &entry.wait.check] {
    OnChecked(id, (*check)(last) || last);
  });
  if (entry.running) return;
  entry.due = now + kTryAgain;
  entry.deadline = std::max(entry.deadline, entry.due);
}

void LongPollQueue::OnChecked(int64_t id, bool done) {
  const absl::Duration now = clock_->Monotonic();
  Entry over;  // destroyed without the lock: it may hold much
  const MutexLock lock(mutex_);
  Entry& entry = entries_.at(id);
  entry.running = false;
  if (done) {
    over = std::move(entry);
    entries_.erase(id);
  } else {
    entry.due = entry.again ? entry.looked + entry.breath : now + entry.wait.poll;
  }
  changed_.NotifyAll();
}

StatusOr<v1::AskReply> PendingAskCheck::Check() {
  v1::AskRequest request;
  *request.mutable_experiment() = client::ToWire(key_);
  request.set_caller(caller_);
  request.set_check_only(true);
  return client_->Get<v1::AskReply>("Ask", request);
}

std::optional<StatusOr<v1::AskReply>> PendingAskCheck::TryAnswer(bool last) {
  StatusOr<v1::AskReply> asked = Check();
  if (asked.ok() && asked->pending() && !last) return std::nullopt;
  return asked;
}

Status DeletionCheck::Begin() {
  return client_->Delete(key_, absl::ZeroDuration(), [](absl::Duration) { return true; });
}

// The records go first. Asking for it again then says whether files are left.
std::optional<Status> DeletionCheck::TryAnswer(bool last) {
  Status found = client_->GetExperiment(key_).status();
  if (absl::IsNotFound(found)) {
    Status gone = Begin();
    if (gone.ok() || absl::IsNotFound(gone)) return absl::OkStatus();
    if (last || !absl::IsDeadlineExceeded(gone)) return gone;
    return std::nullopt;
  }
  if (!found.ok()) return found;
  if (!last) return std::nullopt;
  return absl::DeadlineExceededError("experiment " + ToString(key_) +
                                     " is not deleted yet: its deletion has been asked for, and "
                                     "goes on; wait longer");
}

}  // namespace shirabe::service
