// Fetching code packages: artifacts/package/code_cache.h, which another process may be at or may
// have left half-way, and trial/local/code_packages.h, which says what cannot be had.
#include "artifacts/package/code_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "base/open_beneath.h"
#include "base/sha256.h"
#include "tests/artifacts/archives.h"
#include "tests/artifacts/objects.h"
#include "trial/local/code_packages.h"
#include "trial/start_error.h"

namespace shirabe::artifacts {
namespace {

using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

class CodeFolder : public testing::Test {
 protected:
  CodeFolder() {
    std::string folder = testing::TempDir() + "shirabe-code-XXXXXX";
    CHECK(mkdtemp(folder.data()) != nullptr);
    folder_ = folder;
  }
  ~CodeFolder() override { CHECK(RemoveAll(folder_).ok()); }

  std::string folder_;
  const std::string archive_ = RawPackage({{.name = "train.py", .bytes = "print(1)\n"}});
  const std::string digest_ = HexSha256(archive_);
};

class CodeCacheTest : public CodeFolder {
 protected:
  PackageSource Source(const std::string& bytes) {
    return [this, bytes](const PieceSink& sink) -> Status {
      ++reads_;
      for (size_t at = 0; at < bytes.size(); at += 10) RETURN_IF_ERROR(sink(bytes.substr(at, 10)));
      return absl::OkStatus();
    };
  }
  Status Fill(const std::string& bytes) { return cache_.Fill(digest_, Source(bytes), {}); }
  // What is there beside the lock.
  size_t Entries() const {
    size_t count = 0;
    for (const auto& entry : fs::directory_iterator(folder_ + "/code")) {
      count += entry.path().extension() == ".lock" ? 0 : 1;
    }
    return count;
  }

