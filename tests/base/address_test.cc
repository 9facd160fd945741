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

TEST(AddressGroupTest, TakesANetworkForAnAddress) {
  EXPECT_EQ(AddressGroup("10.1.2.3"), "10.1.2.3");
  EXPECT_EQ(AddressGroup("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
  EXPECT_EQ(AddressGroup("2001:db8:1:2::9"), "2001:db8:1:2::");
  EXPECT_EQ(AddressGroup("::ffff:10.1.2.3"), "::ffff:10.1.2.3");
  EXPECT_EQ(AddressGroup("::1"), "::1");
}

TEST(AddressTest, OfAGrpcPeer) {
  EXPECT_EQ(AddressOfPeer("ipv4:10.0.0.1:80"), "10.0.0.1");
  EXPECT_EQ(AddressOfPeer("ipv6:%5B2001:db8::1%5D:80"), "2001:db8::1");
  EXPECT_EQ(AddressOfPeer("ipv6:[::1]:80"), "::1");
}

}  // namespace
}  // namespace shirabe
