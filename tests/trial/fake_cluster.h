// A Kubernetes API server in memory, as kube::Client shows it, for tests of what stands on one: it
// keeps objects, finalizers and deletions, tells watchers, and fails as it is told to. Nobody runs
// pods: a test says what becomes of them. Thread-safe.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "kube/api_client.h"

namespace shirabe::kube {

class FakeCluster : public Client {
 public:
  ~FakeCluster() override = default;

  StatusOr<Json> Get(const Ref& ref) override;
  StatusOr<Json> GetMetadata(const Ref& ref) override;
  StatusOr<Json> List(const Query& query) override;
  StatusOr<std::string> ListEach(const Query& query,
                                 const std::function<void(Json&&)>& sink) override;
  StatusOr<Json> Create(const Resource& resource, const Json& object) override;
  StatusOr<Json> Apply(const Resource& resource, const Json& object, const std::string& manager,
                       const std::string& subresource) override;
  StatusOr<Json> Patch(const Ref& ref, PatchType type, const Json& patch,
                       const std::string& subresource) override;
  Status Delete(const Ref& ref, const DeleteOptions& options) override;
  Status DeleteCollection(const Query& query, const DeleteOptions& options) override;
  Status ReadLog(const Ref& pod, const LogOptions& options,
                 const std::function<bool(std::string_view)>& sink, std::stop_token stop) override;
  Status Watch(const Query& query, const WatchOptions& options,
               const std::function<void(const WatchEvent&)>& sink, std::stop_token stop) override;
  StatusOr<Resource> FindResource(const std::string& api_version, const std::string& kind) override;
  StatusOr<Json> GetPath(const std::string& path) override;

  // ---- what a test does ------------------------------------------------------------------------

  // Called before a verb ("create", "delete", "patch", "get", "list", "log") is carried out: not OK
  // is its answer. And after it was: not OK is the answer to what has happened all the same.
  // Both may be set at any time.
  using Fault = std::function<Status(const std::string& verb, const Ref& ref)>;
  class Hook {
   public:
    void operator=(Fault fault) {
      std::lock_guard lock(mutex_);
      fault_ = std::move(fault);
    }
    Status operator()(const std::string& verb, const Ref& ref) {
      std::unique_lock lock(mutex_);
      const Fault fault = fault_;
      lock.unlock();
      return fault ? fault(verb, ref) : absl::OkStatus();
    }

   private:
    std::mutex mutex_;
    Fault fault_;
  };
  Hook before;
  Hook after;

  // Writes an object as it is, new or not, as a controller would.
  void Put(const Resource& resource, Json object);
  // As the kubelet does once a pod has ended that was deleted, or force: it is gone, unless a
  // finalizer keeps it.
  void Remove(const Ref& ref, bool force = false);
  // Ends all watches; those that begin again find versions before now too old if `expire`.
  void BreakWatches(bool expire);
  void AddKind(const Resource& resource);
  // What GetPath gives; else an empty object.
  void Publish(const std::string& path, Json document);
  // A token that a TokenReview knows: bound to a pod, for the audience of pods.
  void SetToken(const std::string& token, const std::string& namespace_name,
                const std::string& pod_uid);
  void SetLog(const std::string& pod, const std::string& container, std::string text);

  std::vector<Json> All(const Resource& resource);
  int Calls(const std::string& verb);
  // The grace periods that pods were deleted with, -1 for none.
  std::vector<double> graces();
  // How each deletion was to go on to what the object owns.
  std::vector<std::string> propagations();

 private:
  using Key = std::tuple<std::string, std::string, std::string>;  // kind, namespace, name
  struct Change {
    int64_t version = 0;
    std::string kind;
    WatchEvent event;
  };

  StatusOr<Json> Review(Json review);
  // With mutex_ held.
  Json& Write(const Key& key, Json object, WatchEvent::Type type);
  void Erase(const Key& key);
  void MarkDeleted(const Key& key, const DeleteOptions& options);
  void CollectGarbage(const Json& owner);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  // These are guarded by mutex_.
  std::map<Key, Json> objects_;
  std::vector<Change> changes_;
  std::map<std::string, std::string> logs_;
  std::map<std::string, Json> published_;                              // by path
  std::map<std::string, std::pair<std::string, std::string>> tokens_;  // namespace and pod's uid
  std::vector<Resource> kinds_;
  std::map<std::string, int> calls_;
  std::vector<double> graces_;
  std::vector<std::string> propagations_;
  int64_t version_ = 0;
  int64_t oldest_ = 0;  // of a watch
  int epoch_ = 0;       // of the watches
};

}  // namespace shirabe::kube
