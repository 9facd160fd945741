// The cache against a server that forgets, hangs up and keeps silent.
#include "kube/watch_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "tests/kube/await.h"
#include "tests/kube/fake_api_server.h"
#include "tests/kube/fake_objects.h"

namespace shirabe::kube {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Resource kPods{"", "v1", "pods", "Pod"};

class CacheTest : public testing::Test {
 protected:
  CacheTest() : server_([this](FakeExchange& exchange) { objects_.Handle(exchange); }) {
    ClientOptions options;
    options.backoff = absl::Milliseconds(1);
    options.tries = 2;
    auto client = Client::Create(server_.config(), RealClock(), options);
    EXPECT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }

  // "a=1" for what is there, "-a" for what went.
  void Start(absl::Duration stall = absl::Minutes(2)) {
    cache_ = WatchCache::Start({.client = client_.get(),
                                .clock = RealClock(),
                                .query = {kPods},
                                .trim = [](Json& pod) { pod.erase("bulk"); },
                                .on_change =
                                    [this](const Json& object, bool deleted) {
                                      const std::lock_guard lock(mutex_);
                                      told_.push_back(deleted ? "-" + NameOf(object)
                                                              : NameOf(object) + "=" +
                                                                    Text(object, {"value"}));
                                    },
                                .stall = stall});
  }
  void StartSynced() {
    Start();
    ASSERT_EQ(cache_->AwaitSynced(absl::Seconds(20)), absl::OkStatus());
    ASSERT_TRUE(Await([&] { return objects_.watches() == 1; }));
  }
  std::vector<std::string> told() const {
    const std::lock_guard lock(mutex_);
    return told_;
  }
  // That were ever begun.
  int Watches() const {
    const auto all = server_.requests();
    return static_cast<int>(std::count_if(all.begin(), all.end(), [](const std::string& one) {
      return one.find("watch=true") != std::string::npos;
    }));
  }
  bool AwaitTold(const std::string& last) const {
    return Await([&] {
      const auto all = told();
      return !all.empty() && all.back() == last;
    });
  }
  std::string ValueOf(const std::string& name) const {
    const auto found = cache_->Find("ns", name);
    return found ? Text(*found, {"value"}) : "none";
  }

