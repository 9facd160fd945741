#include "client/charts/column_cache.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/timestamp.h"
#include "client/charts/trial_columns.h"
#include "experiment/spec/trial_result.h"

namespace shirabe::client {
namespace {

// Records in memory at the same time; more changes than that since the last time are read as if
// nothing had been known.
constexpr int64_t kPage = 1024;
constexpr int64_t kMaxChanges = 4 * kPage;
constexpr size_t kMaxTables = 1000;

// What the columns are made of, and whose they are.
v1::Experiment HeadOf(const v1::Experiment& experiment) {
  v1::Experiment head;
  *head.mutable_metadata() = experiment.metadata();
  *head.mutable_spec() = experiment::ResultSpecOf(experiment.spec());
  *head.mutable_spec()->mutable_parameters() = experiment.spec().parameters();
  head.mutable_status()->mutable_shirabe()->set_namespace_uid(
      experiment.status().shirabe().namespace_uid());
  return head;
}

bool IsSame(const v1::Experiment& a, const v1::Experiment& b) {
  const auto& from = a.metadata().creation_timestamp();
  const auto& to = b.metadata().creation_timestamp();
  return from.seconds() == to.seconds() && from.nanos() == to.nanos() &&
         a.status().shirabe().namespace_uid() == b.status().shirabe().namespace_uid();
}

}  // namespace

// One table, which its users have in turns.
class ColumnCache::Entry {
 public:
  Entry(db::Store* store, ExperimentKey key, Rows rows)
      : store_(store), key_(std::move(key)), rows_(rows) {}

  bool IsFor(const ExperimentKey& key, Rows rows) const { return rows_ == rows && key_ == key; }

  Status Read(NamespaceGuard& namespaces, const Use& use, int64_t* bytes) {
    const MutexLock lock(mutex_);
    RETURN_IF_ERROR(Update());
    *bytes = table_->bytes();
    RETURN_IF_ERROR(namespaces.CheckNamespaceExists(head_));
    const auto created = FromProto(head_.metadata().creation_timestamp());
    return use({.table = *table_,
                .experiment = head_,
                .revision = revision_,
                .version = absl::StrCat(absl::ToUnixMicros(created), "-", table_->newest(), "-",
                                        table_->rows())});
  }

