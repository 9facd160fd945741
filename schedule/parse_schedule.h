// From YAML text to a valid ScheduledExperiment, as experiment/spec/parse_spec.h does it for an
// Experiment, whose rules its template is held to; and what of it a start is decided by and made
// of. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "experiment/spec/parse_spec.h"
#include "proto/shirabe/v1/schedule.pb.h"
#include "schedule/start_decision.h"

namespace shirabe::schedule {

inline constexpr char kKind[] = "ScheduledExperiment";
// Of experiments that were started for a schedule: its name, and the time that they were for.
inline constexpr char kScheduleLabel[] = "shirabe.dev/schedule";
inline constexpr char kScheduledAt[] = "shirabe.dev/scheduled-at";
// Of a ScheduledExperiment in a cluster: start an experiment of it now. Taken off once it was.
inline constexpr char kRunNow[] = "shirabe.dev/run-now";

struct ParsedSchedule {
  v1::ScheduledExperiment schedule;           // with defaults; complete only without errors
  std::vector<experiment::Finding> findings;  // by line and column
};

// One entry for each document of this kind; others are passed over. Limits as for experiments.
std::vector<ParsedSchedule> ParseSchedules(std::string_view text);

// What a file has of both kinds, each document by its `kind`; what is neither is an experiment with
// a finding. At least one entry.
struct ParsedObjects {
  std::vector<experiment::ParsedExperiment> experiments;
  std::vector<ParsedSchedule> schedules;
};
ParsedObjects ParseObjects(std::string_view text);

// Namespace "default", and what the table in the .proto says.
void SetDefaults(v1::ScheduledExperiment& schedule);
// All rules, on a message however it was made, with its defaults.
std::vector<experiment::Finding> Validate(const v1::ScheduledExperiment& schedule);

ExperimentKey KeyOf(const v1::ScheduledExperiment& schedule);
// kInvalidArgument for words of cron, or a time zone, that mean nothing here.
StatusOr<StartRules> RulesOf(const v1::ScheduledExperimentSpec& spec);
// The experiment of this name for that time, with defaults; it learns from `last`, if that is not
// "".
v1::Experiment ExperimentOf(const v1::ScheduledExperiment& schedule, const std::string& name,
                            absl::Time scheduled, const std::string& last);

}  // namespace shirabe::schedule
