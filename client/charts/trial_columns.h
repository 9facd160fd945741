// Trials and attempts as rows of a ColumnTable: which columns there are, and what a record's values
// are. The names are those of --filter and --sort-by where these have one. Pure functions.
#pragma once

#include <vector>

#include "client/charts/column_table.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::client {

// Then `metric.NAME` for each metric, by the experiment's strategy, and `param.NAME` for each
// parameter. Of the experiment, the objective and the parameters are read.
std::vector<ColumnInfo> TrialColumnInfos(const v1::Experiment& experiment);
void PutTrial(const v1::Experiment& experiment, const v1::Trial& trial, int64_t revision,
              ColumnTable& table);

std::vector<ColumnInfo> AttemptColumnInfos();
void PutAttempt(const v1::Attempt& attempt, int64_t revision, ColumnTable& table);

}  // namespace shirabe::client
