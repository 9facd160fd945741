#include "client/store_prune.h"

#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "artifacts/package/code_cache.h"
#include "base/open_beneath.h"
#include "base/process_id.h"
#include "base/timestamp.h"
#include "client/retention.h"
#include "db/commit_rules.h"
#include "db/maintenance.h"
#include "experiment/conditions.h"
#include "experiment/experiment_leases.h"
#include "trial/file_layout.h"

namespace shirabe::client {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kTrialPage = 500;
// Rows removed in one write, so that no one waits long behind it.
constexpr size_t kRemovedRows = 5000;
constexpr absl::Duration kPruneLease = absl::Seconds(30);

// Whether a trial may have more than `keep` of something; its record counts those that count.
bool MayBeThick(const v1::Trial& trial, int64_t keep) {
  if (trial.attempts() > 1) return true;
  for (const v1::Metric& metric : trial.observation().metrics()) {
    if (metric.count() > keep) return true;
  }
  return false;
}

// Trials of one experiment, in the order of their numbers.
class ExperimentThinner {
 public:
  ExperimentThinner(db::Store& store, const ThinOptions& options, const v1::Experiment& experiment)
      : store_(store),
        options_(options),
        experiment_(experiment),
        key_(experiment::KeyOf(experiment)) {}

  Status Run(Thinned* thinned) {
    ThinProgress* const progress = Progress();
    db::TrialQuery query{.experiment = key_, .limit = kTrialPage};
    if (progress != nullptr) query.after_number = progress->after_number;
    bool all_before = true;
    for (;;) {
      ASSIGN_OR_RETURN(const auto page, store_.ListTrials(query));
      for (const db::Versioned<v1::Trial>& trial : page) {
        query.after_number = trial.record.number();
        if (MayThin(trial.record)) {
          RETURN_IF_ERROR(Thin(trial, thinned));
        } else {
          all_before = false;  // it is looked at again
        }
        if (all_before && progress != nullptr) progress->after_number = trial.record.number();
      }
      if (std::ssize(page) < kTrialPage) return absl::OkStatus();
    }
  }

 private:
  ThinProgress* Progress() {
    if (options_.progress == nullptr) return nullptr;
    ThinProgress& progress = (*options_.progress)[key_];
    const std::string& uid = experiment_.metadata().uid();
    if (progress.uid != uid) progress = {.uid = uid};  // another one of this name
    return &progress;
  }

  bool MayThin(const v1::Trial& trial) const {
    return !db::IsLive(trial) && FromProto(trial.completion_time()) < options_.ended_before;
  }

  Status Thin(const db::Versioned<v1::Trial>& trial, Thinned* thinned) {
    if (!MayBeThick(trial.record, options_.keep)) return absl::OkStatus();
    const TrialKey key{key_, trial.record.number()};
    ASSIGN_OR_RETURN(const auto rows,
                     store_.ListObservations({.trial = key, .include_superseded = true}));
    const auto removed = RowsToRemove(experiment_.spec(), rows, options_.keep);
    if (removed.empty()) return absl::OkStatus();
    ++thinned->trials;
    thinned->observations += std::ssize(removed);
    for (size_t i = 0; i < removed.size() && !options_.dry_run; i += kRemovedRows) {
      const size_t end = std::min(removed.size(), i + kRemovedRows);
      const Status status = db::MaintenanceOf(store_).RemoveObservations(
          {.trial = key,
           .revision = trial.revision,
           .rows = {removed.begin() + static_cast<int64_t>(i),
                    removed.begin() + static_cast<int64_t>(end)}});
      if (absl::IsNotFound(status)) return absl::OkStatus();  // deleted meanwhile
      RETURN_IF_ERROR(status);
    }
    return absl::OkStatus();
  }

  db::Store& store_;
  const ThinOptions& options_;
  const v1::Experiment& experiment_;
  const ExperimentKey key_;
};

// ---- files

std::vector<std::string> FoldersIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error); !error && at != fs::end(at); at.increment(error)) {
    if (fs::is_directory(at->symlink_status(error))) names.push_back(at->path().filename());
  }
  return names;
}

// That all below a folder takes of the disk.
int64_t BytesIn(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return 0;
  int64_t bytes = static_cast<int64_t>(info.st_blocks) * 512;
  if (!S_ISDIR(info.st_mode)) return bytes;
  std::error_code error;
  for (fs::directory_iterator at(path, error); !error && at != fs::end(at); at.increment(error)) {
    bytes += BytesIn(at->path());
  }
  return bytes;
}

class OrphanFinder {
 public:
  OrphanFinder(db::Store& store, const std::string& home, bool dry_run)
      : store_(store), layout_(home), dry_run_(dry_run) {}

  StatusOr<std::vector<OrphanedFiles>> Run() {
    const std::string trials = layout_.home() + "/trials";
    for (const std::string& ns : FoldersIn(trials)) {
      for (const std::string& name : FoldersIn(absl::StrCat(trials, "/", ns))) {
        if (!ValidateKey(ExperimentKey{ns, name}).ok()) continue;  // none of ours
        RETURN_IF_ERROR(LookAt({ns, name}));
      }
    }
    RETURN_IF_ERROR(LookAtMemory());
    RETURN_IF_ERROR(LookAtCode());
    return std::move(orphans_);
  }

