// libcurl is opened at first use, and what is missing is said with what to install.
#include "net/curl_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shirabe::net {
namespace {

using testing::HasSubstr;

TEST(CurlLibraryTest, NamesThePackageWhereItIsMissing) {
  const Status status = LoadCurlLibraryFrom("libcurl.so.none").status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("apt-get install libcurl4"));
}

TEST(CurlLibraryTest, RefusesALibraryThatIsAnother) {
  const Status status = LoadCurlLibraryFrom("libm.so.6").status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
}

TEST(CurlLibraryTest, LoadsOnce) {
  const auto first = LoadCurlLibrary();
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(*LoadCurlLibrary(), *first);
}

}  // namespace
}  // namespace shirabe::net
