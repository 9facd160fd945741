#include "client/leftover_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "base/log.h"
#include "base/open_beneath.h"
#include "base/sorting.h"
#include "base/text/number.h"
#include "experiment/conditions.h"
#include "trial/local/supervisor_records.h"
#include "trial/pod/file_mirror.h"

namespace shirabe::client {
namespace {

constexpr absl::Duration kFilePollInterval = absl::Milliseconds(50);

}  // namespace

Status LeftoverFiles::Check(const ExperimentKey& key) const {
  if (!absl::IsNotFound(store_->GetExperiment(key).status())) return absl::OkStatus();
  const std::string folder = layout_->ExperimentDir(key);
  if (access(folder.c_str(), F_OK) != 0) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat(folder, " has the files of an experiment \"", key.name,
                   "\" that is not in this database: if it was deleted just now, try again when "
                   "they are gone; else remove that folder, or choose another name, database or "
                   "SHIRABE_HOME"));
}

Status LeftoverFiles::AwaitRemoved(const ExperimentKey& key, absl::Duration deadline,
                                   const Wait& wait) const {
  for (;;) {
    Status status = Check(key);
    if (!absl::IsAlreadyExists(status) || clock_->Monotonic() >= deadline) return status;
    if (!wait(kFilePollInterval)) return absl::CancelledError("interrupted; the deletion goes on");
  }
}

namespace {

namespace fs = std::filesystem;

// Not worth the line that would stand in its place.
constexpr int64_t kMinLogBytes = 16 << 10;

struct OldLog {
  int64_t written = 0;  // seconds, by the file system
  AttemptKey key;
  int64_t bytes = 0;  // on the disk

  bool operator<(const OldLog& other) const {
    return std::tie(written, key) < std::tie(other.written, other.key);
  }
};

// What an attempt's program printed and reported; never what it saved.
std::vector<std::string> FilesOf(const trial::AttemptPaths& paths) {
  return {paths.log, paths.metrics_file, paths.hypertune_file, paths.scrapes_file,
          trial::FileMirror::RootOf(paths)};
}

// Adds what a file, or all below a folder, takes of the disk.
void Measure(const std::string& path, OldLog& log) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return;
  if (S_ISREG(info.st_mode)) {
    log.written = std::max(log.written, static_cast<int64_t>(info.st_mtim.tv_sec));
    log.bytes += static_cast<int64_t>(info.st_blocks) * 512;
  }
  if (!S_ISDIR(info.st_mode)) return;
  std::error_code error;
  for (fs::directory_iterator at(path, error); !error && at != fs::end(at); at.increment(error)) {
    Measure(at->path().string(), log);
  }
}

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error); !error && at != fs::end(at); at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  return names;
}

// Every attempt of the experiment that has files worth the trouble.
std::vector<OldLog> FindLogs(const trial::FileLayout& layout, const ExperimentKey& experiment) {
  std::vector<OldLog> logs;
  for (const std::string& trial_name : NamesIn(layout.ExperimentDir(experiment))) {
    const auto trial = ParseTrialName(trial_name, experiment.ns);
    if (!trial || trial->experiment != experiment) continue;
    for (const std::string& name : NamesIn(layout.TrialDir(*trial))) {
      const auto attempt = ParseAttemptName(name, experiment.ns);
      if (!attempt || attempt->trial != *trial) continue;
      OldLog log{.key = *attempt};
      for (const std::string& path : FilesOf(layout.Paths(*attempt))) Measure(path, log);
      if (log.bytes > kMinLogBytes) logs.push_back(std::move(log));
    }
  }
  return logs;
}

// Those whose end is stored. In this order: an attempt is in the store before it has files, so one
// that is not open now has ended.
StatusOr<std::vector<OldLog>> OldLogsOf(Client& client, const trial::FileLayout& layout,
                                        const v1::Experiment& record) {
  const ExperimentKey experiment = experiment::KeyOf(record);
  std::vector<OldLog> logs = FindLogs(layout, experiment);
  if (logs.empty()) return logs;
  ASSIGN_OR_RETURN(const auto open,
                   client.ListAttempts({.experiment = experiment, .open_only = true}));
  std::set<AttemptKey> busy;
  for (const v1::Attempt& attempt : open) {
    busy.insert({{experiment, attempt.trial()}, attempt.number()});
  }
  const bool follows = experiment::HasPendingFollowUp(record);
  std::erase_if(logs, [&](const OldLog& log) {
    return busy.contains(log.key) || (follows && log.key.trial.number == kFollowUpNumber);
  });
  return logs;
}

