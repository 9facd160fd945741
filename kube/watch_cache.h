// A copy of some objects of the API server that follows it: list, then watch, and list again when
// the watch cannot go on (410, an error, a silence). What disappeared meanwhile is told as deleted,
// so nothing that happened between two lists is missed except intermediate states. One thread per
// cache; level-based consumers need nothing else.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kube/api_client.h"

namespace shirabe::kube {

struct WatchCacheOptions {
  Client* client = nullptr;  // outlives the cache
  Clock* clock = nullptr;
  Query query;
  // What is kept of an object, to save memory: managedFields are always dropped. May be empty.
  std::function<void(Json&)> trim = {};
  // Called by the cache's thread, never under its lock, after the copy has changed: the object as
  // it is now, or, with `deleted`, as it was last seen. One call at a time.
  std::function<void(const Json& object, bool deleted)> on_change = {};
  // A watch that is silent for so long (bookmarks come every minute) is given up.
  absl::Duration stall = absl::Minutes(2);
};

class WatchCache {
 public:
  static std::unique_ptr<WatchCache> Start(WatchCacheOptions options);
  virtual ~WatchCache() = default;  // ends the watch and joins the thread

  // Until the first list is in, at most `timeout`: the error of the last try, or OK.
  virtual Status AwaitSynced(absl::Duration timeout) = 0;
  virtual std::optional<Json> Find(const std::string& namespace_name,
                                   const std::string& name) const = 0;
  virtual std::vector<Json> All() const = 0;
  virtual size_t size() const = 0;
  // Takes an object that we have just written and got back, so that we read our own writes; an
  // older one than the cache knows, or one that the watch has told the end of, is left.
  virtual void Put(const Json& object) = 0;
  // Why it does not follow now, in words; "" if it does. And since when (monotonic).
  virtual std::string LastError() const = 0;
  // Lists made, events seen: for /metrics.
  struct Counts {
    int64_t lists = 0, events = 0, stalls = 0;
  };
  virtual Counts counts() const = 0;
};

}  // namespace shirabe::kube
