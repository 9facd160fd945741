#include "client/store_backup.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file_io.h"
#include "base/names.h"
#include "base/process_id.h"
#include "base/timestamp.h"
#include "client/leftover_files.h"
#include "db/backup_file.h"
#include "db/backup_records.h"
#include "db/maintenance.h"
#include "experiment/conditions.h"
#include "trial/file_layout.h"
#include "trial/local/supervisor_records.h"

namespace shirabe::client {
namespace {

constexpr size_t kNamesShown = 5;

// Learns from each record what there is.
void Learn(const v1::BackupRecord& record, BackupInfo& info) {
  if (record.has_experiment()) {
    info.experiments.push_back({.key = experiment::KeyOf(record.experiment()),
                                .condition = experiment::CurrentCondition(record.experiment())});
  }
  if (info.experiments.empty() || record.has_schedule()) return;
  if (record.has_trial()) ++info.experiments.back().trials;
  info.experiments.back().observations += record.observations().value_size();
}

v1::BackupRecord HeaderOf(const db::Snapshot& snapshot, Clock* clock) {
  v1::BackupRecord record;
  v1::BackupHeader& header = *record.mutable_header();
  const std::string source = snapshot.source();
  header.set_program(SHIRABE_VERSION);
  header.set_store(source.substr(0, source.find(':')));
  header.set_source(source);
  header.set_host(ThisProcess().host);
  *header.mutable_time() = ToProto(clock->Now());
  header.set_revision(snapshot.revision());
  return record;
}

Status DumpTo(db::BackupWriter& writer, db::Snapshot& snapshot, BackupInfo& info) {
  v1::BackupRecord header;
  *header.mutable_header() = info.header;
  RETURN_IF_ERROR(writer.Add(header));
  RETURN_IF_ERROR(db::DumpRecords(&snapshot, [&](const v1::BackupRecord& record) {
    Learn(record, info);
    return writer.Add(record);
  }));
  RETURN_IF_ERROR(writer.Finish());
  info.counts = writer.counts();
  info.bytes = writer.bytes();
  return absl::OkStatus();
}

// "a, b, c and 4 more"
std::string Shown(const std::set<ExperimentKey>& keys) {
  std::vector<std::string> names;
  for (const ExperimentKey& key : keys) {
    if (names.size() < kNamesShown) names.push_back(ToString(key));
  }
  const size_t more = keys.size() - names.size();
  return absl::StrJoin(names, ", ") + (more > 0 ? absl::StrCat(" and ", more, " more") : "");
}

// A restore that would be refused in the end is refused here, with all names that are in the way.
Status CheckTarget(db::Store& store, const BackupInfo& info, RestoreMode mode) {
  if (mode == RestoreMode::kReplace) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto present, store.ListExperiments(""));
  std::set<ExperimentKey> there, both;
  for (const auto& one : present) there.insert(experiment::KeyOf(one.record));
  for (const StoredExperiment& one : info.experiments) {
    if (there.contains(one.key)) both.insert(one.key);
  }
  if (mode == RestoreMode::kMerge && !both.empty()) {
    return absl::AlreadyExistsError(
        absl::StrCat("the database and the backup both have ", Shown(both),
                     ": delete them first (shirabe delete), or name only others after the file"));
  }
  if (mode == RestoreMode::kMerge || there.empty()) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat(
      "the database has experiments already (", Shown(there), "), of which the backup has ",
      both.empty() ? "none" : Shown(both),
      ": restore into another with --db, add those that are missing with --merge, or replace "
      "everything with --replace"));
}

// Tells of each record whether it belongs to some of the names; all do of none. Schedules are of no
// name: they come with the whole of a backup.
class NameFilter {
 public:
  explicit NameFilter(std::set<ExperimentKey> only) : only_(std::move(only)) {}

  bool IsWanted(const v1::BackupRecord& record) {
    if (only_.empty()) return true;
    if (record.has_schedule()) return false;
    const v1::BackupName& name = record.name();
    if (record.has_name()) wanted_ = only_.contains({name.namespace_(), name.name()});
    return wanted_;
  }

 private:
  const std::set<ExperimentKey> only_;
  bool wanted_ = false;
};

db::BackupSource Filtered(db::BackupSource next, const std::set<ExperimentKey>& only) {
  return [next = std::move(next),
          filter = NameFilter(only)](v1::BackupRecord* record) mutable -> StatusOr<bool> {
    for (;;) {
      ASSIGN_OR_RETURN(const bool more, next(record));
      if (!more) return false;
      if (filter.IsWanted(*record)) return true;
    }
  };
}

Status KeepOnly(const std::set<ExperimentKey>& only, const std::string& path, BackupInfo& info) {
  std::set<ExperimentKey> missing = only;
  for (const StoredExperiment& one : info.experiments) missing.erase(one.key);
  if (!missing.empty()) {
    return absl::NotFoundError(absl::StrCat("backup ", path, " has no experiment ", Shown(missing),
                                            ": see shirabe restore --dry-run"));
  }
  info.of = static_cast<int64_t>(info.experiments.size());
  std::erase_if(info.experiments, [&](const auto& one) { return !only.contains(one.key); });
  return absl::OkStatus();
}

