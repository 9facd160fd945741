// What charts draw, over HTTP: the binary form byte by byte, conditional requests, updates.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

#include "base/sha256.h"
#include "service/common/suggestion_scheduler.h"
#include "service/http/etag.h"
#include "tests/service/http_fixture.h"

namespace shirabe::service {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using view::Json;

constexpr char kOne[] = "/api/v1/namespaces/a/experiments/one";

// A reply as docs/design/formats.md describes it, read without our own code.
struct Unpacked {
  Json head;
  std::vector<double> numbers;

  std::vector<double> Column(const std::string& name) const {
    for (const Json& column : head["columns"]) {
      if (column["name"] != name) continue;
      const auto begin = numbers.begin() + column["offset"].get<int64_t>();
      return {begin, begin + head["rows"].get<int64_t>()};
    }
    ADD_FAILURE() << "there is no column " << name;
    return {};
  }
  Json Described(const std::string& name) const {
    for (const Json& column : head["columns"]) {
      if (column["name"] == name) return column;
    }
    return nullptr;
  }
};

Unpacked Unpack(const std::string& bytes) {
  Unpacked unpacked;
  EXPECT_EQ(bytes.size() % 8, 0u);
  EXPECT_EQ(bytes.substr(0, 8), std::string("SHIRABE\x01"));
  uint32_t head = 0, reserved = 1;
  std::memcpy(&head, bytes.data() + 8, 4);
  std::memcpy(&reserved, bytes.data() + 12, 4);
  EXPECT_EQ(reserved, 0u);
  EXPECT_EQ(head % 8, 0u) << "arrays begin at a multiple of eight";
  unpacked.head = Json::parse(bytes.substr(16, head), nullptr, false);
  EXPECT_TRUE(unpacked.head.is_object());
  unpacked.numbers.resize((bytes.size() - 16 - head) / 8);
  std::memcpy(unpacked.numbers.data(), bytes.data() + 16 + head, bytes.size() - 16 - head);
  return unpacked;
}

class HttpChartsTest : public testing::Test {
 protected:
  HttpReply GetWith(const std::string& target, const std::string& header,
                    const std::string& value) {
    HttpRequest request{.method = "GET", .target = target, .peer = "127.0.0.1"};
    request.headers.emplace_back("authorization", absl::StrCat("Bearer ", kAdminToken));
    request.headers.emplace_back(header, value);
    return http_.Handle(std::move(request));
  }
  static std::string HeaderOf(const HttpReply& reply, const std::string& name) {
    for (const auto& [key, value] : reply.headers) {
      if (key == name) return value;
    }
    return "";
  }
  Unpacked GetUnpacked(const std::string& target) {
    HttpReply reply = http_.Get(target);
    EXPECT_EQ(reply.status, 200) << reply.body;
    if (reply.status != 200) return {};
    EXPECT_EQ(reply.type, "application/vnd.shirabe.columns");
    return Unpack(reply.source == nullptr ? reply.body : Drain(reply));
  }
  // An experiment that has ended, with so many trials.
  void Import(const std::string& name, int trials) {
    v1::ImportRequest request;
    request.set_namespace_("a");
    request.set_name(name);
    request.set_source("a test");
    request.set_objective(R"({"type": "minimize", "objectiveMetricName": "loss"})");
    request.set_parameters(R"([{"name": "lr", "parameterType": "double",
                                "feasibleSpace": {"min": "0", "max": "1"}}])");
    for (int i = 1; i <= trials; ++i) {
      v1::ImportRequest::Trial& trial = *request.add_trials();
      trial.set_name(std::to_string(i));
      trial.set_phase(v1::TRIAL_SUCCEEDED);
      trial.add_values()->set_name("lr");
      trial.mutable_values(0)->set_text("0.5");
      trial.add_points()->set_metric("loss");
      trial.mutable_points(0)->set_step(1);
      trial.mutable_points(0)->set_value(i);
    }
    const auto imported = http_.client().Get<v1::ImportReply>("ImportExperiment", request);
    ASSERT_TRUE(imported.ok()) << imported.status();
  }

  HttpFixture http_;
};

