// How experiments are created, changed and ended, for clients of a store: no loop, no threads.
#pragma once

#include "base/clock.h"
#include "base/names.h"
#include "base/status.h"
#include "db/store.h"

namespace shirabe::experiment {

struct Submitted {
  bool created = false;  // false: it was there, and may go on with what is wanted now
  bool changed = false;  // its counts, goal or ranges differ from what was stored
};

// What must hold when a submission is committed; nothing by default. Of any number of writers that
// ask for the same, in any number of processes, one succeeds.
struct Precondition {
  bool absent = false;     // there is none of its name: else kAlreadyExists
  bool present = false;    // there is one: else kNotFound
  int64_t generation = 0;  // it is there and has this metadata.generation, and no change of it
                           // waits for its owner: else kNotFound or kAborted; 0 = any
};

// Stores a new experiment (uid, times and the condition Created are set), or, where one of that
// name exists, checks that it is the same search and sends a SCALE intent for changed counts and
// ranges.
// kAlreadyExists, with the field that differs, if it is another search. Of the given status only
// shirabe.createdBy counts: who asks for it, which an event records as well.
StatusOr<Submitted> Submit(db::Store& store, Clock& clock, const v1::Experiment& experiment,
                           const Precondition& precondition = {});

// Adds an intent for the owner of the experiment. kNotFound if there is no such experiment;
// kAborted if it has a generation that is not the experiment's any more (see db/commit_rules.h);
// kFailedPrecondition, with the fix, for what one that has ended cannot do: other counts where its
// spec.resumePolicy is Never, or to try a trial again, and for a trial beyond maxTrialCount;
// kInvalidArgument, with the field, for counts, ranges, points, notes and tags that nothing may
// have. intent.actor is who wants it. A note on an experiment without an owner is written at once.
Status Send(db::Store& store, Clock& clock, const ExperimentKey& key, v1::Intent intent);

// kInvalidArgument for the name of one who asks for a trial that nothing is stored under.
Status CheckCaller(const std::string& caller);
// kFailedPrecondition where no one asks for trials, since the experiment runs them itself.
Status CheckAsked(const v1::Experiment& experiment);

// kResourceExhausted if the namespace has so many experiments already (0 = any number); one that is
// there may be changed, however many there are.
Status CheckMayCreate(db::Store& store, const ExperimentKey& key, int64_t most);

// Whether a user may have one trial more: kFailedPrecondition, with the fix, once all trials of
// spec.maxTrialCount have been made; kResourceExhausted while very many wait.
Status CheckHasRoom(const v1::Experiment& experiment);

// What stores a new experiment: made here for all who do, who look at what is there themselves. A
// pure function but for the clock and the uid, which is drawn.
//
// With uid, times and the condition Created. Of the given status only shirabe.createdBy and
// namespaceUid count; who asks for it an event records as well.
db::Batch CreationOf(Clock& clock, v1::Experiment experiment);

}  // namespace shirabe::experiment
