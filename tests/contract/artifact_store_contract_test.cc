// What artifacts/artifact_store.h promises, of every registered type of store: a directory in a new
// folder, and the buckets of a real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "artifacts/store_table.h"
#include "base/open_beneath.h"
#include "tests/artifacts/objects.h"
#include "tests/artifacts/s3_server.h"

namespace shirabe::artifacts {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ArtifactStoreContract : public testing::TestWithParam<std::string> {
 protected:
  static void TearDownTestSuite() { server.reset(); }

  void SetUp() override {
    entry_.set_name("one");
    entry_.set_type(GetParam());
    entry_.add_namespaces("*");
    folder_ = testing::TempDir() + "shirabe-store-XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    if (GetParam() == "directory") {
      entry_.set_root(folder_);
    } else {
      if (!S3Server::IsInstalled()) GTEST_SKIP() << S3Server::kMissing;
      if (server == nullptr) server = std::make_unique<S3Server>();
      entry_.set_endpoint(server->endpoint());
      entry_.set_bucket(S3Server::kBucket);
      if (GetParam() == "gcs") entry_.set_region("us-east-1");  // which the server insists on
      entry_.set_folder(absl::StrCat("test", ++count));         // no test sees another's objects
      entry_.mutable_credentials()->set_file(server->CredentialFile());
    }
    store_ = Open("default");
  }
  void TearDown() override { EXPECT_TRUE(RemoveAll(folder_).ok()); }

  using StorePtr = std::shared_ptr<ArtifactStore>;  // shared: as StoreTable gives it
  StorePtr Open(const std::string& ns) {
    v1::ArtifactStores stores;
    *stores.add_stores() = entry_;
    const auto table = StoreTable::Create(stores);
    EXPECT_TRUE(table.ok()) << table.status();
    return table.ok() ? (*table)->Find("one", ns).value_or(nullptr) : nullptr;
  }
  ArtifactStore& store() { return *store_; }
  std::vector<std::string> Keys(const std::string& prefix, const std::string& after = "") {
    const auto page = store().List(prefix, after, {});
    EXPECT_TRUE(page.ok()) << page.status();
    std::vector<std::string> keys;
    if (!page.ok()) return keys;
    for (const ObjectInfo& object : page->objects) keys.push_back(object.key);
    return keys;
  }

  static std::unique_ptr<S3Server> server;
  static int count;
  v1::ArtifactStore entry_;
  std::string folder_;
  StorePtr store_;
};
std::unique_ptr<S3Server> ArtifactStoreContract::server;
int ArtifactStoreContract::count = 0;

TEST_P(ArtifactStoreContract, GivesBackWhatWasPut) {
  for (const std::string& text :
       {std::string("hello"), std::string(), std::string("\0\n\xff", 3)}) {
    ASSERT_TRUE(PutText(store(), "a/b-1.x", text).ok()) << PutText(store(), "a/b-1.x", text);
    EXPECT_EQ(GetRange(store(), "a/b-1.x").value_or("none"), text);
    const auto info = store().Head("a/b-1.x", {});
    ASSERT_TRUE(info.ok()) << info.status();
    EXPECT_EQ(info->key, "a/b-1.x");
    EXPECT_EQ(info->bytes, static_cast<int64_t>(text.size()));
  }
}

TEST_P(ArtifactStoreContract, ReadsRanges) {
  ASSERT_TRUE(PutText(store(), "key", "0123456789").ok());
  EXPECT_EQ(GetRange(store(), "key", {2, 3}).value_or("none"), "234");
  EXPECT_EQ(GetRange(store(), "key", {7, -1}).value_or("none"), "789");
  EXPECT_EQ(GetRange(store(), "key", {7, 100}).value_or("none"), "789");
  EXPECT_EQ(GetRange(store(), "key", {3, 0}).value_or("none"), "");
  const Status behind = GetRange(store(), "key", {10, 1}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(behind)) << behind;
}

// More than one request, or part, of S3.
TEST_P(ArtifactStoreContract, TakesWhatIsLarge) {
  const std::string large = ManyBytes((33 << 20) + 5);
  ASSERT_TRUE(PutText(store(), "large", large).ok());
  EXPECT_EQ(store().Head("large", {})->bytes, static_cast<int64_t>(large.size()));
  EXPECT_TRUE(GetRange(store(), "large").value_or("") == large);
  const int64_t middle = (16 << 20) - 2;
  EXPECT_EQ(GetRange(store(), "large", {middle, 4}).value_or(""), large.substr(middle, 4));
}

TEST_P(ArtifactStoreContract, WhatIsNotThereIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(GetRange(store(), "no/such").status()));
  EXPECT_TRUE(absl::IsNotFound(store().Head("no/such", {}).status()));
  EXPECT_TRUE(store().Remove("no/such", {}).ok());
  EXPECT_THAT(Keys("no/"), ElementsAre());
}

