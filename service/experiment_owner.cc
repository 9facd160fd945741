#include "service/experiment_owner.h"

#include <malloc.h>

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "experiment/conditions.h"
#include "experiment/submission.h"

namespace shirabe::service {
namespace {

constexpr absl::Duration kStorePollInterval = absl::Milliseconds(200);
constexpr absl::Duration kMinPause = absl::Milliseconds(20);  // between two looks, at least
constexpr absl::Duration kRetryAfter = absl::Seconds(2);
constexpr absl::Duration kSlowAnswer = absl::Seconds(5);  // of the store: then it is not ready
// After an outage every lease looks expired, and owners get to renew theirs within this time.
constexpr absl::Duration kOwnersReturn = absl::Seconds(10);  // two renewals: kLeaseRenewal
constexpr absl::Duration kReturnMemory = absl::Seconds(5);  // to the system, at most every so often

}  // namespace

ExperimentOwner::ExperimentOwner(client::LocalClient* client, experiment::Controller* controller,
                                 Clock* clock)
    : client_(client),
      controller_(controller),
      clock_(clock),
      answered_at_(clock->Monotonic()),
      thread_([this](std::stop_token stop) { Run(stop); }) {}

ExperimentOwner::~ExperimentOwner() {
  thread_.request_stop();
  thread_.join();
}

std::string ExperimentOwner::LastError() const {
  {
    const MutexLock lock(mutex_);
    if (!last_error_.empty()) return last_error_;
    if (!own_error_.empty()) return own_error_;
    const absl::Duration silent = clock_->Monotonic() - asked_at_;
    if (silent > kSlowAnswer) {
      return absl::StrCat("the database has not answered for ",
                          absl::FormatDuration(absl::Floor(silent, absl::Seconds(1))));
    }
  }
  return controller_->StoreError();
}

bool ExperimentOwner::Ready() const {
  const MutexLock lock(mutex_);
  return ready_;
}

// Before each question, so that many of them are not taken for one that hangs.
void ExperimentOwner::Asking() {
  const MutexLock lock(mutex_);
  asked_at_ = clock_->Monotonic();
}

void ExperimentOwner::Run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    const Status looked = Refresh();
    {
      const MutexLock lock(mutex_);
      if (!looked.ok() && last_error_.empty()) {
        Log(LogLevel::kWarning, "the store cannot be read", {{"error", Message(looked)}});
      }
      last_error_ = looked.ok() ? "" : Message(looked);
      asked_at_ = absl::InfiniteDuration();
      ready_ = ready_ || looked.ok();
    }
    if (looked.ok()) {
      TryOwn();
      GiveBack();
      ReleaseFreeMemory();
    }
    Pause(kMinPause);
    Asking();
    // An error here shows again in Look, after a while.
    if (!client_->AwaitChange(revision_, kStorePollInterval).ok()) Pause(kStorePollInterval);
  }
}

// What has changed since the last look: an experiment that has not ended, or one that has an
// intent.
Status ExperimentOwner::Refresh() {
  Asking();
  ASSIGN_OR_RETURN(const auto changes, client_->Changes(revision_));
  NoteAnswer();
  const size_t known = wanted_.size();
  std::set<ExperimentKey> changed;
  for (const db::Change& change : changes) {
    const ExperimentKey& key = change.experiment;
    const bool tells =
        change.kind == db::Change::Kind::kIntent || change.kind == db::Change::Kind::kExperiment;
    if (!tells || controller_->Owns(key)) continue;
    if (change.kind == db::Change::Kind::kIntent) wanted_.insert(key);
    if (change.kind == db::Change::Kind::kExperiment) changed.insert(key);
  }
  for (const ExperimentKey& key : changed) {
    Asking();
    const auto experiment = client_->GetExperiment(key);
    if (!experiment.ok() && !absl::IsNotFound(experiment.status())) return experiment.status();
    NoteAnswer();
    if (experiment.ok() && experiment::NeedsOwner(*experiment)) wanted_.insert(key);
  }
  if (wanted_.size() > known) try_at_ = absl::ZeroDuration();  // a new one need not wait
  if (!changes.empty()) revision_ = changes.back().revision;
  return absl::OkStatus();
}

// After each question that the store has answered: false if it was away before, for us at least. An
// experiment that another process runs would then go from it to us only because we come first, and
// its trials would begin again.
bool ExperimentOwner::NoteAnswer() {
  const absl::Duration now = clock_->Monotonic();
  const bool away = now - std::exchange(answered_at_, now) > kSlowAnswer;
  if (away) owners_until_ = now + kOwnersReturn;
  return !away;
}

// Those that another process owns are tried again: it may die, or end. What else keeps one from
// being owned is the store's; where that is away the rest wait, too.
void ExperimentOwner::TryOwn() {
  const absl::Duration now = clock_->Monotonic();
  if (now < owners_until_ || (!wanted_.empty() && now < try_at_)) return;
  bool held = false;
  std::string error;
  ExperimentKey failed;
  for (auto it = wanted_.begin(); it != wanted_.end();) {
    const Status own = controller_->Own(*it);
    if (own.ok()) Log(LogLevel::kInfo, "runs an experiment", {{"experiment", ToString(*it)}});
    if (!own.ok() && !absl::IsNotFound(own) && !absl::IsAlreadyExists(own)) {
      error = Message(own);
      failed = *it;
    }
    const bool answered = !absl::IsUnavailable(own) && NoteAnswer();
    const bool done = own.ok() || absl::IsNotFound(own);
    held = held || !done;
    it = done ? wanted_.erase(it) : std::next(it);
    if (!answered) break;
  }
  if (held) try_at_ = clock_->Monotonic() + kRetryAfter;
  const MutexLock lock(mutex_);
  if (!error.empty() && own_error_ != error) {
    Log(LogLevel::kWarning, "failed to acquire an experiment; trying again",
        {{"experiment", ToString(failed)}, {"error", error}});
  }
  own_error_ = error;
}

void ExperimentOwner::GiveBack() {
  for (const ExperimentKey& key : controller_->Finished()) {
    const Status over = controller_->Await(key, absl::ZeroDuration());
    if (absl::IsDeadlineExceeded(over)) continue;
    controller_->ReleaseOwnership(key);
    gave_back_ = true;
    if (absl::IsAborted(over)) {
      Log(LogLevel::kWarning, "another server has taken an experiment over",
          {{"experiment", ToString(key)}, {"reason", Message(over)}});
    }
    // Not if it has ended or was deleted. But the lease may have gone to another process; or it was
    // made again under its name, of which Look made nothing while the old one was ours.
    const auto experiment = client_->GetExperiment(key);
    const bool gone = absl::IsNotFound(experiment.status());
    if (gone || experiment.ok()) NoteAnswer();
    if (gone || (over.ok() && experiment.ok() && !experiment::NeedsOwner(*experiment))) continue;
    wanted_.insert(key);
    if (over.ok()) try_at_ = absl::ZeroDuration();
  }
}

// What an experiment took lies scattered over malloc's heaps once it is free.
void ExperimentOwner::ReleaseFreeMemory() {
  if (!gave_back_ || clock_->Monotonic() < return_at_) return;
  malloc_trim(0);
  gave_back_ = false;
  return_at_ = clock_->Monotonic() + kReturnMemory;
}

}  // namespace shirabe::service