 private:
  // What is listed before the store is asked is of a trial that the store had then, or of none: a
  // trial is stored before it has files.
  Status LookAt(const ExperimentKey& key) {
    std::vector<TrialKey> found;
    for (const std::string& name : FoldersIn(layout_.ExperimentDir(key))) {
      const auto trial = ParseTrialName(name, key.ns);
      if (trial && trial->experiment == key) found.push_back(*trial);
    }
    const auto stored = store_.GetExperiment(key);
    if (absl::IsNotFound(stored.status())) return Add(layout_.ExperimentDir(key), key, 0);
    RETURN_IF_ERROR(stored.status());
    const bool follows = stored->record.status().shirabe().has_on_success();
    std::erase_if(found, [&](const TrialKey& trial) {
      return trial.number == kFollowUpNumber ? follows : store_.GetTrial(trial).ok();
    });
    return found.empty() ? absl::OkStatus() : RemoveTrials(key, found);
  }

  // Under the lease, or an owner could start a trial of that number while we delete.
  Status RemoveTrials(const ExperimentKey& key, const std::vector<TrialKey>& found) {
    std::optional<v1::Lease> lease;
    if (!dry_run_) {
      auto acquired = experiment::AcquireLease(store_, *RealClock(), key, {"orphans", kPruneLease});
      if (absl::IsAlreadyExists(acquired.status())) return absl::OkStatus();  // it is run
      RETURN_IF_ERROR(acquired.status());
      lease = *std::move(acquired);
    }
    Status status;
    for (const TrialKey& trial : found) {
      const Status there = store_.GetTrial(trial).status();
      if (absl::IsNotFound(there)) status = Add(layout_.TrialDir(trial), key, trial.number);
      if (!status.ok()) break;
    }
    if (lease) RETURN_IF_ERROR(store_.ReleaseLease({key, lease->epoch()}));
    return status;
  }

  // Of the stores in memory of processes that are gone.
  Status LookAtMemory() {
    const std::string folder = layout_.home() + "/memory";
    for (const std::string& name : FoldersIn(folder)) {
      const size_t dash = name.find('-');
      int64_t pid = 0;
      uint64_t start = 0;
      if (dash == std::string::npos || !absl::SimpleAtoi(name.substr(0, dash), &pid) ||
          !absl::SimpleAtoi(name.substr(dash + 1), &start)) {
        continue;
      }
      const auto process = FindProcess(static_cast<pid_t>(pid));
      if (process && process->start == start) continue;
      const std::string path = absl::StrCat(folder, "/", name);
      orphans_.push_back({path, BytesIn(path)});
      if (!dry_run_) RETURN_IF_ERROR(RemoveAll(path));
    }
    return absl::OkStatus();
  }

  // Code packages that no experiment names; one that is being fetched is left.
  Status LookAtCode() {
    const std::string folder = layout_.home() + "/code";
    const std::vector<std::string> found = FoldersIn(folder);
    if (found.empty()) return absl::OkStatus();
    std::set<std::string> named;
    ASSIGN_OR_RETURN(const auto experiments, store_.ListExperiments(""));
    for (const auto& experiment : experiments) {
      named.insert(experiment.record.spec().shirabe().code().package());
    }
    artifacts::CodeCache cache(folder);
    for (const std::string& digest : found) {
      const std::string package = artifacts::kPackageScheme + digest;
      if (!artifacts::DigestOfPackage(package).ok() || named.contains(package)) continue;
      const int64_t bytes = BytesIn(cache.PathOf(digest));
      const Status removed = dry_run_ ? absl::OkStatus() : cache.Remove(digest);
      if (absl::IsUnavailable(removed)) continue;
      RETURN_IF_ERROR(removed);
      orphans_.push_back({cache.PathOf(digest), bytes});
    }
    return absl::OkStatus();
  }

  Status Add(const std::string& path, const ExperimentKey& key, int64_t trial) {
    orphans_.push_back({path, BytesIn(path)});
    return dry_run_ ? absl::OkStatus() : layout_.Remove(key, trial);
  }

  db::Store& store_;
  const trial::FileLayout layout_;
  const bool dry_run_;
  std::vector<OrphanedFiles> orphans_;
};

}  // namespace

StatusOr<Thinned> ThinObservations(db::Store& store, const ThinOptions& options) {
  Thinned thinned;
  ASSIGN_OR_RETURN(const auto experiments, store.ListExperiments(options.ns));
  for (const auto& experiment : experiments) {
    ExperimentThinner thinner(store, options, experiment.record);
    RETURN_IF_ERROR(thinner.Run(&thinned));
  }
  return thinned;
}

StatusOr<std::vector<OrphanedFiles>> RemoveOrphans(LocalClient& client, const std::string& home,
                                                   bool dry_run) {
  return OrphanFinder(client.store(), home, dry_run).Run();
}

Status ReleaseSpace(LocalClient& client) {
  for (bool more = true; more;) {
    ASSIGN_OR_RETURN(more, db::MaintenanceOf(client.store()).ReleaseSpace());
  }
  return absl::OkStatus();
}

}  // namespace shirabe::client
