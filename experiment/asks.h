// What is asked for and told by programs themselves: reports on their way into the batch, and the
// callers of an ask-and-tell experiment who wait for a trial. Functions on the owner's state,
// called by a pass; what they change counts once it is committed.
#pragma once

#include "absl/time/time.h"
#include "db/store.h"
#include "experiment/inbox.h"
#include "experiment/state.h"

namespace shirabe::experiment {

// The report's points into the batch; its end, if it tells one, into `told` of the live trial.
// kInvalidArgument, with the field; kPermissionDenied if its attempt is not the current one;
// kAlreadyExists if the trial was told something else before.
StatusOr<Reported> TakeReport(State& state, const Report& report, db::Store& store, absl::Time now);

// An ASK intent: who asks waits in state.asks, unless he has an open trial already.
void TakeAsk(State& state, const v1::Intent& intent);
// A new trial is for whoever has asked first, if anybody has.
void GiveToCaller(State& state, Live& live);
// There will be no trial for those who still ask.
void DropAsks(State& state);

// A RETRY intent: a new trial with the point of an old one, to be started like any that waits.
Status TryAgain(State& state, int64_t number, db::Store& store, absl::Time now);

}  // namespace shirabe::experiment
