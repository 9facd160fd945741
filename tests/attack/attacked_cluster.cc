#include "tests/attack/attacked_cluster.h"

#include <tuple>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace shirabe::attack {
namespace {

using kube::Json;

std::string QueryOf(const kube::FakeExchange& exchange, const std::string& name) {
  const auto& query = exchange.request().query;
  const auto found = query.find(name);
  return found == query.end() ? "" : found->second;
}

void NotFound(kube::FakeExchange& exchange, const std::string& name) {
  exchange.Reply(404, kube::StatusText(404, "NotFound", name + " not found"));
}

}  // namespace

AttackedCluster::Place AttackedCluster::Parse(const std::string& path) {
  std::vector<std::string> parts = absl::StrSplit(path, '/', absl::SkipEmpty());
  Place place;
  const size_t group = !parts.empty() && parts[0] == "api" ? 2 : 3;
  parts.resize(std::max(parts.size(), group));
  for (size_t i = 0; i < group; ++i) place.group += "/" + parts[i];
  parts.erase(parts.begin(), parts.begin() + static_cast<int64_t>(group));
  if (parts.size() > 2 && parts[0] == "namespaces") {
    place.ns = parts[1];
    parts.erase(parts.begin(), parts.begin() + 2);
  }
  parts.resize(3);
  place.plural = parts[0];
  place.name = parts[1];
  place.sub = parts[2];
  return place;
}

bool AttackedCluster::Selects(const Place& collection, const std::string& selector,
                              const Place& place, const Json& object) {
  if (place.group != collection.group || place.plural != collection.plural) return false;
  if (!collection.ns.empty() && collection.ns != place.ns) return false;
  const Json* labels = FindAt(object, {"metadata", "labels"});
  for (const absl::string_view term : absl::StrSplit(selector, ',', absl::SkipEmpty())) {
    const std::vector<std::string> sides = absl::StrSplit(term, absl::MaxSplits('=', 1));
    if (labels == nullptr || !labels->contains(sides[0])) return false;
    if (sides.size() == 2 && (*labels)[sides[0]] != sides[1]) return false;
  }
  return true;
}

void AttackedCluster::Handle(kube::FakeExchange& exchange) {
  const kube::FakeRequest& request = exchange.request();
  if (away) return exchange.Reset();
  const Place place = Parse(request.path);
  if (request.method != "GET") {
    const auto user = request.headers.find("impersonate-user");
    const std::lock_guard lock(mutex_);
    writes_.push_back({request.method, place.ns, place.plural,
                       user == request.headers.end() ? "" : user->second});
  }
  if (place.plural.empty()) return exchange.Reply(200, kube::Dump({{"resources", kinds}}));
  if (request.method == "POST") return Create(exchange, place);
  if (!place.name.empty()) return Change(exchange, place);
  if (QueryOf(exchange, "watch") == "true") return Watch(exchange, place);
  List(exchange, place);
}

void AttackedCluster::List(kube::FakeExchange& exchange, const Place& place) {
  const std::lock_guard lock(mutex_);
  Json list = {{"metadata", {{"resourceVersion", std::to_string(version_)}}},
               {"items", Json::array()}};
  for (const auto& [at, object] : objects_) {
    if (Selects(place, QueryOf(exchange, "labelSelector"), at, object)) {
      list["items"].push_back(object);
    }
  }
  exchange.Reply(200, kube::Dump(list));
}

void AttackedCluster::Watch(kube::FakeExchange& exchange, const Place& place) {
  int64_t seen = 0;
  (void)absl::SimpleAtoi(QueryOf(exchange, "resourceVersion"), &seen);
  const std::string selector = QueryOf(exchange, "labelSelector");
  bool there = exchange.Stream("\n");
  while (there && !away) {
    std::vector<std::string> lines;
    {
      const std::lock_guard lock(mutex_);
      for (const Event& event : events_) {
        if (event.version <= seen || !Selects(place, selector, event.place, event.object)) continue;
        lines.push_back(kube::Dump({{"type", event.type}, {"object", event.object}}) + "\n");
      }
      seen = version_;
    }
    for (const std::string& line : lines) there = there && exchange.Stream(line);
    there = there && exchange.KeepSilent(absl::Milliseconds(5));
  }
  if (away) return exchange.Reset();
  exchange.EndStream();
}

