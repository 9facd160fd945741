// The verbs backup and restore, as the program itself runs them: beside a server that writes,
// killed at any moment, on a full disk, from one kind of store into another. And the experiments go
// on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/open_beneath.h"
#include "tests/db/postgres_server.h"
#include "tests/integration/cli.h"
#include "tests/support/eventually.h"
#include "tests/support/paths.h"
#include "tests/support/small_spec.h"

namespace shirabe::cmd {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

using Words = std::vector<std::string>;

constexpr char kBackupTrial[] = R"(
for step in 1 2 3 4 5; do echo "step=$step loss=$1"; sleep 0.01; done
)";

// What must hold of an experiment that has ended: numbers without gaps, one end each, as many as
// are counted, and the best is the best (I1, I3, I5).
void ExpectSound(const json& experiment, const json& trials) {
  const json& status = experiment["status"];
  ASSERT_EQ(static_cast<int>(trials.size()), status["trials"].get<int>()) << status;
  double best = HUGE_VAL;
  std::set<std::string> names;
  for (const json& trial : trials) {
    names.insert(trial["metadata"]["name"]);
    const json& conditions = trial["status"]["conditions"];
    const json& last = conditions.back();
    EXPECT_EQ(last["type"], "Succeeded") << trial;
    for (const json& metric : trial["status"]["observation"]["metrics"]) {
      if (metric["name"] == "loss")
        best = std::min(best, std::stod(metric["min"].get<std::string>()));
    }
  }
  EXPECT_EQ(names.size(), trials.size());
  for (const json& metric : status["currentOptimalTrial"]["observation"]["metrics"]) {
    if (metric["name"] != "loss") continue;
    EXPECT_EQ(std::stod(metric["latest"].get<std::string>()), best);
  }
}

class BackupTest : public testing::Test {
 protected:
  BackupTest() { cli_.Write("trial.sh", kBackupTrial); }

  std::unique_ptr<Running> Serve(Words more = {}) {
    const std::string ready = cli_.Path("ready" + std::to_string(++servers_));
    Words words = {"serve",  "--insecure",  "--grpc",       "127.0.0.1:0",
                   "--http", "127.0.0.1:0", "--ready-file", ready};
    words.insert(words.end(), more.begin(), more.end());
    auto server = cli_.Start(words);
    EXPECT_TRUE(Eventually([&] { return std::filesystem::exists(ready); })) << server->Err();
    return server;
  }
  void Stop(Running& server) {
    server.Signal(SIGTERM);
    EXPECT_EQ(server.Wait().code, 0);
  }
  // An experiment of many short trials.
  std::string Spec(const std::string& name, int trials) {
    return cli_.Write(name + ".yaml", Yaml({.name = name,
                                            .algorithm = "sobol",
                                            .parallel = 2,
                                            .trials = trials,
                                            .container = ScriptCommand(cli_.Path("trial.sh"))}));
  }
  void Submit(const std::string& name, int trials, Words more = {}) {
    Words words = {"apply", "-f", Spec(name, trials)};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome applied = cli_.Run(words);
    EXPECT_EQ(applied.code, 0) << applied.err;
  }
  int Done(const std::string& name, Words more = {}) {
    Words words = {"get", "exp", name, "-o", "json"};
    words.insert(words.end(), more.begin(), more.end());
    return cli_.Json(words)["status"].value("trialsSucceeded", 0);
  }
  void ExpectEnded(const std::string& name, Words more = {}) {
    const auto with = [&](Words words) {
      words.insert(words.end(), more.begin(), more.end());
      return cli_.Json(words);
    };
    ExpectSound(with({"get", "exp", name, "-o", "json"}),
                with({"get", "trials", name, "-o", "json"})["items"]);
  }
  // A table of as many results, many.csv.
  std::string ManyTrials(int trials) {
    std::string text = "lr,loss\n";
    for (int i = 1; i <= trials; ++i) absl::StrAppend(&text, i * 0.37, ",", i * 1.7, "\n");
    return cli_.Write("many.csv", text);
  }
  json Inspect(const std::string& file) {
    return cli_.Json({"restore", "--dry-run", file, "-o", "json"});
  }
  // Names of files in the test's folder with this in them.
  int FilesWith(const std::string& part) {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(cli_.Path(""))) {
      count += entry.path().filename().string().find(part) != std::string::npos;
    }
    return count;
  }

  Cli cli_;
  int servers_ = 0;
};

