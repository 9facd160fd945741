// The dashboard's doors: what a page of another site, a forged Host and odd names get from them.
#include "tests/attack/attacked_server.h"

namespace shirabe::attack {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class PageTest : public AttackTest {};

// attacks: HTTP GET /, HTTP GET /list, HTTP GET /assets/{file}
TEST_F(PageTest, WithoutATokenNothingOfAnExperimentIsShown) {
  Serve();
  ASSERT_LT(Create("red", Spec(kAskedSpec, "red", "hidden-plan"), kRedToken), 300);
  for (const char* path : {"GET /", "GET /list", "GET /assets/x.js", "GET /list?x=1",
                           "GET /assets/..%2f..%2ftokens", "GET /assets/%00"}) {
    const service::WireReply reply = Http(path, "", "");
    EXPECT_THAT(reply.body, Not(HasSubstr("hidden-plan"))) << path;
    EXPECT_THAT(reply.body, Not(HasSubstr(kRedToken))) << path;
  }
  const service::WireReply blue = Http("GET /list", kBlueToken, "");
  EXPECT_EQ(blue.status, 200);
  EXPECT_THAT(blue.body, Not(HasSubstr("hidden-plan")));
  ExpectAlive();
}

// attacks: HTTP POST /api/v1/parse
TEST_F(PageTest, ParsingIsBoundedAndStoresNothing) {
  Serve();
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "[";
  EXPECT_LT(Http("POST /api/v1/parse", kRedToken, "a: " + deep).status, 500);
  EXPECT_LT(Http("POST /api/v1/parse", kRedToken, "a: &a [*a, *a]\nb: *a\n").status, 500);
  EXPECT_EQ(Http("POST /api/v1/parse", kRedToken, std::string(5 << 20, 'a')).status, 413);
  EXPECT_EQ(Http("POST /api/v1/parse", "", "kind: Experiment").status, 401);
  const service::WireReply reply =
      Http("POST /api/v1/parse", kRedToken, Spec(kAskedSpec, "blue", "planted"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(Http("GET /api/v1/experiments", kBlueToken, "").body, Not(HasSubstr("planted")));
  ExpectAlive();
}

// attacks: HTTP GET /api/v1/rights, gRPC shirabe.v1.Shirabe/GetRights
TEST_F(PageTest, RightsSayNothingOfOtherNamespaces) {
  Serve();
  ASSERT_LT(Create("red", Spec(kAskedSpec, "red", "hidden-plan"), kRedToken), 300);
  EXPECT_EQ(Http("GET /api/v1/rights", "", "").status, 401);
  EXPECT_EQ(Http("GET /api/v1/rights", "0123456789abcdef0123456789abcdef", "").status, 403);
  const std::string there = Http("GET /api/v1/rights?namespace=red", kBlueToken, "").body;
  const std::string nowhere = Http("GET /api/v1/rights?namespace=none", kBlueToken, "").body;
  EXPECT_EQ(nlohmann::json::parse(there).value("read", true), false);
  EXPECT_EQ(nlohmann::json::parse(nowhere).value("read", true), false);
  EXPECT_EQ(Http("GET /api/v1/rights?namespace=" + std::string(3000, 'a'), kBlueToken, "").status,
            400);
  ExpectAlive();
}

}  // namespace
}  // namespace shirabe::attack
