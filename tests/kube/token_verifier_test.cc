// Whom a token is believed to be of where no TokenReview may be asked for; and every way of lying.
#include "kube/token_verifier.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

#include "kube/token_reviewer.h"
#include "tests/kube/await.h"
#include "tests/kube/fake_api_server.h"
#include "tests/kube/signed_tokens.h"

namespace shirabe::kube {
namespace {

constexpr char kIssuer[] = "https://kubernetes.default.svc";

class VerifierTest : public testing::Test {
 protected:
  VerifierTest()
      : server_([this](FakeExchange& exchange) { Answer(exchange); }),
        client_(Client::Create(server_.config(), RealClock(),
                               {.backoff = absl::Milliseconds(1), .tries = 1})
                    .value()),
        verifier_(client_.get(), &clock_, "shirabe", "team") {
    paths_["/.well-known/openid-configuration"] = {{"issuer", kIssuer}};
    Publish({curve_.Published("P-256"), rsa_.Published("")});
    paths_["/api/v1/namespaces/team/serviceaccounts/ada"] = {{"metadata", {{"uid", "7"}}}};
    paths_["/api/v1/namespaces/team/pods/one"] = {{"metadata", {{"uid", "pod-7"}}}};
  }

  void Publish(const Json& keys) { paths_["/openid/v1/jwks"] = {{"keys", keys}}; }

  void Answer(FakeExchange& exchange) {
    const std::string& path = exchange.request().path;
    for (int i = 0; hold_ && i < 2000; ++i) absl::SleepFor(absl::Milliseconds(5));
    if (status_ != 200) return exchange.Reply(status_, "{}");
    if (exchange.request().method == "POST") {
      asked_ = Json::parse(exchange.request().body, nullptr, false);
      if (path.find("tokenreviews") != std::string::npos) return exchange.Reply(403, "{}");
      Json answer = asked_;
      answer["status"] = {{"allowed", true}};
      return exchange.Reply(201, answer.dump());
    }
    const auto found = paths_.find(path);
    const Json none = {{"kind", "Status"}, {"reason", "NotFound"}, {"code", 404}};
    exchange.Reply(found == paths_.end() ? 404 : 200,
                   (found == paths_.end() ? none : found->second).dump());
  }