  int reads_ = 0;
  CodeCache cache_{folder_ + "/code"};
};

TEST_F(CodeCacheTest, IsFetchedOnce) {
  EXPECT_FALSE(cache_.Has(digest_));
  ASSERT_TRUE(Fill(archive_).ok()) << Fill(archive_);
  EXPECT_TRUE(cache_.Has(digest_));
  EXPECT_EQ(*ReadFile(cache_.PathOf(digest_) + "/train.py"), "print(1)\n");
  ASSERT_TRUE(Fill(archive_).ok());
  EXPECT_EQ(reads_, 1);
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(CodeCacheTest, OtherBytesAreNeverUnpacked) {
  const std::string other = RawPackage({{.name = "evil.py", .bytes = "x"}});
  const Status status = Fill(other);
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr(HexSha256(other)));
  EXPECT_TRUE(absl::IsDataLoss(Fill(archive_.substr(0, archive_.size() - 1))));
  EXPECT_EQ(Entries(), 0u);
}

TEST_F(CodeCacheTest, WhatASourceSaysIsSaidAndNothingIsLeft) {
  const PackageSource gone = [](const PieceSink& sink) -> Status {
    RETURN_IF_ERROR(sink("half"));
    return absl::UnavailableError("the store is gone");
  };
  EXPECT_EQ(cache_.Fill(digest_, gone, {}), absl::UnavailableError("the store is gone"));
  CodeCache small(folder_ + "/code", {.packed_bytes = 20});
  EXPECT_THAT(Message(small.Fill(digest_, Source(archive_), {})), HasSubstr("larger than"));
  EXPECT_EQ(Entries(), 0u);
}

TEST_F(CodeCacheTest, ARefusedPackageLeavesNothing) {
  const std::string hostile = RawPackage({{.name = "good"}, {.name = "../bad"}});
  EXPECT_TRUE(absl::IsInvalidArgument(cache_.Fill(HexSha256(hostile), Source(hostile), {})));
  EXPECT_EQ(Entries(), 0u);
}

// As a process leaves it that was killed while it unpacked.
TEST_F(CodeCacheTest, WhatAnotherHasLeftHalfWayIsRemoved) {
  const std::string staging = cache_.PathOf(digest_) + ".tmp";
  CHECK(MakeDirs(staging + "/sub").ok());
  CHECK(WriteFileAtomic(staging + "/sub/old.py", "x").ok());
  CHECK(chmod((staging + "/sub").c_str(), 0555) == 0);
  ASSERT_TRUE(Fill(archive_).ok());
  EXPECT_FALSE(fs::exists(cache_.PathOf(digest_) + "/sub"));
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(CodeCacheTest, OneProcessAtATime) {
  CHECK(MakeDirs(folder_ + "/code").ok());
  Fd lock(open((cache_.PathOf(digest_) + ".lock").c_str(), O_RDWR | O_CREAT, 0600));
  ASSERT_EQ(flock(lock.get(), LOCK_EX), 0);
  EXPECT_TRUE(absl::IsUnavailable(Fill(archive_)));
  EXPECT_EQ(reads_, 0);
  lock = Fd();
  EXPECT_TRUE(Fill(archive_).ok());
}

TEST_F(CodeCacheTest, AFullDiskIsSaidAndNothingIsLeft) {
  const std::string large = RawPackage({{.name = "data", .bytes = ManyBytes(1 << 20)}});
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  // First the archive finds no room, then what is unpacked of it.
  for (const rlim_t bytes : {large.size() / 2, large.size() + 1000}) {
    const rlimit little{bytes, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
    const Status status = cache_.Fill(HexSha256(large), Source(large), {});
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_EQ(Entries(), 0u);
  }
  signal(SIGXFSZ, handler);
  EXPECT_TRUE(cache_.Fill(HexSha256(large), Source(large), {}).ok());
}

// Whenever it is killed: what is there afterwards is whole or nothing, and the next one has it.
TEST_F(CodeCacheTest, KilledAtAnyTimeHalfAPackageIsNone) {
  std::vector<RawEntry> entries;
  for (int i = 0; i < 100; ++i) {
    entries.push_back({.name = absl::StrCat("d", i % 7, "/f", i), .bytes = std::string(2000, 'x')});
  }
  const std::string package = RawPackage(entries);
  const std::string digest = HexSha256(package);
  const auto files = [&] {
    const fs::recursive_directory_iterator all(cache_.PathOf(digest));
    return std::count_if(begin(all), end(all),
                         [](const auto& one) { return one.is_regular_file(); });
  };
  int half = 0;
  for (int i = 0; i < 8; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      cache_.Fill(digest, Source(package), {}).IgnoreError();
      _exit(0);
    }
    poll(nullptr, 0, 3 * i);
    kill(child, SIGKILL);
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
    half += fs::exists(cache_.PathOf(digest) + ".tmp") ? 1 : 0;
    EXPECT_TRUE(!cache_.Has(digest) || files() == 100);
    ASSERT_TRUE(cache_.Fill(digest, Source(package), {}).ok());
    EXPECT_EQ(files(), 100);
    ASSERT_TRUE(cache_.Remove(digest).ok());
    EXPECT_EQ(Entries(), 0u);
  }
  RecordProperty("killed while it unpacked", half);
}

// ---- for experiments ----------------------------------------------------------------------------

class CodePackagesTest : public CodeFolder {
 protected:
  CodePackagesTest() {
    CHECK(MakeDirs(root()).ok());
    v1::ArtifactStores stores;
    v1::ArtifactStore& store = *stores.add_stores();
    store.set_name("team");
    store.set_type("directory");
    store.set_root(root());
    store.add_namespaces("red");
    const RetryPolicy quick{.attempts = 2,
                            .backoff = {absl::Milliseconds(1), absl::Milliseconds(1)}};
    packages_ = std::make_unique<trial::CodePackages>(
        trial::CodePackagesOptions{.home = folder_,
                                   .clock = &clock_,
                                   .stores = *StoreTable::Create(stores),
                                   .on_change =
                                       [this](const ExperimentKey&) {
                                         const std::lock_guard lock(mutex_);
                                         ++calls_;
                                         changed_.notify_all();
                                       },
                                   .calls = quick,
                                   .tries = 3});
    package_.set_store("team");
    package_.set_prefix("vision");
    package_.set_package("sha256:" + digest_);
    packages_->SetPackage(key_, package_);
  }
  std::string root() const { return folder_ + "/store"; }
  std::string Object() const { return root() + "/red/vision/code/" + digest_ + ".tar.gz"; }
  void Put(const std::string& bytes) const {
    CHECK(MakeDirs(root() + "/red/vision/code").ok());
    CHECK(WriteFileAtomic(Object(), bytes).ok());
  }
  // What it says once it has tried.
  StatusOr<std::string> PrepareAndWait() {
    int before = 0;
    {
      const std::lock_guard lock(mutex_);
      before = calls_;
    }
    const auto first = packages_->Prepare(key_);
    if (first.ok() || absl::IsDataLoss(first.status())) return first;
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(60), [&] { return calls_ > before; }));
    lock.unlock();
    return packages_->Prepare(key_);
  }

