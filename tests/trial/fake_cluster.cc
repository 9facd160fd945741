#include "tests/trial/fake_cluster.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace shirabe::kube {
namespace {

std::string Text(const Json& object, const char* pointer) {
  const Json::json_pointer path(pointer);
  return object.contains(path) && object[path].is_string() ? object[path].get<std::string>() : "";
}

bool HasFinalizers(const Json& object) {
  const Json::json_pointer path("/metadata/finalizers");
  return object.contains(path) && !object[path].empty();
}

// "a=b,c,!d": equality, existence and the lack of a label; or "a in (b,c)" alone.
bool Selected(const Json& object, const std::string& selector) {
  const Json labels = object["metadata"].value("labels", Json::object());
  if (const size_t in = selector.find(" in ("); in != std::string::npos) {
    const std::vector<std::string> values =
        absl::StrSplit(selector.substr(in + 5, selector.size() - in - 6), ',');
    return std::any_of(values.begin(), values.end(), [&](const std::string& value) {
      return labels.value(selector.substr(0, in), "") == value;
    });
  }
  const std::vector<std::string> terms = absl::StrSplit(selector, ',', absl::SkipEmpty());
  for (const std::string& term : terms) {
    const std::vector<std::string> sides = absl::StrSplit(term, absl::MaxSplits('=', 1));
    if (absl::StartsWith(term, "!")) {
      if (labels.contains(term.substr(1))) return false;
      continue;
    }
    if (!labels.contains(sides[0])) return false;
    if (sides.size() == 2 && labels[sides[0]] != sides[1]) return false;
  }
  return true;
}

// "involvedObject.name=x,reason!=y": dotted paths.
bool HasFields(const Json& object, const std::string& selector) {
  const std::vector<std::string> terms = absl::StrSplit(selector, ',', absl::SkipEmpty());
  for (const std::string& term : terms) {
    std::vector<std::string> sides = absl::StrSplit(term, absl::MaxSplits('=', 1));
    const bool differs = absl::EndsWith(sides[0], "!");
    if (differs) sides[0].pop_back();
    std::string pointer = "/" + sides[0];
    std::replace(pointer.begin(), pointer.end(), '.', '/');
    if ((Text(object, pointer.c_str()) == sides[1]) == differs) return false;
  }
  return true;
}

bool Matches(const Query& query, const Json& object) {
  if (!query.namespace_name.empty() &&
      Text(object, "/metadata/namespace") != query.namespace_name) {
    return false;
  }
  return Selected(object, query.label_selector) && HasFields(object, query.field_selector);
}

}  // namespace

Json& FakeCluster::Write(const Key& key, Json object, WatchEvent::Type type) {
  Json& kept = objects_[key];
  const std::string uid = Text(kept, "/metadata/uid");
  object["metadata"]["resourceVersion"] = std::to_string(++version_);
  if (Text(object, "/metadata/uid").empty()) {
    object["metadata"]["uid"] = uid.empty() ? absl::StrCat("uid-", version_) : uid;
  }
  kept = std::move(object);
  changes_.push_back({version_, std::get<0>(key), {type, kept}});
  changed_.notify_all();
  return kept;
}

void FakeCluster::Erase(const Key& key) {
  const auto found = objects_.find(key);
  if (found == objects_.end()) return;
  Json last = std::move(found->second);
  objects_.erase(found);
  last["metadata"]["resourceVersion"] = std::to_string(++version_);
  changes_.push_back({version_, std::get<0>(key), {WatchEvent::Type::kDeleted, last}});
  changed_.notify_all();
  if (std::get<0>(key) != "Pod") CollectGarbage(last);
}

// Pods that name it as their owner go with it.
void FakeCluster::CollectGarbage(const Json& owner) {
  std::vector<Key> owned;
  for (const auto& [key, object] : objects_) {
    if (std::get<0>(key) != "Pod") continue;
    if (Text(object, "/metadata/ownerReferences/0/uid") == Text(owner, "/metadata/uid")) {
      owned.push_back(key);
    }
  }
  for (const Key& key : owned) MarkDeleted(key, {});
}

// A pod that runs goes when its kubelet says so.
void FakeCluster::MarkDeleted(const Key& key, const DeleteOptions& options) {
  Json object = objects_.at(key);
  const bool runs = std::get<0>(key) == "Pod" && Text(object, "/status/phase") == "Running";
  if (std::get<0>(key) == "Pod") {
    graces_.push_back(options.grace ? absl::ToDoubleSeconds(*options.grace) : -1);
  }
  if (!runs && !HasFinalizers(object)) return Erase(key);
  object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  Write(key, std::move(object), WatchEvent::Type::kModified);
}

StatusOr<Json> FakeCluster::Get(const Ref& ref) {
  RETURN_IF_ERROR(before("get", ref));
  std::lock_guard lock(mutex_);
  ++calls_["get"];
  const auto found = objects_.find({ref.resource.kind, ref.namespace_name, ref.name});
  if (found == objects_.end()) return absl::NotFoundError(ref.name + " not found");
  return found->second;
}

