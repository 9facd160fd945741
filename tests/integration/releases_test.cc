// What earlier releases left on disk is opened by this one: databases, journals and checkpoints,
// and what verbs and routes say about them. Fields may be added; none may go, or mean something
// else. The fixtures under tests/testdata/releases are made by make.py there, once for a release.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "db/maintenance.h"
#include "db/sqlite/sqlite_store.h"
#include "db/store.h"
#include "sidecar/pod_config.h"
#include "tests/db/postgres_server.h"
#include "tests/integration/cli.h"
#include "tests/integration/http_wire.h"
#include "tests/support/eventually.h"
#include "tests/support/paths.h"
#include "trial/pod/pod_build.h"
#include "trial/pod/pod_names.h"

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

// Settings that take more values than in 0.1, on purpose.
bool TakesMore(const json& setting) {
  static const std::set<std::string> kNames = {"sigma", "restart_strategy", "n_initial_points",
                                               "n_ei_candidates", "n_EI_candidates"};
  return setting.contains("name") && kNames.count(setting["name"].get<std::string>()) > 0;
}

// Whether what is said of a setting of an algorithm includes what was said `before`.
bool IsWiderSetting(const std::string& key, const json& before, const json& setting) {
  if (key == "help") return true;  // a sentence for people
  if (!TakesMore(setting)) return false;
  if (key == "values") return true;
  if ((key != "min" && key != "max") || !before.is_number()) return false;
  if (!setting.contains(key)) return true;  // any
  return key == "min" ? setting[key] <= before : setting[key] >= before;
}

// Where `now` lacks, or has otherwise, what was there `before`; "" = nowhere. Lists may have more
// elements than before, fields may have been added.
std::string Lost(const json& before, const json& now, const std::string& path) {
  if (before.is_object() && now.is_object()) {
    for (const auto& [key, value] : before.items()) {
      if (Varies(key)) continue;
      if (absl::StrContains(path, ".settings[") && IsWiderSetting(key, value, now)) continue;
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

template <typename Rows, typename Print>
void Append(const Rows& rows, const Print& print, std::vector<std::string>* all) {
  ASSERT_TRUE(rows.ok()) << rows.status();
  for (const auto& row : *rows) all->push_back(print(row));
}

// Each record of a store, in words, in order.
std::vector<std::string> Everything(db::Store& store) {
  std::vector<std::string> all;
  const auto message = [](const auto& record) { return record.DebugString(); };
  const auto row = [](const db::StoredObservation& stored) {
    return absl::StrCat(stored.trial, ".", stored.attempt, " ", stored.metric, "@", stored.step,
                        "=", stored.value, " ", absl::FormatTime(stored.time), stored.implicit_step,
                        stored.superseded);
  };
  const auto snapshot = *db::MaintenanceOf(store).TakeSnapshot();
  const auto names = snapshot->Names();
  Append(names, message, &all);
  // A page of each at a time, until there are none.
  const auto pages = [&](const auto& list, const auto& print) {
    db::SnapshotCursor cursor = {};
    for (size_t before = all.size() + 1; before != all.size();) {
      before = all.size();
      Append(list(&cursor), print, &all);
    }
  };
  for (const v1::Lease& name : *names) {
    const ExperimentKey key{name.namespace_(), name.experiment()};
    const auto experiment = snapshot->GetExperiment(key);
    if (!experiment.ok()) continue;  // deleted
    all.push_back(experiment->DebugString());
    pages([&](auto* at) { return snapshot->Trials(key, at); }, message);
    pages([&](auto* at) { return snapshot->Attempts(key, at); }, message);
    pages([&](auto* at) { return snapshot->Checkpoints(key, at); }, message);
    pages([&](auto* at) { return snapshot->Observations(key, at); }, row);
    pages([&](auto* at) { return snapshot->Events(key, at); }, message);
    pages([&](auto* at) { return snapshot->Intents(key, at); }, message);
  }
  return all;
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

// By a program of a later schema than today's: what it migrates has all records, and so has the
// copy that it makes of itself before, which today's program opens, backs up and goes on with.
TEST_P(ReleaseTest, AChangeOfTheSchemaLosesNothingAndLeavesACopyThatOpens) {
  const std::string path = cli_.state() + "/shirabe.db";
  const auto then = Everything(**db::OpenSqlite({.path = path}));
  EXPECT_GT(then.size(), 100);
  db::SchemaSteps later = db::CurrentSchema();
  later.push_back(
      "ALTER TABLE trial ADD COLUMN note TEXT; CREATE TABLE later(a INTEGER) STRICT;"
      " UPDATE trial SET note = 'seen'");
  std::string copy;
  {
    const auto migrated = db::OpenSqlite({.path = path, .schema = later});
    ASSERT_TRUE(migrated.ok()) << migrated.status();
    copy = absl::StrCat(path, ".schema-", db::CurrentSchema().size());
    EXPECT_THAT(db::MaintenanceOf(**migrated).OpeningNotice(), HasSubstr(copy));
    EXPECT_EQ(Everything(**migrated), then);
  }
  const Outcome newer = cli_.Run({"get", "exp"});
  EXPECT_NE(newer.code, 0) << "it reads what a later program has changed";
  EXPECT_THAT(newer.err, HasSubstr("schema"));
  EXPECT_EQ(Everything(**db::OpenSqlite({.path = copy})), then);
  // A backup of the copy, restored in the place of the migrated file.
  const std::string backup = cli_.Path("backup");
  const Outcome kept = cli_.Run({"backup", backup, "--db", "sqlite:" + copy});
  ASSERT_EQ(kept.code, 0) << kept.err;
  for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(path + end);
  const Outcome restored = cli_.Run({"restore", backup});
  ASSERT_EQ(restored.code, 0) << restored.err;
  for (const json& verb : ReadJson("verbs.json")) {
    const Outcome now = cli_.Run(absl::StrSplit(verb["words"].get<std::string>(), ' '));
    const json parsed = json::parse(now.out, nullptr, /*allow_exceptions=*/false);
    EXPECT_EQ(Lost(verb["out"], parsed.is_discarded() ? json(now.out) : parsed, ""), "")
        << verb["words"];
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

INSTANTIATE_TEST_SUITE_P(All, ReleaseTest, testing::Values("0.1"), [](const auto& test) {
  return absl::StrReplaceAll(test.param, {{".", "_"}});
});

}  // namespace
}  // namespace shirabe::cmd
