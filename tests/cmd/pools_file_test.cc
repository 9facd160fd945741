// The controller's pools while an administrator changes them.
#include "cmd/controller_options.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "base/file_io.h"
#include "base/status.h"

namespace shirabe::cmd {
namespace {

class PoolsFileTest : public ::testing::Test {
 protected:
  PoolsFileTest() { CHECK(mkdtemp(folder_.data()) != nullptr); }
  ~PoolsFileTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& text) {
    ASSERT_TRUE(WriteFileAtomic(Path(), text).ok());
    now_ += absl::Minutes(1);
  }
  static std::string Names(const PoolsFile& file) {
    std::string names;
    for (const v1::NodePool& pool : file.pools().pools()) names += pool.name() + " ";
    return names;
  }

  std::string Path() const { return folder_ + "/pools.yaml"; }
  std::string Kept() const { return folder_ + "/home.yaml"; }

  std::string folder_ = testing::TempDir() + "shirabe-pools-XXXXXX";
  absl::Duration now_;
};

TEST_F(PoolsFileTest, TakesOverWhatIsRightAndStaysWithItOtherwise) {
  Write("pools: []");
  auto file = PoolsFile::Open(Path(), Kept());
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(Names(*file), "");
  Write("pools: [{name: spot, pricePerHour: 1}]");
  EXPECT_TRUE(file->Reload(now_));
  EXPECT_EQ(Names(*file), "spot ");
  Write("pools: [{name: spot, pricePerHour: cheap}]");
  EXPECT_FALSE(file->Reload(now_));
  Write("# in other words\npools:\n- {name: spot, pricePerHour: 1}");
  EXPECT_FALSE(file->Reload(now_));
  EXPECT_EQ(Names(*file), "spot ");
  Write("pools: [{name: gpu}, {name: spot}]");
  EXPECT_TRUE(file->Reload(now_));
  EXPECT_FALSE(file->Reload(now_ + absl::Minutes(1)));
  EXPECT_EQ(Names(*file), "gpu spot ");
}

TEST_F(PoolsFileTest, AFileThatIsGoneForAMomentChangesNothing) {
  Write("pools: [{name: spot}]");
  auto file = PoolsFile::Open(Path(), Kept());
  ASSERT_TRUE(file.ok());
  std::filesystem::remove(Path());
  EXPECT_FALSE(file->Reload(now_ + absl::Minutes(1)));
  EXPECT_EQ(Names(*file), "spot ");
}

// The controller's pod is made again after a mistake was written.
TEST_F(PoolsFileTest, AMistakeDoesNotKeepItFromStartingAgain) {
  Write("pools: [{name: spot}]");
  ASSERT_TRUE(PoolsFile::Open(Path(), Kept()).ok());
  Write("pools: [{name: gpu, pricePerHour: cheap}]");
  auto file = PoolsFile::Open(Path(), Kept());
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(Names(*file), "spot ");
  EXPECT_FALSE(file->Reload(now_)) << "it is as wrong as before";
  Write("pools: [{name: gpu, pricePerHour: 1}]");
  EXPECT_TRUE(file->Reload(now_));
  EXPECT_EQ(Names(*file), "gpu ");
  Write("pools: nonsense");
  file = PoolsFile::Open(Path(), Kept());
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(Names(*file), "gpu ");
  ASSERT_TRUE(WriteFileAtomic(Kept(), "pools: nonsense too").ok());
  EXPECT_FALSE(PoolsFile::Open(Path(), Kept()).ok());
}

TEST_F(PoolsFileTest, WhatIsWrongIsSaidWithItsPlace) {
  Write("pools:\n- {name: spot, pricePerHour: cheap}");
  const std::string words = Message(PoolsFile::Open(Path(), Kept()).status());
  EXPECT_NE(words.find("pools.yaml:2:"), std::string::npos) << words;
  EXPECT_NE(words.find("pricePerHour"), std::string::npos) << words;
}

TEST_F(PoolsFileTest, WhatIsWrongFromTheStartIsRefused) {
  EXPECT_FALSE(PoolsFile::Open(Path(), Kept()).ok());
  Write("pools: [{name: spot, colour: red}]");
  EXPECT_TRUE(absl::IsInvalidArgument(PoolsFile::Open(Path(), Kept()).status()));
  auto none = PoolsFile::Open("", Kept());
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->pools().pools_size(), 0);
  EXPECT_FALSE(none->Reload(now_));
}

}  // namespace
}  // namespace shirabe::cmd