Status Remove(const trial::FileLayout& layout, const OldLog& log) {
  const trial::AttemptPaths paths = layout.Paths(log.key);
  for (const std::string& path : FilesOf(paths)) RETURN_IF_ERROR(RemoveAll(path));
  return WriteFileAtomic(
      paths.log, absl::StrCat("shirabe: this log is gone: ", FormatBytes(log.bytes),
                              " that were the oldest when the logs of all ended attempts had more ",
                              "than the server keeps (--log-space)\n"));
}

}  // namespace

Status RemoveOldLogs(Client& client, const trial::FileLayout& layout, int64_t bytes) {
  ASSIGN_OR_RETURN(const auto experiments, client.ListExperiments(""));
  std::vector<OldLog> logs;
  int64_t total = 0;
  for (const v1::Experiment& experiment : experiments) {
    ASSIGN_OR_RETURN(std::vector<OldLog> some, OldLogsOf(client, layout, experiment));
    for (OldLog& log : some) {
      total += log.bytes;
      logs.push_back(std::move(log));
    }
  }
  StableSort(logs);
  for (const OldLog& log : logs) {
    if (total <= bytes) break;
    RETURN_IF_ERROR(Remove(layout, log));
    total -= log.bytes;
    Log(LogLevel::kInfo, "deleted an old log", {{"attempt", AttemptName(log.key)}});
  }
  return absl::OkStatus();
}

namespace {

namespace fs = std::filesystem;

// Links are none of ours.
std::vector<std::string> SubfoldersOf(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error); !error && at != fs::end(at); at.increment(error)) {
    if (fs::is_directory(at->symlink_status(error))) names.push_back(at->path().filename());
  }
  return names;
}

}  // namespace

Status StaleFiles::SetAside(const KnownAttempts& known) {
  for (const auto& [key, trials] : known) RETURN_IF_ERROR(SetAside(key, trials));
  return absl::OkStatus();
}

Status StaleFiles::SetAside(const ExperimentKey& key, const KnownTrials& known) {
  for (const std::string& name : SubfoldersOf(layout_->ExperimentDir(key))) {
    const auto trial = ParseTrialName(name, key.ns);
    if (!trial || trial->experiment != key) continue;
    const auto attempts = known.find(trial->number);
    if (attempts == known.end() || IsOfAnother(*trial, attempts->second)) {
      RETURN_IF_ERROR(Move(layout_->TrialDir(*trial)));
      continue;
    }
    for (const std::string& below : SubfoldersOf(layout_->TrialDir(*trial))) {
      const auto attempt = ParseAttemptName(below, key.ns);
      if (!attempt || attempt->trial != *trial) continue;
      if (attempts->second.contains(attempt->number)) continue;
      RETURN_IF_ERROR(Move(layout_->Paths(*attempt).dir));
    }
  }
  return absl::OkStatus();
}

// What has no record of a process, as the copies of a pod's files, is told apart by its name alone.
bool StaleFiles::IsOfAnother(const TrialKey& trial, const KnownIds& known) const {
  return std::any_of(known.begin(), known.end(), [&](const auto& one) {
    const auto& [number, id] = one;
    const auto record = trial::ReadPidRecord(layout_->Paths({trial, number}).dir);
    return !id.empty() && record.ok() && record->id != id;
  });
}

Status StaleFiles::Move(const std::string& path) {
  // The same place, below another folder.
  CHECK(absl::StartsWith(path, layout_->home() + "/"));
  const std::string to = folder_ + path.substr(layout_->home().size());
  RETURN_IF_ERROR(MakeDirs(fs::path(to).parent_path().string()));
  // As what lies below `trials` is: for its owner alone.
  if (moved_.empty() && chmod(folder_.c_str(), 0700) != 0) {
    return ErrnoStatus("cannot keep " + folder_ + " from others", errno);
  }
  if (rename(path.c_str(), to.c_str()) != 0) {
    return ErrnoStatus(absl::StrCat("cannot move ", path, " to ", to), errno);
  }
  moved_.emplace_back(path, to);
  return absl::OkStatus();
}

Status StaleFiles::PutBack() {
  while (!moved_.empty()) {
    const auto& [from, to] = moved_.back();
    if (rename(to.c_str(), from.c_str()) != 0) {
      return ErrnoStatus(absl::StrCat("cannot move ", to, " back to ", from), errno);
    }
    moved_.pop_back();
  }
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
  return absl::OkStatus();
}

}  // namespace shirabe::client
