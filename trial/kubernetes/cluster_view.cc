#include "trial/kubernetes/cluster_view.h"

#include <algorithm>

#include "trial/pod/operator_kinds.h"
#include "trial/pod/pod_names.h"
#include "trial/pod/pod_scheduling.h"

namespace shirabe::trial {
namespace {

std::string IdOf(const kube::Resource& resource) {
  return resource.ApiVersion() + "/" + resource.kind;
}

bool Follows(kube::WatchCache* cache) {
  return cache != nullptr && cache->AwaitSynced(absl::ZeroDuration()).ok();
}

}  // namespace

std::unique_ptr<kube::WatchCache> ClusterView::Open(const kube::Resource& resource,
                                                    const std::string& owner_label) {
  kube::WatchCacheOptions options;
  options.client = options_.client;
  options.clock = options_.clock;
  options.query.resource = resource;
  if (resource.namespaced) options.query.namespace_name = options_.only_namespace;
  options.stall = options_.stall;
  if (resource.kind == Nodes().kind) {
    options.trim = TrimNode;
    options.on_change = [this](const Json& node, bool deleted) { OnNode(node, deleted); };
  } else if (!owner_label.empty()) {
    options.query.label_selector = owner_label + ",!" + kAttemptLabel;
    options.trim = TrimPod;
    options.on_change = [this, owner_label](const Json& pod, bool deleted) {
      OnMadePod(owner_label, pod, deleted);
    };
  } else if (resource.kind == Pods().kind) {
    options.query.label_selector = kAttemptLabel;
    options.trim = TrimPod;
    options.on_change = [this](const Json& pod, bool deleted) { OnPod(pod, deleted); };
  } else {
    options.query.label_selector = kAttemptLabel;
    if (resource.kind == Jobs().kind) options.trim = TrimJob;
    options.on_change = [this](const Json& object, bool deleted) { OnObject(object, deleted); };
  }
  return kube::WatchCache::Start(std::move(options));
}

// The caches' threads may call back before they are stored here, so they are not asked until then.
void ClusterView::Start() {
  auto nodes = Open(Nodes());
  auto jobs = Open(Jobs());
  auto pods = Open(Pods());
  std::set<AttemptKey> seen;
  {
    const MutexLock lock(mutex_);
    nodes_ = std::move(nodes);
    jobs_ = std::move(jobs);
    pods_ = std::move(pods);
    ready_ = true;
    for (const auto& [key, pods_of] : pods_of_) seen.insert(key);
  }
  for (const AttemptKey& key : seen) options_.on_attempt(key, nullptr);
}

void ClusterView::Stop() {
  std::unique_ptr<kube::WatchCache> jobs, pods, nodes;
  std::map<std::string, std::unique_ptr<kube::WatchCache>> kinds, made;
  {
    const MutexLock lock(mutex_);
    ready_ = false;
    jobs = std::move(jobs_);
    pods = std::move(pods_);
    nodes = std::move(nodes_);
    kinds.swap(kinds_);
    made.swap(made_pods_);
  }
  // Their threads are joined here, without the lock that their callbacks take.
}

bool ClusterView::Synced() const {
  const MutexLock lock(mutex_);
  if (!ready_ || !Follows(jobs_.get()) || !Follows(pods_.get())) return false;
  return std::all_of(made_pods_.begin(), made_pods_.end(),
                     [](const auto& entry) { return Follows(entry.second.get()); });
}

std::vector<Json> ClusterView::PodsOf(const AttemptKey& attempt) const {
  const MutexLock lock(mutex_);
  std::vector<Json> pods;
  const auto names = pods_of_.find(attempt);
  if (!ready_ || names == pods_of_.end()) return pods;
  for (const auto& [ns, name] : names->second) {
    if (auto pod = pods_->Find(ns, name)) pods.push_back(*std::move(pod));
  }
  return pods;
}

std::vector<Json> ClusterView::PodsMadeOf(const kube::Ref& object) const {
  const std::string label = OwnerLabel(object.resource.group, object.resource.kind);
  const MutexLock lock(mutex_);
  std::vector<Json> pods;
  const auto cache = made_pods_.find(label);
  const auto owners = made_of_.find(label);
  if (!ready_ || cache == made_pods_.end() || owners == made_of_.end()) return pods;
  const auto names = owners->second.find({object.namespace_name, object.name});
  if (names == owners->second.end()) return pods;
  for (const auto& [ns, name] : names->second) {
    if (auto pod = cache->second->Find(ns, name)) pods.push_back(*std::move(pod));
  }
  return pods;
}

std::vector<std::string> ClusterView::PodNamesOf(const AttemptKey& attempt,
                                                 const std::string& object) const {
  const MutexLock lock(mutex_);
  std::vector<std::string> found;
  const auto add = [&found](const auto& sets, const auto& key) {
    const auto names = sets.find(key);
    if (names == sets.end()) return;
    for (const auto& [ns, name] : names->second) found.push_back(name);
  };
  add(pods_of_, attempt);
  for (const auto& [label, owners] : made_of_) {
    add(owners, std::pair(attempt.trial.experiment.ns, object));
  }
  return found;
}

kube::WatchCache* ClusterView::CacheOf(const kube::Resource& resource) const {
  if (!ready_) return nullptr;
  if (resource.kind == Jobs().kind && resource.group == Jobs().group) return jobs_.get();
  if (resource.kind == Pods().kind && resource.group.empty()) return pods_.get();
  const auto found = kinds_.find(IdOf(resource));
  return found == kinds_.end() ? nullptr : found->second.get();
}

std::optional<Json> ClusterView::FindObject(const kube::Ref& ref) const {
  const MutexLock lock(mutex_);
  const kube::WatchCache* cache = CacheOf(ref.resource);
  return cache == nullptr ? std::nullopt : cache->Find(ref.namespace_name, ref.name);
}

std::optional<std::pair<kube::Ref, Json>> ClusterView::FindObjectOf(
    const AttemptKey& attempt) const {
  const MutexLock lock(mutex_);
  if (!ready_) return std::nullopt;
  std::vector<kube::Resource> resources = {Jobs()};
  for (const auto& [id, resource] : resources_) resources.push_back(resource);
  for (const kube::Resource& resource : resources) {
    for (const std::string& name : {AttemptName(attempt), TrialName(attempt.trial)}) {
      const kube::Ref ref{resource, attempt.trial.experiment.ns, name};
      auto object = CacheOf(resource)->Find(ref.namespace_name, ref.name);
      if (object && KeyOf(*object) == attempt) return std::pair(ref, *std::move(object));
    }
  }
  return std::nullopt;
}

std::optional<Json> ClusterView::FindNode(const std::string& name) const {
  const MutexLock lock(mutex_);
  return ready_ ? nodes_->Find("", name) : std::nullopt;
}

std::vector<Json> ClusterView::AllNodes() const {
  const MutexLock lock(mutex_);
  return ready_ ? nodes_->All() : std::vector<Json>();
}

bool ClusterView::AnyNodeHasPrice() const {
  const MutexLock lock(mutex_);
  return !priced_.empty();
}

bool ClusterView::NodesKnown() const {
  const MutexLock lock(mutex_);
  return ready_ && Follows(nodes_.get());
}

bool ClusterView::NodesRefused() const {
  const MutexLock lock(mutex_);
  return ready_ && absl::IsPermissionDenied(nodes_->AwaitSynced(absl::ZeroDuration()));
}

std::vector<AttemptKey> ClusterView::Attempts() const {
  const MutexLock lock(mutex_);
  std::set<AttemptKey> found = objects_of_;
  for (const auto& [key, pods] : pods_of_) found.insert(key);
  return {found.begin(), found.end()};
}

void ClusterView::Follow(const kube::Resource& resource) {
  Add(resource, "");
  const std::string owner_label = OwnerLabel(resource.group, resource.kind);
  if (!owner_label.empty()) Add(Pods(), owner_label);
}

void ClusterView::Add(const kube::Resource& resource, const std::string& owner_label) {
  const bool made = !owner_label.empty();
  {
    const MutexLock lock(mutex_);
    const bool known = made ? made_pods_.count(owner_label) > 0 : CacheOf(resource) != nullptr;
    if (!ready_ || known) return;
  }
  auto cache = Open(resource, owner_label);
  const MutexLock lock(mutex_);
  if (!ready_) return;
  // Another thread may have been faster; then this one goes, unasked, once the lock is free.
  if (!made) resources_.try_emplace(IdOf(resource), resource);
  auto& caches = made ? made_pods_ : kinds_;
  caches.try_emplace(made ? owner_label : IdOf(resource), std::move(cache));
}

void ClusterView::Put(const kube::Resource& resource, const Json& object) {
  const MutexLock lock(mutex_);
  if (kube::WatchCache* cache = CacheOf(resource)) cache->Put(object);
}

// ---- what the caches tell ----------------------------------------------------------------------

void ClusterView::OnPod(const Json& pod, bool deleted) {
  const auto key = KeyOf(pod);
  if (!key) return;
  {
    const MutexLock lock(mutex_);
    NameSet& names = pods_of_[*key];
    if (deleted) {
      names.erase({NamespaceOf(pod), NameOf(pod)});
    } else {
      names.insert({NamespaceOf(pod), NameOf(pod)});
    }
    if (names.empty()) pods_of_.erase(*key);
    if (!ready_) return;
  }
  options_.on_attempt(*key, deleted ? &pod : nullptr);
}

// Whose it is, the name of its owner says.
void ClusterView::OnMadePod(const std::string& owner_label, const Json& pod, bool deleted) {
  const std::string owner = Text(pod, {"metadata", "labels", owner_label.c_str()});
  {
    const MutexLock lock(mutex_);
    auto& owners = made_of_[owner_label];
    NameSet& names = owners[{NamespaceOf(pod), owner}];
    if (deleted) {
      names.erase({NamespaceOf(pod), NameOf(pod)});
    } else {
      names.insert({NamespaceOf(pod), NameOf(pod)});
    }
    if (names.empty()) owners.erase({NamespaceOf(pod), owner});
    if (!ready_) return;
  }
  options_.on_made(NamespaceOf(pod), owner, deleted ? &pod : nullptr);
}

void ClusterView::OnObject(const Json& object, bool deleted) {
  const auto key = KeyOf(object);
  if (!key) return;
  {
    const MutexLock lock(mutex_);
    if (deleted) {
      objects_of_.erase(*key);
    } else {
      objects_of_.insert(*key);
    }
    if (!ready_) return;
  }
  options_.on_attempt(*key, nullptr);
}

void ClusterView::OnNode(const Json& node, bool deleted) {
  const std::string name = NameOf(node);
  {
    const MutexLock lock(mutex_);
    if (deleted || !OwnPriceOf(node)) {
      priced_.erase(name);
    } else {
      priced_.insert(name);
    }
    const std::string now = deleted ? "" : NodeSignature(node);
    if (std::exchange(signatures_[name], now) == now || !ready_) return;
    if (deleted) signatures_.erase(name);
  }
  options_.on_node(name);
}

bool IsMadeOf(const Json& pod, const kube::Ref& object) {
  const std::string label = OwnerLabel(object.resource.group, object.resource.kind);
  return !label.empty() && NamespaceOf(pod) == object.namespace_name &&
         Text(pod, {"metadata", "labels", label.c_str()}) == object.name;
}

}  // namespace shirabe::trial
