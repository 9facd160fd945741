// A cluster in memory behind kube::Client: objects by kind, versions that grow, watches, status as
// a subresource. Enough for what crd/ asks of one; thread-safe.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "kube/api_client.h"

namespace shirabe::crd {

class FakeCluster : public kube::Client {
 public:
  using Json = kube::Json;

  // What people do with kubectl. Create gives it a uid; Edit counts the generation.
  Json Put(const kube::Resource& resource, const Json& object);
  void Edit(const kube::Ref& ref, const std::function<void(Json&)>& change);
  void Remove(const kube::Ref& ref);
  std::optional<Json> Find(const kube::Ref& ref);
  std::vector<Json> All(const std::string& plural);
  int writes(const std::string& plural);
  // A definition is applied: from now on FindResource finds the kind.
  void Define(const kube::Resource& resource);
  // How long the server takes to make an object, and how many it has made at the same time.
  void set_slowness(absl::Duration slowness) { slowness_ms_ = absl::ToInt64Milliseconds(slowness); }
  int most_made_at_once() const { return most_making_; }
  // Until it holds, 20 s at most; looked at whenever something changes here, and now and then.
  bool Await(const std::function<bool()>& holds);

  StatusOr<Json> Get(const kube::Ref& ref) override;
  StatusOr<Json> GetMetadata(const kube::Ref& ref) override;
  StatusOr<Json> List(const kube::Query& query) override;
  StatusOr<std::string> ListEach(const kube::Query& query,
                                 const std::function<void(Json&&)>& sink) override;
  StatusOr<Json> Create(const kube::Resource& resource, const Json& object) override;
  StatusOr<Json> Apply(const kube::Resource& resource, const Json& object,
                       const std::string& manager, const std::string& subresource) override;
  StatusOr<Json> Patch(const kube::Ref& ref, kube::PatchType type, const Json& patch,
                       const std::string& subresource) override;
  Status Delete(const kube::Ref& ref, const kube::DeleteOptions& options) override;
  Status DeleteCollection(const kube::Query& query, const kube::DeleteOptions& options) override;
  Status ReadLog(const kube::Ref& pod, const kube::LogOptions& options,
                 const std::function<bool(std::string_view)>& sink, std::stop_token stop) override;
  Status Watch(const kube::Query& query, const kube::WatchOptions& options,
               const std::function<void(const kube::WatchEvent&)>& sink,
               std::stop_token stop) override;
  StatusOr<kube::Resource> FindResource(const std::string& api_version,
                                        const std::string& kind) override;
  StatusOr<Json> GetPath(const std::string& path) override;

 private:
  using Key = std::tuple<std::string, std::string, std::string>;  // plural, namespace, name
  struct Happened {
    int64_t version = 0;
    std::string plural;
    kube::WatchEvent event;
  };
  static Key KeyOf(const kube::Ref& ref) {
    return {ref.resource.plural, ref.namespace_name, ref.name};
  }
  Json Store(const Key& key, Json object, kube::WatchEvent::Type type);
  void Erase(const Key& key);

  std::atomic<int64_t> slowness_ms_ = 0;
  std::atomic<int> making_ = 0;
  std::atomic<int> most_making_ = 0;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  int64_t version_ = 0;  // the rest is guarded by mutex_
  int64_t uids_ = 0;
  std::map<Key, Json> objects_;
  std::vector<Happened> history_;
  std::map<std::string, int> writes_;  // by Apply
  std::map<std::string, kube::Resource> kinds_;
};

}  // namespace shirabe::crd
