// The steps of a pass (pass_steps.h) for the follow-up of an experiment (spec.shirabe.onSuccess):
// one job, which the executor runs like the trials, under a key of its own (kFollowUpNumber). It is
// no trial: no algorithm, no count and no list knows of it, and nothing that it prints is a result.
//
// Its record is status.shirabe.onSuccess, with its open attempt inside. It is made in the Commit in
// which the experiment succeeds, and its phase never leaves Succeeded, Failed or Skipped: so it is
// run once, also if the experiment goes on and succeeds again. What is started, retried and adopted
// after a crash is so as for a trial: the attempt is committed before it is started, under a name
// that makes starting it again harmless.
#pragma once

#include <optional>
#include <string>

#include "experiment/pass_steps.h"

namespace shirabe::experiment {

// Its open attempt, as the status of the experiment has it; nullopt if none is open.
std::optional<v1::Attempt> OpenAttemptOf(const v1::OnSuccessStatus& status);

// Its open attempt in the form of a trial's, with what this process did about it. Only what
// steps of open attempts read is set.
std::optional<ActiveTrial> OpenFollowUp(const ExperimentState& state);

// The experiment has ended so: the same delta says what that means for the follow-up.
void BeginFollowUp(const PassInput& in, const Plan::Ending& ending, Delta& delta);

// What the executor knows of its open attempt, which there must be; null = nothing.
Delta ObserveFollowUp(const PassInput& in, const trial::AttemptStatus* observed);

// Opens its next attempt, asks the open one to end, or gives it up.
Delta PlanFollowUp(const PassInput& in);

// What its open attempt runs, with the best trial's parameters and checkpoints.
StatusOr<trial::AttemptRequest> FollowUpRequest(const PassInput& in, const ActiveTrial& follow_up);

// After the commit: what was done about the open attempt. See NextAction for what is to be done.
Delta RecordFollowUpStop(const PassInput& in, bool at_once);
Delta RecordFollowUpStart(const PassInput& in, const StartResult& result);
// It is looked at again, however little is heard of it.
Delta RequeueFollowUp(const PassInput& in);

// Its record in the form of a trial's, as far as retry policy and templates ask for that.
v1::Trial FollowUpAsTrial(const ExperimentState& state);

// The follow-up of an experiment as a step of a pass changes it: its record in the delta, and its
// open attempt, which is a part of that record. Used by the steps of pass_follow_up.h alone; made
// for one step and thrown away. What is not changed is not written.
class FollowUpEdit {
 public:
  FollowUpEdit(const PassInput& in, Delta& delta) : in_(in), delta_(delta) {
    attempt_.ParseFromString(status().attempt());
  }

  // As it is changed so far.
  const v1::OnSuccessStatus& status() const {
    return delta_.experiment().status().shirabe().on_success();
  }
  v1::OnSuccessStatus& mutable_status() { return *delta_.mutable_shirabe().mutable_on_success(); }

  const PassInput& in() const { return in_; }
  Delta& delta() { return delta_; }
  const v1::Attempt& attempt() const { return attempt_; }
  AttemptMemory& memory() { return delta_.mutable_memory().follow_up; }

  // Its record is written as it is then.
  template <class Change>
  void ChangeAttempt(const Change& change) {
    change(attempt_);
    mutable_status().set_attempt(attempt_.SerializeAsString());
  }
  // It is over, for good.
  void End(v1::FollowUpPhase phase, const std::string& reason, const std::string& message);
  void Say(bool warning, const std::string& reason, const std::string& message) {
    delta_.AddEvent(warning, reason, message);
  }
  // Written only when it changes, and ever less often.
  void SetWaiting(const std::string& why) {
    if (status().waiting() == why || !memory().wait.MayRecordReason(in_.monotonic)) return;
    mutable_status().set_waiting(why);
  }

 private:
  const PassInput& in_;
  Delta& delta_;
  v1::Attempt attempt_;
};

}  // namespace shirabe::experiment
