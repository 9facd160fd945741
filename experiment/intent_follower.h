// Follows the store and says of which experiment somebody wants something: an intent was written,
// by whatever process. So nobody who waits needs to look. Has a thread of its own, which calls
// `on_intent`; made by the controller. The store must outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <thread>

#include "base/names.h"
#include "db/store.h"

namespace shirabe::experiment {

class IntentFollower {
 public:
  using OnIntent = std::function<void(const ExperimentKey&)>;

  // Of intents that are written from now on. May be called once too often.
  IntentFollower(db::Store* store, OnIntent on_intent);
  // Within a tenth of a second.
  ~IntentFollower() = default;

 private:
  void Run(std::stop_token stop);

  db::Store* const store_;
  const OnIntent on_intent_;
  int64_t followed_;     // the revision up to which intents are known
  std::jthread thread_;  // last: it uses the rest
};

}  // namespace shirabe::experiment
