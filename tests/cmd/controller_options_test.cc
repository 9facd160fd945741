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

TEST(ControllerOptions, TheSizeOfClaimsIsAQuantity) {
  ControllerFlags flags = Flags();
  for (const char* size : {"8Gi", "500M", "1e10"}) {
    flags.pod_storage_size = size;
    EXPECT_TRUE(CheckControllerFlags(flags).ok()) << size;
  }
  for (const char* size : {"", "0", "-1Gi", "8 GB", "much"}) {
    flags.pod_storage_size = size;
    EXPECT_THAT(Message(CheckControllerFlags(flags)), HasSubstr("--pod-storage-size")) << size;
  }
}

}  // namespace
}  // namespace shirabe::cmd
