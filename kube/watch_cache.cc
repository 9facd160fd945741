#include "kube/watch_cache.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "base/backoff.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/rng.h"

namespace shirabe::kube {
namespace {

constexpr Backoff kWatchBackoff{absl::Milliseconds(200), absl::Seconds(30)};
// A watch that ends sooner, and brought nothing, is one more failure.
constexpr absl::Duration kMinHealthyWatch = absl::Seconds(5);
constexpr int kFailuresBeforeList = 3;
constexpr size_t kEndsRemembered = 4096;

using Key = std::pair<std::string, std::string>;  // namespace, name
using Packed = std::vector<uint8_t>;

Key KeyOf(const Json& object) { return {NamespaceOf(object), NameOf(object)}; }

// Resource versions of one server are numbers that grow, since etcd's are; 0 where they are not.
uint64_t NumberOf(const std::string& version) {
  uint64_t number = 0;
  return absl::SimpleAtoi(version, &number) ? number : 0;
}

bool IsOlder(uint64_t a, uint64_t b) { return a != 0 && b != 0 && a < b; }

// An object takes a fifth of the memory as MessagePack; reading it costs what copying would.
struct CacheEntry {
  Packed packed;
  uint64_t number = 0;  // of its resource version
  std::string version;
  std::string told;  // the version that on_change was last told of
};

Json Unpack(const Packed& packed) { return Json::from_msgpack(packed, true, false); }

class ListWatchCache : public WatchCache {
 public:
  explicit ListWatchCache(WatchCacheOptions options);
  ~ListWatchCache() override;

  Status AwaitSynced(absl::Duration timeout) override;
  std::optional<Json> Find(const std::string& namespace_name,
                           const std::string& name) const override;
  std::vector<Json> All() const override;
  size_t size() const override;
  void Put(const Json& object) override;
  std::string LastError() const override;
  Counts counts() const override;

 private:
  void Follow(const std::stop_token& stop);
  // The list, or the watch that follows it; OK if it ended in order.
  Status List();
  Status Watch(const std::stop_token& stop);
  void OnEvent(const WatchEvent& event);
  void Trim(Json& object) const;
  // Takes an object that the server told us of; true if on_change is to hear of it.
  bool Upsert(const Json& object);
  // The object as it was last seen, if it was there; older ends than what is known are no ends.
  std::optional<Json> Remove(const Json& object);
  std::vector<Json> RemoveUnlisted(const std::set<Key>& listed, uint64_t list_number);
  void RememberEnd(const std::string& uid) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Notify(const Json& object, bool deleted) const;
  // Notes how it went, and waits before the next try.
  void RecordStatus(const Status& status);
  void Wait(const std::stop_token& stop);

  const WatchCacheOptions options_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<Key, CacheEntry> entries_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> ended_ ABSL_GUARDED_BY(mutex_);   // uids, the latest
  std::deque<std::string> ends_ ABSL_GUARDED_BY(mutex_);  // in order
  bool synced_ ABSL_GUARDED_BY(mutex_) = false;
  Status last_ ABSL_GUARDED_BY(mutex_);  // of the last list or watch
  absl::Duration failing_since_ ABSL_GUARDED_BY(mutex_) = absl::ZeroDuration();
  Counts counts_ ABSL_GUARDED_BY(mutex_);

