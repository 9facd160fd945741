#include "base/certificate.h"

#include <gtest/gtest.h>

namespace shirabe {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'790'000'000);
const std::vector<std::string> kNames = {"shirabe.shirabe-system.svc", "localhost", "10.99.0.1",
                                         "::1"};

KeyPair Authority() {
  auto authority = MakeAuthority("test", kNow);
  EXPECT_TRUE(authority.ok()) << authority.status();
  return authority.ok() ? *authority : KeyPair{};
}

TEST(CertificateTest, IsOfItsAuthorityAndForItsNames) {
  const KeyPair authority = Authority();
  const auto pair = IssueCertificate(authority, kNames, kNow);
  ASSERT_TRUE(pair.ok()) << pair.status();
  EXPECT_TRUE(IsGoodFor(*pair, authority.certificate, {kNames, kNow, absl::Hours(24)}));
  EXPECT_FALSE(IsGoodFor(*pair, Authority().certificate, {kNames, kNow, absl::Hours(24)}));
  EXPECT_FALSE(IsGoodFor(*pair, authority.certificate, {{"elsewhere"}, kNow, absl::Hours(24)}));
  EXPECT_FALSE(IsGoodFor(*pair, authority.certificate, {{"10.99.0.2"}, kNow, absl::Hours(24)}));
}

TEST(CertificateTest, LastsAYearAndItsAuthorityTen) {
  const KeyPair authority = Authority();
  const auto pair = IssueCertificate(authority, kNames, kNow);
  ASSERT_TRUE(pair.ok());
  const absl::Duration year = absl::Hours(24) * 365;
  EXPECT_EQ(*ExpiryOf(pair->certificate), kNow + year);
  EXPECT_GT(*ExpiryOf(authority.certificate), kNow + 9.9 * year);
  const absl::Duration month = absl::Hours(24) * 30;
  EXPECT_TRUE(IsGoodFor(*pair, authority.certificate, {kNames, kNow + year - month, month}));
  EXPECT_FALSE(IsGoodFor(*pair, authority.certificate,
                         {kNames, kNow + year - month + absl::Hours(1), month}));
}

TEST(CertificateTest, AnotherKeyDoesNotFit) {
  const KeyPair authority = Authority();
  auto one = IssueCertificate(authority, kNames, kNow);
  const auto other = IssueCertificate(authority, kNames, kNow);
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_NE(one->certificate, other->certificate);
  one->key = other->key;
  EXPECT_FALSE(IsGoodFor(*one, authority.certificate, {kNames, kNow, absl::Hours(1)}));
}

TEST(CertificateTest, APairIsWholeAndStillGood) {
  const KeyPair authority = Authority();
  auto pair = IssueCertificate(authority, kNames, kNow);
  ASSERT_TRUE(pair.ok()) << pair.status();
  EXPECT_EQ(CheckPair(*pair, kNow), absl::OkStatus());
  EXPECT_TRUE(absl::IsInvalidArgument(CheckPair(*pair, kNow + absl::Hours(24 * 366))));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckPair({pair->certificate, authority.key}, kNow)));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckPair({pair->certificate, "no key"}, kNow)));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckPair({"", pair->key}, kNow)));
}

TEST(CertificateTest, RefusesWhatItCannotUse) {
  const KeyPair authority = Authority();
  EXPECT_FALSE(IssueCertificate(authority, {}, kNow).ok());
  const auto injected = IssueCertificate(authority, {"a,IP:10.0.0.1"}, kNow);
  EXPECT_TRUE(absl::IsInvalidArgument(injected.status())) << injected.status();
  EXPECT_TRUE(absl::IsInvalidArgument(IssueCertificate({"x", "y"}, kNames, kNow).status()));
  EXPECT_FALSE(IsGoodFor({"x", "y"}, "z", {{}, kNow, absl::ZeroDuration()}));
  EXPECT_TRUE(absl::IsInvalidArgument(ExpiryOf("no certificate").status()));
}

}  // namespace
}  // namespace shirabe
