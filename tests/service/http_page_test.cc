// The dashboard's files, the list without JavaScript, what a caller may do, and the base path.
#include "absl/strings/str_cat.h"
#include "service/http/web_files.h"
#include "tests/service/http_fixture.h"

namespace shirabe::service {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

std::string HeaderOf(const HttpReply& reply, const std::string& name) {
  for (const auto& [key, value] : reply.headers) {
    if (key == name) return value;
  }
  return "";
}

class HttpPageTest : public testing::Test {
 protected:
  HttpReply Ask(const std::string& target, HttpHeaders headers = {}) {
    return http_.Handle({.method = "GET", .target = target, .headers = std::move(headers)});
  }
  // A file of the dashboard that is loaded by index.html; none where it was not built in.
  static const WebFile* Script() {
    for (const WebFile& file : WebFiles()) {
      if (file.name.starts_with("main-") && file.name.ends_with(".js")) return &file;
    }
    return nullptr;
  }
  HttpFixture http_;
};

TEST_F(HttpPageTest, NeitherPageLetsTextBecomeAScript) {
  for (const char* target : {"/", "/list"}) {
    const HttpReply reply = Ask(target);
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.type, "text/html; charset=utf-8");
    const std::string policy = HeaderOf(reply, "Content-Security-Policy");
    EXPECT_THAT(policy, HasSubstr("default-src 'none'"));
    EXPECT_THAT(policy, HasSubstr("frame-ancestors 'none'"));
    EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
    EXPECT_THAT(HeadOf(reply, {}), Not(HasSubstr("no-store\r\nCache-Control")));
  }
}

TEST_F(HttpPageTest, TheListNeedsTheCallersRights) {
  http_.Create("a", "secret");
  http_.RunTrials("a", "secret", 1);
  http_.Create("b", "mine");
  EXPECT_THAT(Ask("/list").body, testing::AllOf(Not(HasSubstr("secret")), HasSubstr("token")));
  const auto as = [](const char* token) {
    return HttpHeaders{{"authorization", absl::StrCat("Bearer ", token)}};
  };
  const std::string other = Ask("/list", as(kOtherToken)).body;
  EXPECT_THAT(other, testing::AllOf(Not(HasSubstr("secret")), HasSubstr("mine")));
  EXPECT_THAT(Ask("/list", as(kTeamToken)).body, HasSubstr("<td>secret"));
}

TEST_F(HttpPageTest, TheListWritesNamesAsText) {
  std::string spec = AskedSpec("odd");
  spec = absl::StrReplaceAll(spec, {{"objectiveMetricName: loss",
                                     "objectiveMetricName: \"<script>alert('x')</script>&\""}});
  ASSERT_EQ(http_.Send("POST", "/api/v1/namespaces/a/experiments", spec).status, 201);
  const std::string one = "/api/v1/namespaces/a/experiments/odd";
  ASSERT_EQ(http_.Send("POST", one + ":ask", R"({"caller": "w"})").status, 200);
  const std::string told =
      R"({"metrics": {"<script>alert('x')</script>&": 1}, "end": "completed"})";
  ASSERT_EQ(http_.Send("POST", one + "/trials/1:tell", told).status, 200);
  const HttpReply reply = Ask("/list", {{"authorization", absl::StrCat("Bearer ", kAdminToken)}});
  EXPECT_THAT(reply.body, HasSubstr("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;=1"));
  EXPECT_THAT(reply.body, Not(HasSubstr("<script>")));
}

TEST_F(HttpPageTest, AFileThatIsNotOneOfTheDashboardIsNotFound) {
  for (const char* name :
       {"x.js", "..%2Fhttp_router.cc", "%2e%2e", "index.html", "report.html", "main-.js"}) {
    EXPECT_EQ(Ask(absl::StrCat("/assets/", name)).status, 404) << name;
  }
}