  FakeObjects objects_;
  FakeApiServer server_;
  std::unique_ptr<Client> client_;
  mutable std::mutex mutex_;
  std::vector<std::string> told_;
  std::unique_ptr<WatchCache> cache_;  // last: its thread uses the rest
};

TEST_F(CacheTest, Follows) {
  objects_.Put("a", "1");
  StartSynced();
  objects_.Put("b", "1");
  objects_.Put("a", "2");
  objects_.Remove("b");
  ASSERT_TRUE(AwaitTold("-b"));
  EXPECT_THAT(told(), ElementsAre("a=1", "b=1", "a=2", "-b"));
  EXPECT_EQ(ValueOf("a"), "2");
  EXPECT_EQ(ValueOf("b"), "none");
  EXPECT_EQ(cache_->size(), 1u);
  EXPECT_EQ(cache_->All().size(), 1u);
  EXPECT_EQ(cache_->LastError(), "");
  EXPECT_EQ(cache_->counts().lists, 1);
}

TEST_F(CacheTest, ListsAgainWhatHasBecomeTooOld) {
  objects_.Put("a", "1");
  objects_.Put("b", "1");
  StartSynced();
  objects_.RemoveSecretly("a");
  objects_.Put("c", "1");
  objects_.Compact();  // an ERROR event in the stream
  ASSERT_TRUE(AwaitTold("-a"));
  EXPECT_THAT(told(), testing::UnorderedElementsAre("a=1", "b=1", "c=1", "-a"));
  EXPECT_EQ(cache_->counts().lists, 2);
  // And where the watch is refused before it begins.
  ASSERT_TRUE(Await([&] { return objects_.watches() == 1; }));
  objects_.refusing = true;
  objects_.EndWatches();
  ASSERT_TRUE(Await([&] { return !cache_->LastError().empty(); }));
  objects_.RemoveSecretly("b");
  objects_.Compact();
  objects_.refusing = false;
  EXPECT_TRUE(AwaitTold("-b"));
  EXPECT_TRUE(Await([&] { return cache_->LastError().empty(); }));
}

TEST_F(CacheTest, GoesOnWhereAWatchEnded) {
  StartSynced();
  for (int i = 0; i < 3; ++i) {
    objects_.Put("a", absl::StrCat(i));
    ASSERT_TRUE(AwaitTold(absl::StrCat("a=", i)));
    objects_.EndWatches(i % 2 == 1);  // in order, and with a reset
    ASSERT_TRUE(Await([&] { return Watches() == i + 2; }));
  }
  objects_.Put("b", "x");
  ASSERT_TRUE(AwaitTold("b=x"));
  EXPECT_THAT(told(), ElementsAre("a=0", "a=1", "a=2", "b=x"));
  EXPECT_EQ(cache_->counts().lists, 1);
}

TEST_F(CacheTest, BookmarksMoveItOn) {
  objects_.Put("a", "1");
  StartSynced();
  objects_.Bookmark();
  ASSERT_TRUE(Await([&] { return cache_->counts().events == 1; }));
  objects_.EndWatches();
  const std::string from = absl::StrCat("resourceVersion=", objects_.version());
  EXPECT_TRUE(Await([&] { return server_.requests().back().find(from) != std::string::npos; }));
  EXPECT_EQ(cache_->size(), 1u);
}

TEST_F(CacheTest, GivesUpASilentWatch) {
  objects_.Put("a", "1");
  objects_.silent = true;
  Start(absl::Milliseconds(200));
  ASSERT_EQ(cache_->AwaitSynced(absl::Seconds(20)), absl::OkStatus());
  objects_.Put("a", "2");
  EXPECT_TRUE(AwaitTold("a=2"));  // by a list
  EXPECT_GE(cache_->counts().stalls, 1);
}

TEST_F(CacheTest, DoesNotHammerAServerThatIsBroken) {
  objects_.refusing = true;
  Start();
  const Status waiting = cache_->AwaitSynced(absl::Seconds(2));
  EXPECT_FALSE(waiting.ok());
  // Two tries each after 0, 0.2, 0.4, 0.8 and 1.6 seconds, more or less.
  EXPECT_LE(server_.requests().size(), 14u);
  EXPECT_THAT(cache_->LastError(), HasSubstr("list pods: it is broken"));
  objects_.refusing = false;
  EXPECT_EQ(cache_->AwaitSynced(absl::Seconds(20)), absl::OkStatus());
  EXPECT_EQ(cache_->LastError(), "");
}

TEST_F(CacheTest, DoesNotHammerWithWatchesThatEndAtOnce) {
  StartSynced();
  const int before = server_.Count("GET");
  for (int i = 0; i < 200; ++i) {
    objects_.EndWatches();
    Pause(absl::Milliseconds(5));
  }
  EXPECT_LE(server_.Count("GET") - before, 20);
}

TEST_F(CacheTest, ReadsOurOwnWrites) {
  StartSynced();
  objects_.silent = true;
  const Json first = objects_.Put("a", "1");
  const Json second = objects_.Put("a", "2");
  cache_->Put(second);
  EXPECT_EQ(ValueOf("a"), "2");
  cache_->Put(first);  // older
  EXPECT_EQ(ValueOf("a"), "2");
  EXPECT_THAT(told(), IsEmpty());  // whoever writes knows
  objects_.silent = false;
  ASSERT_TRUE(AwaitTold("a=2"));
  EXPECT_THAT(told(), ElementsAre("a=2"));  // the older event is of no use to anybody
}

TEST_F(CacheTest, DoesNotBringBackWhatHasEnded) {
  StartSynced();
  const Json put = objects_.Put("a", "1");
  objects_.Remove("a");
  ASSERT_TRUE(AwaitTold("-a"));
  cache_->Put(put);
  EXPECT_EQ(cache_->size(), 0u);
  // One of the same name is another one.
  cache_->Put(objects_.Put("a", "2"));
  EXPECT_EQ(ValueOf("a"), "2");
}

TEST_F(CacheTest, KeepsOnlyWhatIsWanted) {
  StartSynced();
  Json pod = objects_.Put("a", "1");
  pod["bulk"] = "much";
  pod["metadata"]["managedFields"] = Json::array({1, 2, 3});
  cache_->Put(pod);
  const auto kept = cache_->Find("ns", "a");
  ASSERT_TRUE(kept.has_value());
  EXPECT_FALSE(kept->contains("bulk"));
  EXPECT_FALSE((*kept)["metadata"].contains("managedFields"));
}

TEST_F(CacheTest, EndsAtOnce) {
  StartSynced();
  const absl::Duration begun = RealClock()->Monotonic();
  cache_.reset();
  EXPECT_LT(RealClock()->Monotonic() - begun, absl::Seconds(2));
}

}  // namespace
}  // namespace shirabe::kube
