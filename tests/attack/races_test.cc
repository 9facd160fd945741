// Many writers at once, of one server and of two servers on one database: of those who make a name,
// and of those who change what they have all read, one succeeds, and the others hear of it.
#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <thread>

#include "tests/attack/attacked_server.h"
#include "tests/support/eventually.h"

namespace shirabe::attack {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr int kWriters = 8;
constexpr char kAll[] = "/api/v1/namespaces/red/experiments";

std::string One(const std::string& name) { return absl::StrCat(kAll, "/", name); }

class RacesTest : public AttackTest {
 protected:
  // A second server on the same database, with doors of its own.
  void ServeTwice() {
    Serve();
    const std::string ready = cli_.Path("second");
    second_ = cli_.Start({"serve", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--ready-file",
                          ready, "--token-file", WriteTokens()});
    ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(ready); })) << second_->Err();
    const auto json = nlohmann::json::parse(ReadFile(ready).value_or("{}"));
    const std::string http = json.value("http", ":0");
    second_port_ = std::stoi(http.substr(http.rfind(':') + 1));
    second_grpc_ = json.value("grpc", "");
  }

  static std::string Text(const std::string& line, const std::string& headers,
                          const std::string& body) {
    return absl::StrCat(line, " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ", kRedToken,
                        "\r\n", headers, "Content-Length: ", body.size(), "\r\n\r\n", body);
  }
  // To the first server, or by turns to both where there are two.
  int Ask(int writer, const std::string& text) const {
    service::Wire wire(writer % 2 == 1 && second_port_ != 0 ? second_port_ : http_port_);
    wire.Send(text);
    return wire.ReadReply().status;
  }

  // How many of the writers got each answer, all of them started at the same moment.
  static std::map<int, int> Race(const std::function<int(int)>& write) {
    std::map<int, int> answers;
    std::mutex mutex;
    std::atomic<int> ready = 0;
    {
      std::list<std::jthread> writers;
      for (int i = 0; i < kWriters; ++i) {
        writers.emplace_back([&, i] {
          ++ready;
          while (ready < kWriters) std::this_thread::yield();
          const int answer = write(i);
          std::lock_guard lock(mutex);
          ++answers[answer];
        });
      }
    }
    return answers;
  }

  int64_t Generation(const std::string& name) const {
    const std::string head = Http("GET " + One(name), kRedToken).head;
    const size_t at = head.find("ETag: \"");
    return at == std::string::npos ? 0 : std::stoi(head.substr(at + 7));
  }

  // Of those who have read one generation, one changes the experiment; once its change is made, of
  // those who read the next, again one.
  void ExpectOneChangeOfEach(int rounds) {
    ASSERT_EQ(Create("red", Spec(kAskedSpec, "red", "one"), kRedToken), 201);
    for (int round = 1; round <= rounds; ++round) {
      ASSERT_EQ(Generation("one"), round);
      const auto answers = Race([&](int writer) {
        const std::string body = absl::StrCat(Spec(kAskedSpec, "red", "one"),
                                              "  maxTrialCount: ", 100 * round + writer, "\n");
        return Ask(writer,
                   Text("PUT " + One("one"), absl::StrCat("If-Match: \"", round, "\"\r\n"), body));
      });
      EXPECT_THAT(answers, ElementsAre(Pair(202, 1), Pair(412, kWriters - 1))) << round;
      ASSERT_TRUE(Eventually([&] { return Generation("one") > round; })) << round;
    }
    EXPECT_EQ(Generation("one"), rounds + 1) << "each round changed it once";
  }

  void ExpectOneMaker(const std::string& headers, const std::string& method, int refusal) {
    for (int round = 1; round <= 8; ++round) {
      const std::string name = absl::StrCat("new-", round);
      const auto answers = Race([&](int writer) {
        const std::string path = method == "PUT" ? One(name) : kAll;
        return Ask(writer, Text(method + " " + path, headers, Spec(kAskedSpec, "red", name)));
      });
      EXPECT_THAT(answers, ElementsAre(Pair(201, 1), Pair(refusal, kWriters - 1))) << name;
    }
  }

  std::unique_ptr<cmd::Running> second_;
  std::string second_grpc_;
  int second_port_ = 0;
};

// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments
TEST_F(RacesTest, OfManyPostsOfOneNameOneCreatesIt) {
  Serve();
  ExpectOneMaker("", "POST", 409);
}

// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments
TEST_F(RacesTest, OfManyPostsToTwoServersOneCreatesIt) {
  ServeTwice();
  ExpectOneMaker("", "POST", 409);
}

// attacks: HTTP PUT /api/v1/namespaces/{namespace}/experiments/{name}
TEST_F(RacesTest, OfManyPutsWithIfNoneMatchOneCreatesIt) {
  Serve();
  ExpectOneMaker("If-None-Match: *\r\n", "PUT", 412);
}

// attacks: HTTP PUT /api/v1/namespaces/{namespace}/experiments/{name}
TEST_F(RacesTest, OfManyPutsWithIfNoneMatchToTwoServersOneCreatesIt) {
  ServeTwice();
  ExpectOneMaker("If-None-Match: *\r\n", "PUT", 412);
}

