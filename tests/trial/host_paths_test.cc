#include "trial/host_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shirabe::trial {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Status Check(const std::string& path, const std::vector<std::string>& allowed) {
  v1::CheckpointVolume volume;
  volume.set_host_path(path);
  return CheckHostPath(volume, allowed);
}

TEST(HostPaths, WhatIsOnTheListAndBelowIsAllowed) {
  for (const char* path : {"/mnt/a", "/mnt/a/", "/mnt/a/b/c"}) {
    EXPECT_TRUE(Check(path, {"/data", "/mnt/a/"}).ok()) << path;
  }
  EXPECT_TRUE(CheckHostPath(v1::CheckpointVolume(), {}).ok());
}

TEST(HostPaths, NothingElseIs) {
  for (const char* path : {"/", "/mnt", "/mnt/ab", "/mnt/a/../b", "/mnt/a/..", "/mnt//a", "mnt/a",
                           "/mnt/./a", "/etc"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(Check(path, {"/mnt/a"}))) << path;
  }
  EXPECT_THAT(Message(Check("/etc", {})),
              AllOf(HasSubstr("spec.shirabe.checkpoint.volume.hostPath: \"/etc\""),
                    HasSubstr("allowed: none"), HasSubstr("--allow-host-path")));
}

TEST(HostPaths, TheListNamesFolders) {
  EXPECT_TRUE(ValidateHostPath("/mnt/a").ok());
  for (const char* path : {"", "/", "mnt", "/mnt/..", "/mnt/../etc"}) {
    EXPECT_FALSE(ValidateHostPath(path).ok()) << path;
  }
}

}  // namespace
}  // namespace shirabe::trial