StatusOr<Json> FakeCluster::GetMetadata(const Ref& ref) {
  RETURN_IF_ERROR(before("metadata", ref));
  std::lock_guard lock(mutex_);
  ++calls_["metadata"];
  const auto found = objects_.find({ref.resource.kind, ref.namespace_name, ref.name});
  if (found == objects_.end()) return absl::NotFoundError(ref.name + " not found");
  return Json{{"metadata", found->second["metadata"]}};
}

StatusOr<Json> FakeCluster::List(const Query& query) {
  RETURN_IF_ERROR(before("list", {query.resource, query.namespace_name, ""}));
  std::lock_guard lock(mutex_);
  ++calls_["list"];
  Json list = {{"metadata", {{"resourceVersion", std::to_string(version_)}}},
               {"items", Json::array()}};
  for (const auto& [key, object] : objects_) {
    if (std::get<0>(key) == query.resource.kind && Matches(query, object)) {
      list["items"].push_back(object);
    }
  }
  return list;
}

StatusOr<std::string> FakeCluster::ListEach(const Query& query,
                                            const std::function<void(Json&&)>& sink) {
  ASSIGN_OR_RETURN(Json list, List(query));
  for (Json& item : list["items"]) sink(std::move(item));
  return Text(list, "/metadata/resourceVersion");
}

StatusOr<Json> FakeCluster::Create(const Resource& resource, const Json& object) {
  const Ref ref{resource, Text(object, "/metadata/namespace"), Text(object, "/metadata/name")};
  RETURN_IF_ERROR(before("create", ref));
  if (resource.kind == "TokenReview") return Review(object);
  Json made;
  {
    std::lock_guard lock(mutex_);
    ++calls_["create"];
    const Key key{resource.kind, ref.namespace_name, ref.name};
    if (objects_.count(key) > 0) return absl::AlreadyExistsError(ref.name + " already exists");
    made = Write(key, object, WatchEvent::Type::kAdded);
  }
  RETURN_IF_ERROR(after("create", ref));
  return made;
}

StatusOr<Json> FakeCluster::Apply(const Resource& resource, const Json& object, const std::string&,
                                  const std::string&) {
  std::lock_guard lock(mutex_);
  return Write({resource.kind, Text(object, "/metadata/namespace"), Text(object, "/metadata/name")},
               object, WatchEvent::Type::kModified);
}

StatusOr<Json> FakeCluster::Patch(const Ref& ref, PatchType type, const Json& patch,
                                  const std::string&) {
  RETURN_IF_ERROR(before("patch", ref));
  std::lock_guard lock(mutex_);
  ++calls_["patch"];
  const Key key{ref.resource.kind, ref.namespace_name, ref.name};
  const auto found = objects_.find(key);
  if (found == objects_.end()) return absl::NotFoundError(ref.name + " not found");
  Json object = found->second;
  try {
    if (type == PatchType::kJson) {
      object = object.patch(patch);
    } else {
      object.merge_patch(patch);
    }
  } catch (const Json::exception& e) {
    return absl::AbortedError(e.what());
  }
  const bool ends = !Text(object, "/metadata/deletionTimestamp").empty() &&
                    !HasFinalizers(object) && Text(object, "/status/phase") != "Running";
  Write(key, object, WatchEvent::Type::kModified);
  if (ends) Erase(key);
  return object;
}

Status FakeCluster::Delete(const Ref& ref, const DeleteOptions& options) {
  RETURN_IF_ERROR(before("delete", ref));
  std::lock_guard lock(mutex_);
  ++calls_["delete"];
  const Key key{ref.resource.kind, ref.namespace_name, ref.name};
  const auto found = objects_.find(key);
  if (found == objects_.end()) return absl::NotFoundError(ref.name + " not found");
  if (!options.uid.empty() && Text(found->second, "/metadata/uid") != options.uid) {
    return absl::AbortedError(ref.name + " has another uid");
  }
  propagations_.push_back(options.propagation);
  MarkDeleted(key, options);
  return absl::OkStatus();
}

Status FakeCluster::DeleteCollection(const Query& query, const DeleteOptions& options) {
  RETURN_IF_ERROR(before("deletecollection", {query.resource, query.namespace_name, ""}));
  std::lock_guard lock(mutex_);
  ++calls_["deletecollection"];
  std::vector<Key> selected;
  for (const auto& [key, object] : objects_) {
    if (std::get<0>(key) == query.resource.kind && Matches(query, object)) selected.push_back(key);
  }
  for (const Key& key : selected) {
    propagations_.push_back(options.propagation);
    MarkDeleted(key, options);
  }
  return absl::OkStatus();
}

