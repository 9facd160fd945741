#include "service/common/update_feeds.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/timestamp.h"
#include "view/chart_json.h"
#include "view/record_json.h"

namespace shirabe::service {
namespace {

using view::Json;

constexpr size_t kMaxEvents = 64;           // of one experiment that are remembered
constexpr size_t kMaxEventBytes = 1 << 20;  // of them together

constexpr char kGone[] = "event: deleted\ndata: {}\n\n";

struct Snapshot {
  v1::Summary summary;
  v1::Columns columns;  // rows that have changed after a revision
};

std::string UpdateText(const Snapshot& snapshot, int64_t since) {
  Json data = {{"revision", snapshot.columns.revision()},
               {"since", since},
               {"summary", view::SummaryJson(snapshot.summary)},
               {"rows", view::RowsJson(snapshot.columns)}};
  if (snapshot.columns.has_next()) data["more"] = true;
  return absl::StrCat("event: update\nid: ", snapshot.columns.revision(),
                      "\ndata: ", view::PrintJsonLine(data), "\n\n");
}

}  // namespace

class UpdateFeeds::Feed {
 public:
  Feed(client::Client* client, Clock* clock, ExperimentKey key)
      : client_(client), clock_(clock), key_(std::move(key)) {}

  const ExperimentKey& key() const { return key_; }

  StatusOr<Update> After(int64_t after) {
    const Status refreshed = RefreshIfDue();
    if (absl::IsNotFound(refreshed)) return Update{.revision = after, .text = kGone, .over = true};
    RETURN_IF_ERROR(refreshed);
    {
      const MutexLock lock(mutex_);
      if (after >= revision_) return Update{.revision = after};
      if (after >= floor_) return Remembered(after);
    }
    // Of one who has been away for longer than is remembered.
    ASSIGN_OR_RETURN(const Snapshot snapshot, Read(after));
    return Update{.revision = snapshot.columns.revision(), .text = UpdateText(snapshot, after)};
  }

 private:
  struct Event {
    int64_t revision = 0;
    std::string text;
  };

  StatusOr<Snapshot> Read(int64_t since) const {
    Snapshot snapshot;
    v1::SummaryRequest summary;
    summary.set_namespace_(key_.ns);
    summary.set_experiment(key_.name);
    ASSIGN_OR_RETURN(snapshot.summary, client_->Get<v1::Summary>("GetSummary", summary));
    v1::ColumnsRequest columns;
    columns.set_namespace_(key_.ns);
    columns.set_experiment(key_.name);
    columns.set_since(since);
    columns.set_limit(kMaxRows);
    ASSIGN_OR_RETURN(snapshot.columns, client_->Get<v1::Columns>("GetTrialColumns", columns));
    return snapshot;
  }

  // One follower reads, which may take a while the first time; the others do not wait for it.
  Status RefreshIfDue() {
    int64_t since = 0;
    {
      const MutexLock lock(mutex_);
      if (refreshing_ || clock_->Monotonic() - refreshed_ < kInterval) return absl::OkStatus();
      refreshing_ = true;
      refreshed_ = clock_->Monotonic();
      since = revision_;
    }
    // Whatever becomes of it: a library may throw where memory has run out.
    const auto over = absl::MakeCleanup([this] {
      const MutexLock lock(mutex_);
      refreshing_ = false;
    });
    const bool first = since < 0;
    const StatusOr<Snapshot> snapshot = first ? ReadFirst(since) : Read(since);
    RETURN_IF_ERROR(snapshot.status());
    const MutexLock lock(mutex_);
    return Store(*snapshot, since, first);
  }

  StatusOr<Snapshot> ReadFirst(int64_t& since) const {
    ASSIGN_OR_RETURN(since, client_->Revision());
    return Read(since);
  }

  Status Store(const Snapshot& snapshot, int64_t since, bool first)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const absl::Time created = FromProto(snapshot.columns.created());
    if (!first && created != created_) return absl::NotFoundError("it is another experiment now");
    created_ = created;
    const bool changed = snapshot.columns.rows() > 0 || snapshot.summary.version() != version_;
    version_ = snapshot.summary.version();
    revision_ = std::max(since, snapshot.columns.revision());
    if (first) floor_ = revision_;
    if (first || !changed) return absl::OkStatus();
    events_.push_back({revision_, UpdateText(snapshot, since)});
    bytes_ += events_.back().text.size();
    while (events_.size() > kMaxEvents || bytes_ > kMaxEventBytes) {
      floor_ = events_.front().revision;
      bytes_ -= events_.front().text.size();
      events_.pop_front();
    }
    return absl::OkStatus();
  }

  Update Remembered(int64_t after) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Update update{.revision = revision_};
    for (const Event& event : events_) {
      if (event.revision > after) update.text += event.text;
    }
    return update;
  }

  client::Client* const client_;
  Clock* const clock_;
  const ExperimentKey key_;
  Mutex mutex_;
  bool refreshing_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration refreshed_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
  absl::Time created_ ABSL_GUARDED_BY(mutex_);
  std::string version_ ABSL_GUARDED_BY(mutex_);    // of the last summary
  int64_t revision_ ABSL_GUARDED_BY(mutex_) = -1;  // up to which events_ go
  int64_t floor_ ABSL_GUARDED_BY(mutex_) = 0;      // from which they go
  std::deque<Event> events_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

StatusOr<UpdateFeeds::Update> UpdateFeeds::After(const ExperimentKey& key, int64_t after) {
  const FeedPtr feed = FindOrAdd(key);
  auto update = feed->After(after);
  if (update.ok() && !update->over) return update;
  const MutexLock lock(mutex_);
  feeds_.remove(feed);  // another experiment may get its name
  return update;
}

UpdateFeeds::FeedPtr UpdateFeeds::FindOrAdd(const ExperimentKey& key) {
  const MutexLock lock(mutex_);
  const auto found = std::find_if(feeds_.begin(), feeds_.end(),
                                  [&](const FeedPtr& feed) { return feed->key() == key; });
  if (found != feeds_.end()) {
    feeds_.splice(feeds_.begin(), feeds_, found);
    return feeds_.front();
  }
  feeds_.push_front(std::make_shared<Feed>(client_, clock_, key));  // shared: as FeedPtr
  if (feeds_.size() > kMaxFeeds) feeds_.pop_back();
  return feeds_.front();
}

}  // namespace shirabe::service
