// Lists of records as tables, in kubectl's look. Each function makes the header and the cells of
// one kind of record; `wide` adds columns at the right. Pure but for the time given.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/client.h"
#include "client/records/attempt_spending.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::view {

struct RowStyle {
  absl::Time now;
  bool wide = false;
  bool with_namespace = false;  // a first column, for lists over all namespaces
};

using Cells = std::vector<std::string>;

Cells ExperimentHeader(const RowStyle& style);
Cells ExperimentRow(const v1::Experiment& experiment, const RowStyle& style);

// The objective is a column named after its metric, and each parameter is one.
Cells TrialHeader(const v1::Experiment& experiment, const RowStyle& style);
Cells TrialRow(const v1::Experiment& experiment, const v1::Trial& trial, const RowStyle& style);

Cells EventHeader();
Cells EventRow(const v1::Event& event, const RowStyle& style);

Cells ObservationHeader();
Cells ObservationRowCells(const db::StoredObservation& row, const RowStyle& style);

Cells CandidateHeader(const v1::Experiment& experiment);
Cells CandidateRow(const v1::Experiment& experiment, const v1::SuggestReply::Point& point);

// 18/50, or 18 where there is no limit.
std::string TrialsCell(const v1::Experiment& experiment);
// loss=0.2148; "" where there is none.
std::string BestCell(const v1::Experiment& experiment);
// Trials in a terminal phase.
int64_t FinishedTrials(const v1::Experiment& experiment);

// The ledger of a trial as tables: its attempts, where they ran and what they took, and the
// checkpoints that they left. Called by get and describe. Pure but for the time given.

// An attempt that is still open shows what it has taken so far.
Cells AttemptHeader(const RowStyle& style);
Cells AttemptRow(const v1::Attempt& attempt, const RowStyle& style);

// The attempt is its number: the list is of one trial.
Cells CheckpointHeader(const RowStyle& style);
Cells CheckpointRow(const v1::Checkpoint& checkpoint, const RowStyle& style);

using client::PlacementOf;

}  // namespace shirabe::view
