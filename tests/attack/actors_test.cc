// Who did it: recorded as the door knows the caller, whatever the caller says of himself.
#include "tests/attack/attacked_server.h"
#include "tests/support/eventually.h"

namespace shirabe::attack {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ActorsTest : public AttackTest {
 protected:
  static v1::ExperimentRef Ref(const std::string& name) {
    v1::ExperimentRef ref;
    ref.set_namespace_("red");
    ref.set_name(name);
    return ref;
  }
  v1::Experiment Stored(const std::string& name) {
    v1::Experiment experiment;
    const grpc::Status got =
        Shirabe()->GetExperiment(As(kAdminToken).get(), Ref(name), &experiment);
    EXPECT_TRUE(got.ok()) << got.error_message();
    return experiment;
  }
  static v1::Actor Somebody() {
    v1::Actor actor;
    actor.set_name("somebody-else");
    actor.set_door("kubernetes");
    return actor;
  }
  grpc::Status Send(const std::string& name, v1::Intent::Verb verb, const std::string& token) {
    v1::Intent intent;
    intent.set_namespace_("red");
    intent.set_experiment(name);
    intent.set_verb(verb);
    *intent.mutable_actor() = Somebody();
    if (verb == v1::Intent::SCALE) intent.set_max_trial_count(50);
    v1::Done done;
    return Shirabe()->SendIntent(As(token).get(), intent, &done);
  }
  std::string Events(const std::string& name) {
    return Http("GET /api/v1/namespaces/red/experiments/" + name + "/events", kRedToken).body;
  }
};

// attacks: gRPC shirabe.v1.Shirabe/SubmitExperiment, gRPC shirabe.v1.Shirabe/SendIntent
// attacks: gRPC shirabe.v1.Shirabe/ListEvents
// attacks: HTTP GET /api/v1/namespaces/{namespace}/experiments/{name}/events
TEST_F(ActorsTest, SubmitExperimentAndSendIntentRecordTheCallerAndNotWhatHeSays) {
  Serve();
  ASSERT_LT(Create("red", Spec(kAskedSpec, "red", "pattern"), kRedToken), 300);
  v1::SubmitRequest request;
  *request.mutable_experiment() = Stored("pattern");
  request.mutable_experiment()->mutable_metadata()->set_name("forged");
  v1::ShirabeStatus& status = *request.mutable_experiment()->mutable_status()->mutable_shirabe();
  *status.mutable_created_by() = Somebody();
  *status.mutable_changed_by() = Somebody();
  *status.mutable_stopped_by() = Somebody();
  v1::SubmitReply reply;
  const grpc::Status made = Shirabe()->SubmitExperiment(As(kRedToken).get(), request, &reply);
  ASSERT_TRUE(made.ok()) << made.error_message();
  const v1::ShirabeStatus created = Stored("forged").status().shirabe();
  EXPECT_EQ(created.created_by().name(), "user of red");
  EXPECT_EQ(created.created_by().door(), "grpc");
  EXPECT_TRUE(created.created_by().has_time());
  EXPECT_FALSE(created.has_changed_by());
  EXPECT_FALSE(created.has_stopped_by());

  ASSERT_TRUE(Send("forged", v1::Intent::SCALE, kRedToken).ok());
  ASSERT_TRUE(Send("forged", v1::Intent::PAUSE, kAdminToken).ok());
  ASSERT_TRUE(Send("forged", v1::Intent::STOP, kAdminToken).ok());
  ASSERT_TRUE(Eventually([&] { return Stored("forged").status().shirabe().has_stopped_by(); }));
  ASSERT_TRUE(Send("forged", v1::Intent::CANCEL, kRedToken).ok());  // it was the admin who did it
  const v1::ShirabeStatus ended = Stored("forged").status().shirabe();
  EXPECT_EQ(ended.created_by().name(), "user of red");
  EXPECT_EQ(ended.changed_by().name(), "user of red");
  EXPECT_EQ(ended.stopped_by().name(), "admin");
  const std::string events = Events("forged");
  EXPECT_THAT(events, AllOf(HasSubstr("ExperimentCreated"), HasSubstr("ChangeRequested"),
                            HasSubstr("PauseRequested"), HasSubstr("StopRequested")));
  EXPECT_THAT(events, AllOf(HasSubstr("\"user of red\""), HasSubstr("\"admin\"")));
  EXPECT_THAT(events, Not(HasSubstr("somebody-else")));
}

// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments
// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments/{name}:stop
TEST_F(ActorsTest, OverHttpItIsTheCallerToo) {
  Serve();
  const std::string spec = Spec(kAskedSpec, "red", "web") +
                           "status: {shirabe: {createdBy: {name: somebody-else, door: grpc}}}\n";
  const int made = Create("red", spec, kRedToken);
  if (made >= 300) {  // refused by name is as good
    ASSERT_LT(Create("red", Spec(kAskedSpec, "red", "web"), kRedToken), 300);
  }
  EXPECT_EQ(Stored("web").status().shirabe().created_by().name(), "user of red");
  EXPECT_EQ(Stored("web").status().shirabe().created_by().door(), "http");
  EXPECT_EQ(Http("POST /api/v1/namespaces/red/experiments/web:stop", kRedToken).status, 202);
  ASSERT_TRUE(Eventually([&] { return Stored("web").status().shirabe().has_stopped_by(); }));
  const std::string body = Http("GET /api/v1/namespaces/red/experiments/web", kRedToken).body;
  EXPECT_THAT(body, AllOf(HasSubstr("createdBy"), HasSubstr("stoppedBy")));
  EXPECT_THAT(body, Not(HasSubstr("somebody-else")));
}

// attacks: gRPC shirabe.v1.Shirabe/ImportExperiment, gRPC shirabe.v1.Shirabe/DeleteExperiment
TEST_F(ActorsTest, ImportsAndDeletionsHaveAName) {
  Serve();
  v1::ImportReply reply;
  const grpc::Status made =
      Shirabe()->ImportExperiment(As(kRedToken).get(), ImportOfOneTrial("imported"), &reply);
  ASSERT_TRUE(made.ok()) << made.error_message();
  EXPECT_EQ(Stored("imported").status().shirabe().created_by().name(), "user of red");
  EXPECT_THAT(Events("imported"), HasSubstr("ExperimentImported"));
  v1::DeleteRequest gone;
  *gone.mutable_experiment() = Ref("imported");
  gone.mutable_patience()->set_seconds(20);
  v1::Done done;
  ASSERT_TRUE(Shirabe()->DeleteExperiment(As(kRedToken).get(), gone, &done).ok());
  EXPECT_THAT(server_->Err(),
              AllOf(HasSubstr("deletion"), HasSubstr("red/imported"), HasSubstr("user of red")));
}

// On one's own machine: the account of the system, in tables, describe and JSON.
TEST_F(ActorsTest, TheCommandLineIsItsUser) {
  const std::string file = cli_.Write("own.yaml", Spec(kAskedSpec, "default", "own"));
  ASSERT_EQ(cli_.Run({"apply", "-f", file}).code, 0);
  ASSERT_EQ(cli_.Run({"scale", "own", "--max-trials", "7"}).code, 0);
  const std::string described = cli_.Run({"describe", "exp", "own"}).out;
  EXPECT_THAT(described,
              AllOf(HasSubstr("Created by"), HasSubstr("@"), HasSubstr("(command line)")));
  EXPECT_THAT(cli_.Run({"events", "own"}).out, HasSubstr("; by "));
  const auto events = cli_.Json({"events", "own", "-o", "json"})["items"];
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events[0]["reason"], "ExperimentCreated");
  EXPECT_EQ(events[0]["actor"]["door"], "command line");
}

}  // namespace
}  // namespace shirabe::attack