TEST_F(HttpChartsTest, ColumnsAreArraysOfNumbersBehindAHead) {
  http_.Create("a", "one");
  http_.RunTrials("a", "one", 3);
  const Unpacked all = GetUnpacked(absl::StrCat(kOne, "/columns"));
  EXPECT_EQ(all.head["rows"], 3);
  EXPECT_EQ(all.head["total"], 3);
  EXPECT_EQ(all.head["since"], 0);
  EXPECT_GT(all.head["revision"], 0);
  EXPECT_LE(all.head["created"].get<double>(), all.Column("start")[0]);
  EXPECT_FALSE(all.head.contains("nextPageToken"));
  EXPECT_THAT(all.Column("trial"), ElementsAre(1, 2, 3));
  EXPECT_THAT(all.Column("objective"), ElementsAre(1, 1.0 / 2, 1.0 / 3));
  EXPECT_EQ(all.Described("start")["kind"], "time");
  EXPECT_EQ(all.Described("trial")["kind"], "number");
  EXPECT_EQ(all.Described("param.opt")["dictionary"], Json({"adam", "sgd, slow"}));
  const Json states = all.Described("state")["dictionary"];
  for (const double state : all.Column("state")) {
    EXPECT_EQ(states[static_cast<size_t>(state)], "Succeeded");
  }
}

TEST_F(HttpChartsTest, FieldsArePartedAsInALineOfCsv) {
  http_.Create("a", "one");
  http_.RunTrials("a", "one", 1);
  const auto get = [&](const std::string& fields) {
    return http_.Get(absl::StrCat(kOne, "/columns?fields=", fields));
  };
  const Unpacked unpacked = Unpack(get("param.x,%22param.opt%22").body);
  EXPECT_EQ(unpacked.head["columns"].size(), 2u);
  // What stands within quotes is one name, whatever it holds.
  EXPECT_THAT(get("%22param.%22%22a%22%22,b%22").body,
              HasSubstr(R"(there is no column \"param.\"a\",b\")"));
  EXPECT_THAT(get("%3Cscript%3E").body, HasSubstr("there is no column"));
  EXPECT_THAT(get("%22trial").body, HasSubstr("a quote is not closed"));
  EXPECT_THAT(get("%22trial%22x").body, HasSubstr("after a closing quote stands a comma"));
  EXPECT_THAT(get("trial,").body, HasSubstr(R"(there is no column \"\")"));
  EXPECT_THAT(get("trial,trial").body, HasSubstr("twice"));
  for (const char* bad : {"nope", "%22trial", "trial,", "trial,trial", "%22", ","}) {
    const HttpReply reply = get(bad);
    EXPECT_EQ(reply.status, 400) << bad;
    EXPECT_EQ(BodyOf(reply)["details"][0]["field"], "fields") << bad;
  }
}

TEST_F(HttpChartsTest, PagesOfColumnsFollowEachOther) {
  http_.Create("a", "one");
  http_.RunTrials("a", "one", 5);
  std::vector<double> seen;
  std::string more;
  for (int page = 0; page < 5; ++page) {
    const Unpacked part = GetUnpacked(absl::StrCat(kOne, "/columns?fields=trial&pageSize=2", more));
    for (const double trial : part.Column("trial")) seen.push_back(trial);
    if (!part.head.contains("nextPageToken")) break;
    more = absl::StrCat("&pageToken=", part.head["nextPageToken"].get<std::string>());
  }
  EXPECT_THAT(seen, ElementsAre(1, 2, 3, 4, 5));
  for (const char* bad : {"c", "c1", "c1.x", "c-1.0", "c1.0.0", "p1", "c01.0", "c1.99999999999"}) {
    const HttpReply reply = http_.Get(absl::StrCat(kOne, "/columns?pageToken=", bad));
    EXPECT_EQ(reply.status, 400) << bad;
    EXPECT_THAT(reply.body, HasSubstr("none of ours")) << bad;
  }
  for (const char* bad : {"0", "-1", "100000001", "9223372036854775808", "x"}) {
    EXPECT_EQ(http_.Get(absl::StrCat(kOne, "/columns?pageSize=", bad)).status, 400) << bad;
  }
}

TEST_F(HttpChartsTest, SinceTheFutureIsAnotherStore) {
  http_.Create("a", "one");
  for (const char* path : {"/columns", "/timeline"}) {
    const HttpReply reply = http_.Get(absl::StrCat(kOne, path, "?since=999999999"));
    EXPECT_EQ(reply.status, 410) << reply.body;
    EXPECT_THAT(reply.body, HasSubstr("is not of this store"));
    EXPECT_EQ(http_.Get(absl::StrCat(kOne, path, "?since=-1")).status, 400);
  }
  EXPECT_EQ(http_.Get(absl::StrCat(kOne, "/updates?after=999999999")).status, 410);
}

