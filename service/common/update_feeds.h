// What has changed of an experiment, as events for all who watch it: made once for each step of the
// store's revision, at most twice a second, and shared by all of them. Made by the HTTP server;
// outlives its streams. Thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "client/client.h"

namespace shirabe::service {

class UpdateFeeds {
 public:
  // So often at most the store is asked for one experiment.
  static constexpr absl::Duration kInterval = absl::Milliseconds(500);
  static constexpr int64_t kMaxRows = 500;  // of one event; it says so if there are more
  static constexpr size_t kMaxFeeds = 256;  // experiments that are remembered

  // Both outlive it.
  UpdateFeeds(client::Client* client, Clock* clock) : client_(client), clock_(clock) {}

  struct Update {
    int64_t revision = 0;   // up to which it says what has changed; `after` of the next call
    std::string text = {};  // events; "" = nothing has changed that is known yet
    bool over = false;      // the experiment is gone: there will never be more
  };
  // What has changed after a revision, which the store must have reached: else kOutOfRange.
  StatusOr<Update> After(const ExperimentKey& key, int64_t after);

 private:
  class Feed;
  using FeedPtr = std::shared_ptr<Feed>;  // shared: may be forgotten while it is asked

  FeedPtr FindOrAdd(const ExperimentKey& key);

  client::Client* const client_;
  Clock* const clock_;
  Mutex mutex_;
  std::list<FeedPtr> feeds_ ABSL_GUARDED_BY(mutex_);  // the last used first
};

}  // namespace shirabe::service
