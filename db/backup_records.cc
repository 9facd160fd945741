#include "db/backup_records.h"

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/names.h"

namespace shirabe::db {
namespace {

// Records of a part: enough that the work of a commit is shared by many.
constexpr int kPartRecords = 5000;
constexpr int kPartBytes = 8 << 20;

bool AnySet(const google::protobuf::RepeatedField<bool>& flags) {
  for (const bool flag : flags) {
    if (flag) return true;
  }
  return false;
}

// Gathers rows of one attempt into columns.
class RowColumns {
 public:
  explicit RowColumns(const BackupSink& sink) : sink_(sink) {}

  Status Add(const StoredObservation& row) {
    v1::BackupObservations& columns = *record_.mutable_observations();
    if (columns.value_size() >= kPartRecords || columns.trial() != row.trial ||
        columns.attempt() != row.attempt) {
      RETURN_IF_ERROR(Flush());
    }
    v1::BackupObservations& to = *record_.mutable_observations();
    to.set_trial(row.trial);
    to.set_attempt(row.attempt);
    const auto [metric, fresh] = metrics_.try_emplace(row.metric, to.metrics_size());
    if (fresh) to.add_metrics(row.metric);
    to.add_metric(metric->second);
    const int64_t time = absl::ToUnixNanos(row.time);
    to.add_step(static_cast<int64_t>(static_cast<uint64_t>(row.step) - step_));
    to.add_time(static_cast<int64_t>(static_cast<uint64_t>(time) - time_));
    step_ = static_cast<uint64_t>(row.step);
    time_ = static_cast<uint64_t>(time);
    to.add_value(row.value);
    to.add_implicit(row.implicit_step);
    to.add_superseded(row.superseded);
    return absl::OkStatus();
  }

  Status Flush() {
    v1::BackupObservations& columns = *record_.mutable_observations();
    if (columns.value_size() == 0) return absl::OkStatus();
    if (!AnySet(columns.implicit())) columns.clear_implicit();
    if (!AnySet(columns.superseded())) columns.clear_superseded();
    RETURN_IF_ERROR(sink_(record_));
    record_.Clear();
    metrics_.clear();
    step_ = time_ = 0;
    return absl::OkStatus();
  }

 private:
  const BackupSink& sink_;
  v1::BackupRecord record_;
  std::map<std::string, int> metrics_;
  uint64_t step_ = 0, time_ = 0;  // of the row before; differences may wrap, and wrap back
};

// The rows of one experiment on their way to the sink.
class ExperimentDump {
 public:
  ExperimentDump(Snapshot* snapshot, ExperimentKey key, const BackupSink& sink)
      : snapshot_(snapshot), key_(std::move(key)), sink_(sink) {}

  Status Run() {
    using Record = v1::BackupRecord;
    RETURN_IF_ERROR(List(&Snapshot::Trials, &Record::mutable_trial));
    RETURN_IF_ERROR(List(&Snapshot::Attempts, &Record::mutable_attempt));
    RETURN_IF_ERROR(List(&Snapshot::Checkpoints, &Record::mutable_checkpoint));
    RETURN_IF_ERROR(Observations());
    RETURN_IF_ERROR(List(&Snapshot::Events, &Record::mutable_event));
    return List(&Snapshot::Intents, &Record::mutable_intent);
  }

 private:
  template <class Record>
  using Pages = StatusOr<std::vector<Record>> (Snapshot::*)(const ExperimentKey&, SnapshotCursor*);

  template <class Record>
  Status List(Pages<Record> pages, Record* (v1::BackupRecord::*field)()) {
    SnapshotCursor cursor{};
    v1::BackupRecord wrapped;
    for (;;) {
      ASSIGN_OR_RETURN(std::vector<Record> page, (snapshot_->*pages)(key_, &cursor));
      if (page.empty()) return absl::OkStatus();
      for (Record& record : page) {
        *(wrapped.*field)() = std::move(record);
        RETURN_IF_ERROR(sink_(wrapped));
      }
    }
  }

  Status Observations() {
    RowColumns columns(sink_);
    SnapshotCursor cursor{};
    for (;;) {
      ASSIGN_OR_RETURN(const auto page, snapshot_->Observations(key_, &cursor));
      if (page.empty()) return columns.Flush();
      for (const StoredObservation& row : page) RETURN_IF_ERROR(columns.Add(row));
    }
  }

