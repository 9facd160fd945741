// The client and the cache in front of a real API server, through a wire that plays bad days:
// whatever happened, once it is over the copy is what the server has. A storm that fails is printed
// with its seed; `SHIRABE_SEED=n` plays it again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "kube/watch_cache.h"
#include "tests/kube/await.h"
#include "tests/kube/fault_proxy.h"
#include "tests/kube/real_server.h"

namespace shirabe::kube {
namespace {

constexpr int kObjects = 20;
constexpr int kChanges = 400;
// The API server keeps no copy of these: what it is asked of them, it asks etcd.
const Resource kEvents{"", "v1", "events", "Event"};

using Versions = std::map<std::string, std::string>;  // by name

uint64_t SeedOfThisRun() {
  const char* text = std::getenv("SHIRABE_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

class RealServerFaults : public RealServer {
 protected:
  void SetUp() override {
    RealServer::SetUp();
    if (IsSkipped()) return;
    proxy_ = std::make_unique<FaultProxy>(config_);
    ClientOptions options;
    options.page = 5;
    options.backoff = absl::Milliseconds(20);
    auto client = Client::Create(proxy_->config(), RealClock(), options);
    ASSERT_TRUE(client.ok()) << client.status();
    through_ = *std::move(client);
  }
  void TearDown() override {
    if (HasFailure() && proxy_ != nullptr) std::cerr << proxy_->Story() << '\n';
    RealServer::TearDown();
  }

  Versions Truth(const Query& query) {
    Versions versions;
    const auto list = client_->List(query);
    EXPECT_TRUE(list.ok()) << list.status();
    if (!list.ok()) return versions;
    for (const Json& item : (*list)["items"]) versions[NameOf(item)] = VersionOf(item);
    return versions;
  }
  Versions Copy(const WatchCache& cache) {
    Versions versions;
    for (const Json& object : cache.All()) versions[NameOf(object)] = VersionOf(object);
    return versions;
  }

  Query Events() const { return {kEvents, namespace_, "", ""}; }
  Json Event(int i) const {
    return {{"apiVersion", "v1"},
            {"kind", "Event"},
            {"metadata", {{"namespace", namespace_}, {"name", absl::StrCat("e", i)}}},
            {"involvedObject", {{"kind", "Pod"}, {"namespace", namespace_}, {"name", "p"}}},
            {"reason", "Test"},
            {"message", std::string(500, 'x')}};
  }
  void MakeEvents(int from, int to) {
    for (int i = from; i < to; ++i) {
      const auto made = client_->Create(kEvents, Event(i));
      ASSERT_TRUE(made.ok()) << made.status();
    }
  }

  // etcd forgets all that was before now, as it does by itself every five minutes.
  void Compact() {
    const auto list = client_->List(Events());
    ASSERT_TRUE(list.ok()) << list.status();
    const auto etcd = Transport::Create({.server = "http://127.0.0.1:2379"}, RealClock(), {});
    ASSERT_TRUE(etcd.ok()) << etcd.status();
    const std::string body = Dump({{"revision", VersionOf(*list)}, {"physical", true}});
    const auto reply = (*etcd)->Call({"POST", "/v3/kv/compaction", "application/json", body},
                                     Idempotency::kNotIdempotent);
    ASSERT_TRUE(reply.ok()) << reply.status();
    ASSERT_EQ(reply->answer.status, 200) << reply->answer.body;
  }

  std::unique_ptr<FaultProxy> proxy_;
  std::unique_ptr<Client> through_;
};

// What on_change has told adds up to the same as the copy.
class Follower {
 public:
  Follower(Client* client, const Query& query, absl::Duration stall)
      : cache_(WatchCache::Start(
            {.client = client,
             .clock = RealClock(),
             .query = query,
             .on_change = [this](const Json& object, bool gone) { Hear(object, gone); },
             .stall = stall})) {}

  const WatchCache& cache() const { return *cache_; }
  WatchCache& cache() { return *cache_; }
  Versions told() const {
    const std::lock_guard lock(mutex_);
    return told_;
  }

 private:
  void Hear(const Json& object, bool gone) {
    const std::lock_guard lock(mutex_);
    if (gone) {
      told_.erase(NameOf(object));
    } else {
      told_[NameOf(object)] = VersionOf(object);
    }
  }
  mutable std::mutex mutex_;
  Versions told_;
  std::unique_ptr<WatchCache> cache_;
};

TEST_F(RealServerFaults, ACacheIsTheTruthOnceAStormIsOver) {
  const uint64_t seed = SeedOfThisRun();
  SCOPED_TRACE(absl::StrCat("play it again with SHIRABE_SEED=", seed));
  proxy_->Storm({.seed = seed, .share = 0.5, .stalls = true});
  std::vector<std::unique_ptr<Follower>> followers;
  for (int i = 0; i < 4; ++i) {
    followers.push_back(
        std::make_unique<Follower>(through_.get(), Maps(), absl::Milliseconds(700)));
  }
  Rng rng(seed);
  for (int i = 0; i < kChanges; ++i) {
    const std::string name = absl::StrCat("m", rng.Below(kObjects));
    if (rng.Uniform() < 0.4) {
      (void)client_->Delete(At(name), {});
    } else {
      ASSERT_TRUE(client_->Apply(kConfigMaps, Map(name, absl::StrCat(i)), "test", "").ok());
    }
    Pause(absl::Milliseconds(10));
  }
  proxy_->Calm();
  const Versions truth = Truth(Maps());
  WatchCache::Counts all;
  for (const auto& follower : followers) {
    EXPECT_TRUE(Await([&] { return Copy(follower->cache()) == truth && follower->told() == truth; },
                      absl::Minutes(1)))
        << follower->cache().LastError();
    EXPECT_EQ(Copy(follower->cache()), truth);
    EXPECT_EQ(follower->told(), truth);
    all.lists += follower->cache().counts().lists;
    all.stalls += follower->cache().counts().stalls;
  }
  EXPECT_GT(all.lists, 8);
  EXPECT_GT(all.stalls, 0);
}

// A write is done once, whatever was said of it, and its answer is the object.
TEST_F(RealServerFaults, WritesAreDoneOnceWhateverIsSaidOfThem) {
  for (const Fault fault : {Fault::kBusy, Fault::kUnavailable, Fault::kBroken, Fault::kCut,
                            Fault::kDoneBroken, Fault::kDoneTimeout, Fault::kDoneCut}) {
    const std::string name = absl::StrCat("w", static_cast<int>(fault));
    SCOPED_TRACE(name);
    proxy_->Inject(fault, "POST configmaps");
    const auto made = through_->Create(kConfigMaps, Map(name, "1"));
    const bool twice = absl::IsAlreadyExists(made.status());
    EXPECT_TRUE(made.ok() || twice) << made.status();
    EXPECT_TRUE(client_->Get(At(name)).ok());
    proxy_->Inject(fault, "PATCH configmaps");
    const auto applied = through_->Apply(kConfigMaps, Map(name, "2"), "test", "");
    ASSERT_TRUE(applied.ok()) << applied.status();
    EXPECT_EQ(Text(*applied, {"data", "value"}), "2");
    proxy_->Inject(fault, "DELETE configmaps");
    EXPECT_EQ(through_->Delete(At(name), {.uid = UidOf(*applied)}), absl::OkStatus());
    EXPECT_TRUE(absl::IsNotFound(client_->Get(At(name)).status()));
  }
}

// A watch is cut; what it would go on from is compacted away before it is back.
TEST_F(RealServerFaults, ACompactedWatchListsAnewAndTellsWhatHasGone) {
  MakeEvents(0, 7);
  proxy_->Inject(Fault::kTorn, "WATCH events");
  proxy_->Hold("WATCH events", FaultProxy::When::kBefore, 2);
  Follower follower(through_.get(), Events(), absl::Minutes(2));
  ASSERT_EQ(follower.cache().AwaitSynced(absl::Seconds(20)), absl::OkStatus());
  ASSERT_EQ(follower.told().size(), 7u);
  const auto before = client_->List(Events());
  MakeEvents(7, 12);  // tears the first watch
  ASSERT_TRUE(proxy_->AwaitHeld(absl::Seconds(20)));
  ASSERT_EQ(client_->Delete({kEvents, namespace_, "e0"}, {}), absl::OkStatus());
  ASSERT_EQ(client_->Delete({kEvents, namespace_, "e1"}, {}), absl::OkStatus());
  MakeEvents(12, 15);
  Compact();
  const Status old = client_->Watch(Events(), {VersionOf(*before), absl::Seconds(5)},
                                    [](const WatchEvent&) {}, {});
  EXPECT_TRUE(absl::IsOutOfRange(old)) << old;
  proxy_->Release();
  const Versions truth = Truth(Events());
  EXPECT_TRUE(Await([&] { return follower.told() == truth; })) << follower.cache().LastError();
  EXPECT_EQ(Copy(follower.cache()), truth);
  EXPECT_EQ(follower.told().count("e0"), 0u);
  EXPECT_EQ(follower.cache().counts().lists, 2);
  EXPECT_EQ(follower.cache().counts().stalls, 0);
}

// A list of several pages, whose next page is of a time that etcd has forgotten.
TEST_F(RealServerFaults, AListThatExpiresBetweenItsPagesBeginsAgain) {
  MakeEvents(0, 12);
  proxy_->Hold("LIST events", FaultProxy::When::kBefore, 2);
  Follower follower(through_.get(), Events(), absl::Minutes(2));
  ASSERT_TRUE(proxy_->AwaitHeld(absl::Seconds(20)));
  ASSERT_EQ(client_->Delete({kEvents, namespace_, "e0"}, {}), absl::OkStatus());
  MakeEvents(12, 14);
  Compact();
  proxy_->Release();
  const Versions truth = Truth(Events());
  EXPECT_TRUE(Await([&] { return follower.told() == truth; })) << follower.cache().LastError();
  EXPECT_EQ(Copy(follower.cache()), truth);
  EXPECT_THAT(proxy_->Story(), testing::HasSubstr("LIST events : 410"));
}

}  // namespace
}  // namespace shirabe::kube
