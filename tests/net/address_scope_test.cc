// Where a request may go whose destination a user chose.
#include "net/address_scope.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <string>

namespace shirabe::net {
namespace {

AddressScope Scope(const std::string& text) {
  sockaddr_in v4{.sin_family = AF_INET};
  if (inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) {
    return ScopeOf(reinterpret_cast<const sockaddr&>(v4));
  }
  sockaddr_in6 v6{.sin6_family = AF_INET6};
  EXPECT_EQ(inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr), 1) << text;
  return ScopeOf(reinterpret_cast<const sockaddr&>(v6));
}

TEST(AddressScopeTest, ThePublicInternetIsPublic) {
  for (const char* address :
       {"1.1.1.1", "8.8.8.8", "172.15.255.255", "172.32.0.0", "11.0.0.0", "100.63.255.255",
        "100.128.0.0", "223.255.255.255", "192.167.1.1", "2606:4700::1111", "2a00:1450::1",
        "::ffff:1.1.1.1", "64:ff9b::808:808", "2002:808:808::1"}) {
    EXPECT_EQ(Scope(address), AddressScope::kPublic) << address;
  }
}

TEST(AddressScopeTest, ThisMachineAndPrivateNetworksArePrivate) {
  for (const char* address :
       {"127.0.0.1", "127.255.255.254", "10.0.0.1", "10.255.255.255", "172.16.0.1",
        "172.31.255.255", "192.168.0.1", "100.64.0.1", "198.19.0.1", "::1", "fd00::1", "fc00::1",
        "::ffff:127.0.0.1", "::ffff:10.1.2.3", "64:ff9b::a00:1", "2002:7f00:1::"}) {
    EXPECT_EQ(Scope(address), AddressScope::kPrivate) << address;
  }
}

TEST(AddressScopeTest, WhereCloudsKeepCredentialsIsForbidden) {
  for (const char* address :
       {"169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "192.0.0.192",
        "fd00:ec2::254", "fd20:ce::254", "fe80::1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::1"}) {
    EXPECT_EQ(Scope(address), AddressScope::kForbidden) << address;
  }
}

TEST(AddressScopeTest, WhatIsNoOnesAddressIsForbidden) {
  for (const char* address :
       {"0.0.0.0", "0.1.2.3", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "192.0.2.1",
        "203.0.113.9", "::", "ff02::1", "2001:db8::1", "2001::1", "::127.0.0.1", "::ffff:0.0.0.0",
        "fec0::1", "4000::1", "3fff::1"}) {
    EXPECT_EQ(Scope(address), AddressScope::kForbidden) << address;
  }
}

TEST(AddressScopeTest, OtherFamiliesAreForbidden) {
  const sockaddr_un local{.sun_family = AF_UNIX, .sun_path = "/run/secret"};
  EXPECT_EQ(ScopeOf(reinterpret_cast<const sockaddr&>(local)), AddressScope::kForbidden);
}

}  // namespace
}  // namespace shirabe::net
