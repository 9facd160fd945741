// A queue of items that are due at some time, each in it at most once, the earliest first (as
// client-go's delaying queue). Controllers keep in it what they are to look at, beside what else
// they know of it, under one lock: it has none of its own, and no clock. Times are monotonic.
#pragma once

#include <map>
#include <set>
#include <utility>

#include "absl/time/time.h"

namespace shirabe {

template <typename Item>
class DelayingQueue {
 public:
  // Adds it, or moves it to another time.
  void Set(const Item& item, absl::Duration due) {
    Remove(item);
    due_[item] = due;
    order_.insert({due, item});
  }
  // Adds it, or moves it to an earlier time.
  void SetEarlier(const Item& item, absl::Duration due) {
    const auto found = due_.find(item);
    if (found == due_.end() || due < found->second) Set(item, due);
  }
  void Remove(const Item& item) {
    const auto found = due_.find(item);
    if (found == due_.end()) return;
    order_.erase({found->second, item});
    due_.erase(found);
  }
  // Of the first; infinite if there is none.
  absl::Duration NextDue() const {
    return order_.empty() ? absl::InfiniteDuration() : order_.begin()->first;
  }
  // The first, which is not in it any more; there must be one.
  Item Pop() {
    const Item item = order_.begin()->second;
    Remove(item);
    return item;
  }

 private:
  std::map<Item, absl::Duration> due_;
  std::set<std::pair<absl::Duration, Item>> order_;
};

}  // namespace shirabe