  Snapshot* const snapshot_;
  const ExperimentKey key_;
  const BackupSink& sink_;
};

// ---- back

Status OutOfOrder(const std::string& what) {
  return absl::InvalidArgumentError("the backup has " + what +
                                    ": it was not written by \"shirabe backup\"");
}

Status Unpack(const v1::BackupObservations& columns, Batch* batch) {
  const int rows = columns.value_size();
  const auto flags = [&](int size) { return size == 0 || size == rows; };
  if (columns.metric_size() != rows || columns.step_size() != rows || columns.time_size() != rows ||
      !flags(columns.implicit_size()) || !flags(columns.superseded_size())) {
    return OutOfOrder("observations whose columns differ in length");
  }
  uint64_t step = 0, time = 0;
  for (int i = 0; i < rows; ++i) {
    if (columns.metric(i) >= static_cast<uint32_t>(columns.metrics_size())) {
      return OutOfOrder("an observation without a metric");
    }
    step += static_cast<uint64_t>(columns.step(i));
    time += static_cast<uint64_t>(columns.time(i));
    batch->observations.push_back(
        {.trial = columns.trial(),
         .attempt = columns.attempt(),
         .metric = columns.metrics(static_cast<int>(columns.metric(i))),
         .step = static_cast<int64_t>(step),
         .value = columns.value(i),
         .time = absl::FromUnixNanos(static_cast<int64_t>(time)),
         .implicit_step = columns.implicit_size() > 0 && columns.implicit(i),
         .superseded = columns.superseded_size() > 0 && columns.superseded(i)});
  }
  return absl::OkStatus();
}

// Puts a record into a batch. Its ids and revision are the store's to give.
Status AddTo(Batch* batch, v1::BackupRecord* record) {
  using Record = v1::BackupRecord;
  switch (record->record_case()) {
    case Record::kExperiment:
      batch->put = {std::move(*record->mutable_experiment()), 0};
      return absl::OkStatus();
    case Record::kTrial:
      batch->trials.push_back({std::move(*record->mutable_trial()), 0});
      return absl::OkStatus();
    case Record::kAttempt:
      batch->attempts.push_back({std::move(*record->mutable_attempt()), 0});
      return absl::OkStatus();
    case Record::kCheckpoint:
      batch->checkpoints.push_back({std::move(*record->mutable_checkpoint()), 0});
      return absl::OkStatus();
    case Record::kObservations: return Unpack(record->observations(), batch);
    case Record::kEvent:
      batch->events.push_back(std::move(*record->mutable_event()));
      return absl::OkStatus();
    case Record::kIntent:
      batch->intents.push_back(std::move(*record->mutable_intent()));
      // Its condition was met when it was accepted.
      batch->intents.back().clear_generation();
      return absl::OkStatus();
    default: return OutOfOrder("a record that belongs to no experiment");
  }
}

class PartReader {
 public:
  explicit PartReader(BackupSource next) : next_(std::move(next)) {}

  StatusOr<bool> Next(LoadPart* part) {
    if (!pending_) {
      ASSIGN_OR_RETURN(const bool more, Advance());
      if (!more) return false;
    }
    *part = {};
    if (record_.has_schedule()) return TakeSchedule(part);
    if (record_.has_name()) RETURN_IF_ERROR(Begin(part));
    part->experiment = key_;
    return Fill(part);
  }

 private:
  // False at the end, past which nothing is asked for.
  StatusOr<bool> Advance() {
    record_.Clear();
    pending_ = false;
    if (ended_) return false;
    ASSIGN_OR_RETURN(pending_, next_(&record_));
    ended_ = !pending_;
    return pending_;
  }

  StatusOr<bool> TakeSchedule(LoadPart* part) {
    part->schedule = std::move(*record_.mutable_schedule());
    const v1::ObjectMeta& metadata = part->schedule->metadata();
    RETURN_IF_ERROR(Prefix("the backup has a schedule that cannot be",
                           ValidateKey(ExperimentKey{metadata.namespace_(), metadata.name()})));
    RETURN_IF_ERROR(Advance().status());
    return true;
  }

  Status Begin(LoadPart* part) {
    key_ = {record_.name().namespace_(), record_.name().name()};
    RETURN_IF_ERROR(Prefix("the backup has a name that cannot be", ValidateKey(key_)));
    part->epoch = record_.name().epoch();
    begun_ = false;
    return Advance().status();
  }

  StatusOr<bool> Fill(LoadPart* part) {
    size_t bytes = 0;
    for (int records = 0; pending_ && !record_.has_name() && !record_.has_schedule(); ++records) {
      if (records >= kPartRecords || bytes >= kPartBytes) break;
      if (key_.name.empty()) return OutOfOrder("a record before the first name");
      if (record_.has_experiment() == begun_) {
        return OutOfOrder(absl::StrCat("records of ", ToString(key_),
                                       begun_ ? " twice" : " without their experiment"));
      }
      begun_ = true;
      records += record_.observations().value_size();
      bytes += record_.ByteSizeLong();
      if (!part->batch) part->batch = Batch{.experiment = key_};
      RETURN_IF_ERROR(AddTo(&*part->batch, &record_));
      RETURN_IF_ERROR(Advance().status());
    }
    return true;
  }

  const BackupSource next_;
  v1::BackupRecord record_;
  bool pending_ = false;  // record_ is in no part yet
  bool ended_ = false;
  ExperimentKey key_;
  bool begun_ = false;  // its experiment has come
};

}  // namespace

Status DumpRecords(Snapshot* snapshot, const BackupSink& sink) {
  ASSIGN_OR_RETURN(const std::vector<v1::Lease> names, snapshot->Names());
  for (const v1::Lease& lease : names) {
    const ExperimentKey key = ExperimentKeyOf(lease);
    v1::BackupRecord record;
    record.mutable_name()->set_namespace_(key.ns);
    record.mutable_name()->set_name(key.name);
    record.mutable_name()->set_epoch(lease.epoch());
    RETURN_IF_ERROR(sink(record));
    auto experiment = snapshot->GetExperiment(key);
    if (absl::IsNotFound(experiment.status())) continue;
    RETURN_IF_ERROR(experiment.status());
    *record.mutable_experiment() = *std::move(experiment);
    RETURN_IF_ERROR(sink(record));
    RETURN_IF_ERROR(ExperimentDump(snapshot, key, sink).Run());
  }
  ASSIGN_OR_RETURN(std::vector<v1::ScheduledExperiment> schedules, snapshot->Schedules());
  for (v1::ScheduledExperiment& schedule : schedules) {
    v1::BackupRecord record;
    *record.mutable_schedule() = std::move(schedule);
    RETURN_IF_ERROR(sink(record));
  }
  return absl::OkStatus();
}

LoadSource PartsOf(BackupSource next) {
  // Shared, because a std::function must be copied to be passed on.
  auto reader = std::make_shared<PartReader>(std::move(next));
  return [reader](LoadPart* part) { return reader->Next(part); };
}

}  // namespace shirabe::db
