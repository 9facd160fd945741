#include "cmd/controller_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shirabe::cmd {
namespace {

using testing::HasSubstr;

ControllerFlags Flags() {
  ControllerFlags flags;
  flags.advertise = "shirabe:7450";
  return flags;
}

TEST(ControllerOptions, AStorageClassHasANameAsKubernetesHasIt) {
  ControllerFlags flags = Flags();
  ASSERT_TRUE(CheckControllerFlags(flags).ok());
  for (const char* name : {"local-lvm", "csi.example.com", "1"}) {
    flags.pod_storage_class = name;
    EXPECT_TRUE(CheckControllerFlags(flags).ok()) << name;
  }
  for (const char* name : {"Local", "a b", "-a", "../x", "a\n", "a\"}"}) {
    flags.pod_storage_class = name;
    const Status status = CheckControllerFlags(flags);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << name;
    EXPECT_THAT(Message(status), HasSubstr("--pod-storage-class"));
  }
}

}  // namespace
}  // namespace shirabe::cmd