void AttackedCluster::Create(kube::FakeExchange& exchange, Place place) {
  Json object = Json::parse(exchange.request().body, nullptr, false);
  if (place.group != "/api/v1" && place.plural.ends_with("reviews")) {
    const bool known = !known_token.empty() && (Text(object, {"spec", "token"}) == known_token ||
                                                Text(object, {"spec", "user"}) == "somebody");
    object["status"] = {{"authenticated", known},
                        {"allowed", known},
                        {"user", {{"username", "somebody"}}},
                        {"audiences", Json::array({"shirabe"})}};
    return exchange.Reply(201, kube::Dump(object));
  }
  const std::lock_guard lock(mutex_);
  place.name = kube::NameOf(object);
  if (objects_.contains(place)) {
    return exchange.Reply(409,
                          kube::StatusText(409, "AlreadyExists", place.name + " already exists"));
  }
  exchange.Reply(201, kube::Dump(Store(place, std::move(object))));
}

void AttackedCluster::Change(kube::FakeExchange& exchange, const Place& place) {
  const kube::FakeRequest& request = exchange.request();
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(place);
  const auto type = request.headers.find("content-type");
  const std::string content = type == request.headers.end() ? "" : type->second;
  if (found == objects_.end()) {
    if (request.method != "PATCH" || content.find("apply") == content.npos || !place.sub.empty()) {
      return NotFound(exchange, place.name);
    }
    return exchange.Reply(201, kube::Dump(Store(place, Json::parse(request.body, nullptr, false))));
  }
  if (place.sub == "log") return exchange.Reply(200, "");
  Json object = found->second;
  if (request.method == "DELETE") {
    Erase(place);
  } else if (request.method == "PATCH") {
    const Json patch = Json::parse(request.body, nullptr, false);
    if (patch.is_array()) {
      object = object.patch(patch);
    } else {
      object.merge_patch(patch);
    }
    object = Store(place, object);
  }
  exchange.Reply(200, kube::Dump(object));
}

Json AttackedCluster::Store(const Place& place, Json object) {
  Place at = place;
  at.sub.clear();
  const auto known = objects_.find(at);
  Json& metadata = object["metadata"];
  metadata["resourceVersion"] = std::to_string(++version_);
  if (!place.ns.empty()) metadata["namespace"] = place.ns;
  const bool changed = known != objects_.end() &&
                       known->second.value("spec", Json()) != object.value("spec", Json());
  if (known == objects_.end()) {
    if (kube::UidOf(object).empty()) metadata["uid"] = absl::StrCat("uid-", version_);
    metadata["generation"] = 1;
  } else {
    metadata["uid"] = kube::UidOf(known->second);
    const int64_t before = Number(known->second, {"metadata", "generation"});
    metadata["generation"] = before + (changed ? 1 : 0);
  }
  events_.push_back({version_, known == objects_.end() ? "ADDED" : "MODIFIED", at, object});
  objects_[at] = object;
  return object;
}

void AttackedCluster::Erase(const Place& place) {
  Place at = place;
  at.sub.clear();
  const auto found = objects_.find(at);
  if (found == objects_.end()) return;
  Json object = std::move(found->second);
  objects_.erase(found);
  object["metadata"]["resourceVersion"] = std::to_string(++version_);
  events_.push_back({version_, "DELETED", at, std::move(object)});
}

Json AttackedCluster::Put(const std::string& collection, const Json& object) {
  Place place = Parse(collection);
  // Whatever it is called: nobody has checked it.
  place.name = kube::NameOf(object);
  const std::lock_guard lock(mutex_);
  return Store(place, object);
}

void AttackedCluster::Remove(const std::string& path) {
  const std::lock_guard lock(mutex_);
  Erase(Parse(path));
}

std::vector<AttackedCluster::Written> AttackedCluster::Writes() const {
  const std::lock_guard lock(mutex_);
  return writes_;
}

Json AttackedCluster::Find(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(Parse(path));
  return found == objects_.end() ? Json() : found->second;
}

std::vector<Json> AttackedCluster::All(const std::string& plural) const {
  const std::lock_guard lock(mutex_);
  std::vector<Json> all;
  for (const auto& [place, object] : objects_) {
    if (place.plural == plural) all.push_back(object);
  }
  return all;
}

}  // namespace shirabe::attack
