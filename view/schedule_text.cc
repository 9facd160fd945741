#include "view/schedule_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/printable.h"
#include "base/timestamp.h"
#include "client/records/enum_words.h"
#include "experiment/spec/message_tree.h"
#include "view/describe_experiment.h"
#include "view/text_table.h"

namespace shirabe::view {
namespace {

std::string TimeSince(const google::protobuf::Timestamp& time, absl::Time now) {
  if (time.seconds() == 0) return "";
  return FormatAge(std::max(now - FromProto(time), absl::ZeroDuration()));
}

std::string ZoneOf(const v1::ScheduledExperimentSpec& spec) {
  return spec.time_zone().empty() ? "Etc/UTC" : spec.time_zone();
}

std::string PolicyWord(v1::ConcurrencyPolicy policy) {
  return policy == v1::FORBID ? "Forbid" : policy == v1::REPLACE ? "Replace" : "Allow";
}

// 2026-11-27T02:30:00Z (in 5h)
std::string Until(const google::protobuf::Timestamp& time, absl::Time now) {
  if (time.seconds() == 0) return "";
  const absl::Duration left = FromProto(time) - now;
  return absl::StrCat(FormatTime(time),
                      left > absl::ZeroDuration() ? " (in " + FormatAge(left) + ")" : " (due)");
}

std::string EventLines(const v1::ScheduledExperimentStatus& status, absl::Time now) {
  Table table({"AGE", "TYPE", "REASON", "MESSAGE"});
  for (const v1::ScheduleEvent& event : status.events()) {
    const std::string by = event.actor().empty() ? "" : "; by " + event.actor();
    table.Add({TimeSince(event.time(), now), event.warning() ? "Warning" : "Normal", event.reason(),
               event.message() + by});
  }
  return status.events().empty() ? "" : table.Render(true);
}

}  // namespace

Cells ScheduleHeader(const RowStyle& style) {
  Cells cells;
  if (style.with_namespace) cells.push_back("NAMESPACE");
  cells.insert(cells.end(),
               {"NAME", "SCHEDULE", "TIME-ZONE", "SUSPEND", "ACTIVE", "LAST-SCHEDULE", "AGE"});
  if (style.wide) cells.insert(cells.end(), {"POLICY", "NEXT", "LAST-EXPERIMENT", "WAITING"});
  return cells;
}

Cells ScheduleRow(const v1::ScheduledExperiment& schedule, const RowStyle& style) {
  const v1::ScheduledExperimentSpec& spec = schedule.spec();
  const v1::ScheduledExperimentStatus& status = schedule.status();
  Cells cells;
  if (style.with_namespace) cells.push_back(schedule.metadata().namespace_());
  cells.insert(
      cells.end(),
      {schedule.metadata().name(), spec.schedule(), ZoneOf(spec), spec.suspend() ? "True" : "False",
       std::to_string(status.active_size()), TimeSince(status.last_schedule_time(), style.now),
       TimeSince(schedule.metadata().creation_timestamp(), style.now)});
  if (style.wide) {
    const bool next = status.has_next_schedule_time();
    cells.insert(cells.end(), {PolicyWord(spec.concurrency_policy()),
                               next ? FormatTime(status.next_schedule_time()) : "",
                               status.last_experiment(), status.waiting()});
  }
  return cells;
}

Json ScheduleJson(const v1::ScheduledExperiment& schedule) {
  return Json(experiment::ToTree(schedule));
}

std::string DescribeSchedule(const v1::ScheduledExperiment& schedule, absl::Time now) {
  const v1::ScheduledExperimentSpec& spec = schedule.spec();
  const v1::ScheduledExperimentStatus& status = schedule.status();
  Page page;
  page.Line("Name", schedule.metadata().name());
  page.Line("Namespace", schedule.metadata().namespace_());
  page.Line("Created", When(schedule.metadata().creation_timestamp(), now));
  if (!status.created_by().name().empty()) {
    page.Line("Created by", client::ActorWords(status.created_by()));
  }
  page.Line("Schedule", absl::StrCat(spec.schedule(), " (", ZoneOf(spec), ")"));
  page.Line("Suspended", spec.suspend() ? "yes: shirabe resume schedule/" +
                                              schedule.metadata().name() + " undoes it"
                                        : "no");
  page.Line("Concurrency", PolicyWord(spec.concurrency_policy()));
  if (spec.has_starting_deadline_seconds()) {
    page.Line("Deadline", absl::StrCat(spec.starting_deadline_seconds(), " s"));
  }
  page.Line("Keeps", absl::StrCat(spec.successful_experiments_history_limit(), " succeeded, ",
                                  spec.failed_experiments_history_limit(), " failed"));
  if (spec.warm_start_from_last()) page.Line("Learns from", "the last that has succeeded");
  page.Line("Next", Until(status.next_schedule_time(), now));
  page.Line("Last", When(status.last_schedule_time(), now));
  page.Line("Last success", When(status.last_successful_time(), now));
  page.Line("Waiting", status.waiting());
  page.Line("Started", absl::StrCat(status.starts(),
                                    status.missed_starts() > 0
                                        ? absl::StrCat(", ", status.missed_starts(), " missed")
                                        : ""));
  page.Line("Active", absl::StrJoin(status.active(), ", "));
  page.Line("Last experiment", status.last_experiment());
  page.Block("Events", EventLines(status, now));
  return page.Release();
}

}  // namespace shirabe::view