TEST_F(HttpChartsTest, WhoSendsTheEtagBackGetsNoBodyWhileNothingHasChanged) {
  http_.Create("a", "one", 20);
  http_.RunTrials("a", "one", 2);
  for (const char* path : {"/columns", "/timeline", "/curves", "/summary", "/columns?since=1"}) {
    const std::string target = absl::StrCat(kOne, path);
    const std::string etag = HeaderOf(http_.Get(target), "ETag");
    ASSERT_THAT(etag, StartsWith("\"")) << path;
    for (const std::string& known :
         {etag, absl::StrCat("W/", etag), absl::StrCat("\"other\", ", etag), std::string("*")}) {
      const HttpReply reply = GetWith(target, "if-none-match", known);
      EXPECT_EQ(reply.status, 304) << path << " " << known;
      EXPECT_EQ(HeaderOf(reply, "ETag"), etag);
      EXPECT_EQ(reply.body, "");
      EXPECT_EQ(reply.source, nullptr);
    }
    EXPECT_EQ(GetWith(target, "if-none-match", "\"x\"").status, 200) << path;
    EXPECT_EQ(GetWith(target, "if-none-match", "x").status, 200) << path;
    EXPECT_EQ(GetWith(target, "if-none-match", "\"").status, 200) << path;
    http_.RunTrials("a", "one", 1);
    EXPECT_EQ(GetWith(target, "if-none-match", etag).status, 200) << path;
  }
}

TEST_F(HttpChartsTest, AnyOtherJsonHasAnEtagOfItsBody) {
  http_.Create("a", "one");
  http_.RunTrials("a", "one", 1);
  for (const std::string& target :
       {absl::StrCat(kOne, "/trials/1"), absl::StrCat(kOne, "/trials/1/observations"),
        std::string("/api/v1/summaries"), std::string("/openapi.json")}) {
    const HttpReply reply = http_.Get(target);
    const std::string etag = HeaderOf(reply, "ETag");
    EXPECT_EQ(etag, EtagOfBody(reply.body)) << target;
    EXPECT_EQ(GetWith(target, "if-none-match", etag).status, 304) << target;
    EXPECT_EQ(GetWith(target, "if-none-match", "\"0\"").body, reply.body) << target;
  }
  // The tag of an experiment is its generation, for If-Match: its status changes without it.
  const std::string etag = HeaderOf(http_.Get(kOne), "ETag");
  EXPECT_EQ(GetWith(kOne, "if-none-match", etag).status, 200);
  EXPECT_THAT(HeaderOf(http_.Get(absl::StrCat(kOne, "/nothing")), "ETag"), IsEmpty());
}

TEST(Etag, OfOneBodyIsNotThatOfAnother) {
  EXPECT_EQ(EtagOfBody("abcdefgh1"), EtagOfBody("abcdefgh1"));
  for (const char* other : {"abcdefgh2", "abcdefgh", "bacdefgh1", "", "abcdefgh11"}) {
    EXPECT_NE(EtagOfBody("abcdefgh1"), EtagOfBody(other)) << other;
  }
  EXPECT_EQ(HeadOf({.status = 304, .type = ""}, {}).find("Content-Length"), std::string::npos);
}

TEST_F(HttpChartsTest, TheTimelineHasARowForEachAttempt) {
  http_.Create("a", "one");
  http_.RunTrials("a", "one", 2);
  const Unpacked timeline = GetUnpacked(absl::StrCat(kOne, "/timeline"));
  EXPECT_THAT(timeline.Column("trial"), ElementsAre(1, 2));
  EXPECT_THAT(timeline.Column("attempt"), ElementsAre(1, 1));
  const Json causes = timeline.Described("cause")["dictionary"];
  EXPECT_EQ(causes[static_cast<size_t>(timeline.Column("cause")[0])], "completed");
}

TEST_F(HttpChartsTest, CurvesAreTwoArraysForEachTrial) {
  http_.Create("a", "one");
  http_.RunTrials("a", "one", 2);
  const Unpacked curves = GetUnpacked(absl::StrCat(kOne, "/curves?top=5"));
  EXPECT_EQ(curves.head["metric"], "loss");
  ASSERT_EQ(curves.head["curves"].size(), 2u);
  const Json& second = curves.head["curves"][1];
  EXPECT_EQ(second["trial"], 2);
  EXPECT_EQ(second["state"], "Succeeded");
  const auto offset = second["offset"].get<size_t>();
  EXPECT_EQ(second["length"], 1);
  EXPECT_EQ(curves.numbers[offset], 1) << "the step";
  EXPECT_EQ(curves.numbers[offset + 1], 0.5) << "the loss";
  for (const char* bad :
       {"metric=los", "metric=%3Cb%3E", "top=0", "top=1001", "px=10001", "px=-1", "from=nan",
        "from=inf", "from=a", "from=2&to=1", "scale=log&from=0", "axis=z", "trials=1,x", "trials=0",
        "trials=,", "running=maybe", "nope=1"}) {
    EXPECT_EQ(http_.Get(absl::StrCat(kOne, "/curves?", bad)).status, 400) << bad;
  }
}

