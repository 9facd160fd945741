#include "schedule/schedule_records.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/timestamp.h"
#include "experiment/spec/parse_spec.h"
#include "experiment/submission.h"
#include "schedule/parse_schedule.h"
#include "schedule/schedule_pass.h"

namespace shirabe::schedule {
namespace {

// Passes and other writers may come between reading and writing; no caller is held up for ever.
constexpr int kTries = 20;
constexpr size_t kMaxScheduleBytes = 1 << 20;

Status CheckValid(const v1::ScheduledExperiment& schedule) {
  if (schedule.ByteSizeLong() > kMaxScheduleBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the schedule has ", schedule.ByteSizeLong(),
                                                   " bytes, and at most ", kMaxScheduleBytes,
                                                   " are taken: shorten it"));
  }
  return experiment::JoinErrors(Validate(schedule));
}

bool SameWanted(const v1::ScheduledExperiment& a, const v1::ScheduledExperiment& b) {
  const auto bytes = [](const v1::ScheduledExperiment& schedule) {
    v1::ScheduledExperiment wanted;
    *wanted.mutable_spec() = schedule.spec();
    *wanted.mutable_metadata()->mutable_labels() = schedule.metadata().labels();
    *wanted.mutable_metadata()->mutable_annotations() = schedule.metadata().annotations();
    return experiment::ToJson(wanted);
  };
  return bytes(a) == bytes(b);
}

const Status& StatusOf(const Status& status) { return status; }
template <class T>
const Status& StatusOf(const StatusOr<T>& result) {
  return result.status();
}

// What reads and then writes, again while other writes come in between (kAborted).
template <class Attempt>
auto Retried(const ExperimentKey& key, const Attempt& attempt) -> decltype(attempt()) {
  for (int i = 0; i < kTries; ++i) {
    auto done = attempt();
    if (!absl::IsAborted(StatusOf(done))) return done;
  }
  return absl::AbortedError(absl::StrCat("schedule ", ToString(key), " changes: try again"));
}

v1::Actor At(v1::Actor actor, absl::Time now) {
  *actor.mutable_time() = ToProto(now);
  return actor;
}

}  // namespace

bool ScheduleRecords::IsGone(const v1::ScheduledExperiment& schedule) const {
  return options_.namespace_gone && options_.namespace_gone(schedule.metadata().namespace_(),
                                                            schedule.status().namespace_uid());
}

StatusOr<ScheduleRecords::Row> ScheduleRecords::Read(const ExperimentKey& key) const {
  ASSIGN_OR_RETURN(Row row, db::SchedulesOf(*options_.store).GetSchedule(key));
  if (!IsGone(row.record)) return row;
  return db::NoSchedule(key);
}

StatusOr<v1::ScheduledExperiment> ScheduleRecords::Get(const ExperimentKey& key) const {
  ASSIGN_OR_RETURN(Row row, Read(key));
  return std::move(row.record);
}

StatusOr<std::vector<v1::ScheduledExperiment>> ScheduleRecords::List(const std::string& ns) const {
  ASSIGN_OR_RETURN(auto rows, db::SchedulesOf(*options_.store).ListSchedules(ns));
  std::vector<v1::ScheduledExperiment> schedules;
  for (Row& row : rows) {
    if (!IsGone(row.record)) schedules.push_back(std::move(row.record));
  }
  return schedules;
}

Status ScheduleRecords::CheckMayAdd(const std::string& ns) const {
  ASSIGN_OR_RETURN(const auto rows, db::SchedulesOf(*options_.store).ListSchedules(ns));
  if (rows.size() < kMaxSchedules) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("namespace ", ns, " has ", rows.size(),
                   " schedules, the most that one may have: delete some of them first"));
}

v1::ScheduledExperiment ScheduleRecords::Changed(v1::ScheduledExperiment schedule,
                                                 const Wanted& wanted) const {
  *schedule.mutable_spec() = wanted.schedule.spec();
  *schedule.mutable_metadata()->mutable_labels() = wanted.schedule.metadata().labels();
  *schedule.mutable_metadata()->mutable_annotations() = wanted.schedule.metadata().annotations();
  schedule.mutable_metadata()->set_generation(schedule.metadata().generation() + 1);
  *schedule.mutable_status()->mutable_changed_by() = wanted.actor;
  schedule.mutable_status()->clear_waiting();
  AddEvent(schedule, {.time = options_.clock->Now(),
                      .reason = "ScheduleChanged",
                      .message = "the schedule was changed",
                      .actor = wanted.actor.name()});
  return schedule;
}

v1::ScheduledExperiment ScheduleRecords::Created(const Wanted& wanted) const {
  v1::ScheduledExperiment made = wanted.schedule;
  v1::ObjectMeta& metadata = *made.mutable_metadata();
  metadata.set_generation(1);
  metadata.set_uid(absl::BytesToHexString(RandomBytes(16)));
  *metadata.mutable_creation_timestamp() = ToProto(options_.clock->Now());
  if (options_.namespace_uid) {
    made.mutable_status()->set_namespace_uid(options_.namespace_uid(metadata.namespace_()));
  }
  if (!wanted.actor.name().empty()) *made.mutable_status()->mutable_created_by() = wanted.actor;
  AddEvent(made, {.time = options_.clock->Now(),
                  .reason = "ScheduleCreated",
                  .message = "the schedule was created",
                  .actor = wanted.actor.name()});
  return made;
}

