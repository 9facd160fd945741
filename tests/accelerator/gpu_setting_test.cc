
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "suggestion/accelerator/gpu_library.h"

namespace shirabe::suggestion::accelerator {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(GpuSetting, AutoOffOrANumber) {
  EXPECT_EQ(ParseGpuSetting(nullptr, nullptr)->ordinal, -1);
  EXPECT_FALSE(ParseGpuSetting(nullptr, nullptr)->said);
  EXPECT_FALSE(ParseGpuSetting("", nullptr)->said);
  EXPECT_TRUE(ParseGpuSetting("auto", nullptr)->said);
  EXPECT_FALSE(ParseGpuSetting("auto", nullptr)->off);
  EXPECT_FALSE(ParseGpuSetting("", "")->off);
  EXPECT_TRUE(ParseGpuSetting("off", nullptr)->off);
  EXPECT_EQ(ParseGpuSetting("0", nullptr)->ordinal, 0);
  EXPECT_EQ(ParseGpuSetting("7", nullptr)->ordinal, 7);
  for (const char* bad : {"on", "OFF", "-1", "1.5", "256", "99999999999", " 1", "1 ", "0x1"}) {
    const Status status = ParseGpuSetting(bad, nullptr).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bad;
    EXPECT_THAT(Message(status), AllOf(HasSubstr("SHIRABE_GPU"), HasSubstr(bad),
                                       HasSubstr("auto, off or the number")));
  }
}

TEST(GpuSetting, TheFolderIsAbsoluteAndTheOnlyOne) {
  const auto setting = ParseGpuSetting(nullptr, "/opt/shirabe");
  ASSERT_TRUE(setting.ok()) << setting.status();
  EXPECT_THAT(GpuLibraryFolders(*setting), ElementsAre("/opt/shirabe"));
  for (const char* bad : {"lib", "./lib", "../lib", "~/lib"}) {
    const Status status = ParseGpuSetting(nullptr, bad).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bad;
    EXPECT_THAT(Message(status), AllOf(HasSubstr("SHIRABE_GPU_LIBRARY_DIR"), HasSubstr(bad)));
  }
  const std::string endless = "/" + std::string(100'000, 'x');
  const Status status = ParseGpuSetting(nullptr, endless.c_str()).status();
  EXPECT_THAT(Message(status), HasSubstr("is too long"));
  EXPECT_LT(Message(status).size(), 300);
  EXPECT_THAT(Message(ParseGpuSetting(nullptr, "/a\x1b]0;b\a").status()),
              AllOf(HasSubstr("has a control character"), HasSubstr("/a\\x1b]0;b\\x07")));
}

TEST(GpuSetting, WithoutOneTheProgramsOwnFolders) {
  const auto folders = GpuLibraryFolders(GpuSetting());
  ASSERT_EQ(folders.size(), 2);
  EXPECT_EQ(folders[0][0], '/');
  EXPECT_THAT(folders[1], HasSubstr("/../lib/shirabe"));
}

}  // namespace
}  // namespace shirabe::suggestion::accelerator
