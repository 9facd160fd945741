#include "db/schedules.h"

#include "absl/strings/str_cat.h"
#include "db/commit_rules.h"

namespace shirabe::db {

Status ValidateScheduleWrite(const ScheduleWrite& write) {
  const std::string what = absl::StrCat("schedule ", ToString(write.key));
  if (write.put) {
    const v1::ObjectMeta& metadata = write.put->metadata();
    if (ExperimentKey{metadata.namespace_(), metadata.name()} != write.key) {
      return absl::InvalidArgumentError(absl::StrCat(what, " cannot have the record of schedule ",
                                                     metadata.namespace_(), "/", metadata.name(),
                                                     ": write it under its own name"));
    }
    RETURN_IF_ERROR(CheckUtf8(*write.put, what));
  }
  if (!write.start) return absl::OkStatus();
  if (!write.put || !Creates(*write.start)) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": a start must create an experiment, and be noted in the schedule"));
  }
  return ValidateBatch(*write.start);
}

Status CheckScheduleRevision(const ScheduleWrite& write, int64_t current) {
  if (current == write.expected) return absl::OkStatus();
  return Conflict(absl::StrCat("schedule ", ToString(write.key)), write.expected, current);
}

Status NoSchedule(const ExperimentKey& key) {
  return absl::NotFoundError(
      absl::StrCat("no schedule \"", key.name, "\" in namespace \"", key.ns, "\""));
}

}  // namespace shirabe::db
