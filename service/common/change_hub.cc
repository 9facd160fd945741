#include "service/common/change_hub.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"

namespace shirabe::service {
namespace {

constexpr size_t kRemembered = 20'000;
constexpr absl::Duration kPollInterval = absl::Milliseconds(250);  // so long may the end of it take
constexpr absl::Duration kBatchDelay = absl::Milliseconds(10);  // gathers what comes close together
constexpr absl::Duration kAfterError = absl::Seconds(1);

}  // namespace

ChangeHub::ChangeHub(client::Client& client) : client_(client) {}

ChangeHub::~ChangeHub() {
  shutdown_wait_.End();
  if (thread_.joinable()) thread_.join();
}

void ChangeHub::Start() {
  const auto now = client_.Revision();
  if (!now.ok()) Log(LogLevel::kWarning, "cannot read the store", {{"why", Message(now.status())}});
  {
    const MutexLock lock(mutex_);
    if (now.ok()) floor_ = revision_ = *now;
    health_ = now.status();
  }
  thread_ = std::thread([this] { Run(); });
}

int ChangeHub::Listen(Listener listener) {
  const MutexLock lock(listeners_mutex_);
  listeners_[++last_id_] = std::move(listener);
  return last_id_;
}

void ChangeHub::Unlisten(int id) {
  const MutexLock lock(listeners_mutex_);
  listeners_.erase(id);
}

void ChangeHub::Run() {
  while (!shutdown_wait_.over()) {
    Status looked = Refresh();
    const bool well = looked.ok(), was_well = health().ok();  // an outage is told of once
    if (!well && was_well) {
      Log(LogLevel::kWarning, "cannot read the store", {{"why", Message(looked)}});
    } else if (well && !was_well) {
      Log(LogLevel::kInfo, "reads the store again", {});
    }
    {
      const MutexLock lock(mutex_);
      health_ = std::move(looked);
    }
    shutdown_wait_.Wait(well ? kBatchDelay : kAfterError);
  }
}

Status ChangeHub::Refresh() {
  const int64_t seen = revision();
  ASSIGN_OR_RETURN(const int64_t now, client_.AwaitChange(seen, kPollInterval));
  if (now <= seen) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto changes, client_.Changes(seen));
  {
    const MutexLock lock(mutex_);
    recent_.insert(recent_.end(), changes.begin(), changes.end());
    revision_ = changes.empty() ? now : std::max(now, changes.back().revision);
    while (recent_.size() > kRemembered) {
      floor_ = recent_.front().revision;
      recent_.pop_front();
    }
  }
  if (changes.empty()) return absl::OkStatus();
  const MutexLock lock(listeners_mutex_);
  for (const auto& [id, listener] : listeners_) listener(changes);
  return absl::OkStatus();
}

int64_t ChangeHub::revision() const {
  const MutexLock lock(mutex_);
  return revision_;
}

Status ChangeHub::health() const {
  const MutexLock lock(mutex_);
  return health_;
}

StatusOr<std::vector<db::Change>> ChangeHub::After(int64_t revision) {
  {
    const MutexLock lock(mutex_);
    if (revision >= floor_ && revision <= revision_) {
      const auto first =
          std::partition_point(recent_.begin(), recent_.end(),
                               [&](const db::Change& c) { return c.revision <= revision; });
      return std::vector<db::Change>(first, recent_.end());
    }
  }
  ASSIGN_OR_RETURN(const int64_t now, client_.Revision());
  if (revision > now) {
    return absl::OutOfRangeError(absl::StrCat("revision ", revision,
                                              " is not of this store, which ", "is at ", now,
                                              ": list again, and watch from there"));
  }
  return client_.Changes(revision);
}

}  // namespace shirabe::service
