// The client against a server that errs: what is tried again, what is not, and what is said.
#include "kube/api_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/kube/await.h"
#include "tests/kube/fake_api_server.h"
#include "tests/kube/fake_objects.h"

namespace shirabe::kube {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Resource kClientPods{"", "v1", "pods", "Pod"};
const Resource kJobs{"batch", "v1", "jobs", "Job"};

ClientOptions Quick() {
  ClientOptions options;
  options.connect = absl::Seconds(5);
  options.answer = absl::Seconds(5);
  options.backoff = absl::Milliseconds(1);
  return options;
}

std::unique_ptr<Client> ClientOf(const FakeApiServer& server, ClientOptions options = Quick()) {
  auto client = Client::Create(server.config(), RealClock(), options);
  EXPECT_TRUE(client.ok()) << client.status();
  return client.ok() ? *std::move(client) : nullptr;
}

Ref Pod(const std::string& name) { return {kClientPods, "ns", name}; }

Json NewJob(const std::string& name) {
  return {{"apiVersion", "batch/v1"},
          {"kind", "Job"},
          {"metadata", {{"namespace", "ns"}, {"name", name}}}};
}

// Answers as the script says, one line a request; the last for all that follow.
using Step = std::function<void(FakeExchange&)>;
FakeApiServer::Handler Script(std::vector<Step> steps) {
  auto next = std::make_shared<std::atomic<size_t>>(0);  // shared: the handler is copied
  return [steps = std::move(steps), next](FakeExchange& exchange) {
    steps[std::min(next->fetch_add(1), steps.size() - 1)](exchange);
  };
}

Step Answer(int status, const std::string& body, const FakeExchange::Headers& headers = {}) {
  return [=](FakeExchange& exchange) { exchange.Reply(status, body, headers); };
}

Step Refuse(int status, const std::string& reason) {
  return Answer(status, StatusText(status, reason, "the fake says " + reason));
}

Step Reset() {
  return [](FakeExchange& exchange) { exchange.Reset(); };
}

TEST(ClientTest, KeepsItsConnection) {
  FakeApiServer server(Script({Answer(200, R"({"a":1})")}));
  const auto client = ClientOf(server);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(client->Get(Pod("p")).ok());
  EXPECT_EQ(server.connections(), 1);
}

TEST(ClientTest, OpensAnotherWhereTheServerHasHungUp) {
  FakeApiServer server([](FakeExchange& exchange) {
    exchange.Reply(200, "{}", {{"Connection", "close"}});
    exchange.Reset();
  });
  const auto client = ClientOf(server);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(client->Get(Pod("p")).ok());
  EXPECT_EQ(server.connections(), 3);
}

// An API server, or a proxy before it, might take them for more than one part of a path.
TEST(ClientTest, ANameThatIsNoneReachesNoServer) {
  FakeApiServer server(Script({Answer(200, "{}")}));
  const auto client = ClientOf(server);
  for (const char* name : {"..", ".", "a/b", "../secrets/x", "a%2Fb", "a b", "a\r\nX: y"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(client->Get({kJobs, "ns", name}).status())) << name;
    EXPECT_TRUE(absl::IsInvalidArgument(client->Get({kJobs, name, "j"}).status())) << name;
    EXPECT_TRUE(absl::IsInvalidArgument(client->Delete({kJobs, "ns", name}, {}))) << name;
    EXPECT_TRUE(absl::IsInvalidArgument(client->Create(kJobs, NewJob(name)).status())) << name;
    EXPECT_TRUE(absl::IsInvalidArgument(client->List({kJobs, name, "", ""}).status())) << name;
  }
  for (const char* version : {"../../api/v1", "a/b/c", "v1 HTTP/1.1\r\nX: y", "", "/", "V1"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(client->FindResource(version, "Job").status())) << version;
  }
  EXPECT_EQ(server.Count(""), 0);
}

TEST(ClientTest, AsksForPathsAsTheServerHasThem) {
  FakeApiServer server(Script({Answer(200, R"({"metadata":{"resourceVersion":"1"},"items":[]})")}));
  const auto client = ClientOf(server);
  (void)client->Get({kJobs, "ns", "a?b=c"});
  (void)client->List({kClientPods, "", "a=b,c in (d)", "spec.nodeName=n"});
  (void)client->Patch(Pod("p"), PatchType::kMerge, Json::object(), "status");
  (void)client->Apply(kJobs, NewJob("j"), "me", "");
  (void)client->Create(kJobs, NewJob("j"));  // and refuses fields that it does not know
  EXPECT_THAT(server.requests(),
              ElementsAre("GET /apis/batch/v1/namespaces/ns/jobs/a%3Fb%3Dc",
                          "GET /api/v1/pods?labelSelector=a%3Db%2Cc%20in%20%28d%29&fieldSelector="
                          "spec.nodeName%3Dn&limit=500",
                          "PATCH /api/v1/namespaces/ns/pods/p/status",
                          "PATCH /apis/batch/v1/namespaces/ns/jobs/j?fieldManager=me&force=true",
                          "POST /apis/batch/v1/namespaces/ns/jobs?fieldValidation=Strict"));
}

// A Secret's contents do not come into this process, not even where a server sends all of it.
TEST(ClientTest, MetadataIsAllThatIsAskedForAndAllThatIsKept) {
  FakeApiServer server([](FakeExchange& exchange) {
    EXPECT_EQ(exchange.request().headers.at("accept"),
              "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
    exchange.Reply(200, R"({"metadata": {"name": "x"}, "data": {"password": "aHVudGVyMg=="}})");
  });
  const auto read = ClientOf(server)->GetMetadata(Pod("x"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, Json::parse(R"({"metadata": {"name": "x"}})"));
}

TEST(ClientTest, ComesBackToABusyServer) {
  FakeApiServer server(Script(
      {Refuse(429, "TooManyRequests"), Refuse(503, "ServiceUnavailable"), Answer(200, "{}")}));
  EXPECT_TRUE(ClientOf(server)->Get(Pod("p")).ok());
  EXPECT_EQ(server.requests().size(), 3u);
}

TEST(ClientTest, WaitsAsLongAsTheServerAsks) {
  FakeApiServer server(
      Script({Answer(429, StatusText(429, "TooManyRequests", "slower"), {{"Retry-After", "1"}}),
              Answer(200, "{}")}));
  const absl::Duration begun = RealClock()->Monotonic();
  EXPECT_TRUE(ClientOf(server)->Get(Pod("p")).ok());
  EXPECT_GE(RealClock()->Monotonic() - begun, absl::Seconds(1));
}

TEST(ClientTest, GivesUpOnAServerThatStaysBusy) {
  FakeApiServer server(Script({Refuse(429, "TooManyRequests")}));
  const Status busy = ClientOf(server)->Get(Pod("p")).status();
  EXPECT_TRUE(absl::IsResourceExhausted(busy)) << busy;
  EXPECT_EQ(server.requests().size(), 6u);
}

// An attempt's Job must not be lost, nor started twice: whoever creates it adopts the first.
TEST(ClientTest, ACreateThatWasDoneAndAnsweredBadlyIsAlreadyThere) {
  for (const Step& fault : {Refuse(500, "InternalError"), Reset()}) {
    FakeApiServer server(Script({fault, Refuse(409, "AlreadyExists")}));
    const Status there = ClientOf(server)->Create(kJobs, NewJob("j")).status();
    EXPECT_TRUE(absl::IsAlreadyExists(there)) << there;
    EXPECT_EQ(server.requests().size(), 2u);
  }
}

TEST(ClientTest, DoesNotCreateTwiceWhatHasNoName) {
  FakeApiServer server(Script({Reset(), Answer(201, "{}")}));
  Json event = {{"metadata", {{"namespace", "ns"}, {"generateName", "e-"}}}};
  const Status lost = ClientOf(server)->Create(kClientPods, event).status();
  EXPECT_TRUE(absl::IsUnavailable(lost)) << lost;
  EXPECT_EQ(server.requests().size(), 1u);
}

TEST(ClientTest, ADeleteThatWasDoneTwiceIsDone) {
  FakeApiServer done(Script({Refuse(504, "Timeout"), Refuse(404, "NotFound")}));
  EXPECT_EQ(ClientOf(done)->Delete(Pod("p"), {}), absl::OkStatus());
  FakeApiServer never(Script({Refuse(404, "NotFound")}));
  EXPECT_TRUE(absl::IsNotFound(ClientOf(never)->Delete(Pod("p"), {})));
}

TEST(ClientTest, RepeatsOnlyPatchesThatAreTheSameTwice) {
  const Json append = Json::array({{{"op", "add"}, {"path", "/a/-"}, {"value", 1}}});
  FakeApiServer once(Script({Reset(), Answer(200, "{}")}));
  EXPECT_FALSE(ClientOf(once)->Patch(Pod("p"), PatchType::kJson, append, "").ok());
  Json tested = append;
  tested.push_back({{"op", "test"}, {"path", "/metadata/resourceVersion"}, {"value", "1"}});
  FakeApiServer again(Script({Reset(), Answer(200, "{}")}));
  EXPECT_TRUE(ClientOf(again)->Patch(Pod("p"), PatchType::kJson, tested, "").ok());
}

TEST(ClientTest, SaysWhatAnErrorMeans) {
  const std::vector<std::tuple<int, std::string, absl::StatusCode>> table = {
      {400, "BadRequest", absl::StatusCode::kInvalidArgument},
      {403, "Forbidden", absl::StatusCode::kPermissionDenied},
      {404, "NotFound", absl::StatusCode::kNotFound},
      {409, "AlreadyExists", absl::StatusCode::kAlreadyExists},
      {409, "Conflict", absl::StatusCode::kAborted},
      {410, "Expired", absl::StatusCode::kOutOfRange},
      {410, "Gone", absl::StatusCode::kOutOfRange},
      {413, "RequestEntityTooLarge", absl::StatusCode::kInvalidArgument},
      {422, "Invalid", absl::StatusCode::kInvalidArgument},
      {500, "InternalError", absl::StatusCode::kUnavailable},
      {504, "Timeout", absl::StatusCode::kDeadlineExceeded},
  };
  ClientOptions once = Quick();
  once.tries = 1;
  for (const auto& [status, reason, code] : table) {
    FakeApiServer server(Script({Refuse(status, reason)}));
    const Status said = ClientOf(server, once)->Get(Pod("p")).status();
    EXPECT_EQ(said.code(), code) << said;
    EXPECT_EQ(Message(said),
              absl::StrCat("get Pod ns/p: the fake says ", reason, " (", status, ")"));
  }
}

TEST(ClientTest, RepeatsWhatAProxySays) {
  FakeApiServer server(Script({Answer(403, "<html>Go away\x01\n</html>")}));
  const Status said = ClientOf(server)->Get(Pod("p")).status();
  EXPECT_TRUE(absl::IsPermissionDenied(said));
  EXPECT_THAT(Message(said), HasSubstr("<html>Go away"));
}

TEST(ClientTest, DoesNotBelieveAProxyThatNothingIsThere) {
  ClientOptions once = Quick();
  once.tries = 1;
  for (const int status : {404, 409, 410}) {
    FakeApiServer proxy(Script({Answer(status, "no healthy upstream")}));
    const Status said = ClientOf(proxy, once)->Get(Pod("p")).status();
    EXPECT_TRUE(absl::IsUnavailable(said)) << said;
  }
  // The API server's own words where a CRD is not installed.
  FakeApiServer server(Script({Answer(404, "404 page not found\n")}));
  EXPECT_TRUE(absl::IsNotFound(ClientOf(server)->Get(Pod("p")).status()));
}

TEST(ClientTest, AnswersThatBreakOffAreTriedAgain) {
  const Step broken = [](FakeExchange& exchange) {
    exchange.Raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"a\":");
    exchange.Reset();
  };
  FakeApiServer server(Script({broken, broken, Answer(200, R"({"a":1})")}));
  const auto answer = ClientOf(server)->Get(Pod("p"));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ((*answer)["a"], 1);
}

TEST(ClientTest, WhatIsNoJsonIsSaidToBeNone) {
  FakeApiServer server(Script({Answer(200, R"({"a":)")}));
  const Status said = ClientOf(server)->Get(Pod("p")).status();
  EXPECT_TRUE(absl::IsUnavailable(said)) << said;
  EXPECT_THAT(Message(said), HasSubstr("not JSON"));
}

TEST(ClientTest, ASilentServerIsGivenUp) {
  FakeApiServer server([](FakeExchange& exchange) { exchange.KeepSilent(absl::Seconds(30)); });
  ClientOptions options = Quick();
  options.answer = absl::Milliseconds(100);
  options.tries = 2;
  const Status said = ClientOf(server, options)->Get(Pod("p")).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(said)) << said;
  EXPECT_EQ(server.requests().size(), 2u);
}

TEST(ClientTest, NobodyThere) {
  Config config;
  {
    FakeApiServer server(Script({Answer(200, "{}")}));
    config = server.config();
  }
  const auto client = Client::Create(config, RealClock(), Quick());
  ASSERT_TRUE(client.ok());
  const Status said = (*client)->Get(Pod("p")).status();
  EXPECT_TRUE(absl::IsUnavailable(said)) << said;
  EXPECT_THAT(Message(said), HasSubstr("get Pod ns/p: 127.0.0.1:"));
}

// ---- lists -------------------------------------------------------------------------------------

TEST(ClientTest, ListsPageByPage) {
  FakeObjects objects;
  for (int i = 0; i < 25; ++i) objects.Put(absl::StrCat("p", i), "x");
  FakeApiServer server([&](FakeExchange& exchange) { objects.Handle(exchange); });
  ClientOptions options = Quick();
  options.page = 10;
  const auto list = ClientOf(server, options)->List({kClientPods});
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ((*list)["items"].size(), 25u);
  EXPECT_EQ((*list)["items"][24]["kind"], "Pod");
  EXPECT_EQ(server.requests().size(), 3u);
}

TEST(ClientTest, BeginsAListAgainThatHasBecomeTooOld) {
  FakeObjects objects;
  for (int i = 0; i < 25; ++i) objects.Put(absl::StrCat("p", i), "x");
  objects.expire_continues = 2;
  FakeApiServer server([&](FakeExchange& exchange) { objects.Handle(exchange); });
  ClientOptions options = Quick();
  options.page = 10;
  const auto client = ClientOf(server, options);
  const auto list = client->List({kClientPods});
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ((*list)["items"].size(), 25u);
  objects.expire_continues = 1'000;
  EXPECT_TRUE(absl::IsOutOfRange(client->List({kClientPods}).status()));
}

// ---- watches and logs --------------------------------------------------------------------------

struct Watched {
  std::vector<std::string> names;
  Status status;
};

Watched WatchOnce(Client& client, absl::Duration stall = absl::Seconds(5)) {
  Watched watched;
  watched.status = client.Watch(
      {kClientPods}, {"1", stall},
      [&](const WatchEvent& event) { watched.names.push_back(NameOf(event.object)); }, {});
  return watched;
}

std::string Added(const std::string& name) {
  return R"({"type":"ADDED","object":{"metadata":{"name":")" + name + "\"}}}\n";
}