TEST_P(ArtifactStoreContract, ReplacesAndRemoves) {
  ASSERT_TRUE(PutText(store(), "a/one", "1").ok());
  ASSERT_TRUE(PutText(store(), "a/one", "two").ok());
  EXPECT_EQ(GetRange(store(), "a/one").value_or(""), "two");
  ASSERT_TRUE(store().Remove("a/one", {}).ok());
  ASSERT_TRUE(store().Remove("a/one", {}).ok());
  EXPECT_TRUE(absl::IsNotFound(store().Head("a/one", {}).status()));
  ASSERT_TRUE(PutText(store(), "a/one", "again").ok());
}

TEST_P(ArtifactStoreContract, ListsKeysInOrderByPrefix) {
  for (const char* key : {"b/2", "b/10", "b.x", "b-x", "b/c/d", "bb/1", "a"}) {
    ASSERT_TRUE(PutText(store(), key, key).ok());
  }
  EXPECT_THAT(Keys(""), ElementsAre("a", "b-x", "b.x", "b/10", "b/2", "b/c/d", "bb/1"));
  EXPECT_THAT(Keys("b/"), ElementsAre("b/10", "b/2", "b/c/d"));
  EXPECT_THAT(Keys("b/", "b/10"), ElementsAre("b/2", "b/c/d"));
  EXPECT_THAT(Keys("b/c/"), ElementsAre("b/c/d"));
  EXPECT_EQ(store().List("b/", "", {})->objects[0].bytes, 4);
}

TEST_P(ArtifactStoreContract, ListsMoreThanAPage) {
  constexpr int kCount = 1003;
  for (int i = 0; i < kCount; ++i) {
    ASSERT_TRUE(PutText(store(), absl::StrCat("many/", 10'000 + i), "").ok());
  }
  const auto page = store().List("many/", "", {});
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->objects.size(), 1000);
  EXPECT_EQ(page->next, "many/10999");
  const auto all = ListAll(store(), "many/", kCount, {});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->size(), kCount);
  EXPECT_EQ(all->back().key, "many/11002");
  EXPECT_TRUE(absl::IsResourceExhausted(ListAll(store(), "many/", kCount - 1, {}).status()));
}

TEST_P(ArtifactStoreContract, RefusesOtherBytesThanAreMeant) {
  const SourceFile file("hello");
  PutSource source = file.source();
  source.sha256 = HexSha256("other");
  EXPECT_TRUE(absl::IsInvalidArgument(store().Put("key", source, {})));
  source = file.source();
  source.bytes = 100;
  EXPECT_TRUE(absl::IsInvalidArgument(store().Put("key", source, {})));
  EXPECT_TRUE(absl::IsNotFound(store().Head("key", {}).status())) << "nothing is seen of it";
}

TEST_P(ArtifactStoreContract, RefusesWhatIsNoKey) {
  for (const char* key : {"", "/a", "a/", "a//b", "..", "a/../b", ".", ".a", "a b", "a\nb", "a%2e",
                          "a?b", "a.partial", "é", "-a"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(PutText(store(), key, "x"))) << key;
    EXPECT_TRUE(absl::IsInvalidArgument(GetRange(store(), key).status())) << key;
    EXPECT_TRUE(absl::IsInvalidArgument(store().Head(key, {}).status())) << key;
    EXPECT_TRUE(absl::IsInvalidArgument(store().Remove(key, {}))) << key;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(PutText(store(), std::string(901, 'a'), "x")));
}

TEST_P(ArtifactStoreContract, NamespacesSeeTheirOwnPartOnly) {
  const auto other = Open("other");
  ASSERT_TRUE(PutText(store(), "key", "mine").ok());
  EXPECT_TRUE(absl::IsNotFound(other->Head("key", {}).status()));
  ASSERT_TRUE(PutText(*other, "key", "theirs").ok());
  EXPECT_EQ(GetRange(store(), "key").value_or(""), "mine");
  EXPECT_EQ(other->List("", "", {})->objects.size(), 1);
}

TEST_P(ArtifactStoreContract, EndsWhenItIsStopped) {
  std::stop_source stop;
  stop.request_stop();
  const SourceFile file(ManyBytes(17 << 20));
  const Status put = store().Put("key", file.source(), stop.get_token());
  EXPECT_TRUE(absl::IsCancelled(put)) << put;
  EXPECT_TRUE(absl::IsNotFound(store().Head("key", {}).status()));
}

INSTANTIATE_TEST_SUITE_P(All, ArtifactStoreContract,
                         testing::ValuesIn(Registry<StoreType>::Get().Names()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace shirabe::artifacts