TEST_F(BackupTest, TakenWhileAServerWritesItGoesOnElsewhereAndInPlace) {
  auto server = Serve();
  Submit("many", 12);
  ASSERT_TRUE(Eventually([&] { return Done("many") >= 3; }));
  const std::string file = cli_.Path("backup");
  const Outcome taken = cli_.Run({"backup", file});
  ASSERT_EQ(taken.code, 0) << taken.err;
  EXPECT_THAT(taken.out, HasSubstr("1 experiment,"));
  struct stat info;
  ASSERT_EQ(stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  const json what = Inspect(file);
  EXPECT_EQ(what["source"], "sqlite:" + cli_.state() + "/shirabe.db");
  EXPECT_LT(what["counts"]["trials"], 12);
  EXPECT_GE(what["counts"]["observations"], 15);

  // In use, it is not replaced.
  const Outcome refused = cli_.Run({"restore", file, "--replace"});
  EXPECT_EQ(refused.code, 4) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("stop that process first"));
  ASSERT_TRUE(Eventually([&] { return Done("many") == 12; }));
  Stop(*server);
  ExpectEnded("many");

  // Elsewhere, to its end.
  const Words there = {"--db", "sqlite:" + cli_.Path("there.db")};
  const Outcome elsewhere = cli_.Run({"restore", file, there[0], there[1]});
  EXPECT_EQ(elsewhere.code, 0) << elsewhere.err;
  EXPECT_FALSE(std::filesystem::exists(cli_.state() + "/replaced")) << "another database's files";
  // In place: the trials that came after the backup have left files, which are in the way of none.
  const Outcome replaced = cli_.Run({"restore", file, "--replace"});
  ASSERT_EQ(replaced.code, 0) << replaced.err;
  EXPECT_LT(Done("many"), 12);
  EXPECT_THAT(replaced.err, HasSubstr("/home/replaced/"));
  server = Serve();
  EXPECT_TRUE(Eventually([&] { return Done("many") == 12; }))
      << cli_.Run({"events", "many"}).out << cli_.Run({"get", "trials", "many"}).out;
  Stop(*server);
  ExpectEnded("many");
}

// Deleted and made again under its name, it has the same numbers, and other files.
TEST_F(BackupTest, FilesOfAnotherRunAreNotThoseOfTheRestoredOne) {
  const auto run = [&](const std::string& which) {
    return cli_.Run(
        {"run", "--name", "m", "--param", "x=0..1", "--minimize", "loss", "--max-trials", "1", "--",
         "/bin/sh", "-c",
         "echo of-" + which + " > $SHIRABE_OUTPUT_DIR/model; echo of-" + which + " loss={x}"});
  };
  const std::string file = cli_.Path("backup");
  ASSERT_EQ(run("first").code, 0);
  ASSERT_EQ(cli_.Run({"backup", file}).code, 0);
  ASSERT_EQ(cli_.Run({"restore", file, "--replace"}).code, 0);
  EXPECT_THAT(cli_.Run({"logs", "m-1"}).out, HasSubstr("of-first")) << "its own stay";
  ASSERT_EQ(cli_.Run({"delete", "m"}).code, 0);
  ASSERT_EQ(run("second").code, 0);
  const Outcome restored = cli_.Run({"restore", file, "--replace"});
  ASSERT_EQ(restored.code, 0) << restored.err;
  EXPECT_THAT(restored.err, HasSubstr("/home/replaced/"));
  EXPECT_THAT(cli_.Run({"logs", "m-1"}).out, Not(HasSubstr("of-second")));
  EXPECT_NE(cli_.Run({"cp", "m/1/output", cli_.Path("d")}).code, 0);
}