TEST_F(HttpChartsTest, SummariesAreOfThoseThatTheCallerMaySee) {
  http_.Create("a", "one");
  http_.Create("b", "two");
  const auto names = [&](const std::string& target, const char* token) {
    std::vector<std::string> list;
    const Json body = BodyOf(http_.Get(target, token));
    for (const Json& item : body["items"]) {
      list.push_back(item["name"].get<std::string>());
    }
    return list;
  };
  EXPECT_THAT(names("/api/v1/summaries", kAdminToken), ElementsAre("one", "two"));
  EXPECT_THAT(names("/api/v1/summaries", kTeamToken), ElementsAre("one"));
  EXPECT_THAT(names("/api/v1/namespaces/a/summaries", kTeamToken), ElementsAre("one"));
  const Json page = BodyOf(http_.Get("/api/v1/summaries?pageSize=1"));
  EXPECT_EQ(page["items"].size(), 1u);
  EXPECT_THAT(
      names(absl::StrCat("/api/v1/summaries?pageToken=", page["nextPageToken"].get<std::string>()),
            kAdminToken),
      ElementsAre("two"));
  for (const char* path : {"/summary", "/columns", "/timeline", "/curves", "/updates"}) {
    EXPECT_EQ(http_.Get(absl::StrCat(kOne, path), kOtherToken).status, 403) << path;
    EXPECT_EQ(http_.Get(absl::StrCat(kOne, path), "").status, 401) << path;
    EXPECT_EQ(http_.Get(absl::StrCat(kOne, "-not", path)).status, 404) << path;
  }
  EXPECT_EQ(http_.Get("/api/v1/namespaces/a/summaries", kOtherToken).status, 403);
  EXPECT_EQ(http_.Get("/api/v1/namespaces/a/capacity", kOtherToken).status, 403);
  EXPECT_EQ(http_.Get("/api/v1/capacity", kTeamToken).status, 200);
}

TEST_F(HttpChartsTest, SummariesSinceARevisionAreThoseThatHaveChanged) {
  http_.Create("a", "one");
  http_.Create("a", "two");
  const auto changed = [&](int64_t since) {
    const Json body = BodyOf(http_.Get(absl::StrCat("/api/v1/summaries?since=", since)));
    std::vector<std::string> names;
    for (const Json& item : body["items"]) names.push_back(item["name"].get<std::string>());
    return names;
  };
  const int64_t revision = BodyOf(http_.Get("/api/v1/summaries"))["revision"].get<int64_t>();
  EXPECT_THAT(changed(0), ElementsAre("one", "two"));
  EXPECT_THAT(changed(revision), IsEmpty());
  http_.RunTrials("a", "two", 1);
  EXPECT_THAT(changed(revision), ElementsAre("two"));
  EXPECT_EQ(http_.Get("/api/v1/summaries?since=999999").status, 410);
}

TEST_F(HttpChartsTest, ASummaryIsTheSameAloneAndInTheList) {
  http_.Create("a", "one");
  http_.RunTrials("a", "one", 2);
  const Json one = BodyOf(http_.Get(absl::StrCat(kOne, "/summary")));
  EXPECT_EQ(one["trialsSucceeded"], 2);
  EXPECT_EQ(one["trialsFailed"], 0) << "a count is there when it is nothing, too";
  EXPECT_EQ(one["best"]["value"], 0.5);
  EXPECT_EQ(one["best"]["assignments"].size(), 2u);
  EXPECT_EQ(BodyOf(http_.Get("/api/v1/summaries"))["items"][0], one);
}

TEST_F(HttpChartsTest, CapacityOfAServerWithoutWorkIsEmptyAndWhole) {
  const Json report = BodyOf(http_.Get("/api/v1/capacity?hours=3"));
  EXPECT_EQ(report["running"], 0);
  EXPECT_EQ(report["pools"], Json::array());
  ASSERT_EQ(report["hours"].size(), 3u);
  EXPECT_EQ(report["hours"][0]["cost"], 0);
  for (const char* bad : {"0", "745", "-1", "x"}) {
    EXPECT_EQ(http_.Get(absl::StrCat("/api/v1/capacity?hours=", bad)).status, 400) << bad;
  }
}

