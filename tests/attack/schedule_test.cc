// Schedules as a way into other namespaces, to files and programs of the server, and to its memory
// and time: each of their doors, with words of cron, time zones, names and counts of an attacker.
#include "absl/strings/str_replace.h"
#include "base/names.h"
#include "tests/attack/attacked_server.h"
#include "tests/support/small_schedule.h"

namespace shirabe::attack {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ScheduleAttackTest : public AttackTest {
 protected:
  static std::string Path(const std::string& ns, const std::string& rest = "") {
    return "/api/v1/namespaces/" + ns + "/schedules" + rest;
  }
  static std::string Red(const std::string& name, const std::string& more = "") {
    return ScheduleYaml({.name = name, .ns = "red", .more = more});
  }
  int Post(const std::string& yaml, const std::string& token, const std::string& ns = "red") {
    return Http("POST " + Path(ns), token, yaml).status;
  }
  std::string Refusal(const std::string& yaml) {
    const auto reply = Http("POST " + Path("red"), kRedToken, yaml);
    EXPECT_EQ(reply.status, 400) << reply.body << yaml;
    return reply.body;
  }
  static v1::ExperimentRef Ref(const std::string& ns, const std::string& name) {
    v1::ExperimentRef reference;
    reference.set_namespace_(ns);
    reference.set_name(name);
    return reference;
  }
  grpc::StatusCode Steer(const std::string& token, const std::string& ns, int action) {
    v1::SteerScheduleRequest request;
    *request.mutable_schedule() = Ref(ns, "mine");
    request.set_action(static_cast<v1::SteerScheduleRequest::Action>(action));
    request.mutable_actor()->set_name("admin");
    v1::SteerScheduleReply reply;
    return Shirabe()->SteerSchedule(As(token).get(), request, &reply).error_code();
  }
};

// attacks: gRPC shirabe.v1.Shirabe/GetSchedule, gRPC shirabe.v1.Shirabe/ListSchedules
// attacks: gRPC shirabe.v1.Shirabe/SubmitSchedule, gRPC shirabe.v1.Shirabe/SteerSchedule
// attacks: gRPC shirabe.v1.Shirabe/DeleteSchedule
TEST_F(ScheduleAttackTest, AnotherNamespacesAreClosedOverGrpc) {
  Serve();
  ASSERT_EQ(Post(Red("mine"), kRedToken), 201);
  const auto stub = Shirabe();
  for (const std::string& token : {std::string(kBlueToken), std::string("wrong"), std::string()}) {
    const auto refused =
        AnyOf(grpc::StatusCode::PERMISSION_DENIED, grpc::StatusCode::UNAUTHENTICATED);
    v1::ScheduledExperiment schedule;
    v1::Done done;
    EXPECT_THAT(stub->GetSchedule(As(token).get(), Ref("red", "mine"), &schedule).error_code(),
                refused);
    for (const char* ns : {"red", ""}) {
      const auto context = As(token);
      const auto reader = stub->ListSchedules(context.get(), Ref(ns, ""));
      EXPECT_FALSE(reader->Read(&schedule));
      EXPECT_THAT(reader->Finish().error_code(), refused) << ns;
    }
    v1::DeleteScheduleRequest deletion;
    *deletion.mutable_schedule() = Ref("red", "mine");
    EXPECT_THAT(stub->DeleteSchedule(As(token).get(), deletion, &done).error_code(), refused);
    for (const int action : {1, 2, 3}) EXPECT_THAT(Steer(token, "red", action), refused);
    v1::SubmitScheduleRequest submission;
    submission.mutable_schedule()->mutable_metadata()->set_namespace_("red");
    submission.mutable_schedule()->mutable_metadata()->set_name("theirs");
    v1::SubmitReply reply;
    EXPECT_THAT(stub->SubmitSchedule(As(token).get(), submission, &reply).error_code(), refused);
  }
  EXPECT_EQ(Steer(kRedToken, "red", 0), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Steer(kRedToken, "red", 77), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Steer(kRedToken, "red", 3), grpc::StatusCode::OK);
  v1::ScheduledExperiment mine;
  ASSERT_TRUE(stub->GetSchedule(As(kRedToken).get(), Ref("red", "mine"), &mine).ok());
  // Who did it is who the server knows, not who they say.
  EXPECT_EQ(mine.status().events(1).actor(), "user of red");
  ExpectAlive();
}

// attacks: HTTP GET /api/v1/schedules, HTTP GET /api/v1/namespaces/{namespace}/schedules
// attacks: HTTP POST /api/v1/namespaces/{namespace}/schedules
// attacks: HTTP GET /api/v1/namespaces/{namespace}/schedules/{name}
// attacks: HTTP PUT /api/v1/namespaces/{namespace}/schedules/{name}
// attacks: HTTP DELETE /api/v1/namespaces/{namespace}/schedules/{name}
// attacks: HTTP POST /api/v1/namespaces/{namespace}/schedules/{name}:suspend
// attacks: HTTP POST /api/v1/namespaces/{namespace}/schedules/{name}:resume
// attacks: HTTP POST /api/v1/namespaces/{namespace}/schedules/{name}:start
TEST_F(ScheduleAttackTest, AnotherNamespacesAreClosedOverHttp) {
  Serve();
  ASSERT_EQ(Post(Red("mine"), kRedToken), 201);
  const std::string one = Path("red", "/mine");
  for (const std::string& line :
       {"GET " + Path("red"), "GET " + one, "DELETE " + one, "POST " + one + ":suspend",
        "POST " + one + ":resume", "POST " + one + ":start"}) {
    EXPECT_EQ(Http(line, kBlueToken).status, 403) << line;
    EXPECT_EQ(Http(line, "").status, 401) << line;
  }
  EXPECT_EQ(Http("PUT " + one, kBlueToken, Red("mine")).status, 403);
  EXPECT_EQ(Post(Red("theirs"), kBlueToken), 403);
  EXPECT_THAT(Http("GET /api/v1/schedules", kBlueToken).body, Not(HasSubstr("mine")));
  EXPECT_THAT(Http("GET /api/v1/schedules", kRedToken).body, HasSubstr("mine"));
  // A body of another namespace than the path's, or of another name.
  EXPECT_EQ(Post(Red("theirs"), kBlueToken, "blue"), 400);
  EXPECT_EQ(Http("PUT " + one, kRedToken, Red("other")).status, 400);
  EXPECT_EQ(Http("GET " + Path("red", "/..%2f..%2fetc"), kRedToken).status / 100, 4);
  ExpectAlive();
}

// attacks: CRD ScheduledExperiment spec.schedule, CRD ScheduledExperiment spec.timeZone
TEST_F(ScheduleAttackTest, WordsThatMeanNothingOrMuchWorkAreRefused) {
  Serve();
  const std::string huge(100'000, '1');
  for (const std::string& cron :
       {std::string("* * * *"), std::string("* * * * * *"), std::string("61 * * * *"),
        std::string("*/0 * * * *"), std::string("*/99999999999999999999 * * * *"),
        std::string("5-1 * * * *"), std::string("-1 * * * *"), std::string("0 0 31 2 *"),
        std::string("@reboot"), std::string("@every 1s"), std::string("TZ=UTC * * * * *"),
        std::string("$(touch x) * * * *"), huge + " * * * *", std::string("1,,2 * * * *"),
        std::string("0x5 * * * *"), std::string("+5 * * * *"), std::string(" ")}) {
    const std::string yaml = ScheduleYaml({.name = "odd", .ns = "red", .schedule = cron});
    EXPECT_THAT(Refusal(yaml), HasSubstr("spec.schedule")) << cron.substr(0, 50);
  }
  const std::string secret = cli_.Write("secret", "TZif2 of no zone");
  for (const std::string& zone :
       {std::string("Mars/Olympus"), std::string("../../../../etc/passwd"), secret,
        "file:" + secret, std::string("/proc/self/environ"), std::string("localtime"),
        std::string("Europe/../../../../etc/passwd"), std::string(100'000, 'A'), std::string("\\0"),
        std::string("America/New_York\\0/../x"), std::string(":UTC")}) {
    const std::string reply = Refusal(Red("odd", "timeZone: \"" + zone + "\""));
    EXPECT_THAT(reply, HasSubstr("timeZone")) << zone.substr(0, 50);
    EXPECT_THAT(reply, Not(HasSubstr("TZif2")));
    EXPECT_LT(reply.size(), 5000);
  }
  EXPECT_THAT(Http("GET " + Path("red"), kRedToken).body, Not(HasSubstr("odd")));
  ExpectAlive();
}

// attacks: CRD ScheduledExperiment spec.experimentTemplate.metadata.labels
// attacks: CRD ScheduledExperiment spec.experimentTemplate.metadata.annotations
TEST_F(ScheduleAttackTest, CountsAndNamesHaveBounds) {
  Serve();
  for (const char* more :
       {"successfulExperimentsHistoryLimit: 2147483647", "failedExperimentsHistoryLimit: 101",
        "failedExperimentsHistoryLimit: -1", "startingDeadlineSeconds: -1",
        "startingDeadlineSeconds: 9223372036854775808", "concurrencyPolicy: Never",
        "concurrencyPolicy: 3000", "suspend: 7"}) {
    Refusal(Red("odd", more));
  }
  EXPECT_THAT(Refusal(Red(std::string(32, 'n'))), HasSubstr("at most 31"));
  EXPECT_EQ(Post(Red(std::string(31, 'n')), kRedToken), 201);
  const auto with = [](const std::string& metadata) {
    return absl::StrReplaceAll(
        Red("odd"),
        {{"  experimentTemplate:\n", "  experimentTemplate:\n    metadata: " + metadata + "\n"}});
  };
  EXPECT_THAT(Refusal(with("{name: mine}")), HasSubstr("experimentTemplate.metadata.name"));
  EXPECT_THAT(Refusal(with("{namespace: blue}")), HasSubstr("metadata.namespace"));
  const std::string large(1 << 20, 'x');
  EXPECT_EQ(Post(with("{labels: {a: " + large + "}}"), kRedToken) / 100, 4);
  EXPECT_EQ(Post(with("{annotations: {a: " + large + "}}"), kRedToken) / 100, 4);
  // The marks of a start are the server's.
  ASSERT_EQ(Post(with("{labels: {shirabe.dev/schedule: theirs}}"), kRedToken), 201);
  EXPECT_EQ(Http("POST " + Path("red", "/odd:start"), kRedToken).status, 200);
  const auto made = Http("GET /api/v1/namespaces/red/experiments", kRedToken).body;
  EXPECT_THAT(made, HasSubstr(R"("shirabe.dev/schedule":"odd")"));
  EXPECT_THAT(made, Not(HasSubstr("theirs")));
  ExpectAlive();
}

// attacks: HTTP POST /api/v1/namespaces/{namespace}/schedules
TEST_F(ScheduleAttackTest, IsNoWayToAProcessOfTheServerOrToForeignResults) {
  Serve();
  const std::string mark = cli_.Path("mark");
  const std::string program =
      absl::StrReplaceAll(Yaml({.container = ShellCommand("touch " + mark)}), {{"\n", "\n    "}});
  const std::string yaml =
      "apiVersion: kubeflow.org/v1beta1\nkind: ScheduledExperiment\n"
      "metadata: {name: mine, namespace: red}\nspec:\n  schedule: \"* * * * *\"\n"
      "  experimentTemplate:\n    " +
      program.substr(program.find("spec:\n"));
  const auto refused = Http("POST " + Path("red"), kRedToken, yaml);
  EXPECT_EQ(refused.status, 403) << refused.body;
  const std::string foreign = ScheduleYaml(
      {.name = "mine",
       .ns = "red",
       .spec_more = "shirabe: {askAndTell: true, warmStart: {experiments: [blue/theirs]}}"});
  EXPECT_EQ(Post(foreign, kRedToken), 403);
  EXPECT_FALSE(std::filesystem::exists(mark));
  ExpectAlive();
}

// attacks: HTTP POST /api/v1/namespaces/{namespace}/schedules
// attacks: HTTP POST /api/v1/namespaces/{namespace}/schedules/{name}:start
TEST_F(ScheduleAttackTest, TheirNumberIsBounded) {
  Serve({"--max-experiments", "5"});
  int made = 0;
  for (int i = 0; i < 205; ++i) made += Post(Red(absl::StrCat("many-", i)), kRedToken) == 201;
  EXPECT_EQ(made, 200);
  int started = 0;
  for (int i = 0; i < 10; ++i) {
    started +=
        Http("POST " + Path("red", absl::StrCat("/many-", i, ":start")), kRedToken).status == 200;
  }
  EXPECT_EQ(started, 5);
  EXPECT_EQ(Http("GET /livez", "").status, 200);
}

}  // namespace
}  // namespace shirabe::attack
