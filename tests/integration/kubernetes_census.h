// Who was ever there: the Jobs and pods of a namespace of a real cluster, followed straight from
// its API server, so that a test can say how often a program was started and what is left.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "kube/watch_cache.h"
#include "tests/kube/await.h"
#include "trial/kubernetes/cluster_actions.h"

namespace shirabe::trial {

class Census {
 public:
  using Uids = std::map<std::string, std::set<std::string>>;  // by the name of the Job

  // The client outlives this.
  Census(kube::Client* client, const std::string& namespace_name)
      : jobs_(Follow(client, {Jobs(), namespace_name, "", ""}, &made_)),
        pods_(Follow(client, {Pods(), namespace_name, "", ""}, &begun_)) {}

  // Every Job there ever was, and every pod of one.
  Uids made() const { return Read(made_); }
  Uids begun() const { return Read(begun_); }

  // Each Job was made once, and each had one pod. What was not so, or "".
  std::string Doubles() const {
    std::string words;
    for (const Uids& uids : {made(), begun()}) {
      for (const auto& [name, several] : uids) {
        if (several.size() > 1)
          words += name + " was there " + std::to_string(several.size()) + "× ";
      }
    }
    return words;
  }

  bool AwaitEmpty(absl::Duration patience = absl::Minutes(1)) const {
    return kube::Await([&] { return jobs_->size() == 0 && pods_->size() == 0; }, patience);
  }
  // The names of what is there, for messages.
  std::string Left() const {
    std::string words;
    for (const kube::WatchCache* cache : {jobs_.get(), pods_.get()}) {
      for (const Json& object : cache->All()) words += kube::NameOf(object) + " ";
    }
    return words;
  }

 private:
  std::unique_ptr<kube::WatchCache> Follow(kube::Client* client, const kube::Query& query,
                                           Uids* into) {
    auto cache = kube::WatchCache::Start(
        {.client = client,
         .clock = RealClock(),
         .query = query,
         .on_change = [=, this](const Json& object, bool) {
           const std::string job =
               Text(object, {"metadata", "labels", "batch.kubernetes.io/job-name"});
           const std::lock_guard lock(mutex_);
           (*into)[job.empty() ? kube::NameOf(object) : job].insert(kube::UidOf(object));
         }});
    CHECK(cache->AwaitSynced(absl::Seconds(30)).ok());
    return cache;
  }
  Uids Read(const Uids& uids) const {
    const std::lock_guard lock(mutex_);
    return uids;
  }

  mutable std::mutex mutex_;
  Uids made_;   // guarded by mutex_
  Uids begun_;  // guarded by mutex_
  // Last: their threads use all of the above.
  std::unique_ptr<kube::WatchCache> jobs_;
  std::unique_ptr<kube::WatchCache> pods_;
};

}  // namespace shirabe::trial
