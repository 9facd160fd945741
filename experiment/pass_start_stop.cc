// The commit of a pass, and what it does then: what was decided is written before it is done.
#include <algorithm>
#include <utility>

#include "db/bulk_leases.h"
#include "db/commit_rules.h"
#include "experiment/attempt_request.h"
#include "experiment/conditions.h"
#include "experiment/plan.h"
#include "experiment/reconcile_pass.h"

namespace shirabe::experiment {
namespace {

constexpr absl::Duration kSlowStartThreshold = absl::Milliseconds(50);
constexpr absl::Duration kStopLook = absl::Milliseconds(250);  // at what was asked to end
constexpr absl::Duration kVerifyRetryInterval =
    absl::Milliseconds(100);  // a checkpoint is being verified
constexpr int64_t kRowsRemovedAtOnce = 10'000;

}  // namespace

// What an experiment leaves goes in steps, between which others write, and then the experiment.
// A Commit proves that the lease is still ours; a pass that writes nothing but starts something (a
// Start that had no room before) must ask, or an old owner could start what the new one has closed.
Status Pass::CommitOrCheckLease() {
  if (delete_) {
    db::Bulk* const bulk = db::FindBulk(*options_.store);
    if (bulk != nullptr) {
      ASSIGN_OR_RETURN(removing_,
                       bulk->RemoveRows({state_.key(), state_.epoch()}, kRowsRemovedAtOnce));
    }
    if (removing_) {
      delete_ = state_.batch().delete_experiment = false;
      Requeue(absl::ZeroDuration());
      return absl::OkStatus();
    }
  }
  if (state_.Changed()) return state_.Commit(*options_.store);
  const auto to_start = [](const auto& entry) {
    return entry.second.open && !entry.second.started;
  };
  if (std::none_of(state_.live().begin(), state_.live().end(), to_start)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const v1::Lease lease, options_.store->GetLease(state_.key()));
  if (lease.epoch() == state_.epoch()) return absl::OkStatus();
  return db::LeaseLostError("the lease went to " + lease.holder());
}

Status Pass::Act() {
  trims_.Run();
  for (const AttemptKey& key : forget_) {
    Step();
    options_.executor->Forget(key);
  }
  if (delete_) {
    // First what only this pass knows of; files are removed again if that fails: see the
    // controller.
    options_.executor->CleanVolume(state_.key(), state_.experiment().spec());
    return options_.executor->RemoveFiles(state_.key());
  }
  // What has ended has left its place: the trial that waits longest asks for it first, in its pause
  // or not, or a newer trial would take it each time.
  if (!forget_.empty()) {
    for (auto& [number, live] : state_.live()) live.start_again = absl::ZeroDuration();
  }
  for (const v1::Checkpoint& checkpoint : prune_) {
    Step();
    options_.executor->Prune(checkpoint);
  }
  for (auto& [number, live] : state_.live()) {
    if (!live.open) continue;
    Step();
    if (live.open->record.has_stop()) {
      RETURN_IF_ERROR(SendStop(live));
    } else {
      StartOpen(live);
    }
  }
  Step();
  return absl::OkStatus();
}

Status Pass::SendStop(ActiveTrial& live) {
  const v1::Attempt& attempt = live.open->record;
  const v1::StopRequest& stop = attempt.stop();
  const bool at_once = mode_.stop_now || (stop.has_deadline() && FromProto(stop.deadline()) <=
                                                                     FromProto(stop.requested()));
  if (live.stop_sent && (live.stop_now || !at_once)) return absl::OkStatus();
  const absl::Duration grace = at_once ? absl::ZeroDuration() : GraceOf(state_.experiment());
  RETURN_IF_ERROR(options_.executor->Stop(KeyOf(state_, attempt), stop.cause(), grace));
  live.stop_sent = true;
  live.stop_now = at_once;  // until then a second request may shorten it
  Requeue(kStopLook);
  return absl::OkStatus();
}

// A checkpoint may be large: it is not copied to a machine that is not there.
Status Pass::Start(const trial::AttemptRequest& request) {
  if (!request.resume.empty()) {
    const trial::PlacementQuote quote = options_.executor->QuotePlacement(
        request.key.trial.experiment, request.trial_spec, request.placement_request);
    if (!quote.waiting.empty()) return absl::ResourceExhaustedError(quote.waiting);
  }
  const Status status = options_.executor->Start(request);
  Step();
  return status;
}

void Pass::StartOpen(ActiveTrial& live) {
  if (live.started || live.open->record.state() != v1::ATTEMPT_CREATED) return;
  if (monotonic_ < live.start_again) return Requeue(live.start_again - monotonic_);
  auto request = RequestFor(state_, live, options_.working_dir);
  Status status = request.status();
  if (request.ok()) {
    auto resume = ResumeFrom(live);
    status = resume.status();
    if (resume.ok()) {
      request->resume = *std::move(resume);
      status = Start(*request);
    }
  }
  if (status.ok()) {
    live.started = true;
    // A caller waits for its trial; a program's start is not to be seen sooner.
    const bool asked = state_.experiment().spec().shirabe().ask_and_tell();
    return Requeue(asked ? absl::ZeroDuration() : kSlowStartThreshold);
  }
  if (absl::IsResourceExhausted(status) || absl::IsUnavailable(status)) {
    SetWaitReason(live, Message(status));
    const bool soon = absl::IsUnavailable(status) && !request->resume.empty();
    const absl::Duration pause = soon ? kVerifyRetryInterval : live.wait.Pause(monotonic_);
    live.start_again = monotonic_ + pause;
    return Requeue(pause);
  }
  // Something is in the way of this attempt alone; it is closed without having run.
  if (absl::IsDataLoss(status)) return RequestStop(live, v1::APP_ERROR, Message(status));
  // Every trial would fail in the same way, so the experiment does, and says why.
  state_.mutable_status().mutable_shirabe()->set_fatal(Message(status));
  Requeue(absl::ZeroDuration());
}

}  // namespace shirabe::experiment