// Counts what is of these names alone. Also which attempts there are, where that is asked for.
StatusOr<BackupInfo> ReadAll(db::BackupReader& reader, const std::set<ExperimentKey>& only,
                             KnownAttempts* known = nullptr) {
  BackupInfo info{.header = reader.header(), .bytes = reader.bytes()};
  NameFilter filter(only);
  for (v1::BackupRecord record;;) {
    ASSIGN_OR_RETURN(const bool more, reader.Next(&record));
    if (!more) break;
    if (filter.IsWanted(record)) db::CountRecord(record, &info.counts);
    Learn(record, info);
    if (known == nullptr || info.experiments.empty()) continue;
    const ExperimentKey& key = info.experiments.back().key;
    KnownTrials& trials = (*known)[key];
    const int32_t follow_ups = record.experiment().status().shirabe().on_success().attempts();
    for (int32_t i = 1; i <= follow_ups; ++i) trials[kFollowUpNumber][i];
    if (record.has_trial()) trials[record.trial().number()];
    if (record.has_attempt()) {
      const v1::Attempt& attempt = record.attempt();
      trials[attempt.trial()][attempt.number()] =
          trial::AttemptId({{key, attempt.trial()}, attempt.number()}, attempt.token());
    }
  }
  return info;
}

db::LoadOptions::Mode ModeOf(RestoreMode mode) {
  switch (mode) {
    case RestoreMode::kIntoEmpty: return db::LoadOptions::Mode::kIntoEmpty;
    case RestoreMode::kMerge: return db::LoadOptions::Mode::kMerge;
    case RestoreMode::kReplace: break;
  }
  return db::LoadOptions::Mode::kReplace;
}

// Whether the holder of a lease may still write.
std::function<bool(const v1::Lease&)> HeldAt(absl::Time now) {
  return [now](const v1::Lease& lease) {
    const auto process = ParseProcessId(lease.holder());
    return FromProto(lease.expiry()) > now && (!process || MayBeAlive(*process));
  };
}

}  // namespace

StatusOr<BackupInfo> WriteBackup(LocalClient& client, const BackupTarget& target, Clock* clock) {
  const bool to_file = !target.path.empty();
  std::optional<NewFile> file;
  if (to_file) {
    ASSIGN_OR_RETURN(NewFile made, NewFile::Create(target.path, target.replace));
    file.emplace(std::move(made));
  }
  ASSIGN_OR_RETURN(const auto snapshot, db::MaintenanceOf(client.store()).TakeSnapshot());
  BackupInfo info{.header = HeaderOf(*snapshot, clock).header()};
  db::BackupWriter writer(to_file ? file->fd() : STDOUT_FILENO,
                          to_file ? target.path : "to standard output");
  RETURN_IF_ERROR(DumpTo(writer, *snapshot, info));
  if (to_file) RETURN_IF_ERROR(file->Publish());
  return info;
}

StatusOr<BackupInfo> InspectBackup(const std::string& path,
                                   const std::vector<ExperimentKey>& only) {
  ASSIGN_OR_RETURN(const auto reader, db::BackupReader::Open(path));
  const std::set<ExperimentKey> names(only.begin(), only.end());
  ASSIGN_OR_RETURN(BackupInfo info, ReadAll(*reader, names));
  if (!names.empty()) RETURN_IF_ERROR(KeepOnly(names, path, info));
  return info;
}

StatusOr<Restored> RestoreBackup(LocalClient& client, const RestoreOptions& options, Clock* clock) {
  ASSIGN_OR_RETURN(const auto reader, db::BackupReader::Open(options.path));
  KnownAttempts known;
  Restored restored;
  const std::set<ExperimentKey> only(options.only.begin(), options.only.end());
  ASSIGN_OR_RETURN(restored.info, ReadAll(*reader, only, &known));
  if (!only.empty()) {
    RETURN_IF_ERROR(KeepOnly(only, options.path, restored.info));
    std::erase_if(known, [&](const auto& one) { return !only.contains(one.first); });
  }
  RETURN_IF_ERROR(CheckTarget(client.store(), restored.info, options.mode));
  const trial::FileLayout layout(options.home);
  const std::string time = FormatTime(ToProto(clock->Now()));
  StaleFiles stale(&layout, absl::StrCat(layout.home(), "/replaced/", time));
  // What is read now is checked once more, to its end, before it counts. Then the files move, while
  // no process can write, and so none can start a trial where they lie.
  RETURN_IF_ERROR(reader->Rewind());
  db::BackupSource source = [&](v1::BackupRecord* record) -> StatusOr<bool> {
    ASSIGN_OR_RETURN(const bool more, reader->Next(record));
    if (!more && !options.home.empty()) RETURN_IF_ERROR(stale.SetAside(known));
    return more;
  };
  if (!only.empty()) source = Filtered(std::move(source), only);
  const auto loaded = db::MaintenanceOf(client.store())
                          .Load({.mode = ModeOf(options.mode), .is_held = HeldAt(clock->Now())},
                                db::PartsOf(std::move(source)));
  if (!loaded.ok()) {
    RETURN_IF_ERROR(Prefix(Message(loaded.status()), stale.PutBack()));
    return loaded.status();
  }
  if (stale.count() > 0) restored.set_aside = stale.folder();
  return restored;
}

std::string OpeningNotice(LocalClient& client) {
  return db::MaintenanceOf(client.store()).OpeningNotice();
}

}  // namespace shirabe::client
