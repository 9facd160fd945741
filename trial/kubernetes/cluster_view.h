// The part of a cluster that attempts live in, as copies that follow it: Jobs and pods with our
// label, the nodes, and other kinds of objects once an attempt is one. It finds nothing out by
// itself and changes nothing; what it shows may be a moment old. Owned by the executor
// `kubernetes`; thread-safe. Its callbacks come from threads of its own, never under a lock.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "kube/watch_cache.h"
#include "trial/kubernetes/cluster_actions.h"

namespace shirabe::trial {

class ClusterView {
 public:
  struct Options {
    kube::Client* client = nullptr;  // outlives the view
    Clock* clock = nullptr;
    // Something of an attempt has changed; `gone` is a pod of it as it was last seen, or null.
    std::function<void(const AttemptKey&, const Json* gone)> on_attempt;
    // The same of a pod that names an object as its owner, and no attempt.
    std::function<void(const std::string& ns, const std::string& owner, const Json* gone)> on_made;
    // So has a node, in something that matters to its pods.
    std::function<void(const std::string& name)> on_node;
    absl::Duration stall = absl::Minutes(2);  // as of kube::WatchCacheOptions
    std::string only_namespace = {};          // "" = all
  };
  explicit ClusterView(Options options) : options_(std::move(options)) {}

  // Begins to follow. Once, before anything below; what is found is told through on_attempt.
  void Start();
  // Ends it: no callback comes any more. The copies stay.
  void Stop();

  // Whether all Jobs and pods that there were at the start are known by now.
  bool Synced() const;

  std::vector<Json> PodsOf(const AttemptKey& attempt) const;
  // Those that an operator has made of this object and that do not carry our label.
  std::vector<Json> PodsMadeOf(const kube::Ref& object) const;
  // The names of both.
  std::vector<std::string> PodNamesOf(const AttemptKey& attempt, const std::string& object) const;
  std::optional<Json> FindObject(const kube::Ref& ref) const;
  // Of whatever kind that is followed it is; its labels say whose it is.
  std::optional<std::pair<kube::Ref, Json>> FindObjectOf(const AttemptKey& attempt) const;
  // nullopt also while the nodes are not known: then NodesKnown is false.
  std::optional<Json> FindNode(const std::string& name) const;
  std::vector<Json> AllNodes() const;
  // Whether one says itself what it costs (OwnPriceOf).
  bool AnyNodeHasPrice() const;
  bool NodesKnown() const;
  // The API server does not let us see them, as in an install for one namespace.
  bool NodesRefused() const;
  // Every attempt that a pod or an object is there of.
  std::vector<AttemptKey> Attempts() const;

  // From now on objects of this kind are followed as well, and so are the pods that their operator
  // makes of them (trial/pod/operator_kinds.h).
  void Follow(const kube::Resource& resource);
  // Takes an object that we have just written and got back.
  void Put(const kube::Resource& resource, const Json& object);

 private:
  using NameSet = std::set<std::pair<std::string, std::string>>;  // namespace, name

  // Pods: those with `owner_label` and without ours, or, where that is "", those with ours.
  std::unique_ptr<kube::WatchCache> Open(const kube::Resource& resource,
                                         const std::string& owner_label = "");
  void Add(const kube::Resource& resource, const std::string& owner_label);
  void OnPod(const Json& pod, bool deleted);
  void OnMadePod(const std::string& owner_label, const Json& pod, bool deleted);
  void OnObject(const Json& object, bool deleted);
  void OnNode(const Json& node, bool deleted);
  // Null if it is not followed.
  kube::WatchCache* CacheOf(const kube::Resource& resource) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  mutable Mutex mutex_;
  // The caches can be asked: until then callbacks only take notes.
  bool ready_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<AttemptKey, NameSet> pods_of_ ABSL_GUARDED_BY(mutex_);
  std::set<AttemptKey> objects_of_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> signatures_ ABSL_GUARDED_BY(mutex_);  // of nodes
  std::set<std::string> priced_ ABSL_GUARDED_BY(mutex_);                   // nodes
  // By "group/version/kind".
  std::map<std::string, std::unique_ptr<kube::WatchCache>> kinds_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, kube::Resource> resources_ ABSL_GUARDED_BY(mutex_);  // of kinds_
  // Pods by the label in which they name their owner, and their names by that label and the owner.
  std::map<std::string, std::unique_ptr<kube::WatchCache>> made_pods_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::map<std::pair<std::string, std::string>, NameSet>> made_of_
      ABSL_GUARDED_BY(mutex_);
  // Set by Start, and then constant until Stop.
  std::unique_ptr<kube::WatchCache> jobs_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<kube::WatchCache> pods_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<kube::WatchCache> nodes_ ABSL_GUARDED_BY(mutex_);
};

// Whether the operator of the object says on the pod that it was made of it.
bool IsMadeOf(const Json& pod, const kube::Ref& object);

}  // namespace shirabe::trial
