// Which observations of a trial may go once it has ended: what thins rows out that no one will look
// at one by one. Called by client/store_prune. A pure function.
//
// Of each metric of the trial, and apart of its rows that no longer count, at most so many stay:
// the first and the last by step, the least and the greatest value, and others evenly spaced
// between. So a trial's objective and its observation (min, max, latest), which the record has,
// follow from the rows that stay, and curves keep their shape. Nothing that decides goes: the best
// trial and suggestions come from records of trials; an early-stopping rule compares curves of the
// objective, so where an experiment has one these rows stay, all that count.
#pragma once

#include <cstdint>
#include <vector>

#include "db/maintenance.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::client {

// First, last, least and greatest.
inline constexpr int64_t kMinKeptObservations = 4;

// `rows` are all of one trial, superseded ones included; `keep` is at least kMinKeptObservations.
std::vector<db::ObservationKey> RowsToRemove(const v1::ExperimentSpec& spec,
                                             const std::vector<db::StoredObservation>& rows,
                                             int64_t keep);

}  // namespace shirabe::client
