// A file that appears whole or not at all.
#include "base/file_io.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/open_beneath.h"

namespace shirabe {
namespace {

class NewFileTest : public testing::Test {
 protected:
  NewFileTest() {
    folder_ = testing::TempDir() + "/shirabe-new-XXXXXX";
    CHECK(mkdtemp(folder_.data()) != nullptr);
    path_ = folder_ + "/file";
  }
  ~NewFileTest() override { RemoveAll(folder_).IgnoreError(); }
  Status Make(const std::string& text, bool replace) {
    ASSIGN_OR_RETURN(NewFile file, NewFile::Create(path_, replace));
    CHECK(write(file.fd(), text.data(), text.size()) == std::ssize(text));
    EXPECT_NE(ReadFile(path_).value_or(""), text) << "it is there before it is whole";
    return file.Publish();
  }

  std::string folder_;
  std::string path_;
};

TEST_F(NewFileTest, AppearsWhenItIsWholeForItsOwnerAlone) {
  ASSERT_TRUE(Make("whole", false).ok());
  EXPECT_EQ(*ReadFile(path_), "whole");
  struct stat info;
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(NewFileTest, ReplacesOnlyWhereItIsTold) {
  ASSERT_TRUE(Make("first", false).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(Make("second", false)));
  EXPECT_EQ(*ReadFile(path_), "first");
  ASSERT_TRUE(Make("third", true).ok());
  EXPECT_EQ(*ReadFile(path_), "third");
}

// Another process may make a file of that name while ours is written.
TEST_F(NewFileTest, WhatCameMeanwhileStays) {
  auto file = NewFile::Create(path_, false);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(WriteFileAtomic(path_, "theirs").ok());
  EXPECT_TRUE(absl::IsAlreadyExists(file->Publish()));
  EXPECT_EQ(*ReadFile(path_), "theirs");
}

TEST_F(NewFileTest, AbandonedItLeavesNothing) {
  { ASSERT_TRUE(NewFile::Create(path_, false).ok()); }
  { ASSERT_TRUE(NewFile::Create(path_, true).ok()); }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  EXPECT_TRUE(absl::IsNotFound(NewFile::Create(folder_ + "/no/file", false).status()));
  EXPECT_FALSE(NewFile::Create(folder_, true).ok());
}

TEST_F(NewFileTest, FollowsNoLink) {
  ASSERT_TRUE(WriteFileAtomic(folder_ + "/theirs", "theirs").ok());
  ASSERT_EQ(symlink((folder_ + "/theirs").c_str(), path_.c_str()), 0);
  EXPECT_TRUE(absl::IsAlreadyExists(Make("ours", false)));
  ASSERT_TRUE(Make("ours", true).ok());
  EXPECT_EQ(*ReadFile(folder_ + "/theirs"), "theirs");
}

}  // namespace
}  // namespace shirabe
