// Objects behind a FakeApiServer: what lists, watches, creates, merge patches and deletes do on a
// real one, in as far as our client depends on it, with the faults that a test asks for.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tests/kube/fake_api_server.h"

namespace shirabe::kube {

class FakeObjects {
 public:
  // The handler of the server.
  void Handle(FakeExchange& exchange);

  // From outside, in the collection "/api/v1/pods": the object as it is then.
  Json Put(const std::string& name, const std::string& value);
  void Remove(const std::string& name);
  // Without telling the watches, as if they had missed it.
  void RemoveSecretly(const std::string& name);
  // Watches that begin before now are too old, and those that run are told so.
  void Compact();
  // Ends what watches there are: in order, or with a reset.
  void EndWatches(bool reset = false);
  void Bookmark();
  int watches() const { return watches_; }
  uint64_t version() const;

  std::atomic<bool> silent = false;       // watches are accepted, and never told anything
  std::atomic<bool> refusing = false;     // everything is answered 500
  std::atomic<int> expire_continues = 0;  // so many are answered 410

 private:
  struct Event {
    uint64_t version;
    std::string collection;
    std::string line;
  };
  using Key = std::pair<std::string, std::string>;  // collection, name

  void List(FakeExchange& exchange, const std::string& collection);
  void Watch(FakeExchange& exchange, const std::string& collection);
  void Create(FakeExchange& exchange, const std::string& collection);
  void Change(FakeExchange& exchange, const Key& key);
  Json Store(const Key& key, Json object);
  void Erase(const Key& key, bool tell);
  std::vector<Event> After(uint64_t version, const std::string& collection) const;

  mutable std::mutex mutex_;
  std::map<Key, Json> objects_;
  std::vector<Event> events_;
  uint64_t version_ = 100;
  uint64_t compacted_ = 0;
  int ends_ = 0;  // how often EndWatches was called
  bool reset_ = false;
  std::atomic<int> watches_ = 0;
};

}  // namespace shirabe::kube