 private:
  Status Update() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status Load(const v1::Experiment& experiment) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // False if there are too many of them to be read so.
  StatusOr<bool> LoadChanges() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status LoadTrials() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status LoadAttempts() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  db::Store* const store_;
  const ExperimentKey key_;
  const Rows rows_;
  Mutex mutex_;
  v1::Experiment head_ ABSL_GUARDED_BY(mutex_);
  std::optional<ColumnTable> table_ ABSL_GUARDED_BY(mutex_);  // none yet
  int64_t revision_ ABSL_GUARDED_BY(mutex_) = 0;
};

Status ColumnCache::Entry::Update() {
  ASSIGN_OR_RETURN(const int64_t revision, store_->Revision());
  if (table_ && revision == revision_) return absl::OkStatus();
  // Rows that are read below may be newer than that: they are read again the next time.
  ASSIGN_OR_RETURN(const auto before, store_->GetExperiment(key_));
  bool whole = false;
  if (table_ && IsSame(head_, before.record)) {
    ASSIGN_OR_RETURN(whole, LoadChanges());
  }
  if (!whole) RETURN_IF_ERROR(Load(before.record));
  // The rows were those of this experiment only if it was there before and after.
  const auto after = store_->GetExperiment(key_);
  if (!after.ok() || !IsSame(head_, after->record)) {
    table_.reset();
    RETURN_IF_ERROR(after.status());
    return absl::UnavailableError("experiment " + ToString(key_) +
                                  " was deleted and made again just now: try again");
  }
  revision_ = revision;
  return absl::OkStatus();
}

Status ColumnCache::Entry::Load(const v1::Experiment& experiment) {
  head_ = HeadOf(experiment);
  const bool trials = rows_ == Rows::kTrials;
  table_.emplace(trials ? TrialColumnInfos(head_) : AttemptColumnInfos());
  const Status loaded = trials ? LoadTrials() : LoadAttempts();
  if (!loaded.ok()) table_.reset();
  return loaded;
}

Status ColumnCache::Entry::LoadTrials() {
  for (int64_t last = 0;;) {
    ASSIGN_OR_RETURN(
        const auto page,
        store_->ListTrials({.experiment = key_, .after_number = last, .limit = kPage}));
    for (const auto& [trial, revision] : page) PutTrial(head_, trial, revision, *table_);
    if (page.size() < kPage) return absl::OkStatus();
    last = page.back().record.number();
  }
}

Status ColumnCache::Entry::LoadAttempts() {
  for (RowKey last;;) {
    ASSIGN_OR_RETURN(const auto page, store_->ListAttempts({.experiment = key_,
                                                            .after_trial = last.trial,
                                                            .after_number = last.attempt,
                                                            .limit = kPage}));
    for (const auto& [attempt, revision] : page) PutAttempt(attempt, revision, *table_);
    if (page.size() < kPage) return absl::OkStatus();
    last = {page.back().record.trial(), page.back().record.number()};
  }
}

StatusOr<bool> ColumnCache::Entry::LoadChanges() {
  if (rows_ == Rows::kTrials) {
    ASSIGN_OR_RETURN(
        const auto trials,
        store_->ListTrials({.experiment = key_, .changed_after = revision_, .limit = kMaxChanges}));
    for (const auto& [trial, revision] : trials) PutTrial(head_, trial, revision, *table_);
    return trials.size() < kMaxChanges;
  }
  ASSIGN_OR_RETURN(
      const auto attempts,
      store_->ListAttempts({.experiment = key_, .changed_after = revision_, .limit = kMaxChanges}));
  for (const auto& [attempt, revision] : attempts) PutAttempt(attempt, revision, *table_);
  return attempts.size() < kMaxChanges;
}

ColumnCache::ColumnCache(db::Store* store, NamespaceGuard* namespaces, int64_t max_bytes)
    : store_(store), namespaces_(namespaces), max_bytes_(max_bytes) {}

ColumnCache::~ColumnCache() = default;

Status ColumnCache::Read(const ExperimentKey& key, Rows rows, const Use& use) {
  const EntryPtr entry = FindOrAdd(key, rows);
  int64_t bytes = 0;
  const Status status = entry->Read(*namespaces_, use, &bytes);
  SetBytes(entry, bytes);
  return status;
}

ColumnCache::EntryPtr ColumnCache::FindOrAdd(const ExperimentKey& key, Rows rows) {
  const MutexLock lock(mutex_);
  const auto found = std::find_if(slots_.begin(), slots_.end(),
                                  [&](const Slot& slot) { return slot.entry->IsFor(key, rows); });
  if (found == slots_.end()) {
    slots_.push_front({std::make_shared<Entry>(store_, key, rows)});  // shared: see the header
  } else {
    slots_.splice(slots_.begin(), slots_, found);
  }
  return slots_.front().entry;
}

// One that is larger than all may be stays until another one is used.
void ColumnCache::SetBytes(const EntryPtr& entry, int64_t bytes) {
  const MutexLock lock(mutex_);
  const auto found = std::find_if(slots_.begin(), slots_.end(),
                                  [&](const Slot& slot) { return slot.entry == entry; });
  if (found == slots_.end()) return;
  bytes_ += bytes - found->bytes;
  found->bytes = bytes;
  if (bytes == 0) slots_.erase(found);
  while (slots_.size() > kMaxTables || (bytes_ > max_bytes_ && slots_.size() > 1)) {
    bytes_ -= slots_.back().bytes;
    slots_.pop_back();
  }
}

int64_t ColumnCache::bytes() const {
  const MutexLock lock(mutex_);
  return bytes_;
}

}  // namespace shirabe::client