Status FakeCluster::ReadLog(const Ref& pod, const LogOptions& options,
                            const std::function<bool(std::string_view)>& sink, std::stop_token) {
  RETURN_IF_ERROR(before("log", pod));
  std::string text;
  {
    std::lock_guard lock(mutex_);
    ++calls_["log"];
    const auto found = logs_.find(pod.name + "/" + options.container);
    if (found == logs_.end()) return absl::NotFoundError("no log of " + pod.name);
    text = found->second;
  }
  sink(text);
  return absl::OkStatus();
}

Status FakeCluster::Watch(const Query& query, const WatchOptions& options,
                          const std::function<void(const WatchEvent&)>& sink,
                          std::stop_token stop) {
  int64_t seen = 0;
  CHECK(absl::SimpleAtoi(options.version, &seen));
  std::unique_lock lock(mutex_);
  const int epoch = epoch_;
  if (seen < oldest_) return absl::OutOfRangeError("too old resource version");
  while (!stop.stop_requested()) {
    std::vector<WatchEvent> news;
    for (const Change& change : changes_) {
      if (change.version <= seen || change.kind != query.resource.kind) continue;
      if (Matches(query, change.event.object)) news.push_back(change.event);
    }
    seen = version_;
    if (!news.empty()) {
      lock.unlock();
      for (const WatchEvent& event : news) sink(event);
      lock.lock();
      continue;
    }
    changed_.wait(lock, stop, [&] { return version_ > seen || epoch_ != epoch; });
    if (epoch_ != epoch) return absl::UnavailableError("the watch broke");
  }
  return absl::CancelledError("stopped");
}

StatusOr<Resource> FakeCluster::FindResource(const std::string& api_version,
                                             const std::string& kind) {
  std::lock_guard lock(mutex_);
  for (const Resource& resource : kinds_) {
    if (resource.ApiVersion() == api_version && resource.kind == kind) return resource;
  }
  return absl::NotFoundError("no kind " + kind + " in " + api_version + " on this server");
}

StatusOr<Json> FakeCluster::GetPath(const std::string& path) {
  std::lock_guard lock(mutex_);
  const auto found = published_.find(path);
  return found == published_.end() ? Json::object() : found->second;
}

void FakeCluster::Publish(const std::string& path, Json document) {
  std::lock_guard lock(mutex_);
  published_[path] = std::move(document);
}

void FakeCluster::Put(const Resource& resource, Json object) {
  std::lock_guard lock(mutex_);
  const Key key{resource.kind, Text(object, "/metadata/namespace"), Text(object, "/metadata/name")};
  const bool is_new = objects_.count(key) == 0;
  Write(key, std::move(object), is_new ? WatchEvent::Type::kAdded : WatchEvent::Type::kModified);
}

void FakeCluster::Remove(const Ref& ref, bool force) {
  std::lock_guard lock(mutex_);
  const Key key{ref.resource.kind, ref.namespace_name, ref.name};
  const auto found = objects_.find(key);
  if (found != objects_.end() && (force || !HasFinalizers(found->second))) Erase(key);
}

void FakeCluster::BreakWatches(bool expire) {
  std::lock_guard lock(mutex_);
  ++epoch_;
  if (expire) oldest_ = ++version_;
  changed_.notify_all();
}

void FakeCluster::AddKind(const Resource& resource) {
  std::lock_guard lock(mutex_);
  kinds_.push_back(resource);
}

StatusOr<Json> FakeCluster::Review(Json review) {
  std::lock_guard lock(mutex_);
  ++calls_["review"];
  const auto found = tokens_.find(Text(review, "/spec/token"));
  const Json audiences = review["spec"]["audiences"];
  const bool known = found != tokens_.end() && audiences == Json::array({"shirabe-pods"});
  review["status"] = {{"authenticated", known}};
  if (!known) return review;
  const auto& [ns, pod] = found->second;
  review["status"]["audiences"] = audiences;
  review["status"]["user"] = {
      {"username", "system:serviceaccount:" + ns + ":default"},
      {"extra", {{"authentication.kubernetes.io/pod-uid", Json::array({pod})}}}};
  return review;
}

void FakeCluster::SetToken(const std::string& token, const std::string& namespace_name,
                           const std::string& pod_uid) {
  std::lock_guard lock(mutex_);
  tokens_[token] = {namespace_name, pod_uid};
}

void FakeCluster::SetLog(const std::string& pod, const std::string& container, std::string text) {
  std::lock_guard lock(mutex_);
  logs_[pod + "/" + container] = std::move(text);
}

std::vector<Json> FakeCluster::All(const Resource& resource) {
  std::lock_guard lock(mutex_);
  std::vector<Json> all;
  for (const auto& [key, object] : objects_) {
    if (std::get<0>(key) == resource.kind) all.push_back(object);
  }
  return all;
}

int FakeCluster::Calls(const std::string& verb) {
  std::lock_guard lock(mutex_);
  return calls_[verb];
}

std::vector<std::string> FakeCluster::propagations() {
  std::lock_guard lock(mutex_);
  return propagations_;
}

std::vector<double> FakeCluster::graces() {
  std::lock_guard lock(mutex_);
  return graces_;
}

}  // namespace shirabe::kube
