// The follow-up of an experiment as a step of a pass changes it: its record in the delta, and its
// open attempt, which is a part of that record. Used by the steps of pass_follow_up.h alone; made
// for one step and thrown away. What is not changed is not written.
#pragma once

#include <string>

#include "experiment/pass_steps.h"

namespace shirabe::experiment {

// Its record in the form of a trial's, as far as retry policy and templates ask for that.
v1::Trial FollowUpAsTrial(const ExperimentState& state);

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
