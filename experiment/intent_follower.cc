#include "experiment/intent_follower.h"

#include <utility>

#include "base/clock.h"

namespace shirabe::experiment {
namespace {

constexpr absl::Duration kWait = absl::Milliseconds(100);
constexpr absl::Duration kGather = absl::Milliseconds(10);  // what comes close together
constexpr int64_t kMostChanges = 10'000;                    // read at once

}  // namespace

IntentFollower::IntentFollower(db::Store* store, OnIntent on_intent)
    : store_(store),
      on_intent_(std::move(on_intent)),
      followed_(store->Revision().value_or(0)),
      thread_([this](std::stop_token stop) { Run(stop); }) {}

void IntentFollower::Run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    const auto now = store_->AwaitChange(followed_, kWait);
    if (!now.ok()) Pause(kWait);  // whoever reads or writes says what the trouble is
    if (!now.ok() || *now <= followed_) continue;
    const auto changes = store_->Changes(followed_, kMostChanges);
    if (!changes.ok()) continue;
    for (const db::Change& change : *changes) {
      if (change.kind == db::Change::Kind::kIntent) on_intent_(change.experiment);
    }
    followed_ = changes->empty() ? *now : changes->back().revision;
    Pause(kGather);
  }
}

}  // namespace shirabe::experiment
