// Steering by hand as an attack: notes, tags and points that no record should hold, of experiments
// and trials that are not there or of another namespace, and more of them than could ever run.
#include "absl/strings/str_cat.h"
#include "tests/attack/attacked_server.h"
#include "tests/support/eventually.h"

namespace shirabe::attack {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class SteeringAttack : public AttackTest {
 protected:
  void SetUp() override {
    AttackTest::SetUp();
    Serve();
    ASSERT_EQ(Create("red", Spec(kAskedSpec, "red", "victim"), kRedToken), 201);
    ASSERT_EQ(Post(":ask", R"({"caller": "w"})").status, 200);
  }

  service::WireReply Post(const std::string& what, const std::string& body,
                          const std::string& token = kRedToken) const {
    return Http("POST /api/v1/namespaces/red/experiments/victim" + what, token, body);
  }
  service::WireReply Get(const std::string& what) const {
    return Http("GET /api/v1/namespaces/red/experiments/victim" + what, kRedToken);
  }
  // Both of an experiment and of a trial.
  void ExpectRefused(const std::string& body, const std::string& words) const {
    for (const char* of : {":annotate", "/trials/1:annotate"}) {
      const service::WireReply reply = Post(of, body);
      EXPECT_EQ(reply.status, 400) << of << body.substr(0, 80);
      EXPECT_THAT(reply.body, HasSubstr(words));
      EXPECT_LT(reply.body.size(), 2000u);
    }
  }
};

// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments/{name}:annotate
// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments/{name}/trials/{trial}:annotate
// attacks: gRPC shirabe.v1.Shirabe/SendIntent
TEST_F(SteeringAttack, NotesThatNoRecordShouldHoldAreRefused) {
  ExpectRefused("{}", "give one of note, addTags and removeTags");
  ExpectRefused(R"({"note": 7})", "note");
  ExpectRefused(R"({"note": "\u0000"})", "note");
  ExpectRefused(R"({"note": "\u001b]0;owned\u0007"})", "control characters");
  ExpectRefused(absl::StrCat(R"({"note": ")", std::string(20'000, 'x'), "\"}"), "at most");
  ExpectRefused(R"({"addTags": ["a\u202eb\n"]})", "addTags[0]");
  ExpectRefused(R"({"addTags": [["deep"]]})", "addTags");
  std::string many = R"({"addTags": ["t")";
  for (int i = 0; i < 5000; ++i) absl::StrAppend(&many, ", \"t", i, "\"");
  ExpectRefused(many + "]}", "at most 16");
  EXPECT_EQ(Post("/trials/7777:annotate", R"({"note": "x"})").status, 404);
  EXPECT_EQ(Post("/trials/-1:annotate", R"({"note": "x"})").status, 400);
  EXPECT_EQ(Post(":annotate", R"({"note": "x"})", kBlueToken).status, 403);
  v1::Intent intent;
  intent.set_namespace_("red");
  intent.set_experiment("victim");
  intent.set_verb(v1::Intent::ANNOTATE);
  intent.set_trial(-5);
  intent.set_note("x");
  v1::Done done;
  EXPECT_EQ(Shirabe()->SendIntent(As(kRedToken).get(), intent, &done).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(Get("").body, Not(HasSubstr("\"note\"")));
  ExpectAlive();
}

// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments/{name}:annotate
TEST_F(SteeringAttack, MarkupStaysTextAndItsAuthorIsTheCaller) {
  const std::string markup = "<script>x</script> [a](javascript:x)";
  EXPECT_EQ(
      Post(":annotate", absl::StrCat(R"({"note": ")", markup, R"(", "addTags": ["<b>"]})")).status,
      202);
  EXPECT_TRUE(Eventually([&] { return Get("").body.find(markup) != std::string::npos; }));
  EXPECT_THAT(Get("/events").body, HasSubstr("\"reason\":\"AnnotationChanged\""));
  EXPECT_THAT(Get("/events").body, HasSubstr("\"name\":\"user of red\""));
  EXPECT_THAT(Get("/events").body, Not(HasSubstr("script"))) << "an event tells no note";
}

// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments/{name}:try
TEST_F(SteeringAttack, PointsThatAreNoneAreRefused) {
  const auto refused = [&](const std::string& body) {
    const service::WireReply reply = Post(":try", body);
    EXPECT_EQ(reply.status, 400) << body.substr(0, 80);
    EXPECT_LT(reply.body.size(), 5000u);
    return reply.body;
  };
  refused("{}");
  refused(R"({"parameters": {}})");
  refused(R"({"parameters": 1})");
  EXPECT_THAT(refused(R"({"parameters": {"lr": 2}})"), HasSubstr("lr"));
  refused(R"({"parameters": {"lr": "NaN"}})");
  refused(R"({"parameters": {"lr": null}})");
  refused(R"({"parameters": {"lr": [0.5]}})");
  refused(R"({"parameters": {"lr": 0.5}, "like": -1})");
  refused(R"({"parameters": {"lr": 0.5}, "like": 0})");
  refused(absl::StrCat(R"({"parameters": {")", std::string(900, 'x'), R"(": 1}})"));
  refused(absl::StrCat(R"({"parameters": {"lr": ")", std::string(100'000, '1'), "\"}}"));
  EXPECT_EQ(Post(":try", R"({"parameters": {"lr": 0.5}, "like": 77})").status, 404);
  EXPECT_EQ(Post(":try", R"({"parameters": {"lr": 0.5}})", kBlueToken).status, 403);
  EXPECT_THAT(Get("/trials").body, Not(HasSubstr("victim-2")));
  ExpectAlive();
}

// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments/{name}/trials/{trial}:stop
TEST_F(SteeringAttack, OnlyATrialThatIsThereIsStopped) {
  EXPECT_EQ(Post("/trials/77:stop", "").status, 404);
  EXPECT_EQ(Post("/trials/0:stop", "").status, 400);
  EXPECT_EQ(Post("/trials/1:stop", "", kBlueToken).status, 403);
  EXPECT_EQ(Post("/trials/1:stop", "").status, 202);
  EXPECT_TRUE(
      Eventually([&] { return Get("/trials/1").body.find("StoppedByUser") != std::string::npos; }));
  EXPECT_EQ(Post("/trials/1:stop", "").status, 202) << "again changes nothing";
  ExpectAlive();
}

// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments/{name}:try
TEST_F(SteeringAttack, AFloodOfPointsStopsAtTheTrialsThatThereMayBe) {
  ASSERT_EQ(Http("PATCH /api/v1/namespaces/red/experiments/victim", kRedToken,
                 R"({"spec": {"maxTrialCount": 20}})")
                .status,
            202);
  for (int i = 0; i < 200; ++i) {
    const int status = Post(":try", R"({"parameters": {"lr": 0.5}})").status;
    EXPECT_TRUE(status == 202 || status == 409 || status == 412) << status;
  }
  EXPECT_TRUE(Eventually([&] { return Get("/trials/20").status == 200; }));
  EXPECT_EQ(Get("/trials/21").status, 404);
  ExpectAlive();
}

}  // namespace
}  // namespace shirabe::attack