TEST_F(BackupTest, FromSqliteIntoPostgresAndBack) {
  if (db::SharedPostgres() == nullptr) GTEST_SKIP() << "there is no PostgreSQL here";
  db::PostgresServer& postgres = *db::SharedPostgres();
  ASSERT_EQ(cli_.Run(cli_.Quick("digits", "echo loss=$1", {"--max-trials", "5"})).code, 0);
  const std::string file = cli_.Path("backup");
  ASSERT_EQ(cli_.Run({"backup", file}).code, 0);
  const Words there = {"--db", "postgres:" + postgres.Address(postgres.NewDatabase())};
  const Outcome restored = cli_.Run({"restore", file, there[0], there[1]});
  ASSERT_EQ(restored.code, 0) << restored.err;
  ExpectEnded("digits", there);
  const std::string back = cli_.Path("back");
  ASSERT_EQ(cli_.Run({"backup", back, there[0], there[1]}).code, 0);
  json first = Inspect(file), second = Inspect(back);
  EXPECT_EQ(first["counts"], second["counts"]);
  EXPECT_EQ(first["experiments"], second["experiments"]);
  EXPECT_THAT(second["source"].get<std::string>(), HasSubstr("postgres"));
  const Words home = {"--db", "sqlite:" + cli_.Path("home.db")};
  ASSERT_EQ(cli_.Run({"restore", back, home[0], home[1]}).code, 0);
  const Words ask = {"get", "trials", "digits", "-o", "json"};
  Words again = ask;
  again.insert(again.end(), home.begin(), home.end());
  EXPECT_EQ(cli_.Json(ask)["items"], cli_.Json(again)["items"]);
}

TEST_F(BackupTest, KilledAtAnyMomentABackupIsThereOrNot) {
  ASSERT_EQ(cli_.Run({"import", "csv", ManyTrials(4000), "--minimize", "loss"}).code, 0);
  const absl::Duration began = RealClock()->Monotonic();
  ASSERT_EQ(cli_.Run({"backup", cli_.Path("whole")}).code, 0);
  const absl::Duration whole = RealClock()->Monotonic() - began;
  int complete = 0, missing = 0;
  for (int i = 0; i <= 24; ++i) {
    const std::string file = cli_.Path(absl::StrCat("cut", i));
    auto running = cli_.Start({"backup", file});
    Pause(whole * i / 20);
    running->Signal(SIGKILL);
    running->Wait();
    if (!std::filesystem::exists(file)) {
      ++missing;
      continue;
    }
    ++complete;
    EXPECT_EQ(Inspect(file)["counts"]["trials"], 4000) << i;
  }
  EXPECT_GT(missing, 0);
  EXPECT_EQ(FilesWith(".partial"), 0);
  RecordProperty("complete", complete);
}

TEST_F(BackupTest, KilledAtAnyMomentARestoreHasHappenedOrNot) {
  ASSERT_EQ(cli_.Run({"import", "csv", ManyTrials(4000), "--minimize", "loss"}).code, 0);
  const std::string file = cli_.Path("backup");
  ASSERT_EQ(cli_.Run({"backup", file}).code, 0);
  const Words there = {"--db", "sqlite:" + cli_.Path("there.db")};
  const auto with = [&](Words words) {
    words.insert(words.end(), there.begin(), there.end());
    return words;
  };
  const std::string small = cli_.Write("small.csv", "lr,loss\n0.1,1\n0.2,2\n");
  int old = 0, replaced = 0;
  absl::Duration whole;
  for (int i = 0; i <= 24; ++i) {
    for (const char* suffix : {"", "-wal", "-shm"})
      RemoveAll(cli_.Path("there.db") + suffix).IgnoreError();
    ASSERT_EQ(cli_.Run(with({"import", "csv", small, "--minimize", "loss"})).code, 0);
    const absl::Duration began = RealClock()->Monotonic();
    auto running = cli_.Start(with({"restore", file, "--replace"}));
    if (i == 0) {
      ASSERT_EQ(running->Wait().code, 0);
      whole = RealClock()->Monotonic() - began;
      continue;
    }
    Pause(whole * i / 22);
    running->Signal(SIGKILL);
    running->Wait();
    std::vector<std::string> found;
    const json all = cli_.Json(with({"get", "exp", "-o", "json"}));
    for (const json& one : all["items"]) {
      found.push_back(absl::StrCat(one["metadata"]["name"].get<std::string>(), "/",
                                   one["status"]["trials"].get<int>()));
    }
    ASSERT_EQ(found.size(), 1u) << i;
    old += found[0] == "small/2";
    replaced += found[0] == "many/4000";
    ASSERT_EQ(old + replaced, i) << found[0];
    if (found[0] != "many/4000") continue;
    EXPECT_EQ(cli_.Json(with({"get", "trials", "many", "-o", "json"}))["items"].size(), 4000u);
  }
  EXPECT_GT(old, 0);
  RecordProperty("replaced", replaced);
}

