#include "base/address.h"

#include <gtest/gtest.h>

namespace shirabe {
namespace {

TEST(Address, HostIsWhatStandsBeforeThePort) {
  EXPECT_EQ(HostOf("127.0.0.1:80"), "127.0.0.1");
  EXPECT_EQ(HostOf("tuner.example.org:80"), "tuner.example.org");
  EXPECT_EQ(HostOf("[::1]:80"), "[::1]");
  EXPECT_EQ(HostOf("[::1]"), "[::1]");
  EXPECT_EQ(HostOf("localhost"), "localhost");
  EXPECT_EQ(HostOf(""), "");
}

TEST(Address, OnlyThisMachineIsLoopback) {
  for (const char* host : {"localhost", "::1", "[::1]", "127.0.0.1", "127.1.2.3"}) {
    EXPECT_TRUE(IsLoopback(host)) << host;
  }
  for (const char* host : {"", "0.0.0.0", "[::]", "10.0.0.1", "localhost.example.org",
                           "127.example.org", "127.0.0.1.example.org"}) {
    EXPECT_FALSE(IsLoopback(host)) << host;
  }
}

}  // namespace
}  // namespace shirabe