// ---- updates -----------------------------------------------------------------------------------

// The data of the events of one kind in a text.
std::vector<Json> EventsIn(const std::string& text, const std::string& kind) {
  std::vector<Json> events;
  for (size_t at = 0; (at = text.find("event: " + kind + "\n", at)) != std::string::npos; ++at) {
    const size_t data = text.find("data: ", at) + 6;
    events.push_back(Json::parse(text.substr(data, text.find('\n', data) - data)));
  }
  return events;
}

class UpdatesTest : public HttpChartsTest {
 protected:
  // Calls Next until the text has an event of this kind.
  static std::string ReadUntil(HttpReply& reply, const std::string& kind) {
    const absl::Duration deadline = RealClock()->Monotonic() + absl::Seconds(20);
    std::string text;
    while (text.find("event: " + kind) == std::string::npos) {
      const auto piece = reply.source->Next();
      if (!piece.ok()) return absl::StrCat("error: ", Message(piece.status()));
      text += piece->text;
      if (piece->end) return text;
      if (RealClock()->Monotonic() > deadline) {
        ADD_FAILURE() << "there was no " << kind << " in " << text;
        return text;
      }
      Pause(absl::Milliseconds(5));
    }
    return text;
  }
};

TEST_F(UpdatesTest, AFollowerGetsTheSummaryAndTheRowsThatHaveChanged) {
  http_.Create("a", "one");
  http_.RunTrials("a", "one", 1);
  HttpReply reply = http_.Get(absl::StrCat(kOne, "/updates"));
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.type, "text/event-stream");
  EXPECT_THAT(reply.source->Next()->text, HasSubstr(": following"));
  http_.RunTrials("a", "one", 1);
  const auto events = EventsIn(ReadUntil(reply, "update"), "update");
  ASSERT_FALSE(events.empty());
  Json row;
  for (const Json& event : events) {
    EXPECT_GT(event["revision"], event["since"]);
    for (const Json& one : event["rows"]) {
      EXPECT_EQ(one["trial"], 2) << "the first has not changed";
      row = one;
    }
  }
  ASSERT_FALSE(row.is_null());
  EXPECT_TRUE(row.contains("param.x"));
  EXPECT_TRUE(events.back()["summary"].contains("trialsSucceeded"));
}

TEST_F(UpdatesTest, WhoComesBackMissesNothing) {
  http_.Create("a", "one", 50);
  const int64_t before = http_.client().Revision().value();
  http_.RunTrials("a", "one", 3);
  HttpReply reply = http_.Get(absl::StrCat(kOne, "/updates?after=", before));
  ASSERT_EQ(reply.status, 200) << reply.body;
  const auto events = EventsIn(ReadUntil(reply, "update"), "update");
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events[0]["since"], before);
  EXPECT_EQ(events[0]["rows"].size(), 3u);
  HttpReply again = GetWith(absl::StrCat(kOne, "/updates"), "last-event-id",
                            std::to_string(events.back()["revision"].get<int64_t>()));
  ASSERT_EQ(again.status, 200);
  EXPECT_THAT(EventsIn(again.source->Next()->text, "update"), IsEmpty());
  EXPECT_EQ(GetWith(absl::StrCat(kOne, "/updates"), "last-event-id", "x").status, 400);
}

TEST_F(UpdatesTest, FollowersShareOneTextAndOneLookAtTheStore) {
  http_.Create("a", "one", 50);
  UpdateFeeds feeds(&http_.client(), RealClock());
  const int64_t start = feeds.After({"a", "one"}, http_.client().Revision().value())->revision;
  http_.RunTrials("a", "one", 2);
  UpdateFeeds::Update first;
  const absl::Duration deadline = RealClock()->Monotonic() + absl::Seconds(20);
  while (first.text.empty() && RealClock()->Monotonic() < deadline) {
    first = *feeds.After({"a", "one"}, start);
    Pause(absl::Milliseconds(5));
  }
  ASSERT_FALSE(first.text.empty());
  // Within the interval nobody looks again, whatever happens.
  http_.RunTrials("a", "one", 1);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(feeds.After({"a", "one"}, start)->text, first.text);
  EXPECT_EQ(feeds.After({"a", "one"}, first.revision)->text, "");
}