  const ExperimentKey key_{"red", "exp"};
  ManualClock clock_{absl::FromUnixSeconds(1'700'000'000)};
  v1::CodePackage package_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int calls_ = 0;
  std::unique_ptr<trial::CodePackages> packages_;
};

TEST_F(CodePackagesTest, IsThereForAllTrials) {
  Put(archive_);
  const auto path = PrepareAndWait();
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(*path, folder_ + "/code/" + digest_);
  fs::remove(Object());
  EXPECT_EQ(*packages_->Prepare(key_), *path);
  packages_->SetPackage(key_, {});
  EXPECT_EQ(*packages_->Prepare(key_), "");
}

TEST_F(CodePackagesTest, AMissingPackageFailsTheAttemptWithTheReason) {
  const auto path = PrepareAndWait();
  EXPECT_TRUE(absl::IsDataLoss(path.status())) << path.status();
  EXPECT_EQ(trial::EventReasonOf(path.status()), trial::kCodeNotFetched);
  EXPECT_THAT(Message(path.status()),
              AllOf(HasSubstr("of store team"), HasSubstr("shirabe upload"), HasSubstr(digest_)));
  Put(archive_);  // the next attempt begins from the start
  EXPECT_TRUE(PrepareAndWait().ok());
}

TEST_F(CodePackagesTest, AWrongDigestFailsTheAttempt) {
  Put("other bytes");
  const auto path = PrepareAndWait();
  EXPECT_TRUE(absl::IsDataLoss(path.status())) << path.status();
  EXPECT_THAT(Message(path.status()), HasSubstr("has another digest"));
  EXPECT_FALSE(fs::exists(folder_ + "/code/" + digest_));
}

TEST_F(CodePackagesTest, WhatIsRefusedFailsTheAttempt) {
  const std::string hostile = RawPackage({{.name = "../bad"}});
  package_.set_package("sha256:" + HexSha256(hostile));
  packages_->SetPackage(key_, package_);
  CHECK(MakeDirs(root() + "/red/vision/code").ok());
  CHECK(
      WriteFileAtomic(root() + "/red/vision/code/" + HexSha256(hostile) + ".tar.gz", hostile).ok());
  const auto path = PrepareAndWait();
  EXPECT_TRUE(absl::IsDataLoss(path.status()));
  EXPECT_THAT(Message(path.status()), HasSubstr("leads out"));
}

// A store that is gone is waited for, later and later, and not for ever.
TEST_F(CodePackagesTest, AStoreThatIsGoneIsTriedAgainWithinBounds) {
  fs::rename(root(), root() + "-away");
  for (int tries = 1; tries < 3; ++tries) {
    const auto path = PrepareAndWait();
    EXPECT_TRUE(absl::IsResourceExhausted(path.status())) << tries << path.status();
    EXPECT_THAT(Message(path.status()),
                AllOf(HasSubstr("cannot open the store's folder"), HasSubstr("tried again")));
    clock_.Advance(absl::Minutes(2));
  }
  EXPECT_TRUE(absl::IsDataLoss(PrepareAndWait().status()));
  fs::rename(root() + "-away", root());
  Put(archive_);
  EXPECT_TRUE(PrepareAndWait().ok());
}

TEST_F(CodePackagesTest, AStoreOfOthersIsRefusedByName) {
  package_.set_store("theirs");
  packages_->SetPackage(key_, package_);
  EXPECT_TRUE(absl::IsInvalidArgument(packages_->Check(key_)));
  EXPECT_THAT(Message(packages_->Check(key_)), HasSubstr("spec.shirabe.code.store: \"theirs\""));
  package_.set_store("team");
  packages_->SetPackage({"blue", "exp"}, package_);
  EXPECT_TRUE(absl::IsInvalidArgument(packages_->Check({"blue", "exp"})));
}

}  // namespace
}  // namespace shirabe::artifacts
