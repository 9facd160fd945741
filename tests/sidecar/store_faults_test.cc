// A pod's copies by URLs, where the pod, its store or the way between them fails.
#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "tests/artifacts/objects.h"
#include "tests/kube/fake_api_server.h"
#include "tests/sidecar/store_harness.h"
#include "tests/support/killed_at_each_step.h"
#include "trial/checkpoint/checkpoint_copy.h"

namespace shirabe::sidecar {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;
using StoreFaultsTest = StoreAccessTest;

constexpr char kNoSuchKey[] = "<Error><Code>NoSuchKey</Code></Error>";
constexpr char kEmptyList[] =
    "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>";

// A machine may go before any request of a pod; the manifest is the last that is put.
TEST_F(StoreFaultsTest, KilledBeforeAnyUrlTheNextPodGoesOn) {
  const Folder here, there;
  const trial::FileLayout from(here.path()), to(there.path());
  const std::string dir = from.Paths(kKey).checkpoint_dir;
  const std::string large = artifacts::ManyBytes((5 << 20) + 5);
  ASSERT_TRUE(MakeDirs(dir + "/7").ok());
  ASSERT_TRUE(WriteFileAtomic(dir + "/7/log", "text").ok());
  const v1::Checkpoint saved = Save(from, kKey, 7, large);
  const std::string copy = to.Paths(Attempt(2)).checkpoint_dir;
  const auto there_and_back = [&](int kill_at) {
    fs::remove_all(copy);
    RETURN_IF_ERROR(MakeDirs(copy));
    const auto own = Part(kKey, kill_at);
    RETURN_IF_ERROR(trial::CopyOut(saved, dir, {own.get(), ""}));
    return trial::CopyIn(saved, copy + "/7", {own.get(), ""});
  };
  const auto work = [&](int url) {
    fs::remove_all(Object(""));
    return there_and_back(url).ok();
  };
  const auto check = [&](int url) {
    if (fs::exists(Object("1/1/7/manifest.json"))) {
      const auto reader = Part(Attempt(2));
      fs::remove_all(copy + "/7");
      ASSERT_EQ(trial::CopyIn(saved, copy + "/7", {reader.get(), ""}), absl::OkStatus()) << url;
    }
    ASSERT_EQ(there_and_back(0), absl::OkStatus()) << url;
    EXPECT_EQ(ReadFile(copy + "/7/model", 64 << 20).value_or(""), large) << url;
    EXPECT_EQ(ReadFile(copy + "/7/log").value_or(""), "text");
  };
  EXPECT_GT(KilledAtEachStep(work, check), 10) << "it was killed before each of its URLs";
}

TEST_F(StoreFaultsTest, AStoreThatIsSlowIsWaitedFor) {
  const Folder here;
  const trial::FileLayout from(here.path());
  const v1::Checkpoint saved = Save(from, kKey, 7, "model");
  s3_->Pause();
  std::thread later([this] {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    s3_->Resume();
  });
  const auto own = Part(kKey);
  EXPECT_EQ(trial::CopyOut(saved, from.Paths(kKey).checkpoint_dir, {own.get(), ""}),
            absl::OkStatus());
  later.join();
  EXPECT_TRUE(fs::exists(Object("1/1/7/manifest.json")));
}

// What the attempt has committed stays where it is.
TEST_F(StoreFaultsTest, AStoreWithoutSpaceIsSaidAndNothingIsLost) {
  kube::FakeApiServer full([](kube::FakeExchange& exchange) {
    const auto& request = exchange.request();
    if (request.method == "PUT") return exchange.Reply(507, "");
    if (!request.query.contains("list-type")) return exchange.Reply(404, kNoSuchKey);
    exchange.Reply(200, kEmptyList);
  });
  OpenTable(full.config().server, "default");
  const Folder here;
  const trial::FileLayout from(here.path());
  const v1::Checkpoint saved = Save(from, kKey, 7, "model");
  const std::string dir = from.Paths(kKey).checkpoint_dir;
  const auto own = Part(kKey);
  const Status status = trial::CopyOut(saved, dir, {own.get(), ""});
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(Message(status), Not(HasSubstr("X-Amz")));
  EXPECT_EQ(ReadFile(dir + "/7/model").value_or(""), "model");
}

}  // namespace
}  // namespace shirabe::sidecar