  // Of the thread.
  std::string version_;  // to watch from; "" = list first
  int failures_ = 0;     // in a row
  bool heard_ = false;   // something, in this watch
  Rng rng_;
  std::jthread thread_;  // last: it uses all of the above
};

ListWatchCache::ListWatchCache(WatchCacheOptions options)
    : options_(std::move(options)),
      last_(absl::UnavailableError("the first list is not in yet")),
      failing_since_(options_.clock->Monotonic()),
      rng_(RandomSeed()),
      thread_([this](std::stop_token stop) { Follow(stop); }) {}

ListWatchCache::~ListWatchCache() {
  thread_.request_stop();
  thread_.join();
}

// ---- the thread --------------------------------------------------------------------------------

void ListWatchCache::Follow(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const absl::Duration begun = options_.clock->Monotonic();
    const bool listing = version_.empty();
    heard_ = false;
    const Status status = listing ? List() : Watch(stop);
    if (stop.stop_requested()) return;
    const bool lasted = options_.clock->Monotonic() - begun >= kMinHealthyWatch;
    if (listing ? status.ok() : heard_ || (status.ok() && lasted)) {
      failures_ = 0;
    } else {
      ++failures_;
    }
    if (absl::IsDeadlineExceeded(status) && !listing) {
      const MutexLock lock(mutex_);
      ++counts_.stalls;
    }
    // After what is no mere hanging up, the server may not be the one that it was.
    const bool broken = !status.ok() && !absl::IsUnavailable(status);
    if (broken || failures_ >= kFailuresBeforeList) version_.clear();
    RecordStatus(status);
    if (failures_ > 0) Wait(stop);
  }
}

void ListWatchCache::RecordStatus(const Status& status) {
  const MutexLock lock(mutex_);
  // A watch that has become too old is the ordinary way of the world: a list is next.
  if (status.ok() || absl::IsOutOfRange(status)) {
    last_ = absl::OkStatus();
  } else {
    if (last_.ok()) failing_since_ = options_.clock->Monotonic();
    last_ = status;
  }
}

void ListWatchCache::Wait(const std::stop_token& stop) {
  const absl::Duration wait = kWatchBackoff.Delay(failures_ - 1) * (0.5 + rng_.Uniform());
  MutexLock lock(mutex_);
  changed_.SleepFor(lock, stop, wait);
}

Status ListWatchCache::List() {
  std::set<Key> listed;
  const auto version = options_.client->ListEach(options_.query, [&](Json&& object) {
    Trim(object);
    listed.insert(KeyOf(object));
    if (Upsert(object)) Notify(object, false);
  });
  RETURN_IF_ERROR(version.status());
  for (const Json& gone : RemoveUnlisted(listed, NumberOf(*version))) Notify(gone, true);
  version_ = *version;
  const MutexLock lock(mutex_);
  ++counts_.lists;
  synced_ = true;
  last_ = absl::OkStatus();
  changed_.NotifyAll();
  return absl::OkStatus();
}

Status ListWatchCache::Watch(const std::stop_token& stop) {
  return options_.client->Watch(
      options_.query, {version_, options_.stall},
      [this](const WatchEvent& event) { OnEvent(event); }, stop);
}

void ListWatchCache::OnEvent(const WatchEvent& event) {
  heard_ = true;
  const std::string version = VersionOf(event.object);
  if (!version.empty()) version_ = version;
  {
    const MutexLock lock(mutex_);
    ++counts_.events;
    last_ = absl::OkStatus();
  }
  if (event.type == WatchEvent::Type::kBookmark) return;
  Json object = event.object;
  Trim(object);
  if (event.type == WatchEvent::Type::kDeleted) {
    if (Remove(object)) Notify(object, true);
  } else if (Upsert(object)) {
    Notify(object, false);
  }
}

void ListWatchCache::Notify(const Json& object, bool deleted) const {
  if (options_.on_change) options_.on_change(object, deleted);
}

// ---- the copy ----------------------------------------------------------------------------------

void ListWatchCache::Trim(Json& object) const {
  if (const auto meta = object.find("metadata"); meta != object.end() && meta->is_object()) {
    meta->erase("managedFields");
  }
  if (options_.trim) options_.trim(object);
}

bool ListWatchCache::Upsert(const Json& object) {
  const std::string version = VersionOf(object);
  const MutexLock lock(mutex_);
  CacheEntry& entry = entries_[KeyOf(object)];
  // We have read our own later write already; the event of it comes.
  if (IsOlder(NumberOf(version), entry.number)) return false;
  if (entry.version != version || entry.packed.empty()) {
    entry.packed = Json::to_msgpack(object);
    entry.packed.shrink_to_fit();
    entry.version = version;
    entry.number = NumberOf(version);
  }
  return std::exchange(entry.told, version) != version;
}

std::optional<Json> ListWatchCache::Remove(const Json& object) {
  const MutexLock lock(mutex_);
  RememberEnd(UidOf(object));
  const auto found = entries_.find(KeyOf(object));
  if (found == entries_.end()) return std::nullopt;
  Json last = Unpack(found->second.packed);
  // One of the same name has taken its place.
  if (UidOf(last) != UidOf(object)) return std::nullopt;
  entries_.erase(found);
  return last;
}

std::vector<Json> ListWatchCache::RemoveUnlisted(const std::set<Key>& listed,
                                                 uint64_t list_number) {
  std::vector<Json> gone;
  const MutexLock lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    // What was put here after the list was made is not in it, and is not gone.
    if (listed.contains(entry->first) || IsOlder(list_number, entry->second.number)) {
      ++entry;
      continue;
    }
    gone.push_back(Unpack(entry->second.packed));
    RememberEnd(UidOf(gone.back()));
    entry = entries_.erase(entry);
  }
  return gone;
}

