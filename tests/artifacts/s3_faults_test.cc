// A bucket whose server does not do what it should: what it says is checked before it is believed,
// bounded before it is read, and never repeated with a secret in it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "artifacts/retries.h"
#include "artifacts/s3_replies.h"
#include "artifacts/s3_store.h"
#include "tests/artifacts/objects.h"
#include "tests/artifacts/s3_server.h"
#include "tests/kube/fake_api_server.h"

namespace shirabe::artifacts {
namespace {

using kube::FakeApiServer;
using kube::FakeExchange;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kSecret[] = "very-secret-key";

std::unique_ptr<ArtifactStore> StoreAt(const std::string& origin, const std::string& region = "r",
                                       absl::Duration answer = absl::Seconds(20)) {
  return *S3Store::Create({.origin = origin,
                           .host = origin.substr(origin.find("://") + 3),
                           .path = "/bucket",
                           .signer = {.credentials = {"access", kSecret}, .region = region},
                           .answer = answer,
                           .piece_bytes = 256 << 10});
}

FakeApiServer::Handler Say(int status, const std::string& body,
                           const FakeExchange::Headers& headers = {}) {
  return [=](FakeExchange& exchange) { exchange.Reply(status, body, headers); };
}

std::string ErrorXml(const std::string& code) {
  return absl::StrCat("<?xml version=\"1.0\"?><Error><Code>", code,
                      "</Code><Message>with access and ", kSecret,
                      "</Message><StringToSign>x</StringToSign></Error>");
}

Status HeadAt(const FakeApiServer& server) {
  return StoreAt(server.config().server)->Head("key", {}).status();
}

TEST(S3Faults, ErrorsMeanWhatTheyMean) {
  const std::vector<std::tuple<int, std::string, absl::StatusCode>> replies = {
      {404, "NoSuchKey", absl::StatusCode::kNotFound},
      {404, "NoSuchBucket", absl::StatusCode::kPermissionDenied},
      {404, "", absl::StatusCode::kPermissionDenied},
      {403, "AccessDenied", absl::StatusCode::kPermissionDenied},
      {403, "SignatureDoesNotMatch", absl::StatusCode::kPermissionDenied},
      {403, "QuotaExceeded", absl::StatusCode::kResourceExhausted},
      {507, "", absl::StatusCode::kResourceExhausted},
      {503, "SlowDown", absl::StatusCode::kUnavailable},
      {500, "InternalError", absl::StatusCode::kUnavailable},
      {429, "", absl::StatusCode::kUnavailable},
      {412, "PreconditionFailed", absl::StatusCode::kDataLoss},
      {301, "PermanentRedirect", absl::StatusCode::kInvalidArgument}};
  for (const auto& [status, code, meaning] : replies) {
    FakeApiServer server(Say(status, ErrorXml(code), {{"Location", "http://127.0.0.1:1/"}}));
    const Status error = HeadAt(server);
    EXPECT_EQ(error.code(), meaning) << error;
    EXPECT_THAT(Message(error), HasSubstr(absl::StrCat(status)));
    EXPECT_THAT(Message(error), HasSubstr(code));
    EXPECT_THAT(Message(error), Not(AnyOf(HasSubstr(kSecret), HasSubstr("Signature="))));
  }
}

TEST(S3Faults, AnErrorThatIsNoXmlIsOneAllTheSame) {
  for (const std::string& body :
       {std::string(), std::string("<html>"), std::string("<Error><Code>a b</Code></Error>"),
        absl::StrCat("<Error><Code>", std::string(100, 'A'), "</Code></Error>"),
        std::string("\xff\xfe\0", 3), std::string(900'000, '<')}) {
    FakeApiServer server(Say(403, body));
    const Status error = HeadAt(server);
    EXPECT_TRUE(absl::IsPermissionDenied(error)) << error;
    EXPECT_LT(Message(error).size(), 200);
  }
}

TEST(S3Faults, MoreThanWasAskedForIsNotRead) {
  FakeApiServer huge(
      Say(206, std::string(8 << 20, 'x'), {{"ETag", "\"e\""}, {"Content-Range", "bytes 0-0/1"}}));
  EXPECT_TRUE(absl::IsUnavailable(HeadAt(huge))) << HeadAt(huge);
}

TEST(S3Faults, AnswersThatDoNotFitAreRefused) {
  using Headers = FakeExchange::Headers;
  const std::vector<std::tuple<int, std::string, Headers>> replies = {
      {200, "0123456789", {{"ETag", "\"e\""}}},                                      // the whole
      {206, "0123", {{"ETag", "\"e\""}, {"Content-Range", "bytes 0-9/10"}}},         // fewer
      {206, "0123456789", {{"ETag", "\"e\""}, {"Content-Range", "bytes 1-10/20"}}},  // elsewhere
      {206, "0123456789", {{"ETag", "\"e\""}, {"Content-Range", "bytes 0-9/5"}}},    // behind
      {206, "0123456789", {{"ETag", "\"e\""}}},                                      // where?
      {206, "0123456789", {{"ETag", "\"e\""}, {"Content-Range", "bytes 0-9/*"}}},    //
      {206, "0123456789", {{"ETag", "\"e\""}, {"Content-Range", "bytes 0-9/99999999999999999999"}}},
      {206, "01", {{"ETag", "\"e\""}, {"Content-Range", "bytes 0-1/1000"}}},  // no end
      {206, "0123456789", {{"Content-Range", "bytes 0-9/10"}}},               // no ETag
      {206, "0123456789", {{"ETag", "<x>"}, {"Content-Range", "bytes 0-9/10"}}}};
  for (const auto& [status, body, headers] : replies) {
    FakeApiServer server(Say(status, body, headers));
    const auto got = GetRange(*StoreAt(server.config().server), "key", {0, 10});
    EXPECT_TRUE(absl::IsDataLoss(got.status())) << got.status() << body;
  }
}

TEST(S3Faults, AnObjectThatIsReplacedWhileItIsReadIsFoundOut) {
  const std::string piece(256 << 10, 'x');
  FakeApiServer server([&](FakeExchange& exchange) {
    const auto& headers = exchange.request().headers;
    if (headers.contains("if-match")) return exchange.Reply(412, ErrorXml("PreconditionFailed"));
    exchange.Reply(206, piece, {{"ETag", "\"one\""}, {"Content-Range", "bytes 0-262143/524288"}});
  });
  const auto got = GetRange(*StoreAt(server.config().server), "key");
  EXPECT_TRUE(absl::IsDataLoss(got.status())) << got.status();
}

std::string ListXml(const std::string& entries, bool truncated) {
  return absl::StrCat("<ListBucketResult>", entries, "<IsTruncated>", truncated ? "true" : "false",
                      "</IsTruncated></ListBucketResult>");
}
std::string ListEntry(const std::string& key, const std::string& bytes = "1") {
  return absl::StrCat("<Contents><Key>", key, "</Key><Size>", bytes, "</Size></Contents>");
}

TEST(S3Faults, ListsThatCannotBeAreRefused) {
  for (const std::string& xml :
       {std::string(), std::string("<ListBucketResult>"), std::string("<Other/>"),
        ListXml(ListEntry("p/b") + ListEntry("p/a"), false), ListXml(ListEntry("other"), false),
        ListXml(ListEntry("p/a", "-1"), false), ListXml(ListEntry("p/a", "x"), false),
        ListXml(ListEntry("p/a", "99999999999999999999"), false), ListXml("", true),
        ListXml(ListEntry(std::string(5000, 'a')), false),
        std::string("<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;&a;\">]>") +
            ListXml(ListEntry("p/&b;"), false),
        std::string("<!DOCTYPE x SYSTEM \"file:///etc/passwd\">") + ListXml("", false)}) {
    FakeApiServer server(Say(200, xml));
    const auto page = StoreAt(server.config().server)->List("p/", "", {});
    EXPECT_TRUE(absl::IsDataLoss(page.status())) << page.status() << xml.substr(0, 200);
  }
  // Nested as deep as no list is; a parser that recursed would end here.
  std::string deep;
  for (int i = 0; i < 400'000; ++i) deep += "<a>";
  EXPECT_TRUE(absl::IsDataLoss(ReadListReply(deep).status()));
  EXPECT_TRUE(absl::IsDataLoss(ReadListReply(std::string(kMaxReplyBytes + 1, ' ')).status()));
}

TEST(S3Faults, ForeignObjectsBesideOursAreLeftAlone) {
  FakeApiServer server(Say(200, ListXml(ListEntry("p/a b") + ListEntry("p/b"), false)));
  const auto page = StoreAt(server.config().server)->List("p/", "", {});
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->objects.size(), 1);
  EXPECT_EQ(page->objects[0].key, "p/b");
}

// A store that gives one more page for ever.
TEST(S3Faults, AListWithoutAnEndHasOne) {
  FakeApiServer server([](FakeExchange& exchange) {
    const auto after = exchange.request().query.find("start-after");
    const std::string last = after == exchange.request().query.end() ? "p/" : after->second;
    exchange.Reply(200, ListXml(ListEntry(last.size() > 800 ? "p/b" : last + "a"), true));
  });
  const auto store = StoreAt(server.config().server);
  EXPECT_TRUE(absl::IsResourceExhausted(ListAll(*store, "p/", 100, {}).status()));
  EXPECT_FALSE(ListAll(*store, "p/", 100'000, {}).ok());
}

TEST(S3Faults, AnUploadThatOnlySeemsToSucceedIsAnError) {
  for (const std::string& end :
       {ErrorXml("InternalError"), std::string(), std::string("<CompleteMultipartUploadResult>")}) {
    std::atomic<int> aborted = 0;
    FakeApiServer server([&](FakeExchange& exchange) {
      const auto& request = exchange.request();
      if (request.method == "DELETE") ++aborted;
      if (request.method == "PUT") return exchange.Reply(200, "", {{"ETag", "\"e\""}});
      exchange.Reply(200, request.query.contains("uploads")
                              ? "<InitiateMultipartUploadResult><UploadId>u</UploadId>"
                                "</InitiateMultipartUploadResult>"
                              : end);
    });
    const auto store = StoreAt(server.config().server);
    const Status put = store->Put("key", SourceFile(ManyBytes(300 << 10)).source(), {});
    EXPECT_TRUE(absl::IsDataLoss(put)) << put;
    EXPECT_EQ(aborted, 1) << "its parts take no room";
  }
}

TEST(S3Faults, ServersThatAreGoneOrSlowAreUnavailable) {
  EXPECT_TRUE(absl::IsUnavailable(StoreAt("http://127.0.0.1:1")->Head("key", {}).status()));
  FakeApiServer silent([](FakeExchange& exchange) { exchange.KeepSilent(absl::Seconds(60)); });
  const auto store = StoreAt(silent.config().server, "r", absl::Milliseconds(200));
  EXPECT_TRUE(absl::IsUnavailable(store->Remove("key", {})));
  FakeApiServer rude([](FakeExchange& exchange) { exchange.Reset(); });
  EXPECT_TRUE(absl::IsUnavailable(StoreAt(rude.config().server)->Remove("key", {})));
}

TEST(S3Faults, WhatFailsNowAndThenIsTriedAgainAndNoMoreThanThat) {
  std::atomic<int> calls = 0;
  FakeApiServer server([&](FakeExchange& exchange) {
    ++calls % 3 == 0 ? exchange.Reply(204, "") : exchange.Reply(503, ErrorXml("SlowDown"));
  });
  const auto store = StoreAt(server.config().server);
  const RetryPolicy quick{.attempts = 3, .backoff = {absl::Milliseconds(1), absl::Milliseconds(1)}};
  RetryingStore retrying(store.get(), quick);
  EXPECT_TRUE(retrying.Remove("key", {}).ok());
  EXPECT_EQ(calls, 3);
  RetryingStore impatient(store.get(), {.attempts = 2, .backoff = quick.backoff});
  EXPECT_TRUE(absl::IsUnavailable(impatient.Remove("key", {})));
  EXPECT_EQ(calls, 5);
}

TEST(S3Faults, TheRealServerRefusesAWrongSecretAndNothingSaysIt) {
  if (!S3Server::IsInstalled()) GTEST_SKIP() << S3Server::kMissing;
  const S3Server server;
  const auto store = StoreAt(server.endpoint(), "us-east-1");
  for (const Status& error : {store->Head("key", {}).status(), PutText(*store, "key", "x"),
                              store->List("", "", {}).status(), store->Remove("key", {})}) {
    EXPECT_TRUE(absl::IsPermissionDenied(error)) << error;
    EXPECT_THAT(Message(error), Not(HasSubstr(kSecret)));
  }
}

// What a bearer of a URL may do, and only that.
TEST(S3Faults, PresignedUrlsAreForOneObjectAndOneMethod) {
  if (!S3Server::IsInstalled()) GTEST_SKIP() << S3Server::kMissing;
  const S3Server server;
  v1::ArtifactStore entry;
  entry.set_type("s3");
  entry.set_endpoint(server.endpoint());
  entry.set_bucket(S3Server::kBucket);
  entry.mutable_credentials()->set_file(server.CredentialFile());
  const auto store = *S3Store::Open(entry);
  ASSERT_TRUE(PutText(*store, "a/key", "hello").ok());
  const auto http = *net::HttpClient::Create();
  const auto call = [&](const std::string& method, const std::string& url) {
    const size_t path = url.find('/', url.find("://") + 3);
    const net::HttpCall one{.request = {.method = method, .target = url.substr(path), .body = ""},
                            .origin = url.substr(0, path)};
    return http->Do(one, nullptr, {}).answer;
  };
  const std::string get = store->Presign({.key = "a/key"}, absl::Minutes(1))->url;
  EXPECT_EQ(call("GET", get).body, "hello");
  EXPECT_EQ(call("DELETE", get).status, 403);
  std::string other = get;
  other.replace(other.find("a/key"), 5, "a/kez");
  EXPECT_EQ(call("GET", other).status, 403);
  EXPECT_THAT(get, Not(HasSubstr(S3Server::kSecretKey)));
  EXPECT_TRUE(
      absl::IsInvalidArgument(store->Presign({.key = "a/key"}, absl::Hours(24 * 8)).status()));
}

// Other bytes, more of them, and the same too late: the server itself refuses them.
TEST(S3Faults, WhatIsPutByAUrlIsWhatItWasMadeFor) {
  if (!S3Server::IsInstalled()) GTEST_SKIP() << S3Server::kMissing;
  const S3Server server;
  ManualClock clock(RealClock()->Now());
  const std::string host = server.endpoint().substr(server.endpoint().find("://") + 3);
  const auto store =
      *S3Store::Create({.origin = server.endpoint(),
                        .host = host,
                        .path = absl::StrCat("/", S3Server::kBucket),
                        .signer = {.credentials = {S3Server::kAccessKey, S3Server::kSecretKey},
                                   .region = "us-east-1"},
                        .clock = &clock});
  const auto http = *net::HttpClient::Create();
  const auto put = [&](const std::string& body) {
    const auto made = *store->Presign(
        {.action = v1::PUT_OBJECT, .key = "key", .bytes = 5, .md5 = "XUFAKrxLKna5cZ2REBfFkg=="},
        absl::Minutes(15));
    net::HttpCall call{.request = {.method = "PUT",
                                   .target = made.url.substr(server.endpoint().size()),
                                   .body = body},
                       .origin = server.endpoint()};
    for (const auto& header : made.headers) {
      if (header.first != "content-length") call.request.headers.push_back(header);
    }
    return http->Do(call, nullptr, {}).answer.status;
  };
  EXPECT_EQ(put("hallo"), 400);
  EXPECT_EQ(put("hello, and more"), 403);
  EXPECT_EQ(put("hello"), 200);
  clock.StepWallClock(-absl::Minutes(20));
  EXPECT_EQ(put("hello"), 403) << "its time is over";
}

}  // namespace
}  // namespace shirabe::artifacts
