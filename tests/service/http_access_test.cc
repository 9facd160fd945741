// Who may do what: every route of the table, called with tokens that are wrong, missing, of another
// namespace or of a trial. Nothing of one namespace is seen from another.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "service/common/authorization.h"
#include "service/http/event_stream.h"
#include "tests/service/http_fixture.h"

namespace shirabe::service {
namespace {

using testing::HasSubstr;
using testing::Not;

// Of namespace a, with an experiment that is there.
std::string TargetOf(const Route& route) {
  const bool experiment = absl::StrContains(route.path, "{namespace}");
  return absl::StrReplaceAll(route.path, {{"{namespace}", "a"},
                                          {"{name}", experiment ? "secret" : "tpe"},
                                          {"{trial}", "1"},
                                          {"{attempt}", "1"},
                                          {"{step}", "1"}});
}

class HttpAccessTest : public testing::Test {
 protected:
  HttpAccessTest() {
    http_.Create("a", "secret");
    http_.RunTrials("a", "secret", 1);
    http_.Create("b", "mine");
  }
  HttpReply Call(const Route& route, const std::string& token) {
    return http_.Send(route.method, TargetOf(route),
                      route.request == nullptr ? "" : AskedSpec("secret"), token);
  }
  HttpFixture http_;
};

TEST_F(HttpAccessTest, NothingButWhatIsOpenAnswersWithoutAToken) {
  for (const Route& route : Routes()) {
    if (route.open()) continue;
    const HttpReply reply = Call(route, "");
    EXPECT_EQ(reply.status, 401) << route.id;
    EXPECT_THAT(reply.headers, testing::Contains(testing::Pair("WWW-Authenticate", "Bearer")));
    EXPECT_THAT(reply.body, Not(HasSubstr("secret"))) << route.id;
  }
}

// A stream goes on for hours: its token may be taken away meanwhile, or given to another caller,
// or, once it is unknown, be taken for one of an attempt.
TEST_F(HttpAccessTest, AStreamEndsWhenItsTokenIsAnotherCallers) {
  class Endless : public PieceSource {
    StatusOr<Piece> Next() override { return Piece{": here\n\n"}; }
  };
  constexpr char kToken[] = "0123456789abcdef0123456789abcdef";
  const std::string path = testing::TempDir() + absl::StrCat("stream-tokens-", getpid());
  const auto write = [&](const std::string& line) {
    CHECK(WriteFileAtomic(path, absl::StrCat(kAdminToken, "\n", line, "\n")).ok());
    CHECK(chmod(path.c_str(), 0600) == 0);
  };
  for (const std::string then : {"", "user b TOKEN", "metrics TOKEN", "user a TOKEN"}) {
    write(absl::StrCat("user a ", kToken));
    Tokens tokens = *Tokens::Load(path);
    ManualClock clock;
    HttpContext context = http_.context();
    context.tokens = &tokens;
    context.clock = &clock;
    HttpRequest request;
    request.headers.emplace_back("authorization", absl::StrCat("Bearer ", kToken));
    const service::Call call{.request = request,
                             .context = context,
                             .principal = *tokens.Check(request.Header("authorization"), "")};
    auto reply = Follow(call, std::make_unique<Endless>());
    ASSERT_TRUE(reply.ok()) << reply.status();
    EXPECT_TRUE(reply->source->Next().ok());
    write(absl::StrReplaceAll(then, {{"TOKEN", kToken}}));
    ASSERT_TRUE(tokens.Reload().ok());
    clock.Advance(absl::Seconds(31));
    const Status next = reply->source->Next().status();
    EXPECT_EQ(absl::IsPermissionDenied(next), then != "user a TOKEN") << then << next;
  }
  std::filesystem::remove(path);
}

TEST_F(HttpAccessTest, AWrongTokenGetsNowhere) {
  for (const Route& route : Routes()) {
    if (route.open()) continue;
    // What any token may be shown is the same for everybody.
    const HttpReply reply = Call(route, "0123456789abcdef0123456789abcdef");
    EXPECT_EQ(reply.status, 403) << route.id << " " << reply.body;
    // What cannot even be that of a trial is unknown.
    EXPECT_EQ(Call(route, "0123456789abcdef0123456789abcde").status, 401) << route.id;
    EXPECT_EQ(Call(route, "x").status, 401) << route.id;
  }
}

TEST_F(HttpAccessTest, NothingOfOneNamespaceIsSeenFromAnother) {
  for (const Route& route : Routes()) {
    if (route.open() || route.request != nullptr) continue;
    const HttpReply reply = Call(route, kOtherToken);
    const std::string text = absl::StrReplaceAll(reply.body, {{TargetOf(route), ""}});
    EXPECT_THAT(text, Not(HasSubstr("secret"))) << route.id;
  }
  // Last: a specification that is sent has the name itself, and one is created under it.
  for (const Route& route : Routes()) {
    if (route.open() || !absl::StrContains(route.path, "{namespace}")) continue;
    const HttpReply reply = Call(route, kOtherToken);
    EXPECT_EQ(reply.status, 403) << route.id << " " << reply.body;
  }
}

TEST_F(HttpAccessTest, AListOfAllIsAListOfWhatIsTheCallers) {
  const auto list = BodyOf(http_.Get("/api/v1/experiments", kOtherToken));
  ASSERT_EQ(list["items"].size(), 1u);
  EXPECT_EQ(list["items"][0]["metadata"]["name"], "mine");
  EXPECT_EQ(BodyOf(http_.Get("/api/v1/experiments", kAdminToken))["items"].size(), 2u);
  const HttpReply made = http_.Send("POST", "/api/v1/experiments", AskedSpec("new"), kOtherToken);
  EXPECT_EQ(made.status, 201);
  EXPECT_EQ(BodyOf(made)["metadata"]["namespace"], "b");
}

TEST_F(HttpAccessTest, LearningFromAnotherNamespaceIsRefused) {
  const std::string spec = absl::StrReplaceAll(
      AskedSpec("thief"), {{"seed: 3", "seed: 3, warmStart: {experiments: [a/secret]}"}});
  EXPECT_EQ(http_.Send("POST", "/api/v1/experiments", spec, kOtherToken).status, 403);
  EXPECT_EQ(http_.Send("POST", "/api/v1/suggest", spec, kOtherToken).status, 403);
}

TEST_F(HttpAccessTest, ProgramsOnTheServersMachineAreForTheAdministrator) {
  const std::string spec =
      absl::StrReplaceAll(AskedSpec("runs"), {{"askAndTell: true, ", ""}}) + R"(
  trialTemplate:
    primaryContainerName: main
    trialParameters: [{name: x, reference: x}]
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
        template:
          spec:
            containers: [{name: main, image: i, command: [echo, "${trialParameters.x}"]}]
)";
  const HttpReply refused = http_.Send("POST", "/api/v1/experiments", spec, kTeamToken);
  EXPECT_EQ(refused.status, 403) << refused.body;
  EXPECT_THAT(refused.body, HasSubstr("administrator"));
}

TEST_F(HttpAccessTest, WatchersSeeTheirOwnNamespace) {
  const int64_t before = *http_.client().Revision();
  http_.Create("a", "secret-too");
  http_.Create("b", "mine-too");
  HttpReply reply = http_.Get(absl::StrCat("/api/v1/watch?after=", before), kOtherToken);
  ASSERT_EQ(reply.status, 200);
  // The hub looks at the store every few milliseconds.
  std::string seen;
  for (int i = 0; i < 500 && !absl::StrContains(seen, "mine-too"); ++i) {
    const auto piece = reply.source->Next();
    ASSERT_TRUE(piece.ok());
    seen += piece->text;
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_THAT(seen, HasSubstr("mine-too"));
  EXPECT_THAT(seen, Not(HasSubstr("secret")));
}

TEST_F(HttpAccessTest, MetricsAreForTheAdministratorOnly) {
  EXPECT_EQ(http_.Get("/metrics", "").status, 401);
  EXPECT_EQ(http_.Get("/metrics", kTeamToken).status, 403);
  EXPECT_EQ(http_.Get("/metrics", kAdminToken).status, 200);
}

TEST_F(HttpAccessTest, EveryRouteIsInTheTableOfRights) {
  for (const Route& route : Routes()) {
    EXPECT_NE(route.rights.audience(), v1::Rights::NO_CALLER) << route.id;
    // What names a namespace is judged by it.
    if (!absl::StrContains(route.path, "{namespace}")) continue;
    EXPECT_THAT(route.rights.audience(), testing::AnyOf(v1::Rights::NAMESPACE, v1::Rights::TRIALS))
        << route.id;
  }
}

TEST_F(HttpAccessTest, WhatIsMissingInTheTableIsOpenToNobody) {
  const Principal admin{.role = Principal::Role::kAdmin};
  EXPECT_TRUE(absl::IsPermissionDenied(CheckAccess(admin, Route().rights, "a")));
  EXPECT_TRUE(
      absl::IsPermissionDenied(CheckMethodAccess(admin, RightsOf("shirabe.v1.Shirabe/NewMethod"))));
}

TEST_F(HttpAccessTest, PagesOfOtherSitesChangeNothing) {
  for (const Route& route : Routes()) {
    HttpRequest request{.method = route.method, .target = TargetOf(route)};
    request.headers = {{"authorization", absl::StrCat("Bearer ", kTeamToken)},
                       {"host", "127.0.0.1:7451"},
                       {"origin", "https://evil.example"}};
    EXPECT_EQ(http_.Handle(request).status, 403) << route.id;
    request.headers[2].second = "null";  // a page in a sandbox
    EXPECT_EQ(http_.Handle(request).status, 403) << route.id;
  }
}

}  // namespace
}  // namespace shirabe::service
