// A schedule as a row of a table, as JSON, and as text that says all about it. Pure but for the
// time given.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "proto/shirabe/v1/schedule.pb.h"
#include "view/record_json.h"
#include "view/record_rows.h"

namespace shirabe::view {

Cells ScheduleHeader(const RowStyle& style);
Cells ScheduleRow(const v1::ScheduledExperiment& schedule, const RowStyle& style);
Json ScheduleJson(const v1::ScheduledExperiment& schedule);
std::string DescribeSchedule(const v1::ScheduledExperiment& schedule, absl::Time now);

}  // namespace shirabe::view
