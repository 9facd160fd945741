#include "tests/crd/fake_cluster.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "kube/json_access.h"

namespace shirabe::crd {
namespace {

using Type = kube::WatchEvent::Type;

bool Matches(const kube::Query& query, const kube::Json& object) {
  if (!query.namespace_name.empty() && kube::NamespaceOf(object) != query.namespace_name) {
    return false;
  }
  if (query.label_selector.empty()) return true;
  if (query.label_selector.find('=') == std::string::npos) {  // whatever its value
    return FindAt(object, {"metadata", "labels", query.label_selector.c_str()}) != nullptr;
  }
  const std::pair<std::string, std::string> label = absl::StrSplit(query.label_selector, '=');
  return Text(object, {"metadata", "labels", label.first.c_str()}) == label.second;
}

}  // namespace

kube::Json FakeCluster::Store(const Key& key, Json object, Type type) {
  object["metadata"]["resourceVersion"] = std::to_string(++version_);
  objects_[key] = object;
  history_.push_back({version_, std::get<0>(key), {type, object}});
  changed_.notify_all();
  return object;
}

void FakeCluster::Erase(const Key& key) {
  const auto found = objects_.find(key);
  if (found == objects_.end()) return;
  Json object = std::move(found->second);
  objects_.erase(found);
  object["metadata"]["resourceVersion"] = std::to_string(++version_);
  history_.push_back({version_, std::get<0>(key), {Type::kDeleted, object}});
  changed_.notify_all();
}

kube::Json FakeCluster::Put(const kube::Resource& resource, const Json& object) {
  auto created = Create(resource, object);
  CHECK(created.ok());
  return *created;
}

void FakeCluster::Edit(const kube::Ref& ref, const std::function<void(Json&)>& change) {
  std::lock_guard lock(mutex_);
  Json object = objects_.at(KeyOf(ref));
  const Json spec = object.value("spec", Json());
  change(object);
  if (object.value("spec", Json()) != spec) {
    object["metadata"]["generation"] = object["metadata"]["generation"].get<int64_t>() + 1;
  }
  Store(KeyOf(ref), object, Type::kModified);
}

void FakeCluster::Remove(const kube::Ref& ref) {
  std::lock_guard lock(mutex_);
  Erase(KeyOf(ref));
}

std::optional<kube::Json> FakeCluster::Find(const kube::Ref& ref) {
  std::lock_guard lock(mutex_);
  const auto found = objects_.find(KeyOf(ref));
  if (found == objects_.end()) return std::nullopt;
  return found->second;
}

std::vector<kube::Json> FakeCluster::All(const std::string& plural) {
  std::lock_guard lock(mutex_);
  std::vector<Json> all;
  for (const auto& [key, object] : objects_) {
    if (std::get<0>(key) == plural) all.push_back(object);
  }
  return all;
}

int FakeCluster::writes(const std::string& plural) {
  std::lock_guard lock(mutex_);
  return writes_[plural];
}

bool FakeCluster::Await(const std::function<bool()>& holds) {
  const absl::Duration deadline = RealClock()->Monotonic() + absl::Seconds(20);
  while (!holds()) {
    if (RealClock()->Monotonic() > deadline) return false;
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, absl::ToChronoMilliseconds(absl::Milliseconds(20)));
  }
  return true;
}

StatusOr<kube::Json> FakeCluster::Get(const kube::Ref& ref) {
  if (auto found = Find(ref)) return *found;
  return absl::NotFoundError(absl::StrCat(ref.resource.plural, " \"", ref.name, "\" not found"));
}

StatusOr<kube::Json> FakeCluster::GetMetadata(const kube::Ref& ref) {
  ASSIGN_OR_RETURN(const Json object, Get(ref));
  return Json{{"metadata", object["metadata"]}};
}

StatusOr<kube::Json> FakeCluster::List(const kube::Query& query) {
  std::lock_guard lock(mutex_);
  Json items = Json::array();
  for (const auto& [key, object] : objects_) {
    if (std::get<0>(key) == query.resource.plural && Matches(query, object)) {
      items.push_back(object);
    }
  }
  return Json{{"metadata", {{"resourceVersion", std::to_string(version_)}}}, {"items", items}};
}

StatusOr<std::string> FakeCluster::ListEach(const kube::Query& query,
                                            const std::function<void(Json&&)>& sink) {
  ASSIGN_OR_RETURN(Json list, List(query));
  for (Json& item : list["items"]) sink(std::move(item));
  return kube::VersionOf(list);
}