TEST_F(HttpPageTest, FilesAreKeptForEverAndThePageIsAskedForAgain) {
  const WebFile* script = Script();
  if (script == nullptr) GTEST_SKIP() << "built without the dashboard (no Node)";
  const std::string target = absl::StrCat("/assets/", std::string(script->name));
  const HttpReply file = Ask(target);
  EXPECT_EQ(file.status, 200);
  EXPECT_EQ(file.body, script->bytes);
  EXPECT_THAT(HeaderOf(file, "Cache-Control"), HasSubstr("immutable"));
  EXPECT_THAT(HeadOf(file, {}), Not(HasSubstr("no-store")));
  const HttpReply page = Ask("/");
  EXPECT_THAT(page.body, HasSubstr(std::string(script->name)));
  EXPECT_EQ(HeaderOf(page, "Cache-Control"), "no-cache");
  const HttpReply same = Ask("/", {{"if-none-match", "\"x\", W/" + HeaderOf(page, "ETag")}});
  EXPECT_EQ(same.status, 304);
  EXPECT_EQ(same.body, "");
  EXPECT_THAT(HeadOf(same, {}), Not(HasSubstr("Content-Length")));
}

TEST_F(HttpPageTest, ABrowserThatReadsBrotliGetsIt) {
  const WebFile* script = Script();
  if (script == nullptr) GTEST_SKIP() << "built without the dashboard (no Node)";
  ASSERT_LT(script->brotli.size(), script->bytes.size());
  const std::string target = absl::StrCat("/assets/", std::string(script->name));
  for (const char* accepted : {"gzip, br", "br;q=0.5", "gzip,deflate ,  br"}) {
    const HttpReply reply = Ask(target, {{"accept-encoding", accepted}});
    EXPECT_THAT(reply.headers, Contains(Pair("Content-Encoding", "br"))) << accepted;
    EXPECT_EQ(reply.body, script->brotli);
  }
  for (const char* accepted : {"", "gzip", "br;q=0", "br;q=0.0", "brotli", "br;q=x"}) {
    const HttpReply reply = Ask(target, {{"accept-encoding", accepted}});
    EXPECT_EQ(HeaderOf(reply, "Content-Encoding"), "") << accepted;
    EXPECT_EQ(reply.body, script->bytes);
    EXPECT_EQ(HeaderOf(reply, "Vary"), "Accept-Encoding");
  }
}

TEST_F(HttpPageTest, RightsAreTheCallersOwn) {
  const auto rights = [&](const std::string& query, const std::string& token) {
    return BodyOf(http_.Get("/api/v1/rights" + query, token));
  };
  const auto own = rights("", kTeamToken);
  EXPECT_EQ(own["namespace"], "a");
  for (const char* name : {"read", "create", "change", "delete"}) EXPECT_EQ(own[name], true);
  const auto other = rights("?namespace=b", kTeamToken);
  for (const char* name : {"read", "create", "change", "delete"}) EXPECT_EQ(other[name], false);
  EXPECT_EQ(rights("?namespace=b", kAdminToken)["delete"], true);
  EXPECT_EQ(rights("", kAdminToken)["namespace"], "default");
  EXPECT_EQ(http_.Get("/api/v1/rights?namespace=A_", kAdminToken).status, 400);
  EXPECT_EQ(http_.Get("/api/v1/rights", "").status, 401);
}

TEST_F(HttpPageTest, BehindAProxyEveryPathMayHaveABase) {
  HttpContext context = http_.context();
  context.base_path = "/team/shirabe";
  Router router(context);
  const auto ask = [&](const std::string& target) {
    return router.Handle({.method = "GET", .target = target, .headers = {}});
  };
  EXPECT_EQ(ask("/team/shirabe/livez").status, 200);
  EXPECT_EQ(ask("/team/shirabe/readyz?verbose").status, 200);
  EXPECT_EQ(ask("/livez").status, 200);
  EXPECT_EQ(ask("/team/shirabe/").status, 200);
  EXPECT_EQ(ask("/team/shirabe/api/v1/experiments").status, 401);
  EXPECT_EQ(ask("/team/shirabelivez").status, 404);
  EXPECT_EQ(ask("/team/livez").status, 404);
  const HttpReply moved = ask("/team/shirabe");
  EXPECT_EQ(moved.status, 308);
  EXPECT_THAT(moved.headers, Contains(Pair("Location", "/team/shirabe/")));
}

}  // namespace
}  // namespace shirabe::service