TEST(ClientTest, WatchTellsLinesHoweverTheyAreCut) {
  FakeApiServer server([](FakeExchange& exchange) {
    const std::string all = Added("a") + Added("b") + R"({"type":"NEW","object":{}})" + "\n" +
                            Added(std::string(300'000, 'c'));
    for (size_t at = 0; at < 200; at += 7)
      exchange.Stream(all.substr(at, at + 7 < 200 ? 7 : 200 - at));
    exchange.Stream(all.substr(200));
    exchange.EndStream();
  });
  const auto client = ClientOf(server);
  const Watched watched = WatchOnce(*client);
  EXPECT_EQ(watched.status, absl::OkStatus());
  EXPECT_THAT(watched.names, ElementsAre("a", "b", std::string(300'000, 'c')));
}

TEST(ClientTest, AnErrorInAWatchIsItsStatus) {
  FakeApiServer server([](FakeExchange& exchange) {
    exchange.Stream(Added("a"));
    exchange.Stream(R"({"type":"ERROR","object":)" + StatusText(410, "Expired", "too old") + "}\n");
    exchange.KeepSilent(absl::Seconds(30));
  });
  const auto client = ClientOf(server);
  const Watched watched = WatchOnce(*client);
  EXPECT_TRUE(absl::IsOutOfRange(watched.status)) << watched.status;
  EXPECT_THAT(watched.names, ElementsAre("a"));
}

TEST(ClientTest, AWatchThatIsTornIsNoEndInOrder) {
  const std::string half = Added("b").substr(0, 20);
  const std::vector<std::pair<std::string, Step>> faults = {
      {"in the middle",
       [&](FakeExchange& exchange) {
         exchange.Stream(Added("a") + half);
         exchange.EndStream();
       }},
      {"hung up",
       [&](FakeExchange& exchange) {
         exchange.Stream(Added("a"));
         exchange.Reset();
       }},
      {"not an event",
       [&](FakeExchange& exchange) {
         exchange.Stream(Added("a") + "not json\n");
         exchange.EndStream();
       }},
  };
  for (const auto& [words, fault] : faults) {
    FakeApiServer server(fault);
    const auto client = ClientOf(server);
    const Watched watched = WatchOnce(*client);
    EXPECT_TRUE(absl::IsUnavailable(watched.status)) << words << watched.status;
  }
}

TEST(ClientTest, AWatchIsNotReadWithoutEnd) {
  FakeApiServer server([](FakeExchange& exchange) {
    const std::string piece(1 << 20, 'x');
    while (exchange.Stream(piece)) {
    }
  });
  const auto client = ClientOf(server);
  EXPECT_TRUE(absl::IsResourceExhausted(WatchOnce(*client).status));
}

TEST(ClientTest, ASilentWatchIsGivenUp) {
  FakeApiServer server([](FakeExchange& exchange) {
    exchange.Stream(Added("a"));
    exchange.KeepSilent(absl::Seconds(30));
  });
  const auto client = ClientOf(server);
  const Watched watched = WatchOnce(*client, absl::Milliseconds(100));
  EXPECT_TRUE(absl::IsDeadlineExceeded(watched.status)) << watched.status;
  EXPECT_THAT(watched.names, ElementsAre("a"));
}

TEST(ClientTest, AStopEndsWhatWaits) {
  FakeApiServer server([](FakeExchange& exchange) { exchange.KeepSilent(absl::Seconds(60)); });
  const auto client = ClientOf(server);
  std::stop_source stop;
  Status ended;
  std::thread thread([&] {
    ended = client->ReadLog(
        Pod("p"), {.follow = true}, [](std::string_view) { return true; }, stop.get_token());
  });
  ASSERT_TRUE(Await([&] { return server.requests().size() == 1; }));
  const absl::Duration begun = RealClock()->Monotonic();
  stop.request_stop();
  thread.join();
  EXPECT_LT(RealClock()->Monotonic() - begun, absl::Seconds(3));
  EXPECT_TRUE(absl::IsCancelled(ended)) << ended;
}

TEST(ClientTest, ReadsLogs) {
  FakeApiServer server([](FakeExchange& exchange) {
    EXPECT_EQ(exchange.request().path, "/api/v1/namespaces/ns/pods/p/log");
    EXPECT_EQ(exchange.request().query.at("container"), "main");
    EXPECT_EQ(exchange.request().query.at("limitBytes"), "100");
    for (int i = 0; i < 1000 && exchange.Stream("line\n"); ++i) {
    }
    exchange.EndStream();
  });
  const auto client = ClientOf(server);
  const LogOptions options{.container = "main", .limit_bytes = 100};
  size_t read = 0;
  const auto take = [&](std::string_view piece) {
    read += piece.size();
    return true;
  };
  EXPECT_EQ(client->ReadLog(Pod("p"), options, take, {}), absl::OkStatus());
  EXPECT_EQ(read, 5000u);
  const auto enough = [](std::string_view) { return false; };
  EXPECT_EQ(client->ReadLog(Pod("p"), options, enough, {}), absl::OkStatus());
}

TEST(ClientTest, ALogThatIsNotThereSaysWhy) {
  FakeApiServer server(Script({Refuse(400, "BadRequest")}));
  const Status said =
      ClientOf(server)->ReadLog(Pod("p"), {}, [](std::string_view) { return true; }, {});
  EXPECT_TRUE(absl::IsInvalidArgument(said));
  EXPECT_THAT(Message(said), HasSubstr("read the log of Pod ns/p: the fake says BadRequest"));
}

TEST(ClientTest, RemembersKinds) {
  const std::string list = R"({"resources":[{"name":"jobs/status","kind":"Job","namespaced":true},
      {"name":"jobs","kind":"Job","namespaced":true}]})";
  FakeApiServer server(Script({Answer(200, list), Refuse(404, "NotFound")}));
  const auto client = ClientOf(server);
  for (int i = 0; i < 3; ++i) {
    const auto job = client->FindResource("batch/v1", "Job");
    ASSERT_TRUE(job.ok()) << job.status();
    EXPECT_EQ(job->plural, "jobs");
  }
  EXPECT_EQ(server.requests().size(), 1u);
  const Status missing = client->FindResource("kubeflow.org/v1", "TFJob").status();
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_THAT(Message(missing), HasSubstr("no kind TFJob in kubeflow.org/v1"));
}

TEST(ClientTest, ManyThreadsAtOnce) {
  FakeObjects objects;
  FakeApiServer server([&](FakeExchange& exchange) { objects.Handle(exchange); });
  const auto client = ClientOf(server);
  std::vector<std::thread> threads;
  std::atomic<int> made = 0;
  for (int t = 0; t < 12; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const Json pod = {{"metadata", {{"namespace", "ns"}, {"name", absl::StrCat(t, "-", i)}}}};
        if (client->Create(kClientPods, pod).ok()) ++made;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 240);
}

}  // namespace
}  // namespace shirabe::kube
