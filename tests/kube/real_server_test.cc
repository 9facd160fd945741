// Against a real API server: the one of $SHIRABE_TEST_KUBECONFIG, which tests/cluster/run.sh sets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "kube/leader_election.h"
#include "kube/watch_cache.h"
#include "tests/kube/await.h"
#include "tests/kube/real_server.h"
#include "tests/support/paths.h"

namespace shirabe::kube {
namespace {

using testing::HasSubstr;

TEST_F(RealServer, CreatesReadsAndDeletes) {
  const auto made = client_->Create(kConfigMaps, Map("a", "1"));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_FALSE(UidOf(*made).empty());
  const auto read = client_->Get(At("a"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(Text(*read, {"data", "value"}), "1");
  EXPECT_TRUE(absl::IsAlreadyExists(client_->Create(kConfigMaps, Map("a", "2")).status()));

  const Status other = client_->Delete(At("a"), {.uid = "00000000-0000-0000-0000-000000000000"});
  EXPECT_TRUE(absl::IsAborted(other)) << other;
  EXPECT_EQ(client_->Delete(At("a"), {.uid = UidOf(*made)}), absl::OkStatus());
  const Status gone = client_->Get(At("a")).status();
  EXPECT_TRUE(absl::IsNotFound(gone)) << gone;
  EXPECT_THAT(Message(gone), HasSubstr("get ConfigMap " + namespace_ + "/a"));
  EXPECT_TRUE(absl::IsNotFound(client_->Delete(At("a"), {})));
}

TEST_F(RealServer, DeletesWhatALabelSelects) {
  for (const char* name : {"a", "b", "c"}) {
    Json map = Map(name, "1");
    map["metadata"]["labels"]["name"] = name;
    ASSERT_TRUE(client_->Create(kConfigMaps, map).ok());
  }
  EXPECT_EQ(client_->DeleteCollection({kConfigMaps, namespace_, "name in (a,c,d)", ""}, {}),
            absl::OkStatus());
  EXPECT_TRUE(absl::IsNotFound(client_->Get(At("a")).status()));
  EXPECT_TRUE(absl::IsNotFound(client_->Get(At("c")).status()));
  EXPECT_TRUE(client_->Get(At("b")).ok());
}

TEST_F(RealServer, GivesMetadataAlone) {
  ASSERT_TRUE(client_->Create(kConfigMaps, Map("a", "1")).ok());
  const auto read = client_->GetMetadata(At("a"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(NameOf(*read), "a");
  EXPECT_EQ(read->size(), 1u);
  EXPECT_TRUE(absl::IsNotFound(client_->GetMetadata(At("b")).status()));
}

TEST_F(RealServer, ListsPageByPage) {
  ClientOptions small;
  small.page = 7;
  const auto client = Make(small);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(client_->Create(kConfigMaps, Map(absl::StrCat("m", i), "x")).ok());
  }
  const auto list = client->List(Maps());
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ((*list)["items"].size(), 20u);
  EXPECT_EQ((*list)["items"][0]["kind"], "ConfigMap");
  EXPECT_EQ((*list)["items"][0]["apiVersion"], "v1");
  EXPECT_FALSE(VersionOf(*list).empty());
  const auto one = client->List({kConfigMaps, namespace_, "", "metadata.name=m3"});
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ((*one)["items"].size(), 1u);
  const auto none = client->List({kConfigMaps, namespace_, "t=none", ""});
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ((*none)["items"].size(), 0u);
}

TEST_F(RealServer, AppliesAndPatches) {
  const auto applied = client_->Apply(kConfigMaps, Map("a", "1"), "shirabe-test", "");
  ASSERT_TRUE(applied.ok()) << applied.status();
  const auto again = client_->Apply(kConfigMaps, Map("a", "2"), "shirabe-test", "");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(Text(*again, {"data", "value"}), "2");

  const Json late = {{"metadata", {{"resourceVersion", VersionOf(*applied)}}},
                     {"data", {{"value", "3"}}}};
  const Status conflict = client_->Patch(At("a"), PatchType::kMerge, late, "").status();
  EXPECT_TRUE(absl::IsAborted(conflict)) << conflict;

  const auto test_and_set = [&](const std::string& version) {
    return client_->Patch(
        At("a"), PatchType::kJson,
        Json::array({{{"op", "test"}, {"path", "/metadata/resourceVersion"}, {"value", version}},
                     {{"op", "add"}, {"path", "/data/more"}, {"value", "x"}}}),
        "");
  };
  EXPECT_TRUE(absl::IsAborted(test_and_set("1").status())) << test_and_set("1").status();
  const auto set = test_and_set(VersionOf(*again));
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(Text(*set, {"data", "more"}), "x");
}

TEST_F(RealServer, SaysWhatTheServerRefuses) {
  Json pod = {{"apiVersion", "v1"},
              {"kind", "Pod"},
              {"metadata", {{"namespace", namespace_}, {"name", "p"}}},
              {"spec", {{"containers", Json::array({{{"name", "UPPER"}}})}}}};
  const Status refused = client_->Create(kPods, pod).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(Message(refused), HasSubstr("spec.containers[0].name"));

  Config nobody = config_;
  nobody.certificate = nobody.key = "";
  nobody.token = "not-a-token-of-this-cluster";
  const auto client = Client::Create(nobody, RealClock());
  ASSERT_TRUE(client.ok());
  const Status denied = (*client)->Get(At("a")).status();
  EXPECT_TRUE(absl::IsPermissionDenied(denied)) << denied;
  EXPECT_THAT(Message(denied), testing::Not(HasSubstr("not-a-token")));
}

TEST_F(RealServer, WritesAStatus) {
  const Resource nodes{"", "v1", "nodes", "Node", false};
  const std::string name = namespace_;
  const auto made = client_->Create(
      nodes, {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", name}}}});
  ASSERT_TRUE(made.ok()) << made.status();
  const Json status = {{"apiVersion", "v1"},
                       {"kind", "Node"},
                       {"metadata", {{"name", name}}},
                       {"status", {{"capacity", {{"example.com/gpu", "2"}}}}}};
  const auto applied = client_->Apply(nodes, status, "shirabe-test", "status");
  EXPECT_TRUE(applied.ok()) << applied.status();
  if (applied.ok()) {
    EXPECT_EQ(Text(*applied, {"status", "capacity", "example.com/gpu"}), "2");
  }
  EXPECT_EQ(client_->Delete({nodes, "", name}, {}), absl::OkStatus());
}

TEST_F(RealServer, KnowsItsKinds) {
  const auto job = client_->FindResource("batch/v1", "Job");
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->plural, "jobs");
  EXPECT_TRUE(job->namespaced);
  const auto node = client_->FindResource("v1", "Node");
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_FALSE(node->namespaced);
  const Status missing = client_->FindResource("kubeflow.org/v1", "PyTorchJob").status();
  EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
  EXPECT_THAT(Message(missing), HasSubstr("kubeflow.org/v1"));
  EXPECT_TRUE(absl::IsNotFound(client_->FindResource("v1", "Pot").status()));
  EXPECT_TRUE(client_->GetPath("/version").ok());
}

TEST_F(RealServer, WatchIsStoppedAtOnce) {
  const auto list = client_->List(Maps());
  ASSERT_TRUE(list.ok());
  std::stop_source stop;
  std::atomic<int> seen = 0;
  Status ended;
  std::thread thread([&] {
    ended = client_->Watch(
        Maps(), {VersionOf(*list)}, [&](const WatchEvent&) { ++seen; }, stop.get_token());
  });
  ASSERT_TRUE(client_->Create(kConfigMaps, Map("w", "1")).ok());
  EXPECT_TRUE(Await([&] { return seen == 1; }));
  const absl::Duration begun = RealClock()->Monotonic();
  stop.request_stop();
  thread.join();
  EXPECT_LT(RealClock()->Monotonic() - begun, absl::Seconds(2));
  EXPECT_TRUE(absl::IsCancelled(ended)) << ended;
}

TEST_F(RealServer, CacheFollows) {
  ASSERT_TRUE(client_->Create(kConfigMaps, Map("a", "1")).ok());
  std::mutex mutex;
  std::set<std::string> deleted;
  const auto cache = WatchCache::Start({.client = client_.get(),
                                        .clock = RealClock(),
                                        .query = Maps(),
                                        .on_change = [&](const Json& object, bool gone) {
                                          const std::lock_guard lock(mutex);
                                          if (gone) deleted.insert(NameOf(object));
                                        }});
  ASSERT_EQ(cache->AwaitSynced(absl::Seconds(20)), absl::OkStatus());
  EXPECT_TRUE(cache->Find(namespace_, "a").has_value());
  const auto made = client_->Create(kConfigMaps, Map("b", "1"));
  ASSERT_TRUE(made.ok());
  cache->Put(*made);
  EXPECT_TRUE(cache->Find(namespace_, "b").has_value());
  EXPECT_FALSE(cache->Find(namespace_, "b")->at("metadata").contains("managedFields"));
  ASSERT_EQ(client_->Delete(At("a"), {}), absl::OkStatus());
  EXPECT_TRUE(Await([&] { return cache->size() == 1; }));
  EXPECT_TRUE(Await([&] {
    const std::lock_guard lock(mutex);
    return deleted.contains("a");
  }));
  EXPECT_EQ(cache->LastError(), "");
}

// What the server knew before its start it does not tell again: 410, and a list.
TEST_F(RealServer, CacheOutlivesTheServer) {
  const char* cluster = std::getenv("SHIRABE_TEST_CLUSTER");
  if (cluster == nullptr) GTEST_SKIP() << "SHIRABE_TEST_CLUSTER does not say which to restart";
  ASSERT_TRUE(client_->Create(kConfigMaps, Map("a", "1")).ok());
  const auto cache =
      WatchCache::Start({.client = client_.get(), .clock = RealClock(), .query = Maps()});
  ASSERT_EQ(cache->AwaitSynced(absl::Seconds(20)), absl::OkStatus());
  const std::string restart =
      absl::StrCat("bash ", SourceDir(), "/tests/cluster/cluster.sh restart-apiserver ", cluster);
  ASSERT_EQ(std::system(restart.c_str()), 0);
  ASSERT_TRUE(
      Await([&] { return client_->Create(kConfigMaps, Map("b", "1")).ok(); }, absl::Minutes(1)));
  ASSERT_EQ(client_->Delete(At("a"), {}), absl::OkStatus());
  EXPECT_TRUE(Await([&] { return cache->Find(namespace_, "b").has_value() && cache->size() == 1; },
                    absl::Minutes(2)))
      << cache->LastError();
  EXPECT_EQ(cache->LastError(), "");
}

TEST_F(RealServer, OneOfTwoCandidatesLeads) {
  const auto other = Make();
  ElectionOptions options{.client = client_.get(),
                          .clock = RealClock(),
                          .namespace_name = namespace_,
                          .name = "shirabe",
                          .identity = "one",
                          .lease = absl::Seconds(3),
                          .renew = absl::Seconds(2),
                          .retry = absl::Milliseconds(200)};
  auto one = Election::Start(options);
  ASSERT_TRUE(one->Await(absl::Seconds(10))) << one->LastError();
  options.client = other.get();
  options.identity = "two";
  const auto two = Election::Start(options);
  EXPECT_TRUE(Await([&] { return two->holder() == "one"; }));
  EXPECT_FALSE(two->Await(absl::Seconds(4)));
  EXPECT_TRUE(one->leads());
  one.reset();  // gives it up
  EXPECT_TRUE(two->Await(absl::Seconds(2))) << two->LastError();
  EXPECT_EQ(two->holder(), "two");
  EXPECT_EQ(two->transitions(), 2);
}

}  // namespace
}  // namespace shirabe::kube
