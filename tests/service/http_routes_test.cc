// Every route, with good and bad input, without sockets.
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "base/rate_limits.h"
#include "experiment/submission.h"
#include "service/http/route_table.h"
#include "tests/service/http_fixture.h"

namespace shirabe::service {
namespace {

using testing::HasSubstr;
using testing::Not;
using view::Json;

constexpr char kHttpRoutesA[] = "/api/v1/namespaces/a/experiments";

class HttpRoutesTest : public testing::Test {
 protected:
  std::string HeaderOf(const HttpReply& reply, const std::string& name) {
    for (const auto& [key, value] : reply.headers) {
      if (key == name) return value;
    }
    return "";
  }
  HttpReply Put(const std::string& target, const std::string& body, HttpHeaders headers) {
    HttpRequest request{.method = "PUT", .target = target, .body = body};
    request.headers = std::move(headers);
    request.headers.emplace_back("authorization", absl::StrCat("Bearer ", kAdminToken));
    return http_.Handle(request);
  }

  HttpFixture http_;
};

TEST_F(HttpRoutesTest, CreatesGetsAndDeletesAnExperiment) {
  HttpReply made = http_.Send("POST", kHttpRoutesA, AskedSpec("one"));
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(HeaderOf(made, "Location"), absl::StrCat(kHttpRoutesA, "/one"));
  EXPECT_EQ(HeaderOf(made, "ETag"), "\"1\"");
  const Json got = BodyOf(http_.Get(absl::StrCat(kHttpRoutesA, "/one")));
  EXPECT_EQ(got["metadata"]["namespace"], "a");
  EXPECT_EQ(got["spec"]["maxTrialCount"], 6);
  EXPECT_EQ(http_.Send("POST", kHttpRoutesA, AskedSpec("one")).status, 409);
  EXPECT_EQ(http_.Send("DELETE", absl::StrCat(kHttpRoutesA, "/one"), "").status, 204);
  EXPECT_EQ(http_.Get(absl::StrCat(kHttpRoutesA, "/one")).status, 404);
  EXPECT_EQ(http_.Send("DELETE", absl::StrCat(kHttpRoutesA, "/one"), "").status, 404);
}

TEST_F(HttpRoutesTest, SaysEveryMistakeOfAnExperimentWithItsPlace) {
  const std::string bad =
      absl::StrReplaceAll(AskedSpec("one"), {{"maxTrialCount", "maxTrials"}, {"random", "randm"}});
  const HttpReply reply = http_.Send("POST", kHttpRoutesA, bad);
  ASSERT_EQ(reply.status, 400);
  const Json body = BodyOf(reply);
  EXPECT_EQ(body["code"], "INVALID_ARGUMENT");
  ASSERT_EQ(body["details"].size(), 2u) << reply.body;
  EXPECT_EQ(body["details"][1]["field"], "spec.maxTrials");
  EXPECT_EQ(body["details"][1]["line"], 7);
  EXPECT_THAT(body["details"][1]["reason"].get<std::string>(), HasSubstr("maxTrialCount"));
  const Json checked = BodyOf(http_.Send("POST", "/api/v1/validate", bad));
  EXPECT_EQ(checked["valid"], false);
  EXPECT_EQ(checked["findings"].size(), 2u);
  EXPECT_EQ(BodyOf(http_.Send("POST", "/api/v1/validate", AskedSpec("one")))["valid"], true);
  EXPECT_EQ(http_.Send("POST", kHttpRoutesA, "").status, 400);
  EXPECT_EQ(http_.Send("POST", kHttpRoutesA, "{").status, 400);
  EXPECT_EQ(http_.Send("POST", kHttpRoutesA, AskedSpec("one") + "---\n" + AskedSpec("two")).status,
            400);
}

TEST_F(HttpRoutesTest, TakesJsonAsWellAsYaml) {
  http_.Create("b", "one");
  Json tree = BodyOf(http_.Get("/api/v1/namespaces/b/experiments/one"));
  tree["metadata"].erase("namespace");
  EXPECT_EQ(http_.Send("POST", kHttpRoutesA, tree.dump()).status, 201);
  tree["metadata"]["namespace"] = "b";
  const HttpReply other = http_.Send("POST", kHttpRoutesA, tree.dump());
  EXPECT_EQ(other.status, 400);
  EXPECT_THAT(other.body, HasSubstr("metadata.namespace is b, but the URL says a"));
}

TEST_F(HttpRoutesTest, AppliesOnlyWhatMayChangeAndOnlyIfItIsStillTheSame) {
  const std::string one = absl::StrCat(kHttpRoutesA, "/one");
  EXPECT_EQ(Put(one, AskedSpec("one"), {{"if-match", "\"1\""}}).status, 412);
  EXPECT_EQ(Put(one, AskedSpec("one"), {{"if-none-match", "*"}}).status, 201);
  EXPECT_EQ(Put(one, AskedSpec("one"), {{"if-none-match", "*"}}).status, 412);
  EXPECT_EQ(Put(one, AskedSpec("one"), {}).status, 200);
  const HttpReply later = Put(one, AskedSpec("one", 9), {{"if-match", "\"1\""}});
  EXPECT_EQ(later.status, 202);
  for (const auto& [name, value] : later.headers) EXPECT_NE(name, "ETag") << value << " is old";
  EXPECT_EQ(Put(one, AskedSpec("one", 10), {{"if-match", "\"7\""}}).status, 412);
  EXPECT_EQ(Put(one, AskedSpec("one", 10), {{"if-match", "1"}}).status, 400);
  EXPECT_EQ(Put(one, AskedSpec("two"), {}).status, 400);
  const std::string other = absl::StrReplaceAll(AskedSpec("one"), {{"minimize", "maximize"}});
  const HttpReply refused = Put(one, other, {});
  EXPECT_EQ(refused.status, 409);
  EXPECT_THAT(refused.body, HasSubstr("objective"));
}

TEST_F(HttpRoutesTest, PatchesCounts) {
  http_.Create("a", "one");
  http_.RunTrials("a", "one", 1);  // so that somebody owns it, who makes the changes
  const std::string one = absl::StrCat(kHttpRoutesA, "/one");
  EXPECT_EQ(http_.Send("PATCH", one, R"({"spec": {"maxTrialCount": 8}})").status, 202);
  EXPECT_EQ(http_.Send("PATCH", one, R"({"spec": {"objective": {"goal": 0.1}}})").status, 202);
  EXPECT_EQ(http_.Send("PATCH", one, R"({"spec": {"maxTrialCount": 8}})").status, 200);
  EXPECT_EQ(http_.Send("PATCH", one, R"({"spec": {"maxTrialCount": 0}})").status, 400);
  EXPECT_EQ(http_.Send("PATCH", one, R"({"spec": {"maxTrials": 6}})").status, 400);
  EXPECT_EQ(http_.Send("PATCH", one, R"({"metadata": {"name": "two"}})").status, 400);
  const auto labels = http_.Send("PATCH", one, R"({"metadata": {"labels": {"a": "2"}}})");
  EXPECT_EQ(labels.status, 400);
  EXPECT_THAT(labels.body, HasSubstr("metadata.labels"));
  EXPECT_EQ(http_.Send("PATCH", one, R"({"metadata": {"annotations": {"a": "2"}}})").status, 400);
  EXPECT_EQ(http_.Send("PATCH", one, "[1]").status, 400);
  EXPECT_EQ(http_.Send("PATCH", one, R"({"spec": {"algorithm": {"algorithmName": "tpe"}}})").status,
            409);
}

TEST_F(HttpRoutesTest, OfTwoPatchesNeitherUndoesTheOther) {
  http_.Create("a", "one");
  http_.RunTrials("a", "one", 1);
  const std::string one = absl::StrCat(kHttpRoutesA, "/one");
  {
    const auto patch = [&](const char* body) {
      return std::jthread([&, body] { EXPECT_EQ(http_.Send("PATCH", one, body).status, 202); });
    };
    const std::jthread first = patch(R"({"spec": {"maxTrialCount": 8}})");
    const std::jthread second = patch(R"({"spec": {"maxFailedTrialCount": 4}})");
    const std::jthread third = patch(R"({"spec": {"objective": {"goal": 0.001}}})");
  }
  for (int i = 0; i < 500 && HeaderOf(http_.Get(one), "ETag") != "\"4\""; ++i) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  const Json spec = BodyOf(http_.Get(one))["spec"];
  EXPECT_EQ(spec["maxTrialCount"], 8);
  EXPECT_EQ(spec["maxFailedTrialCount"], 4);
  EXPECT_EQ(spec["objective"]["goal"], 0.001);
}

TEST_F(HttpRoutesTest, DeletesOnlyWhatIsStillTheSame) {
  http_.Create("a", "one");
  HttpRequest request{.method = "DELETE", .target = absl::StrCat(kHttpRoutesA, "/one")};
  request.headers = {{"authorization", absl::StrCat("Bearer ", kAdminToken)},
                     {"if-match", "\"7\""}};
  EXPECT_EQ(http_.Handle(request).status, 412);
  request.headers[1].second = "1";
  EXPECT_EQ(http_.Handle(request).status, 400);
  request.headers[1].second = "\"1\"";
  EXPECT_EQ(http_.Handle(request).status, 204);
  EXPECT_EQ(http_.Handle(request).status, 412) << "it is gone";
}

TEST_F(HttpRoutesTest, ListsInPagesFilteredAndSorted) {
  for (const char* name : {"one", "two", "three"}) http_.Create("a", name);
  http_.Create("b", "four");
  EXPECT_EQ(BodyOf(http_.Get("/api/v1/experiments"))["items"].size(), 4u);
  const Json first = BodyOf(http_.Get(absl::StrCat(kHttpRoutesA, "?pageSize=2")));
  ASSERT_EQ(first["items"].size(), 2u);
  const Json rest = BodyOf(http_.Get(absl::StrCat(
      kHttpRoutesA, "?pageSize=2&pageToken=", first["nextPageToken"].get<std::string>())));
  ASSERT_EQ(rest["items"].size(), 1u);
  EXPECT_FALSE(rest.contains("nextPageToken"));
  const Json named = BodyOf(http_.Get(absl::StrCat(kHttpRoutesA, "?filter=name%3Dtwo")));
  ASSERT_EQ(named["items"].size(), 1u);
  EXPECT_EQ(named["items"][0]["metadata"]["name"], "two");
  const Json sorted = BodyOf(http_.Get(absl::StrCat(kHttpRoutesA, "?sort=~name")));
  EXPECT_EQ(sorted["items"][0]["metadata"]["name"], "two");
  for (const char* bad : {"?filter=nam%3Dx", "?sort=nam", "?pageSize=0", "?pageSize=x",
                          "?pageToken=x", "?pagesize=2", "?pageSize=2&pageSize=3", "?x=%zz"}) {
    EXPECT_EQ(http_.Get(absl::StrCat(kHttpRoutesA, bad)).status, 400) << bad;
  }
  EXPECT_THAT(http_.Get(absl::StrCat(kHttpRoutesA, "?pagesize=2")).body, HasSubstr("pageSize"));
}

TEST_F(HttpRoutesTest, ShowsTrialsAndWhatBelongsToThem) {
  http_.Create("a", "one");
  http_.RunTrials("a", "one", 3);
  const std::string trials = absl::StrCat(kHttpRoutesA, "/one/trials");
  const Json list = BodyOf(http_.Get(trials));
  ASSERT_EQ(list["items"].size(), 3u);
  EXPECT_GT(list["revision"], 0);
  EXPECT_EQ(BodyOf(http_.Get(trials + "?pageSize=2"))["nextPageToken"], "p2");
  EXPECT_EQ(BodyOf(http_.Get(trials + "?pageSize=2&pageToken=p2"))["items"].size(), 1u);
  const Json best = BodyOf(http_.Get(trials + "?sort=objective&pageSize=1"));
  EXPECT_EQ(best["items"][0]["status"]["shirabe"]["number"], 3);
  EXPECT_EQ(BodyOf(http_.Get(trials + "?filter=loss%3C0.4"))["items"].size(), 1u);
  EXPECT_EQ(BodyOf(http_.Get(trials + "/2"))["metadata"]["name"], "one-2");
  EXPECT_EQ(BodyOf(http_.Get(trials + "/2/attempts"))["items"].size(), 1u);
  EXPECT_EQ(BodyOf(http_.Get(absl::StrCat(kHttpRoutesA, "/one/attempts")))["items"].size(), 3u);
  EXPECT_EQ(BodyOf(http_.Get(absl::StrCat(kHttpRoutesA, "/one/attempts?open")))["items"].size(),
            0u);
  const Json rows = BodyOf(http_.Get(trials + "/2/observations?metric=loss"));
  ASSERT_EQ(rows["items"].size(), 1u);
  EXPECT_EQ(rows["items"][0]["value"], 0.5);
  EXPECT_EQ(BodyOf(http_.Get(trials + "/2/checkpoints"))["items"].size(), 0u);
  EXPECT_EQ(http_.Get(trials + "/2/events").status, 200);
  EXPECT_EQ(http_.Get(absl::StrCat(kHttpRoutesA, "/one/events")).status, 200);
  for (const char* missing : {"/9", "/9/attempts", "/9/observations", "/9/checkpoints",
                              "/9/attempts/1/log", "/1/attempts/7/log"}) {
    EXPECT_EQ(http_.Get(trials + missing).status, 404) << missing;
  }
  for (const char* bad : {"/0", "/x", "/-1", "/99999999999999999999"}) {
    EXPECT_EQ(http_.Get(trials + bad).status, 400) << bad;
  }
}

TEST_F(HttpRoutesTest, WhatFollowsNothingHasNoLog) {
  http_.Create("a", "one");
  const std::string log = absl::StrCat(kHttpRoutesA, "/one/on-success/attempts/1/log");
  const HttpReply none = http_.Get(log);
  EXPECT_EQ(none.status, 404);
  EXPECT_THAT(none.body, ::testing::HasSubstr("no spec.shirabe.onSuccess"));
  EXPECT_EQ(http_.Get(log + "?follow=true").status, 404);
  EXPECT_EQ(http_.Get(absl::StrCat(kHttpRoutesA, "/one/on-success/attempts/0/log")).status, 400);
  EXPECT_EQ(http_.Get(absl::StrCat(kHttpRoutesA, "/two/on-success/attempts/1/log")).status, 404);
}

TEST_F(HttpRoutesTest, AsksAndTells) {
  http_.Create("a", "one");
  const std::string one = absl::StrCat(kHttpRoutesA, "/one");
  const Json asked = BodyOf(http_.Send("POST", one + ":ask", R"({"caller": "w"})"));
  ASSERT_EQ(asked["ended"], false);
  EXPECT_EQ(asked["trial"]["metadata"]["name"], "one-1");
  EXPECT_TRUE(asked["parameters"]["x"].is_number());
  EXPECT_TRUE(asked["parameters"]["opt"].is_string());
  const Json again = BodyOf(http_.Send("POST", one + ":ask", R"({"caller": "w"})"));
  EXPECT_EQ(again["token"], asked["token"]);
  const std::string tell = one + "/trials/1:tell";
  EXPECT_EQ(http_.Send("POST", tell, R"({"metrics": {"loss": 0.5}, "step": 1})").status, 200);
  // As long as a body may be, which is more than a file of YAML.
  std::string curve;
  for (int step = 2; step < 9'000; ++step) {
    absl::StrAppend(&curve, curve.empty() ? "" : ",", std::string(120, ' '),
                    "{\"metrics\": {\"loss\": 0.5}, \"step\": ", step, "}");
  }
  ASSERT_GT(curve.size(), 1'300'000);
  EXPECT_EQ(http_.Send("POST", tell, "{\"points\": [" + curve + "]}").status, 200);
  EXPECT_EQ(
      http_.Send("POST", tell, R"({"points": [{"metrics": {"loss": "NaN"}, "step": 2}]})").status,
      200);
  const Json end = {
      {"end", "completed"}, {"metrics", {{"loss", 0.25}}}, {"step", 3}, {"token", asked["token"]}};
  EXPECT_EQ(http_.Send("POST", tell, end.dump()).status, 200);
  EXPECT_EQ(http_.Send("POST", tell, end.dump()).status, 200);
  EXPECT_EQ(BodyOf(http_.Get(one + "/trials/1"))["status"]["shirabe"]["phase"], "Succeeded");
  EXPECT_EQ(http_.Send("POST", tell, R"({"end": "failed"})").status, 409);
  for (const char* bad : {"{}", R"({"metrics": {"loss": "x"}})", R"({"metrics": {"lossy": 1}})",
                          R"({"metric": {"loss": 1}})", R"({"end": "done"})",
                          R"({"metrics": {"loss": 1}, "token": "xyz"})", "[]", "{",
                          R"({"metrics": {"loss": 1}, "step": -1})"}) {
    EXPECT_EQ(http_.Send("POST", tell, bad).status, 400) << bad;
  }
  EXPECT_EQ(http_.Send("POST", one + ":ask", "{}").status, 400);
  EXPECT_EQ(http_.Send("POST", one + ":ask", R"({"caller": "w", "waitSeconds": 61})").status, 400);
  EXPECT_EQ(http_.Send("POST", one + "/trials/9:tell", R"({"metrics": {"loss": 1}})").status, 404);
}

TEST_F(HttpRoutesTest, ATrialMayTellWhatIsItsOwnAndNothingElse) {
  http_.Create("a", "one");
  const std::string one = absl::StrCat(kHttpRoutesA, "/one");
  const Json first = BodyOf(http_.Send("POST", one + ":ask", R"({"caller": "v"})"));
  const Json second = BodyOf(http_.Send("POST", one + ":ask", R"({"caller": "w"})"));
  const std::string token = first["token"];
  const char* metric = R"({"metrics": {"loss": 0.5}, "step": 1})";
  EXPECT_EQ(http_.Send("POST", one + "/trials/1:tell", metric, token).status, 200);
  EXPECT_EQ(http_.Send("POST", one + "/trials/2:tell", metric, token).status, 403);
  EXPECT_EQ(http_.Get(one + "/trials/1", token).status, 200);
  EXPECT_EQ(http_.Get(one + "/trials/2", token).status, 403);
  EXPECT_EQ(http_.Get(one + "/trials", token).status, 403);
  EXPECT_EQ(http_.Get(one + "/trials/1/observations", token).status, 200);
  EXPECT_EQ(http_.Get("/api/v1/watch", token).status, 403);
}

TEST_F(HttpRoutesTest, NotesWhatIsAskedOfTheOwner) {
  http_.Create("a", "one");
  http_.RunTrials("a", "one", 1);
  EXPECT_EQ(http_.Send("POST", absl::StrCat(kHttpRoutesA, "/one/trials/1:retry"), "").status, 202);
  EXPECT_EQ(http_.Send("POST", absl::StrCat(kHttpRoutesA, "/one/trials/9:retry"), "").status, 404);
  for (const char* verb : {":pause", ":resume", ":scale", ":stop", ":cancel"}) {
    const bool scale = std::string(verb) == ":scale";
    const HttpReply reply = http_.Send("POST", absl::StrCat(kHttpRoutesA, "/one", verb),
                                       scale ? R"({"maxTrialCount": 9})" : "");
    EXPECT_EQ(reply.status, 202) << verb << reply.body;
    EXPECT_THAT(BodyOf(reply)["message"].get<std::string>(), HasSubstr("accepted"));
    EXPECT_EQ(http_
                  .Send("POST", absl::StrCat(kHttpRoutesA, "/none", verb),
                        scale ? R"({"maxTrialCount": 9})" : "")
                  .status,
              404);
  }
  for (const char* bad : {"", "{}", R"({"maxTrialCount": 0})", R"({"maxTrialCount": "many"})"}) {
    EXPECT_EQ(http_.Send("POST", absl::StrCat(kHttpRoutesA, "/one:scale"), bad).status, 400) << bad;
  }
}

TEST_F(HttpRoutesTest, SuggestsWithoutStoring) {
  http_.Create("a", "one");
  const Json stored = BodyOf(http_.Get(absl::StrCat(kHttpRoutesA, "/one/suggestions?count=3")));
  EXPECT_EQ(stored["items"].size(), 3u);
  const Json fresh = BodyOf(http_.Send("POST", "/api/v1/suggest?count=3", AskedSpec("one")));
  EXPECT_EQ(fresh["items"].size(), 3u);
  EXPECT_EQ(BodyOf(http_.Get(absl::StrCat(kHttpRoutesA, "/one/trials")))["items"].size(), 0u);
  EXPECT_EQ(http_.Get(absl::StrCat(kHttpRoutesA, "/one/suggestions?count=0")).status, 400);
}

TEST_F(HttpRoutesTest, ExportsEveryTrialOnce) {
  http_.Create("a", "one", 300);
  http_.RunTrials("a", "one", 300);
  HttpReply csv = http_.Get(absl::StrCat(kHttpRoutesA, "/one/export"));
  ASSERT_EQ(csv.status, 200);
  const std::string text = Drain(csv);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 301);
  EXPECT_THAT(text, HasSubstr("trial,state,objective"));
  HttpReply lines = http_.Get(absl::StrCat(kHttpRoutesA, "/one/export?format=jsonl"));
  const std::string json = Drain(lines);
  EXPECT_EQ(std::count(json.begin(), json.end(), '\n'), 300);
  EXPECT_EQ(http_.Get(absl::StrCat(kHttpRoutesA, "/one/export?format=xml")).status, 400);
  EXPECT_EQ(http_.Get(absl::StrCat(kHttpRoutesA, "/none/export")).status, 404);
}

TEST_F(HttpRoutesTest, KnowsItsVariants) {
  EXPECT_GT(BodyOf(http_.Get("/api/v1/algorithms"))["items"].size(), 5u);
  EXPECT_EQ(BodyOf(http_.Get("/api/v1/algorithms/tpe"))["name"], "tpe");
  EXPECT_GT(BodyOf(http_.Get("/api/v1/stoppers"))["items"].size(), 1u);
  const HttpReply typo = http_.Get("/api/v1/stoppers/medianstp");
  EXPECT_EQ(typo.status, 404);
  EXPECT_THAT(typo.body, HasSubstr("medianstop"));
}

TEST_F(HttpRoutesTest, AnswersWithoutATokenWhatNeedsNone) {
  EXPECT_EQ(http_.Get("/livez", "").body, "ok\n");
  EXPECT_EQ(http_.Get("/readyz", "").body, "ok\n");
  EXPECT_THAT(http_.Get("/readyz?verbose", "").body, HasSubstr("[+]store ok"));
  EXPECT_EQ(http_.Get("/version", "").status, 200);
  EXPECT_EQ(http_.Get("/openapi.json", "").status, 200);
  EXPECT_THAT(http_.Get("/metrics").body, HasSubstr("shirabe_build_info"));
}

TEST_F(HttpRoutesTest, SaysWhatWasProbablyMeant) {
  const HttpReply typo = http_.Get("/api/v1/namespaces/a/experimnts");
  EXPECT_EQ(typo.status, 404);
  EXPECT_THAT(typo.body, HasSubstr("did you mean \\\"experiments\\\""));
  EXPECT_THAT(http_.Send("POST", absl::StrCat(kHttpRoutesA, "/one:pauze"), "").body,
              HasSubstr(":pause"));
  EXPECT_THAT(http_.Get("/nothing/like/it").body, HasSubstr("/openapi.json"));
  const HttpReply method = http_.Send("PUT", kHttpRoutesA, "");
  EXPECT_EQ(method.status, 405);
  EXPECT_EQ(HeaderOf(method, "Allow"), "GET, HEAD, OPTIONS, POST");
  EXPECT_EQ(http_.Send("OPTIONS", kHttpRoutesA, "", "").status, 204);
}

TEST_F(HttpRoutesTest, RefusesPagesOfOtherSites) {
  HttpRequest request{.method = "GET", .target = "/version"};
  request.headers = {{"host", "127.0.0.1:80"}, {"origin", "http://evil.example"}};
  EXPECT_EQ(http_.Handle(request).status, 403);
  request.headers[1].second = "http://127.0.0.1:80";
  EXPECT_EQ(http_.Handle(request).status, 200);
  HttpContext open = http_.context();
  open.loopback_only = true;
  Router router(open);
  request.headers = {{"host", "evil.example"}};
  EXPECT_EQ(router.Handle(request).status, 403);
  request.headers = {{"host", "localhost:8080"}};
  EXPECT_EQ(router.Handle(request).status, 200);
}

TEST_F(HttpRoutesTest, WantsABodyOfAKnownType) {
  HttpRequest request{.method = "POST", .target = kHttpRoutesA, .body = AskedSpec("one")};
  request.headers = {{"authorization", absl::StrCat("Bearer ", kAdminToken)},
                     {"content-type", "application/x-www-form-urlencoded"}};
  const HttpReply reply = http_.Handle(request);
  EXPECT_EQ(reply.status, 415);
  EXPECT_THAT(reply.body, HasSubstr("--data-binary"));
  request.headers[1].second = "application/yaml; charset=utf-8";
  EXPECT_EQ(http_.Handle(request).status, 201);
  EXPECT_EQ(http_.Send("GET", kHttpRoutesA, "{\"a\": 1}").status, 400);
}

TEST_F(HttpRoutesTest, LimitsHowOftenOneCallerAsks) {
  ManualClock clock;
  HttpContext context = http_.context();
  context.clock = &clock;
  RateLimiter limiter({.requests_per_second = 10, .burst = 3}, context.clock);
  context.limiter = &limiter;
  Router router(context);
  const auto ask = [&](const char* token) {
    HttpRequest request{.method = "GET", .target = "/api/v1/algorithms"};
    request.headers = {{"authorization", absl::StrCat("Bearer ", token)}};
    return router.Handle(request).status;
  };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ask(kTeamToken), 200);
  EXPECT_EQ(ask(kTeamToken), 429);
  EXPECT_EQ(ask(kOtherToken), 200);
  clock.Advance(absl::Milliseconds(100));
  EXPECT_EQ(ask(kTeamToken), 200);
  EXPECT_EQ(ask(kTeamToken), 429);
}

TEST_F(HttpRoutesTest, CountsWhatItAnswers) {
  http_.Get("/version");
  http_.Get("/nothing");
  EXPECT_EQ(http_.metrics().Value("shirabe_http_requests_total", {"GET", "/version", "200"}), 1);
  EXPECT_EQ(http_.metrics().Value("shirabe_http_requests_total", {"none", "none", "404"}), 1);
  EXPECT_EQ(http_.metrics().Value("shirabe_http_request_duration_seconds", {"GET", "/version"}), 1);
}

}  // namespace
}  // namespace shirabe::service