// Answers everything with empty messages, but columns only once it may.
class SlowClient : public client::Client {
 public:
  Status Call(const client::Method& method, const google::protobuf::Message& /*request*/,
              const client::Sink& sink) override {
    if (method.name() == "GetTrialColumns") {
      MutexLock lock(mutex_);
      asked_ = true;
      changed_.NotifyAll();
      changed_.Wait(lock, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return open_; });
    }
    const std::unique_ptr<google::protobuf::Message> reply(
        google::protobuf::MessageFactory::generated_factory()
            ->GetPrototype(method.output_type())
            ->New());
    return sink(*reply);
  }
  std::string LogLocation(const AttemptKey& /*key*/) override { return ""; }
  Status DeleteExperiment(const v1::DeleteRequest& /*request*/,
                          const client::Wait& /*wait*/) override {
    return absl::OkStatus();
  }
  bool AwaitAsked() {
    MutexLock lock(mutex_);
    return changed_.WaitFor(lock, absl::Seconds(20),
                            [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return asked_; });
  }
  void Open() {
    const MutexLock lock(mutex_);
    open_ = true;
    changed_.NotifyAll();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool asked_ ABSL_GUARDED_BY(mutex_) = false;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
};

TEST(UpdateFeeds, AFollowerDoesNotWaitWhileAnotherReadsALargeExperiment) {
  SlowClient client;
  UpdateFeeds feeds(&client, RealClock());
  std::thread first([&] { EXPECT_TRUE(feeds.After({"a", "one"}, 0).ok()); });
  EXPECT_TRUE(client.AwaitAsked());
  const auto update = feeds.After({"a", "one"}, 0);
  EXPECT_TRUE(update.ok());
  EXPECT_EQ(update->text, "");
  client.Open();
  first.join();
}

TEST_F(UpdatesTest, TheEndOfTheExperimentIsTheEndOfTheStream) {
  http_.Create("a", "one");
  HttpReply reply = http_.Get(absl::StrCat(kOne, "/updates"));
  ASSERT_EQ(reply.status, 200);
  EXPECT_TRUE(reply.source->Next().ok());
  EXPECT_EQ(http_.Send("DELETE", kOne, "").status, 204);
  EXPECT_THAT(ReadUntil(reply, "deleted"), HasSubstr("event: deleted\ndata: {}\n\n"));
  EXPECT_EQ(http_.Get(absl::StrCat(kOne, "/updates")).status, 404);
}

TEST_F(UpdatesTest, AnEventHasABoundedNumberOfRows) {
  ASSERT_EQ(UpdateFeeds::kMaxRows, 500);
  const int64_t before = http_.client().Revision().value();
  Import("one", 505);
  HttpReply reply = http_.Get(absl::StrCat(kOne, "/updates?after=", before));
  const auto events = EventsIn(ReadUntil(reply, "update"), "update");
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events[0]["rows"].size(), 500u);
  EXPECT_EQ(events[0]["more"], true);
}

// ---- bounds ------------------------------------------------------------------------------------

TEST_F(HttpChartsTest, ColumnsThatAreBeingSentAreCounted) {
  Import("one", 5000);
  Quotas quotas;
  HttpContext context = http_.context();
  context.quotas = &quotas;
  Router router(context);
  const auto get = [&](const std::string& path) {
    HttpRequest request{.method = "GET", .target = kOne + path, .peer = "127.0.0.1"};
    request.headers.emplace_back("authorization", absl::StrCat("Bearer ", kAdminToken));
    return router.Handle(request);
  };
  {
    const HttpReply columns = get("/columns");
    ASSERT_NE(columns.source, nullptr);
    EXPECT_GT(quotas.charts.held(), 5000 * 12 * 8);
    const HttpReply updates = get("/updates");
    EXPECT_EQ(quotas.streams.held(), 1);
  }
  EXPECT_EQ(quotas.charts.held(), 0) << "a reply that has gone holds nothing";
  EXPECT_EQ(quotas.streams.held(), 0);
  auto share =
      Quota::Acquire(&quotas.charts, HexSha256(absl::StrCat("Bearer ", kAdminToken)), 256 << 20);
  ASSERT_TRUE(share.ok());
  const HttpReply refused = get("/columns");
  EXPECT_EQ(refused.status, 429);
  EXPECT_THAT(refused.body, HasSubstr("bytes of columns being sent"));
}

}  // namespace
}  // namespace shirabe::service
