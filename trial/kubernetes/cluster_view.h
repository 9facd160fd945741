// The part of a cluster that attempts live in, as copies that follow it: Jobs and pods with our
// label, the nodes, and other kinds of objects once an attempt is one. It finds nothing out by
// itself and changes nothing; what it shows may be a moment old. Owned by the executor
// `kubernetes`; thread-safe. Its callbacks come from threads of its own, never under a lock.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

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
    // So has a node, in something that matters to its pods.
    std::function<void(const std::string& name)> on_node;
    absl::Duration stall = absl::Minutes(2);  // as of kube::CacheOptions
  };
  explicit ClusterView(Options options) : options_(std::move(options)) {}

  // Begins to follow. Once, before anything below; what is found is told through on_attempt.
  void Start();
  // Ends it: no callback comes any more. The copies stay.
  void Stop();

  // Whether all Jobs and pods that there were at the start are known by now.
  bool Synced() const;
  // Why something is not followed now, in words; "" if all is.
  std::string LastError() const;

  std::vector<Json> PodsOf(const AttemptKey& attempt) const;
  std::vector<std::string> PodNamesOf(const AttemptKey& attempt) const;
  std::optional<Json> FindObject(const kube::Ref& ref) const;
  // nullopt also while the nodes are not known: then NodesKnown is false.
  std::optional<Json> FindNode(const std::string& name) const;
  std::vector<Json> AllNodes() const;
  bool NodesKnown() const;
  // Every attempt that a pod is there of.
  std::vector<AttemptKey> Attempts() const;

  // From now on objects of this kind are followed as well.
  void Follow(const kube::Resource& resource);
  // Takes an object that we have just written and got back.
  void Put(const kube::Resource& resource, const Json& object);

 private:
  using NameSet = std::set<std::pair<std::string, std::string>>;  // namespace, name

  std::unique_ptr<kube::Cache> Open(const kube::Resource& resource);
  void OnPod(const Json& pod, bool deleted);
  void OnObject(const Json& object, bool deleted);
  void OnNode(const Json& node, bool deleted);
  kube::Cache* CacheOf(const kube::Resource& resource) const;  // null if it is not followed

  const Options options_;
  mutable std::mutex mutex_;
  // These are guarded by mutex_.
  bool ready_ = false;  // the caches can be asked: until then callbacks only take notes
  std::map<AttemptKey, NameSet> pods_of_;
  std::map<std::string, std::string> signatures_;              // of nodes
  std::map<std::string, std::unique_ptr<kube::Cache>> kinds_;  // by "group/version/kind"
  // Set by Start, and then constant until Stop.
  std::unique_ptr<kube::Cache> jobs_;
  std::unique_ptr<kube::Cache> pods_;
  std::unique_ptr<kube::Cache> nodes_;
};

}  // namespace shirabe::trial
