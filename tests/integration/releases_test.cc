// What earlier releases left on disk is opened by this one: databases, journals and checkpoints,
// and what verbs and routes say about them. Fields may be added; none may go, or mean something
// else. The fixtures under tests/testdata/releases are made by make.py there, once for a release.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "db/store.h"
#include "sidecar/pod_config.h"
#include "tests/db/postgres_server.h"
#include "tests/integration/cli.h"
#include "tests/integration/http_wire.h"
#include "tests/support/paths.h"
#include "trial/pod/pod_build.h"
#include "trial/pod/pod_labels.h"

namespace shirabe::cmd {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const std::string kReleases = SourceDir() + "/tests/testdata/releases/";

// What is another one each time it is asked.
bool Varies(const std::string& key) {
  static const std::set<std::string> kKeys = {
      "resourceVersion", "lastReconcileTime", "version", "revision", "holder", "seconds", "log"};
  return kKeys.count(key) > 0;
}

// Where `now` lacks, or has otherwise, what was there `before`; "" = nowhere. Lists may have more
// elements than before, fields may have been added.
std::string Lost(const json& before, const json& now, const std::string& path) {
  if (before.is_object() && now.is_object()) {
    for (const auto& [key, value] : before.items()) {
      if (Varies(key)) continue;
      if (!now.contains(key)) return path + "." + key + " is gone";
      const std::string lost = Lost(value, now[key], path + "." + key);
      if (!lost.empty()) return lost;
    }
    return "";
  }
  if (before.is_array() && now.is_array()) {
    const bool same_size = before.size() == now.size();
    size_t at = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      std::string lost = "it is gone";
      while (at < now.size() && !lost.empty()) {
        lost = Lost(before[i], now[at++], path + "[" + std::to_string(i) + "]");
        if (same_size) break;  // nothing was added: each is what it was
      }
      if (!lost.empty()) return path + "[" + std::to_string(i) + "]: " + lost;
    }
    return "";
  }
  return before == now ? "" : path + " was " + before.dump() + " and is " + now.dump();
}

class ReleaseTest : public testing::TestWithParam<std::string> {
 protected:
  ReleaseTest() {
    const std::string command =
        "tar -xzf " + Fixture("home.tar.gz") + " --no-same-owner -C " + cli_.Path("");
    EXPECT_EQ(std::system(command.c_str()), 0);
  }
  std::string Fixture(const std::string& name) const { return kReleases + GetParam() + "/" + name; }
  json ReadJson(const std::string& name) const {
    return json::parse(*ReadFile(Fixture(name)), nullptr, /*allow_exceptions=*/false);
  }

  Cli cli_;
};

TEST_P(ReleaseTest, VerbsSayWhatTheySaidThen) {
  for (const json& then : ReadJson("verbs.json")) {
    const Outcome now = cli_.Run(absl::StrSplit(then["words"].get<std::string>(), ' '));
    EXPECT_EQ(now.code, then["code"]) << then["words"] << now.err;
    const json parsed = json::parse(now.out, nullptr, /*allow_exceptions=*/false);
    EXPECT_EQ(Lost(then["out"], parsed.is_discarded() ? json(now.out) : parsed, ""), "")
        << then["words"];
  }
}

TEST_P(ReleaseTest, RoutesSayWhatTheySaidThen) {
  const auto server = cli_.Start({"serve", "--insecure", "--http", "127.0.0.1:0", "--grpc",
                                  "127.0.0.1:0", "--ready-file", cli_.Path("ready")});
  ASSERT_TRUE(Eventually([&] { return cli_.Exists("ready"); })) << server->Err();
  const std::string address = json::parse(*ReadFile(cli_.Path("ready")))["http"].get<std::string>();
  const int port = std::stoi(address.substr(address.rfind(':') + 1));
  for (const json& then : ReadJson("routes.json")) {
    service::Wire wire(port);
    wire.Send(service::RequestText("GET " + then["path"].get<std::string>(), ""));
    const service::WireReply now = wire.ReadReply();
    EXPECT_EQ(now.status, then["status"]) << then["path"] << now.body;
    const json parsed = json::parse(now.body, nullptr, /*allow_exceptions=*/false);
    if (then["status"] != 200 || !then["body"].is_object()) continue;  // words, and streams
    EXPECT_EQ(Lost(then["body"], parsed.is_discarded() ? json(now.body) : parsed, ""), "")
        << then["path"];
  }
}