// kAborted if another write came between.
StatusOr<v1::SubmitReply> ScheduleRecords::TrySubmit(const Wanted& wanted, bool absent) const {
  const ExperimentKey key = KeyOf(wanted.schedule);
  db::Schedules& schedules = db::SchedulesOf(*options_.store);
  const auto stored = schedules.GetSchedule(key);
  v1::SubmitReply reply;
  if (absl::IsNotFound(stored.status())) {
    RETURN_IF_ERROR(CheckMayAdd(key.ns));
    RETURN_IF_ERROR(schedules.WriteSchedule({.key = key, .put = Created(wanted)}));
    reply.set_created(true);
    return reply;
  }
  RETURN_IF_ERROR(stored.status());
  if (IsGone(stored->record)) {
    RETURN_IF_ERROR(schedules.WriteSchedule({.key = key, .expected = stored->revision}));
    return absl::AbortedError("it was of another namespace of this name");
  }
  if (absent) {
    return absl::AlreadyExistsError(absl::StrCat("schedule ", ToString(key),
                                                 " is there already: apply changes it, or give ",
                                                 "another metadata.name"));
  }
  if (SameWanted(stored->record, wanted.schedule)) return reply;
  RETURN_IF_ERROR(schedules.WriteSchedule(
      {.key = key, .expected = stored->revision, .put = Changed(stored->record, wanted)}));
  reply.set_changed(true);
  return reply;
}

StatusOr<v1::SubmitReply> ScheduleRecords::Submit(const v1::SubmitScheduleRequest& request) const {
  Wanted wanted{.schedule = request.schedule()};
  wanted.actor = At(request.schedule().status().created_by(), options_.clock->Now());
  SetDefaults(wanted.schedule);
  RETURN_IF_ERROR(CheckValid(wanted.schedule));
  wanted.schedule.clear_status();
  return Retried(KeyOf(wanted.schedule), [&] { return TrySubmit(wanted, request.absent()); });
}

StatusOr<std::string> ScheduleRecords::StartNow(const ExperimentKey& key,
                                                const v1::Actor& actor) const {
  return Retried(key, [&]() -> StatusOr<std::string> {
    ASSIGN_OR_RETURN(const Row row, Read(key));
    auto started = StartByHand(options_, row, actor);
    if (!absl::IsAborted(started.status())) return started;
    const ExperimentKey made{key.ns, ExperimentNameNow(key.name, options_.clock->Now())};
    if (!options_.store->GetExperiment(made).ok()) return started;
    return absl::AlreadyExistsError(absl::StrCat("experiment ", ToString(made),
                                                 " was started in this very second: it is there, ",
                                                 "or wait a moment for another"));
  });
}

StatusOr<v1::SteerScheduleReply> ScheduleRecords::Steer(
    const v1::SteerScheduleRequest& request) const {
  using Request = v1::SteerScheduleRequest;
  const ExperimentKey key{request.schedule().namespace_(), request.schedule().name()};
  v1::SteerScheduleReply reply;
  if (request.action() == Request::START) {
    ASSIGN_OR_RETURN(const std::string name, StartNow(key, request.actor()));
    reply.set_changed(true);
    reply.set_experiment(name);
    return reply;
  }
  if (request.action() != Request::SUSPEND && request.action() != Request::RESUME) {
    return absl::InvalidArgumentError(absl::StrCat("action: ", static_cast<int>(request.action()),
                                                   " asks for nothing: SUSPEND, RESUME or ",
                                                   "START"));
  }
  const bool suspend = request.action() == Request::SUSPEND;
  return Retried(key, [&] { return TrySuspend(key, suspend, request.actor()); });
}

StatusOr<v1::SteerScheduleReply> ScheduleRecords::TrySuspend(const ExperimentKey& key, bool suspend,
                                                             const v1::Actor& actor) const {
  ASSIGN_OR_RETURN(Row row, Read(key));
  v1::ScheduledExperiment& schedule = row.record;
  v1::SteerScheduleReply reply;
  if (schedule.spec().suspend() == suspend) return reply;
  schedule.mutable_spec()->set_suspend(suspend);
  schedule.mutable_metadata()->set_generation(schedule.metadata().generation() + 1);
  const absl::Time now = options_.clock->Now();
  *schedule.mutable_status()->mutable_changed_by() = At(actor, now);
  AddEvent(schedule, {.time = now,
                      .reason = suspend ? "ScheduleSuspended" : "ScheduleResumed",
                      .message = suspend ? "no more experiments are started for now"
                                         : "experiments are started again at their times",
                      .actor = actor.name()});
  RETURN_IF_ERROR(
      db::SchedulesOf(*options_.store)
          .WriteSchedule({.key = key, .expected = row.revision, .put = std::move(schedule)}));
  reply.set_changed(true);
  return reply;
}

Status ScheduleRecords::Delete(const v1::DeleteScheduleRequest& request) const {
  const ExperimentKey key{request.schedule().namespace_(), request.schedule().name()};
  RETURN_IF_ERROR(Retried(key, [&]() -> Status {
    ASSIGN_OR_RETURN(const Row row, Read(key));
    return db::SchedulesOf(*options_.store).WriteSchedule({.key = key, .expected = row.revision});
  }));
  Log(LogLevel::kInfo, "a schedule was deleted",
      {{"schedule", ToString(key)}, {"by", request.actor().name()}});
  return absl::OkStatus();
}

StatusOr<absl::Time> ScheduleRecords::Reconcile(const ExperimentKey& key) const {
  auto row = db::SchedulesOf(*options_.store).GetSchedule(key);
  if (absl::IsNotFound(row.status())) return absl::InfiniteFuture();
  RETURN_IF_ERROR(row.status());
  if (!IsGone(row->record)) return RunPass(options_, *row);
  Log(LogLevel::kInfo, "the namespace of a schedule is gone: deleting the schedule",
      {{"schedule", ToString(key)}});
  RETURN_IF_ERROR(
      db::SchedulesOf(*options_.store).WriteSchedule({.key = key, .expected = row->revision}));
  return absl::InfiniteFuture();
}

}  // namespace shirabe::schedule
