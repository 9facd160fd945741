// The doors through which experiments come and go, for clients of a store: no loop, no threads.
#pragma once

#include "base/clock.h"
#include "base/names.h"
#include "base/status.h"
#include "db/store.h"

namespace shirabe::experiment {

struct Submitted {
  bool created = false;  // false: it was there, and may go on with what is wanted now
  bool changed = false;  // its counts or goal differ from what was stored
};

// Stores a new experiment (uid, times and the condition Created are set), or, where one of that
// name exists, checks that it is the same search and sends a SCALE intent for changed counts.
// kAlreadyExists, with the field that differs, if it is another search. If `generation` is not 0,
// kAborted if the stored one's is another, or will be: a change that was sent is not made yet.
// Whoever calls it from several threads sees to it that they do so one after the other. Of the
// given status only shirabe.createdBy counts: who asks for it, which an event records as well.
StatusOr<Submitted> Submit(db::Store& store, Clock& clock, const v1::Experiment& experiment,
                           int64_t generation = 0);

// Adds an intent for whoever owns the experiment. kNotFound if there is no such experiment;
// kFailedPrecondition, with the fix, for what one that has ended cannot do: other counts where its
// spec.resumePolicy is Never, or to try a trial again, and for a trial beyond maxTrialCount;
// kInvalidArgument, with the field, for counts that no specification may have. intent.actor is who
// wants it.
Status Send(db::Store& store, Clock& clock, const ExperimentKey& key, v1::Intent intent);

// kFailedPrecondition, with the fix, once all trials of spec.maxTrialCount have been made.
Status CheckHasRoom(const v1::Experiment& experiment);

ExperimentKey KeyOf(const v1::Experiment& experiment);
// Succeeded or Failed is True.
bool IsEnded(const v1::Experiment& experiment);
// The newest condition that is True; Created where there is none.
v1::Condition CurrentCondition(const v1::Experiment& experiment);

}  // namespace shirabe::experiment
