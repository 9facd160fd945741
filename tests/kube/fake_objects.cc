#include "tests/kube/fake_objects.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace shirabe::kube {
namespace {

constexpr char kFakeObjectsPods[] = "/api/v1/pods";

uint64_t NumberOf(const std::string& text) {
  uint64_t number = 0;
  return absl::SimpleAtoi(text, &number) ? number : 0;
}

std::string Line(const std::string& type, const Json& object) {
  return Dump({{"type", type}, {"object", object}}) + "\n";
}

std::string QueryOf(const FakeExchange& exchange, const std::string& name) {
  const auto& query = exchange.request().query;
  const auto found = query.find(name);
  return found == query.end() ? "" : found->second;
}

Json VersionOnly(uint64_t version) {
  return {{"metadata", {{"resourceVersion", absl::StrCat(version)}}}};
}

std::string Gone() { return StatusText(410, "Expired", "too old resource version"); }

}  // namespace

void FakeObjects::Handle(FakeExchange& exchange) {
  const FakeRequest& request = exchange.request();
  if (refusing) return exchange.Reply(500, StatusText(500, "InternalError", "it is broken"));
  const size_t slash = request.path.rfind('/');
  const std::string last = request.path.substr(slash + 1);
  const bool collection = last == "pods" || last == "leases";
  if (request.method == "POST") return Create(exchange, request.path);
  if (!collection) return Change(exchange, {request.path.substr(0, slash), last});
  if (QueryOf(exchange, "watch") == "true") return Watch(exchange, request.path);
  List(exchange, request.path);
}

void FakeObjects::List(FakeExchange& exchange, const std::string& collection) {
  const std::string from = QueryOf(exchange, "continue");
  const auto limit =
      static_cast<size_t>(std::max<uint64_t>(1, NumberOf(QueryOf(exchange, "limit"))));
  if (!from.empty() && expire_continues > 0) {
    --expire_continues;
    return exchange.Reply(410, Gone());
  }
  const std::lock_guard lock(mutex_);
  Json list = VersionOnly(version_);
  list["items"] = Json::array();
  for (const auto& [key, object] : objects_) {
    if (key.first != collection || key.second <= from) continue;
    if (list["items"].size() == limit) {
      list["metadata"]["continue"] = NameOf(list["items"].back());
      break;
    }
    list["items"].push_back(object);
  }
  exchange.Reply(200, Dump(list));
}

std::vector<FakeObjects::Event> FakeObjects::After(uint64_t version,
                                                   const std::string& collection) const {
  std::vector<Event> after;
  for (const Event& event : events_) {
    if (event.version > version && event.collection == collection) after.push_back(event);
  }
  return after;
}

void FakeObjects::Watch(FakeExchange& exchange, const std::string& collection) {
  uint64_t seen = NumberOf(QueryOf(exchange, "resourceVersion"));
  std::unique_lock lock(mutex_);
  if (seen < compacted_) {
    lock.unlock();
    return exchange.Reply(410, Gone());
  }
  const int ends = ends_;
  ++watches_;
  lock.unlock();
  bool there = exchange.Stream("\n");
  lock.lock();
  while (there && ends == ends_) {
    const bool old = seen < compacted_;
    const std::vector<Event> events = silent ? std::vector<Event>() : After(seen, collection);
    lock.unlock();
    if (old) there = exchange.Stream(Line("ERROR", Json::parse(Gone())));
    for (const Event& event : events) {
      there = exchange.Stream(event.line);
      seen = event.version;
    }
    there = there && !old && exchange.KeepSilent(absl::Milliseconds(2));
    lock.lock();
  }
  --watches_;
  const bool reset = reset_;
  lock.unlock();
  if (reset) return exchange.Reset();
  exchange.EndStream();
}

void FakeObjects::Create(FakeExchange& exchange, const std::string& collection) {
  Json object = Json::parse(exchange.request().body);
  const std::lock_guard lock(mutex_);
  const Key key{collection, NameOf(object)};
  if (objects_.contains(key)) {
    return exchange.Reply(409, StatusText(409, "AlreadyExists", key.second + " already exists"));
  }
  exchange.Reply(201, Dump(Store(key, std::move(object))));
}

void FakeObjects::Change(FakeExchange& exchange, const Key& key) {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(key);
  if (found == objects_.end()) {
    return exchange.Reply(404, StatusText(404, "NotFound", key.second + " not found"));
  }
  Json object = found->second;
  if (exchange.request().method == "DELETE") {
    Erase(key, true);
  } else if (exchange.request().method == "PATCH") {
    Json patch = Json::parse(exchange.request().body);
    const std::string version = VersionOf(patch);
    if (!version.empty() && version != VersionOf(object)) {
      return exchange.Reply(409, StatusText(409, "Conflict", "it has been modified"));
    }
    object.merge_patch(patch);
    object = Store(key, object);
  }
  exchange.Reply(200, Dump(object));
}

Json FakeObjects::Store(const Key& key, Json object) {
  const bool known = objects_.contains(key);
  object["metadata"]["resourceVersion"] = absl::StrCat(++version_);
  if (!known) object["metadata"]["uid"] = absl::StrCat("uid-", version_);
  objects_[key] = object;
  events_.push_back({version_, key.first, Line(known ? "MODIFIED" : "ADDED", object)});
  return object;
}

void FakeObjects::Erase(const Key& key, bool tell) {
  Json object = objects_[key];
  objects_.erase(key);
  object["metadata"]["resourceVersion"] = absl::StrCat(++version_);
  if (tell) events_.push_back({version_, key.first, Line("DELETED", object)});
}

Json FakeObjects::Put(const std::string& name, const std::string& value) {
  const std::lock_guard lock(mutex_);
  Json object = {{"metadata", {{"namespace", "ns"}, {"name", name}}}, {"value", value}};
  const auto known = objects_.find({kFakeObjectsPods, name});
  if (known != objects_.end()) object["metadata"]["uid"] = UidOf(known->second);
  return Store({kFakeObjectsPods, name}, object);
}

void FakeObjects::Remove(const std::string& name) {
  const std::lock_guard lock(mutex_);
  Erase({kFakeObjectsPods, name}, true);
}

void FakeObjects::RemoveSecretly(const std::string& name) {
  const std::lock_guard lock(mutex_);
  Erase({kFakeObjectsPods, name}, false);
}

void FakeObjects::Compact() {
  const std::lock_guard lock(mutex_);
  compacted_ = ++version_;
}

void FakeObjects::EndWatches(bool reset) {
  const std::lock_guard lock(mutex_);
  ++ends_;
  reset_ = reset;
}

void FakeObjects::Bookmark() {
  const std::lock_guard lock(mutex_);
  ++version_;
  events_.push_back({version_, kFakeObjectsPods, Line("BOOKMARK", VersionOnly(version_))});
}

uint64_t FakeObjects::version() const {
  const std::lock_guard lock(mutex_);
  return version_;
}

}  // namespace shirabe::kube