  static Json Claims() {
    return {{"iss", kIssuer},
            {"aud", Json::array({"shirabe"})},
            {"exp", 1'800'000'600},
            {"nbf", 1'800'000'000},
            {"sub", "system:serviceaccount:team:ada"},
            {"kubernetes.io",
             {{"namespace", "team"}, {"serviceaccount", {{"name", "ada"}, {"uid", "7"}}}}}};
  }
  static Json With(const char* pointer, const Json& value) {
    Json claims = Claims();
    claims[Json::json_pointer(pointer)] = value;
    return claims;
  }
  Status Verify(const Json& claims) {
    return verifier_.Verify(curve_.Token(claims, "ES256")).status();
  }

  SigningKey curve_{"one", "P-256"};
  SigningKey rsa_{"two", ""};
  std::atomic<int> status_ = 200;
  std::atomic<bool> hold_ = false;  // the API server takes its time
  std::map<std::string, Json> paths_;
  Json asked_;
  FakeApiServer server_;
  ManualClock clock_{absl::FromUnixSeconds(1'800'000'000)};
  std::unique_ptr<Client> client_;
  TokenVerifier verifier_;
};

TEST_F(VerifierTest, KnowsAccountsOfItsNamespaceByEitherKindOfKey) {
  const auto ada = verifier_.Verify(curve_.Token(Claims(), "ES256"));
  ASSERT_TRUE(ada.ok()) << ada.status();
  EXPECT_EQ(ada->name, "system:serviceaccount:team:ada");
  EXPECT_EQ(ada->info["uid"], "7");
  EXPECT_EQ(ada->info["groups"][1], "system:serviceaccounts:team");
  EXPECT_FALSE(ada->info.contains("extra"));
  EXPECT_TRUE(verifier_.Verify(rsa_.Token(Claims(), "RS256")).ok());
  EXPECT_TRUE(Verify(With("/aud", "shirabe")).ok());
  EXPECT_EQ(server_.Count("GET /openid/v1/jwks"), 1);
}

TEST_F(VerifierTest, OtherCurvesAreKnownToo) {
  const SigningKey middle("m", "P-384"), large("l", "P-521");
  const auto known = [](const SigningKey& key, const char* name, const EVP_MD* digest) {
    const auto parsed = JsonWebKey::Parse(key.Published(name));
    return parsed.ok() && parsed->HasSigned("text", key.Sign("text", digest)) &&
           !parsed->HasSigned("texT", key.Sign("text", digest));
  };
  EXPECT_TRUE(known(middle, "P-384", EVP_sha384()));
  EXPECT_TRUE(known(large, "P-521", EVP_sha512()));
  EXPECT_FALSE(JsonWebKey::Parse(middle.Published("P-256")).ok());
  EXPECT_FALSE(JsonWebKey::Parse({{"kty", "oct"}, {"k", "c2VjcmV0"}}).ok());
  EXPECT_FALSE(JsonWebKey::Parse({{"kty", "RSA"}, {"n", "AQAB"}, {"e", "AQAB"}}).ok());
  EXPECT_FALSE(JsonWebKey::Parse(Json()).ok());
}

TEST_F(VerifierTest, APodIsNamedWhileItIsThere) {
  const Json claims = With("/kubernetes.io/pod", {{"name", "one"}, {"uid", "pod-7"}});
  const auto pod = verifier_.Verify(curve_.Token(claims, "ES256"));
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(pod->info["extra"]["authentication.kubernetes.io/pod-uid"], Json::array({"pod-7"}));
  EXPECT_TRUE(absl::IsUnauthenticated(
      Verify(With("/kubernetes.io/pod", {{"name", "one"}, {"uid", "pod-8"}}))));
  paths_.erase("/api/v1/namespaces/team/pods/one");
  EXPECT_TRUE(absl::IsUnauthenticated(Verify(claims)));
}

TEST_F(VerifierTest, NoOtherClaimsAreBelieved) {
  const std::pair<const char*, Json> lies[] = {
      {"/iss", "https://elsewhere"},
      {"/aud", Json::array({"https://kubernetes.default.svc"})},
      {"/aud", Json()},
      {"/exp", 1'799'999'000},
      {"/exp", "2100-01-01"},
      {"/exp", Json()},
      {"/nbf", 1'800'009'000},
      {"/sub", "system:serviceaccount:team:root"},
      {"/sub", "system:admin"},
      {"/kubernetes.io/namespace", "other"},
      {"/kubernetes.io/serviceaccount/name", ""},
      {"/kubernetes.io/serviceaccount/uid", "8"},
      {"/kubernetes.io/serviceaccount/uid", ""},
      {"/kubernetes.io/secret", {{"name", "old"}, {"uid", "1"}}},
      {"/kubernetes.io", Json()},
  };
  for (const auto& [pointer, value] : lies) {
    EXPECT_TRUE(absl::IsUnauthenticated(Verify(With(pointer, value)))) << pointer << value;
  }
  EXPECT_TRUE(absl::IsUnauthenticated(Verify(Json::array())));
  paths_.erase("/api/v1/namespaces/team/serviceaccounts/ada");
  EXPECT_TRUE(absl::IsUnauthenticated(Verify(Claims()))) << "an account that is gone";
}

TEST_F(VerifierTest, NoOtherSignatureIsBelieved) {
  const std::string good = curve_.Token(Claims(), "ES256");
  const size_t dot = good.rfind('.');
  const std::string text = good.substr(0, dot);
  const auto unsigned_token = [&](const char* algorithm) {
    const Json header = {{"alg", algorithm}, {"kid", "one"}};
    return absl::StrCat(Web64(header.dump()), ".", Web64(Claims().dump()), ".");
  };
  const Json mine = With("/sub", "system:serviceaccount:team:root");
  const std::string tokens[] = {
      "", ".", "..", "a.b.c", text, text + ".", text + "." + Web64("short"),
      text + "." + Web64(std::string(64, '\0')), text + "." + Web64(std::string(64, '\xff')),
      text + "." + Web64(std::string(9000, 'x')), good + ".more", unsigned_token("none"),
      unsigned_token("HS256"), curve_.Token(Claims(), "none"), curve_.Token(Claims(), "ES384"),
      rsa_.Token(Claims(), "PS256"),
      // Another's key under this one's name; and what was signed for others.
      SigningKey("one", "P-256").Token(Claims(), "ES256"),
      SigningKey("three", "P-256").Token(Claims(), "ES256"),
      absl::StrCat(good.substr(0, good.find('.')), ".", Web64(mine.dump()), good.substr(dot))};
  for (const std::string& token : tokens) {
    EXPECT_TRUE(absl::IsUnauthenticated(verifier_.Verify(token).status())) << token;
  }
  EXPECT_TRUE(verifier_.Verify(good).ok());
}

TEST_F(VerifierTest, ANewKeyIsLookedForAndNotTooOften) {
  ASSERT_TRUE(Verify(Claims()).ok());
  const SigningKey later("later", "P-256");
  Publish(Json::array({later.Published("P-256")}));
  const std::string token = later.Token(Claims(), "ES256");
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(verifier_.Verify(token).ok());
  EXPECT_EQ(server_.Count("GET /openid/v1/jwks"), 1);
  clock_.Advance(absl::Seconds(11));
  EXPECT_TRUE(verifier_.Verify(token).ok());
  EXPECT_FALSE(Verify(Claims()).ok()) << "a key that is withdrawn";
}

TEST_F(VerifierTest, KnownKeysAreUsedForAnHourWhileTheApiServerIsAway) {
  const std::string token = curve_.Token(With("/exp", 1'800'100'000), "ES256");
  ASSERT_TRUE(verifier_.Claims(token).ok());
  status_ = 500;
  clock_.Advance(absl::Minutes(50));
  EXPECT_TRUE(verifier_.Claims(token).ok());
  EXPECT_TRUE(verifier_.Claims(token).ok()) << "and is not asked again at once";
  EXPECT_EQ(server_.Count("GET /.well-known/openid-configuration"), 2);
  clock_.Advance(absl::Minutes(11));
  EXPECT_TRUE(absl::IsUnavailable(verifier_.Claims(token).status()));
}

// Thousands of sidecars come at the same time, and a server's threads are few.
TEST_F(VerifierTest, NoOneWaitsForAnotherWhoReadsTheKeys) {
  const std::string token = curve_.Token(Claims(), "ES256");
  hold_ = true;
  std::thread first([&] { EXPECT_TRUE(verifier_.Claims(token).ok()); });
  EXPECT_TRUE(Await([&] { return server_.Count("GET /.well-known/openid-configuration") == 1; }));
  EXPECT_TRUE(absl::IsUnavailable(verifier_.Claims(token).status())) << "none is known yet";
  hold_ = false;
  first.join();
  clock_.Advance(absl::Minutes(6));
  hold_ = true;
  std::thread again([&] { EXPECT_TRUE(verifier_.Claims(token).ok()); });
  EXPECT_TRUE(Await([&] { return server_.Count("GET /.well-known/openid-configuration") == 2; }));
  EXPECT_TRUE(verifier_.Claims(token).ok()) << "the known ones do";
  hold_ = false;
  again.join();
}

TEST_F(VerifierTest, WithoutAnAnswerNothingIsDecided) {
  status_ = 500;
  EXPECT_TRUE(absl::IsUnavailable(Verify(Claims())));
  status_ = 200;
  paths_["/openid/v1/jwks"] = {{"keys", Json::array()}};
  EXPECT_TRUE(absl::IsUnavailable(Verify(Claims())));
}

// ---- what the reviewer makes of it --------------------------------------------------------------

TEST_F(VerifierTest, AReviewerFallsBackOnItForOneNamespaceAlone) {
  TokenReviewer one(client_.get(), &clock_, {.audience = "shirabe", .only_namespace = "team"});
  const std::string token = curve_.Token(Claims(), "ES256");
  const auto ada = one.Review(token, "a");
  ASSERT_TRUE(ada.ok()) << ada.status();
  EXPECT_FALSE(one.Review(curve_.Token(With("/exp", 1), "ES256"), "a").ok());
  EXPECT_EQ(server_.Count("POST /apis/authentication.k8s.io/v1/tokenreviews"), 1);

  const ResourceAttributes list{
      .verb = "list", .group = "kubeflow.org", .resource = "experiments", .namespace_name = "team"};
  EXPECT_TRUE(one.Authorize(*ada, list).ok());
  EXPECT_EQ(asked_["kind"], "LocalSubjectAccessReview");
  EXPECT_EQ(asked_["metadata"]["namespace"], "team");
  EXPECT_EQ(asked_["spec"]["resourceAttributes"]["namespace"], "team");
  ResourceAttributes all = list;
  all.namespace_name = "";
  EXPECT_TRUE(one.Authorize(*ada, all).ok()) << "all that there are for it";
  EXPECT_EQ(asked_["spec"]["resourceAttributes"]["namespace"], "team");
  ResourceAttributes other = list;
  other.namespace_name = "other";
  EXPECT_TRUE(absl::IsPermissionDenied(one.Authorize(*ada, other)));
  EXPECT_TRUE(absl::IsPermissionDenied(one.Authorize(*ada, {.verb = "get", .path = "/metrics"})));

  TokenReviewer all_of_them(client_.get(), &clock_, {.audience = "shirabe"});
  EXPECT_TRUE(absl::IsUnavailable(all_of_them.Review(token, "a").status()));
}

}  // namespace
}  // namespace shirabe::kube
