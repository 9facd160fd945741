// An experiment and its trials as TensorBoard's hparams plugin has them: the experiment with its
// parameters and metrics, and of each trial a session, with the values that were tried, and how it
// ended. Pure functions.
#pragma once

#include "base/names.h"
#include "db/store.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"
#include "proto/tensorboard/v2/event_file.pb.h"

namespace shirabe::tracking {

tensorboard::Event ExperimentEvent(const v1::Experiment& experiment);
// Of a trial that has started.
tensorboard::Event SessionStartEvent(const TrialKey& key, const v1::Trial& trial);
// Of one that has ended.
tensorboard::Event SessionEndEvent(const v1::Trial& trial);

// A value of a metric. TensorBoard keeps 32 bits of it.
tensorboard::Event ScalarEvent(const db::StoredObservation& row);
// What was written before it does not count.
tensorboard::Event AgainFromTheStartEvent();

}  // namespace shirabe::tracking
