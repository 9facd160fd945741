// The ledger of a trial as tables: its attempts, where they ran and what they took, and the
// checkpoints that they left. Called by get and describe. Pure but for the time given.
#pragma once

#include "client/rows.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::client {

// An attempt that is still open shows what it has taken so far.
Cells AttemptHeader(const RowStyle& style);
Cells AttemptRow(const v1::Attempt& attempt, const RowStyle& style);

// The attempt is its number: the list is of one trial.
Cells CheckpointHeader(const RowStyle& style);
Cells CheckpointRow(const v1::Checkpoint& checkpoint, const RowStyle& style);

// Its last placement; an empty one where it has none yet.
v1::Placement PlacementOf(const v1::Attempt& attempt);

}  // namespace shirabe::client