void ListWatchCache::RememberEnd(const std::string& uid) {
  if (uid.empty() || !ended_.insert(uid).second) return;
  ends_.push_back(uid);
  if (ends_.size() <= kEndsRemembered) return;
  ended_.erase(ends_.front());
  ends_.pop_front();
}

// ---- callers -----------------------------------------------------------------------------------

Status ListWatchCache::AwaitSynced(absl::Duration timeout) {
  MutexLock lock(mutex_);
  changed_.WaitFor(lock, timeout,
                   [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return synced_; });
  return synced_ ? absl::OkStatus() : last_;
}

std::optional<Json> ListWatchCache::Find(const std::string& namespace_name,
                                         const std::string& name) const {
  Packed packed;
  {
    const MutexLock lock(mutex_);
    const auto found = entries_.find({namespace_name, name});
    if (found == entries_.end()) return std::nullopt;
    packed = found->second.packed;
  }
  return Unpack(packed);
}

std::vector<Json> ListWatchCache::All() const {
  std::vector<Packed> packed;
  {
    const MutexLock lock(mutex_);
    packed.reserve(entries_.size());
    for (const auto& [key, entry] : entries_) packed.push_back(entry.packed);
  }
  std::vector<Json> all;
  all.reserve(packed.size());
  for (const Packed& one : packed) all.push_back(Unpack(one));
  return all;
}

size_t ListWatchCache::size() const {
  const MutexLock lock(mutex_);
  return entries_.size();
}

void ListWatchCache::Put(const Json& object) {
  Json copy = object;
  Trim(copy);
  const std::string version = VersionOf(copy);
  const MutexLock lock(mutex_);
  if (ended_.contains(UidOf(copy))) return;
  CacheEntry& entry = entries_[KeyOf(copy)];
  if (!entry.packed.empty() && !IsOlder(entry.number, NumberOf(version))) return;
  entry.packed = Json::to_msgpack(copy);
  entry.packed.shrink_to_fit();
  entry.version = version;
  entry.number = NumberOf(version);
}

std::string ListWatchCache::LastError() const {
  const MutexLock lock(mutex_);
  if (last_.ok()) return "";
  const absl::Duration since = options_.clock->Monotonic() - failing_since_;
  return absl::FormatDuration(absl::Trunc(since, absl::Seconds(1))) + ": " + Message(last_);
}

WatchCache::Counts ListWatchCache::counts() const {
  const MutexLock lock(mutex_);
  return counts_;
}

}  // namespace

std::unique_ptr<WatchCache> WatchCache::Start(WatchCacheOptions options) {
  return std::make_unique<ListWatchCache>(std::move(options));
}

}  // namespace shirabe::kube