TEST_F(BackupTest, OnAFullDiskNothingChanges) {
  const std::string disk = cli_.Path("disk");
  ASSERT_TRUE(MakeDirs(disk).ok());
  if (mount("shirabe-test", disk.c_str(), "tmpfs", 0, "size=600k") != 0) {
    GTEST_SKIP() << "mounting a small disk takes root";
  }
  ASSERT_EQ(cli_.Run({"import", "csv", ManyTrials(20'000), "--minimize", "loss"}).code, 0);
  const Outcome full = cli_.Run({"backup", disk + "/backup"});
  EXPECT_EQ(full.code, 7) << full.err;
  EXPECT_THAT(full.err, HasSubstr(disk + "/backup"));
  EXPECT_THAT(full.err, HasSubstr("No space left"));
  EXPECT_TRUE(std::filesystem::is_empty(disk));
  const std::string file = cli_.Path("backup");
  ASSERT_EQ(cli_.Run({"backup", file}).code, 0);
  const Words there = {"--db", "sqlite:" + disk + "/there.db"};
  const std::string small = cli_.Write("small.csv", "lr,loss\n0.1,1\n0.2,2\n");
  ASSERT_EQ(cli_.Run({"import", "csv", small, "--minimize", "loss", there[0], there[1]}).code, 0);
  const Outcome refused = cli_.Run({"restore", file, "--replace", there[0], there[1]});
  EXPECT_EQ(refused.code, 7) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("disk full"));
  EXPECT_EQ(
      cli_.Json({"get", "exp", "small", "-o", "json", there[0], there[1]})["status"]["trials"], 2);
  umount2(disk.c_str(), MNT_DETACH);
}

TEST_F(BackupTest, SaysWhatIsWrong) {
  const auto expect = [&](const Words& words, int code, const std::string& why) {
    const Outcome outcome = cli_.Run(words);
    EXPECT_EQ(outcome.code, code) << words[0] << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(why));
    EXPECT_FALSE(std::filesystem::exists(cli_.state() + "/shirabe.db")) << words[0];
  };
  const std::string file = cli_.Path("backup");
  expect({"backup", file}, 3, "shirabe.db to be backed up");
  expect({"backup"}, 2, "FILE");
  expect({"restore", file}, 3, file);
  expect({"restore", cli_.Write("no", "hello\n")}, 2, "is not a backup of shirabe");
  expect({"restore", file, "--merge", "--replace"}, 2, "give one of them");
  expect({"restore", file, "digits", "--replace"}, 2, "name no experiments");
  const Outcome server = cli_.Run({"backup", file, "--server", "127.0.0.1:1"});
  EXPECT_EQ(server.code, 2);
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(BackupTest, NeverOverwritesUnlessToldAndFollowsNoLink) {
  ASSERT_EQ(cli_.Run(cli_.Quick("digits", "echo loss=$1", {"--max-trials", "2"})).code, 0);
  const std::string precious = cli_.Write("precious", "mine");
  const std::string link = cli_.Path("link");
  std::filesystem::create_symlink(precious, link);
  for (const std::string& path : {precious, link, cli_.Path("")}) {
    EXPECT_NE(cli_.Run({"backup", path}).code, 0) << path;
  }
  EXPECT_EQ(*ReadFile(precious), "mine");
  EXPECT_EQ(cli_.Run({"backup", link, "--force"}).code, 0);
  EXPECT_EQ(*ReadFile(precious), "mine") << "a link was followed";
  EXPECT_TRUE(std::filesystem::is_regular_file(std::filesystem::symlink_status(link)));
  std::filesystem::create_symlink(link, cli_.Path("second"));
  EXPECT_NE(cli_.Run({"restore", "--dry-run", cli_.Path("second")}).code, 0);
  // Through a pipe, it is the same.
  const Outcome piped = cli_.Run({"backup", "-"});
  EXPECT_EQ(piped.code, 0) << piped.err;
  EXPECT_EQ(Inspect(cli_.Write("piped", piped.out))["counts"], Inspect(link)["counts"]);
}

TEST_F(BackupTest, OneExperimentComesBack) {
  for (const char* name : {"one", "two"}) {
    ASSERT_EQ(cli_.Run(cli_.Quick(name, "echo loss=$1", {"--max-trials", "2"})).code, 0);
  }
  const std::string file = cli_.Path("backup");
  ASSERT_EQ(cli_.Run({"backup", file}).code, 0);
  ASSERT_EQ(cli_.Run({"delete", "one"}).code, 0);
  EXPECT_EQ(cli_.Run({"restore", file}).code, 4);
  const Outcome both = cli_.Run({"restore", file, "--merge"});
  EXPECT_EQ(both.code, 4);
  EXPECT_THAT(both.err, HasSubstr("default/two"));
  EXPECT_EQ(cli_.Run({"restore", file, "three", "--merge"}).code, 3);
  EXPECT_EQ(cli_.Run({"restore", file, "three", "--dry-run"}).code, 3);
  // What that name brings, not what the file has.
  const json whole = Inspect(file)["counts"];
  const json one = cli_.Json({"restore", "--dry-run", file, "one", "-o", "json"});
  EXPECT_EQ(one["experiments"].size(), 1u);
  EXPECT_EQ(one["counts"]["experiments"], 1);
  for (const char* what : {"trials", "attempts", "observations"}) {
    EXPECT_EQ(one["counts"][what], 2) << what;
    EXPECT_EQ(whole[what], 4) << what;
  }
  EXPECT_GT(one["counts"]["events"], 0);
  EXPECT_LT(one["counts"]["events"], whole["events"]);
  const Outcome restored = cli_.Run({"restore", file, "one", "--merge"});
  ASSERT_EQ(restored.code, 0) << restored.err;
  EXPECT_THAT(restored.out, HasSubstr("1 experiment, 2 trials, 2 observations, of a file with 2 "
                                      "experiments and "));
  EXPECT_EQ(cli_.Json({"get", "trials", "one", "-o", "json"})["items"].size(), 2u);
}

// The home that release 0.1 left: its trials ended long ago.
class OldHomeTest : public BackupTest {
 protected:
  OldHomeTest() {
    const std::string command = "tar -xzf " + SourceDir() +
                                "/tests/testdata/releases/0.1/home.tar.gz --no-same-owner -C " +
                                cli_.Path("");
    EXPECT_EQ(std::system(command.c_str()), 0);
  }
  int64_t RowsOf(const std::string& trial) {
    return std::ssize(cli_.Json({"get", "metrics", trial, "-o", "json"})["items"]);
  }
};

TEST_F(OldHomeTest, PrunesRowsAndKeepsWhatIsKnownOfTrials) {
  const int64_t rows = RowsOf("spot-1");
  ASSERT_GT(rows, 8);
  const json before = cli_.Json({"get", "trials", "spot", "-o", "json"});
  const json best = cli_.Json({"best", "spot", "-o", "json"});
  const Outcome would = cli_.Run({"prune", "--keep-observations", "4", "--dry-run"});
  EXPECT_EQ(would.code, 0) << would.err;
  EXPECT_THAT(would.out, HasSubstr("trials would be deleted"));
  EXPECT_EQ(RowsOf("spot-1"), rows);
  const Outcome pruned = cli_.Run({"prune", "--keep-observations", "4"});
  EXPECT_EQ(pruned.code, 0) << pruned.err;
  EXPECT_LE(RowsOf("spot-1"), 8) << "four of each of two metrics";
  EXPECT_EQ(cli_.Json({"get", "trials", "spot", "-o", "json"})["items"], before["items"]);
  EXPECT_EQ(cli_.Json({"best", "spot", "-o", "json"}), best);
  EXPECT_EQ(cli_.Run({"prune", "--keep-observations", "4"}).out,
            "0 observations of 0 trials deleted\n");
}

TEST_F(OldHomeTest, AServerThinsOutByItself) {
  const int64_t rows = RowsOf("spot-1");
  const Outcome refused = cli_.Run({"serve", "--insecure", "--keep-observations", "2"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--keep-observations 2: give 0, or at least 4"));
  const auto server = Serve({"--keep-observations", "5"});
  EXPECT_TRUE(Eventually([&] { return RowsOf("spot-1") <= 10; })) << rows;
  Stop(*server);
}

TEST_F(OldHomeTest, PrunesExperimentsThatEndedLongAgo) {
  EXPECT_EQ(cli_.Run({"prune"}).code, 2);
  EXPECT_EQ(cli_.Run({"prune", "--ended-before", "soon"}).code, 2);
  EXPECT_EQ(cli_.Run({"prune", "--ended-before", "3650d"}).out, "");
  const Outcome would = cli_.Run({"prune", "--ended-before", "1h", "-A", "--dry-run"});
  EXPECT_THAT(would.out, HasSubstr("experiment/quick -n default would be deleted, ended 20"));
  EXPECT_EQ(cli_.Json({"get", "exp", "-A", "-o", "json"})["items"].size(), 5u);
  const Outcome pruned = cli_.Run({"prune", "--ended-before", "1h", "-A"});
  EXPECT_EQ(pruned.code, 0) << pruned.err;
  const json left = cli_.Json({"get", "exp", "-A", "-o", "json"});
  ASSERT_EQ(left["items"].size(), 2u) << "those that run are not ended";
  EXPECT_FALSE(cli_.Exists("home/trials/default/quick"));
  EXPECT_TRUE(MakeDirs(cli_.state() + "/trials/default/nobodys/nobodys-1").ok());
  EXPECT_THAT(cli_.Run({"prune", "--orphans"}).out, HasSubstr("trials/default/nobodys deleted"));
  EXPECT_FALSE(cli_.Exists("home/trials/default/nobodys"));
}

// What 0.1 left behind is all in a backup of today.
TEST_F(OldHomeTest, IsBackedUpWhole) {
  const Words ask = {"get", "exp", "-A", "-o", "json"};
  const json before = cli_.Json(ask);
  ASSERT_EQ(before["items"].size(), 5u);
  const std::string file = cli_.Path("backup");
  ASSERT_EQ(cli_.Run({"backup", file}).code, 0);
  const Words there = {"--db", "sqlite:" + cli_.Path("there.db")};
  ASSERT_EQ(cli_.Run({"restore", file, there[0], there[1]}).code, 0);
  Words again = ask;
  again.insert(again.end(), there.begin(), there.end());
  const json after = cli_.Json(again);
  for (size_t i = 0; i < before["items"].size(); ++i) {
    EXPECT_EQ(before["items"][i]["spec"], after["items"][i]["spec"]);
    EXPECT_EQ(before["items"][i]["status"], after["items"][i]["status"]);
  }
}

}  // namespace
}  // namespace shirabe::cmd