// attacks: HTTP PUT /api/v1/namespaces/{namespace}/experiments/{name}
TEST_F(RacesTest, OfManyPutsWithOneETagOneChangesIt) {
  Serve();
  ExpectOneChangeOfEach(5);
}

// attacks: HTTP PUT /api/v1/namespaces/{namespace}/experiments/{name}
TEST_F(RacesTest, OfManyPutsWithOneETagToTwoServersOneChangesIt) {
  ServeTwice();
  ExpectOneChangeOfEach(12);
}

// Each answers that it made its change: then the change is there.
// attacks: HTTP PATCH /api/v1/namespaces/{namespace}/experiments/{name}
TEST_F(RacesTest, OfManyPatchesWithoutAnETagNoneUndoesAnother) {
  ServeTwice();
  ASSERT_EQ(Create("red", Spec(kAskedSpec, "red", "one"), kRedToken), 201);
  const std::vector<std::string> patches = {
      R"({"spec": {"maxTrialCount": 50}})", R"({"spec": {"maxFailedTrialCount": 7}})",
      R"({"spec": {"parallelTrialCount": 5}})", R"({"spec": {"objective": {"goal": 0.25}}})"};
  std::vector<int> answers(patches.size());
  {
    std::list<std::jthread> writers;
    for (size_t i = 0; i < patches.size(); ++i) {
      writers.emplace_back([&, i] {
        answers[i] = Ask(static_cast<int>(i), Text("PATCH " + One("one"), "", patches[i]));
      });
    }
  }
  EXPECT_THAT(answers, testing::Each(202));
  ASSERT_TRUE(Eventually([&] { return Generation("one") == 5; })) << Generation("one");
  const auto spec = nlohmann::json::parse(Http("GET " + One("one"), kRedToken).body)["spec"];
  EXPECT_EQ(spec["maxTrialCount"], 50);
  EXPECT_EQ(spec["maxFailedTrialCount"], 7);
  EXPECT_EQ(spec["parallelTrialCount"], 5);
  EXPECT_EQ(spec["objective"]["goal"], 0.25);
}

// attacks: HTTP DELETE /api/v1/namespaces/{namespace}/experiments/{name}
TEST_F(RacesTest, WhatWasChangedMeanwhileIsNotDeleted) {
  Serve();
  ASSERT_EQ(Create("red", Spec(kAskedSpec, "red", "one"), kRedToken), 201);
  EXPECT_EQ(Ask(0, Text("DELETE " + One("one"), "If-Match: \"2\"\r\n", "")), 412);
  EXPECT_EQ(Generation("one"), 1);
  EXPECT_EQ(Ask(0, Text("DELETE " + One("one"), "If-Match: \"1\"\r\n", "")), 204);
}

// Sent by hand over gRPC, the condition holds for every verb.
// attacks: gRPC shirabe.v1.Shirabe/SendIntent, gRPC shirabe.v1.Shirabe/SubmitExperiment
TEST_F(RacesTest, OfManyIntentsWithOneGenerationToTwoServersOneIsTaken) {
  ServeTwice();
  ASSERT_EQ(Create("red", Spec(kAskedSpec, "red", "one"), kRedToken), 201);
  const auto answers = Race([&](int writer) {
    const auto stub = v1::Shirabe::NewStub(Channel(writer % 2 == 0 ? grpc_ : second_grpc_));
    v1::Intent intent;
    intent.set_namespace_("red");
    intent.set_experiment("one");
    intent.set_verb(v1::Intent::SCALE);
    intent.set_max_trial_count(10 + writer);
    intent.set_generation(1);
    v1::Done done;
    return static_cast<int>(stub->SendIntent(As(kRedToken).get(), intent, &done).error_code());
  });
  EXPECT_THAT(answers,
              ElementsAre(Pair(static_cast<int>(grpc::StatusCode::OK), 1),
                          Pair(static_cast<int>(grpc::StatusCode::ABORTED), kWriters - 1)));
  ASSERT_TRUE(Eventually([&] { return Generation("one") == 2; }));
}

// attacks: gRPC shirabe.v1.Shirabe/ImportExperiment
TEST_F(RacesTest, OfManyImportsOfOneNameOneIsStored) {
  ServeTwice();
  const auto answers = Race([&](int writer) {
    const auto stub = v1::Shirabe::NewStub(Channel(writer % 2 == 0 ? grpc_ : second_grpc_));
    v1::ImportReply reply;
    return static_cast<int>(
        stub->ImportExperiment(As(kRedToken).get(), ImportOfOneTrial("taken"), &reply)
            .error_code());
  });
  EXPECT_THAT(answers,
              ElementsAre(Pair(static_cast<int>(grpc::StatusCode::OK), 1),
                          Pair(static_cast<int>(grpc::StatusCode::ALREADY_EXISTS), kWriters - 1)));
}

}  // namespace
}  // namespace shirabe::attack
