// Signatures, against the examples that Amazon publishes in "Signature Calculations for the
// Authorization Header" and "Authenticating Requests: Using Query Parameters" of S3's reference.
#include "artifacts/sigv4.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "base/sha256.h"

namespace shirabe::artifacts {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

const Signer kExample{
    .credentials = {"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"},
    .region = "us-east-1"};
const SigningTime kExampleTime{"20130524", "20130524T000000Z"};
constexpr char kHost[] = "examplebucket.s3.amazonaws.com";

RequestToSign Example(const std::string& method, const std::string& path,
                      const std::string& body = "") {
  RequestToSign request{.method = method, .path = path, .payload_sha256 = HexSha256(body)};
  request.headers = {{"host", kHost},
                     {"x-amz-content-sha256", request.payload_sha256},
                     {"x-amz-date", kExampleTime.timestamp}};
  return request;
}

std::string SignatureOf(const RequestToSign& request) {
  const std::string header = kExample.Authorization(request, kExampleTime);
  return header.substr(header.find("Signature=") + 10);
}

TEST(SigV4, GetObject) {
  RequestToSign request = Example("GET", "/test.txt");
  request.headers.emplace_back("range", "bytes=0-9");
  EXPECT_EQ(kExample.Authorization(request, kExampleTime),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
            "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
            "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST(SigV4, PutObject) {
  RequestToSign request =
      Example("PUT", "/" + UriEncode("test$file.text", true), "Welcome to Amazon S3.");
  request.headers.emplace_back("date", "Fri, 24 May 2013 00:00:00 GMT");
  request.headers.emplace_back("x-amz-storage-class", "REDUCED_REDUNDANCY");
  EXPECT_EQ(SignatureOf(request),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

TEST(SigV4, QueriesWithAndWithoutValues) {
  RequestToSign request = Example("GET", "/");
  request.query = {{"lifecycle", ""}};
  EXPECT_EQ(SignatureOf(request),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  request.query = {{"prefix", "J"}, {"max-keys", "2"}};
  EXPECT_EQ(SignatureOf(request),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST(SigV4, PresignedUrl) {
  const RequestToSign request{.method = "GET", .path = "/test.txt", .headers = {{"host", kHost}}};
  const std::string query = kExample.PresignedQuery(request, kExampleTime, absl::Hours(24));
  EXPECT_THAT(query, HasSubstr("X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3"
                               "%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&"
                               "X-Amz-SignedHeaders=host"));
  EXPECT_THAT(query, EndsWith("&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d"
                              "157751f604d404"));
}

// RFC 4231, test cases 1, 2 and 6.
TEST(SigV4, Hmac) {
  const auto hex = [](const std::string& key, const std::string& text) {
    return absl::BytesToHexString(HmacSha256(key, text));
  };
  EXPECT_EQ(hex(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(SigV4, EncodesAsS3Does) {
  EXPECT_EQ(UriEncode("a/b c~d-e_f.g+h%é", true), "a/b%20c~d-e_f.g%2Bh%25%C3%A9");
  EXPECT_EQ(UriEncode("a/b", false), "a%2Fb");
  EXPECT_EQ(EncodeQuery({{"b", "2 3"}, {"a", ""}, {"a-b", "1"}}), "a=&a-b=1&b=2%203");
  EXPECT_EQ(EncodeQuery({}), "");
}

TEST(SigV4, TimesAreInUtc) {
  const SigningTime time = SigningTimeOf(absl::FromUnixSeconds(1369353600));
  EXPECT_EQ(time.date, "20130524");
  EXPECT_EQ(time.timestamp, "20130524T000000Z");
}

}  // namespace
}  // namespace shirabe::artifacts