StatusOr<kube::Json> FakeCluster::Create(const kube::Resource& resource, const Json& object) {
  const int making = ++making_;
  if (making > most_making_) most_making_ = making;
  Pause(absl::Milliseconds(slowness_ms_.load()));
  --making_;
  std::lock_guard lock(mutex_);
  const Key key{resource.plural, kube::NamespaceOf(object), kube::NameOf(object)};
  if (objects_.count(key) > 0) return absl::AlreadyExistsError(std::get<2>(key));
  Json made = object;
  made["metadata"]["uid"] = absl::StrCat("uid-", ++uids_);
  made["metadata"]["generation"] = 1;
  return Store(key, std::move(made), Type::kAdded);
}

// Takes the parts over as they are: one manager writes whole parts.
StatusOr<kube::Json> FakeCluster::Apply(const kube::Resource& resource, const Json& object,
                                        const std::string& /*manager*/,
                                        const std::string& subresource) {
  const Key key{resource.plural, kube::NamespaceOf(object), kube::NameOf(object)};
  std::unique_lock lock(mutex_);
  ++writes_[resource.plural];
  const auto found = objects_.find(key);
  if (found == objects_.end()) {
    if (!subresource.empty()) return absl::NotFoundError(std::get<2>(key));
    lock.unlock();
    return Create(resource, object);
  }
  const std::string uid = kube::UidOf(object);
  if (!uid.empty() && uid != kube::UidOf(found->second)) return absl::AbortedError("another uid");
  Json changed = found->second;
  const char* part = subresource.empty() ? "spec" : "status";
  if (object.contains(part)) changed[part] = object.at(part);
  if (changed == found->second) return changed;
  return Store(key, std::move(changed), Type::kModified);
}

// A merge of the object itself, as kubectl annotate and we do; on the version that it names.
StatusOr<kube::Json> FakeCluster::Patch(const kube::Ref& ref, kube::PatchType type,
                                        const Json& patch, const std::string& subresource) {
  if (type != kube::PatchType::kMerge || !subresource.empty()) {
    return absl::UnimplementedError("not used here");
  }
  const std::unique_lock lock(mutex_);
  const auto found = objects_.find(KeyOf(ref));
  if (found == objects_.end()) return absl::NotFoundError(ref.name + " not found");
  const std::string version = kube::VersionOf(patch);
  if (!version.empty() && version != kube::VersionOf(found->second)) {
    return absl::AbortedError(ref.name + " has been modified");
  }
  Json changed = found->second;
  changed.merge_patch(patch);
  if (changed == found->second) return changed;
  if (changed["spec"] != found->second["spec"]) {
    changed["metadata"]["generation"] = Number(changed, {"metadata", "generation"}) + 1;
  }
  return Store(KeyOf(ref), std::move(changed), Type::kModified);
}

Status FakeCluster::Delete(const kube::Ref& ref, const kube::DeleteOptions& /*options*/) {
  Remove(ref);
  return absl::OkStatus();
}

Status FakeCluster::DeleteCollection(const kube::Query& /*query*/,
                                     const kube::DeleteOptions& /*options*/) {
  return absl::UnimplementedError("not used here");
}

Status FakeCluster::ReadLog(const kube::Ref& /*pod*/, const kube::LogOptions& /*options*/,
                            const std::function<bool(std::string_view)>& /*sink*/,
                            std::stop_token /*stop*/) {
  return absl::UnimplementedError("not used here");
}

Status FakeCluster::Watch(const kube::Query& query, const kube::WatchOptions& options,
                          const std::function<void(const kube::WatchEvent&)>& sink,
                          std::stop_token stop) {
  int64_t seen = 0;
  CHECK(absl::SimpleAtoi(options.version, &seen));
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    std::vector<kube::WatchEvent> news;
    for (const Happened& happened : history_) {
      if (happened.version <= seen) continue;
      if (happened.plural == query.resource.plural && Matches(query, happened.event.object)) {
        news.push_back(happened.event);
      }
    }
    seen = version_;
    lock.unlock();
    for (const kube::WatchEvent& event : news) sink(event);
    lock.lock();
    changed_.wait(lock, stop, [&] { return version_ > seen; });
  }
  return absl::CancelledError("asked to end");
}

void FakeCluster::Define(const kube::Resource& resource) {
  const std::unique_lock lock(mutex_);
  kinds_[resource.kind] = resource;
}

StatusOr<kube::Resource> FakeCluster::FindResource(const std::string& /*api_version*/,
                                                   const std::string& kind) {
  const std::unique_lock lock(mutex_);
  const auto found = kinds_.find(kind);
  if (found == kinds_.end()) return absl::NotFoundError(kind);
  return found->second;
}

StatusOr<kube::Json> FakeCluster::GetPath(const std::string& path) {
  return absl::NotFoundError(path);
}

}  // namespace shirabe::crd