TEST_P(ReleaseTest, AnInterruptedExperimentGoesOnFromItsCheckpoints) {
  const Outcome run = cli_.Run({"run", "-f", Fixture("cut.yaml")});
  EXPECT_EQ(run.code, 0) << run.err;
  const json attempts = cli_.Json({"get", "attempts", "cut-1", "-o", "json"})["items"];
  ASSERT_EQ(attempts.size(), 2) << attempts;
  EXPECT_GE(attempts[1].value("resumedFromStep", 0), 2) << attempts;
}

TEST_P(ReleaseTest, ATrialThatWasAskedForIsToldTo) {
  const json asked = cli_.Json({"ask", "asked", "-n", "team", "--caller", "b", "-o", "json"});
  EXPECT_THAT(asked.dump(), HasSubstr("asked-3"));
  EXPECT_EQ(cli_.Run({"tell", "asked-3", "loss=0.125", "-n", "team"}).code, 0);
  EXPECT_THAT(cli_.Run({"best", "asked", "-n", "team", "-o", "json"}).out, HasSubstr("0.125"));
}

// While a controller is replaced, pods of the one before run on, and their containers begin anew.
TEST_P(ReleaseTest, ThePodsOfAnOldControllerAreKnown) {
  const json job = ReadJson("job.json");
  EXPECT_EQ(trial::KeyOf(job), (AttemptKey{{{"team", "spot"}, 3}, 2}));
  EXPECT_NE(trial::AttemptIdOf(job), "");
  int read = 0;
  for (const json& container : job["spec"]["template"]["spec"]["initContainers"]) {
    for (const json& variable : container["env"]) {
      if (variable["name"] != "SHIRABE_POD") continue;
      const std::string text =
          absl::StrReplaceAll(variable["value"].get<std::string>(), {{"$$", "$"}});
      const auto pod = sidecar::ReadPod(text, "/shirabe");
      ASSERT_TRUE(pod.ok()) << pod.status();
      EXPECT_EQ(pod->config.trial(), 3);
      read += pod->config.token() == "0123456789abcdef" || container["name"] == "shirabe-init";
    }
  }
  EXPECT_EQ(read, 2);
}

TEST_P(ReleaseTest, ADatabaseOfPostgresOpens) {
  if (db::SharedPostgres() == nullptr) {
    GTEST_SKIP() << "there is no PostgreSQL here (package postgresql-15)";
  }
  const std::string database = db::SharedPostgres()->NewDatabase();
  auto connection = db::SharedPostgres()->Connect(database);
  ASSERT_TRUE(connection.ok()) << connection.status();
  const Status restored = (*connection)->Execute(*ReadFile(Fixture("postgres.sql")));
  ASSERT_TRUE(restored.ok()) << restored;
  auto store = db::Open("postgres:" + db::SharedPostgres()->Address(database));
  ASSERT_TRUE(store.ok()) << store.status();
  const auto experiments = (*store)->ListExperiments("");
  ASSERT_TRUE(experiments.ok()) << experiments.status();
  EXPECT_EQ(experiments->size(), 5);
  const TrialKey first{{"default", "spot"}, 1};
  EXPECT_EQ((*store)->GetTrial(first)->record.phase(), v1::TRIAL_SUCCEEDED);
  EXPECT_FALSE((*store)->ListObservations({.trial = first})->empty());
  EXPECT_FALSE((*store)->ListCheckpoints(first)->empty());
  EXPECT_FALSE((*store)->ListEvents({.experiment = first.experiment})->empty());
}

INSTANTIATE_TEST_SUITE_P(All, ReleaseTest, testing::Values("0.1"), [](const auto& info) {
  return absl::StrReplaceAll(info.param, {{".", "_"}});
});

}  // namespace
}  // namespace shirabe::cmd
