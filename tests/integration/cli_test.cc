// What a user and a script see of the command line: output, exit codes, and that an interrupt loses
// nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/mount.h>

#include <set>
#include <sstream>

#include "absl/strings/str_split.h"
#include "base/process_id.h"
#include "tests/integration/cli.h"
#include "tests/support/eventually.h"
#include "tests/support/paths.h"

namespace shirabe::cmd {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

// lr in 0..1 is its own loss.
constexpr char kQuickTrial[] = "echo loss=$1\n";
// Reports at once, then goes on until somebody writes the file.
constexpr char kPatientTrial[] = R"(
trap 'exit 75' TERM
echo "loss=$1"
while [ ! -e "$DIR/go" ]; do sleep 0.05; done
)";

std::vector<std::string> Keys(const nlohmann::json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

class CliTest : public testing::Test {
 protected:
  // A run of patient trials, once the first has a metric.
  std::unique_ptr<Running> StartPatient(const std::vector<std::string>& more = {}) {
    auto run = cli_.Start(cli_.Quick("patient", kPatientTrial, more));
    EXPECT_TRUE(Eventually([&] {
      return cli_.Run({"get", "metrics", "patient/1", "--no-headers"}).out.find("loss") !=
             std::string::npos;
    })) << run->Err();
    return run;
  }

  Cli cli_;
};

TEST_F(CliTest, VersionSaysWhatItWasBuiltFromAndWhatItWrites) {
  const nlohmann::json version = cli_.Json({"version", "-o", "json"});
  EXPECT_EQ("shirabe " + version.at("version").get<std::string>() + "\n",
            cli_.Run({"version"}).out);
  EXPECT_THAT(version.at("commit").get<std::string>(),
              AnyOf(MatchesRegex("[0-9a-f]{40}"), "unknown"));
  EXPECT_TRUE(version.at("modified").is_boolean());
  EXPECT_THAT(version.at("processor").get<std::string>(), AnyOf("baseline", "x86-64-v3"));
  const nlohmann::json& formats = version.at("formats");
  EXPECT_EQ(formats.at("experiment"), "kubeflow.org/v1beta1");
  EXPECT_EQ(formats.at("api"), "shirabe.v1");
  EXPECT_EQ(formats.at("katib"), "api.v1.beta1");
  EXPECT_EQ(formats.at("checkpointManifest"), 1);
  EXPECT_GE(version.at("schema").at("postgres"), 1);

  // The number in the header of a database that this program has made (user_version, big-endian).
  ASSERT_EQ(cli_.Run(cli_.Quick("quick", kQuickTrial)).code, 0);
  const auto header = ReadFile(cli_.state() + "/shirabe.db");
  ASSERT_TRUE(header.ok()) << header.status();
  int64_t stored = 0;
  for (size_t i = 60; i < 64; ++i) stored = 256 * stored + static_cast<uint8_t>(header->at(i));
  EXPECT_EQ(version.at("schema").at("sqlite"), stored);
}

TEST_F(CliTest, VersionAndHelp) {
  EXPECT_THAT(cli_.Run({"version"}).out, MatchesRegex("shirabe [0-9.]+\n"));
  const Outcome help = cli_.Run({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.out, HasSubstr("Usage: shirabe VERB"));
  for (const char* verb :
       {"run", "validate", "get", "describe", "best", "logs", "events", "export", "delete",
        "suggest", "scale", "version", "completion", "algorithms", "explain"}) {
    const Outcome outcome = cli_.Run({verb, "--help"});
    EXPECT_EQ(outcome.code, 0) << verb << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr(std::string("Usage: shirabe ") + verb));
    EXPECT_EQ(outcome.err, "");
  }
}

TEST_F(CliTest, WrongUsageExitsWith2AndSaysWhatWasMeant) {
  EXPECT_EQ(cli_.Run({}).code, 2);
  const Outcome unknown = cli_.Run({"vaildate"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, StartsWith("error: unknown command \"vaildate\"; did you mean "
                                      "\"validate\"?"));
  EXPECT_EQ(unknown.out, "");
  EXPECT_EQ(cli_.Run({"get", "trails", "x"}).code, 2);
  EXPECT_EQ(cli_.Run({"get", "exp", "--frobnicate"}).code, 2);
  EXPECT_EQ(cli_.Run({"run"}).code, 2);
  EXPECT_EQ(cli_.Run({"run", "--param", "lr=0..", "--minimize", "loss", "--", "true"}).code, 2);
  EXPECT_EQ(cli_.Run({"--db", "mysql:x", "get", "exp"}).code, 2);
  EXPECT_EQ(cli_.Run({"-n", "No_Namespace", "get", "exp"}).code, 2);
  EXPECT_EQ(cli_.Run({"get", "exp", "--filter", "nonsense"}).code, 2);
}

TEST_F(CliTest, ExplainsWhatTheRegistriesHold) {
  const Outcome page = cli_.Run({"explain", "stopper", "medianstop"});
  EXPECT_EQ(page.code, 0) << page.err;
  EXPECT_THAT(page.out, StartsWith("medianstop (early stopping; also called median)\n"));
  EXPECT_THAT(page.out, HasSubstr("start_step            int    at least 1   4"));
  EXPECT_THAT(page.out, HasSubstr("  earlyStopping:\n    algorithmName: medianstop\n"));
  const auto random = cli_.Json({"explain", "algorithm", "random", "-o", "json"});
  EXPECT_EQ(random["kind"], "algorithm");
  EXPECT_EQ(random["settings"].back()["name"], "random_state");
  EXPECT_EQ(random["settings"].back()["type"], "int");
  EXPECT_THAT(cli_.Run({"explain", "stopper"}).out, HasSubstr("wilcoxon"));
  const Outcome unknown = cli_.Run({"explain", "stopper", "medianstopp"});
  EXPECT_EQ(unknown.code, 3);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean \"medianstop\"?"));
  EXPECT_EQ(cli_.Run({"explain", "weather"}).code, 2);
  const Outcome space = cli_.Run({"explain", "experiment.spec.shirabe.space"});
  EXPECT_THAT(space.out, HasSubstr("FIELD: spec.shirabe.space (object)\n"));
  EXPECT_THAT(space.out, HasSubstr("  linear (list of object)\n    sums of parameters"));
  EXPECT_THAT(cli_.Run({"explain", "spec.objective.type"}).out,
              HasSubstr("(text, required, one of minimize, maximize)"));
  EXPECT_THAT(cli_.Run({"explain", "spec.parameters[0].name"}).out,
              HasSubstr("FIELD: spec.parameters.name (text"));
  EXPECT_EQ(cli_.Json({"explain", "spec.maxTrialCount", "-o", "json"})["type"], "integer");
  const Outcome mistaken = cli_.Run({"explain", "spec.objectives"});
  EXPECT_NE(mistaken.code, 0);
  EXPECT_THAT(mistaken.err, HasSubstr("did you mean \"objective\"?"));
  EXPECT_NE(cli_.Run({"explain", "spec.objective.type.of"}).code, 0);
}

TEST_F(CliTest, AFullDiskUnderTheLogIsSaid) {  // F14
  ASSERT_TRUE(MakeDirs(cli_.state()).ok());
  if (mount("shirabe-test", cli_.state().c_str(), "tmpfs", 0, "size=2m") != 0) {
    GTEST_SKIP() << "mounting a small disk takes root";
  }
  const std::vector<std::string> db = {"--db", "sqlite:" + cli_.Path("elsewhere.db")};
  const std::string script =
      "head -c 4000000 /dev/zero > $SHIRABE_OUTPUT_DIR/filler; echo loss={x}";
  cli_.Run({"run", "--name", "m", "--param", "x=0..1", "--minimize", "loss", "--max-trials", "1",
            db[0], db[1], "--", "/bin/sh", "-c", script});
  const std::string why = "is full: what it printed may be lost";
  EXPECT_THAT(cli_.Run({"events", "m", db[0], db[1]}).out, HasSubstr(why));
  EXPECT_THAT(cli_.Run({"describe", "trial", "m-1", db[0], db[1]}).out, HasSubstr(why));
  umount2(cli_.state().c_str(), MNT_DETACH);
}

// Also where stderr is not a terminal: with a wrong home the list is empty as well.
TEST_F(CliTest, SaysThatThereIsNothing) {
  const Outcome none = cli_.Run({"get", "exp"});
  EXPECT_EQ(none.code, 0);
  EXPECT_EQ(none.err, "no experiments in namespace default\n");
  EXPECT_EQ(cli_.Run({"top"}).err, "no experiments in namespace default\n");
  EXPECT_EQ(cli_.Run({"get", "exp", "--quiet"}).err, "");
}

TEST_F(CliTest, TheQuickFormTellsWarningsToo) {
  const Outcome run =
      cli_.Run({"run", "--param", "lr.a=0..1", "--param", "lr-a=0..1", "--minimize", "loss",
                "--max-trials", "1", "--", "/bin/echo", "loss={lr.a}", "{lr-a}"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("\"lr-a\" and \"lr.a\" have the same environment variable "
                                 "SHIRABE_PARAM_LR_A"));
}

TEST_F(CliTest, TheQuickFormEndsWithTheBestTrial) {
  const auto words = cli_.Quick("quick", kQuickTrial, {"--max-trials", "6", "--parallel", "2"});
  const Outcome run = cli_.Run(words);
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, MatchesRegex("TRIAL +loss +STEP +lr +bs\nquick-[1-6] +0[.0-9]* +1 +0[.0-9]* "
                                    "+[0-9]+\n\n--lr=0[.0-9]* --bs=[0-9]+\n"));
  EXPECT_THAT(run.err, HasSubstr("trial quick-1 Succeeded loss="));
  EXPECT_THAT(run.err, HasSubstr("experiment quick has ended: "));
  // The same command again shows the same, and tries nothing.
  const Outcome again = cli_.Run(words);
  EXPECT_EQ(again.code, 0);
  EXPECT_EQ(again.out, run.out);
  EXPECT_EQ(cli_.Json({"get", "trials", "quick", "-o", "json"})["items"].size(), 6u);
  EXPECT_EQ(cli_.Run({"best", "quick", "-o", "args"}).out + "",
            run.out.substr(run.out.find("--lr")));
}

TEST_F(CliTest, JsonHasTheShapesThatScriptsRelyOn) {
  ASSERT_EQ(cli_.Run(cli_.Quick("shapes", kQuickTrial, {"--max-trials", "3"})).code, 0);
  const auto best = cli_.Json({"best", "shapes", "-o", "json"});
  EXPECT_THAT(Keys(best), ElementsAre("assignments", "objective", "step", "trial", "value"));
  EXPECT_EQ(best["objective"], "loss");
  EXPECT_TRUE(best["value"].is_number());
  EXPECT_TRUE(best["assignments"]["lr"].is_number());
  EXPECT_TRUE(best["assignments"]["bs"].is_number());

  const auto list = cli_.Json({"get", "trials", "shapes", "-o", "json"});
  EXPECT_EQ(list["kind"], "List");
  ASSERT_EQ(list["items"].size(), 3u);
  const auto& trial = list["items"][0];
  EXPECT_EQ(trial["kind"], "Trial");
  EXPECT_EQ(trial["metadata"]["name"], "shapes-1");
  EXPECT_EQ(trial["spec"]["parameterAssignments"][0]["name"], "lr");
  EXPECT_TRUE(trial["spec"]["parameterAssignments"][0]["value"].is_string());
  EXPECT_EQ(trial["status"]["conditions"].back()["type"], "Succeeded");
  EXPECT_EQ(trial["status"]["observation"]["metrics"][0]["name"], "loss");

  const auto experiment = cli_.Json({"get", "exp", "shapes", "-o", "json"});
  EXPECT_EQ(experiment["kind"], "Experiment");
  EXPECT_EQ(experiment["status"]["conditions"].back()["type"], "Succeeded");
  EXPECT_EQ(experiment["status"]["currentOptimalTrial"]["bestTrialName"], best["trial"]);
  EXPECT_EQ(cli_.Json({"get", "exp", "-o", "json"})["kind"], "List");
  EXPECT_EQ(cli_.Json({"get", "trial", "shapes/2", "-o", "json"})["metadata"]["name"], "shapes-2");
  EXPECT_EQ(cli_.Json({"get", "attempts", "shapes", "-o", "json"})["items"].size(), 3u);

  const auto next = cli_.Json({"suggest", "shapes", "--dry-run", "-k", "4", "-o", "json"});
  ASSERT_EQ(next["items"].size(), 4u);
  EXPECT_EQ(next["items"][0]["parameterAssignments"][1]["name"], "bs");
  EXPECT_EQ(cli_.Json({"get", "trials", "shapes", "-o", "json"}), list);  // nothing was stored
}

TEST_F(CliTest, TheLedgerIsFlatForScripts) {
  ASSERT_EQ(cli_.Run(cli_.Quick("ledger", kQuickTrial, {"--max-trials", "1"})).code, 0);
  const auto attempt = cli_.Json({"get", "attempts", "ledger", "-o", "json"})["items"][0];
  EXPECT_EQ(attempt["trial"], "ledger-1");
  EXPECT_EQ(attempt["number"], 1);
  EXPECT_EQ(attempt["capacity"], "on-demand");
  EXPECT_EQ(attempt["exitCode"], 0);
  EXPECT_EQ(attempt["cause"], "completed");
  EXPECT_EQ(attempt["resumedFromStep"], 0);
  EXPECT_EQ(attempt["stepsGained"], 1);
  EXPECT_EQ(attempt["stepsRedone"], 0);
  EXPECT_EQ(attempt["cost"], 0);
  EXPECT_GT(attempt["seconds"].get<double>(), 0);
  for (const char* key : {"node", "start", "end"}) EXPECT_TRUE(attempt[key].is_string()) << key;
  EXPECT_TRUE(cli_.Json({"get", "checkpoints", "ledger/1", "-o", "json"})["items"].empty());
  EXPECT_EQ(cli_.Run({"get", "metrics", "ledger/1", "--all-attempts"}).code, 0);
  EXPECT_EQ(cli_.Run({"get", "attempts", "ledger/1", "--all-attempts"}).code, 2);
}

TEST_F(CliTest, ListsAreFilteredSortedAndCut) {
  ASSERT_EQ(cli_.Run(cli_.Quick("lists", kQuickTrial, {"--max-trials", "5"})).code, 0);
  const auto names = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"get", "trials", "lists", "-o", "name"};
    words.insert(words.end(), more.begin(), more.end());
    return cli_.Run(words).out;
  };
  EXPECT_EQ(names({"--limit", "2"}), "trial/lists-1\ntrial/lists-2\n");
  EXPECT_EQ(names({"--sort-by", "~trial", "--limit", "1"}), "trial/lists-5\n");
  EXPECT_EQ(names({"--filter", "trial>3,state=Succeeded"}), "trial/lists-4\ntrial/lists-5\n");
  const std::string best = cli_.Json({"best", "lists", "-o", "json"})["trial"];
  EXPECT_EQ(names({"--sort-by", "loss", "--limit", "1"}), "trial/" + best + "\n");
  EXPECT_THAT(cli_.Run({"get", "trials", "lists", "--no-headers"}).out, StartsWith("lists-1 "));
  EXPECT_THAT(cli_.Run({"get", "exp", "-A"}).out, StartsWith("NAMESPACE   NAME"));
  EXPECT_EQ(cli_.Run({"-n", "other", "get", "exp"}).out, "");
  const Outcome csv = cli_.Run({"export", "lists"});
  EXPECT_THAT(csv.out, StartsWith("trial,state,objective,step,metric.loss,param.lr,param.bs,"));
  EXPECT_EQ(std::count(csv.out.begin(), csv.out.end(), '\n'), 6);
}

TEST_F(CliTest, AnExperimentThatFailsExitsWith8AndSaysWhere) {
  const Outcome run =
      cli_.Run(cli_.Quick("fails", "echo no luck; exit 3\n", {"--max-trials", "2"}));
  EXPECT_EQ(run.code, 8) << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("describe trial fails-"));
  const size_t lines = run.err.find(": exit code 3\n  no luck\n");  // once, of the first
  ASSERT_NE(lines, std::string::npos) << run.err;
  EXPECT_EQ(run.err.find("no luck", lines + 20), std::string::npos) << run.err;
  const Outcome described = cli_.Run({"describe", "trial", "fails/1"});
  EXPECT_EQ(cli_.Run({"describe", "fails/1"}).code, 0);
  EXPECT_EQ(cli_.Run({"describe", "fails"}).code, 0);
  EXPECT_THAT(described.out, HasSubstr("Last lines:\n  no luck\n"));
  EXPECT_EQ(cli_.Run({"logs", "fails/1"}).out, "no luck\n");
  const Outcome logs = cli_.Run({"logs", "fails/1", "--all-attempts"});
  EXPECT_EQ(logs.out, "no luck\n");
  EXPECT_THAT(logs.err, HasSubstr("-- attempt fails-1-a1 --"));
  EXPECT_EQ(cli_.Run({"best", "fails"}).code, 3);
}

TEST_F(CliTest, MoreFailedTrialsThanAllowedEndAQuickExperiment) {
  const Outcome run = cli_.Run(cli_.Quick("stops", "exit 3\n", {"--max-failed", "1"}));
  EXPECT_EQ(run.code, 8) << run.err;
  EXPECT_THAT(run.err, HasSubstr("maxFailedTrialCount is 1"));
  EXPECT_EQ(cli_.Json({"get", "exp", "stops", "-o", "json"})["status"]["trialsFailed"], 2);
  const Outcome more = cli_.Run(cli_.Quick("stops", "exit 3\n", {"--max-failed", "many"}));
  EXPECT_EQ(more.code, 2);
  EXPECT_THAT(more.err, HasSubstr("--max-failed: \"many\" must be a whole number"));
}

TEST_F(CliTest, WhatIsNotThereExitsWith3) {
  EXPECT_EQ(cli_.Run({"get", "exp", "nothing"}).code, 3);
  EXPECT_EQ(cli_.Run({"describe", "trial", "nothing/1"}).code, 3);
  EXPECT_EQ(cli_.Run({"delete", "nothing"}).code, 3);
  EXPECT_EQ(cli_.Run({"delete", "nothing", "--ignore-not-found"}).code, 0);
  const Outcome file = cli_.Run({"validate", "-f", cli_.Path("absent.yaml")});
  EXPECT_EQ(file.code, 3);
  EXPECT_THAT(file.err, HasSubstr("absent.yaml"));
  const Outcome db = cli_.Run({"--db", "sqlite:" + cli_.Path("absent.db"), "get", "exp"});
  EXPECT_EQ(db.code, 3);
  EXPECT_THAT(db.err, HasSubstr("absent.db"));
  const Outcome empty = cli_.Run({"get", "exp"});  // nobody named the database: none yet is fine
  EXPECT_EQ(empty.code, 0);
  EXPECT_EQ(empty.out, "");
}

TEST_F(CliTest, AnInvalidFileExitsWith5AndNamesThePlace) {
  const std::string path = cli_.Write("bad.yaml",
                                      "apiVersion: kubeflow.org/v1beta1\n"
                                      "kind: Experiment\n"
                                      "metadata: {name: bad}\n"
                                      "spec:\n"
                                      "  paralellTrialCount: 3\n");
  for (const char* verb : {"validate", "run"}) {
    const Outcome outcome = cli_.Run({verb, "-f", path});
    EXPECT_EQ(outcome.code, 5);
    EXPECT_THAT(outcome.err, HasSubstr("bad.yaml:5:3: error: "));
    EXPECT_THAT(outcome.err, HasSubstr("did you mean \"parallelTrialCount\"?"));
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_THAT(cli_.Run({"validate", "-f", "-"}, path).err, HasSubstr("<stdin>:5:3: error: "));
  EXPECT_EQ(cli_.Run(cli_.Quick("tp", kQuickTrial, {"--algorithm", "no-such-algorithm"})).code, 2);
}

TEST_F(CliTest, WhatThisBuildLacksIsRefusedWithWhatIsAtHand) {
  const std::string path = SourceDir() + "/tests/testdata/specs/katib/nas-enas.yaml";
  EXPECT_EQ(cli_.Run({"validate", "-f", path}).code, 0);
  const Outcome outcome = cli_.Run({"run", "-f", path});
  EXPECT_EQ(outcome.code, 5);
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("spec.algorithm.algorithmName: \"enas\" searches architectures"),
                    HasSubstr("kubeflowkatib/suggestion-enas"),
                    HasSubstr("spec.shirabe.algorithm.endpoint")));
  EXPECT_EQ(cli_.Run({"get", "exp", "-A"}).out, "");
}

TEST_F(CliTest, AStoreInMemoryIsNewEveryTime) {
  auto words = cli_.Quick("memory", kQuickTrial, {"--max-trials", "1", "--db", "memory:"});
  const Outcome first = cli_.Run(words);
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(cli_.Run(words).out, first.out);
}

TEST_F(CliTest, ASecondRunNamesTheFirstAndExitsWith4) {
  const auto first = StartPatient();
  const Outcome second = cli_.Run(cli_.Quick("patient", kPatientTrial));
  EXPECT_EQ(second.code, 4);
  EXPECT_THAT(second.err, HasSubstr(std::to_string(first->pid())));
  const Outcome other = cli_.Run({"run", "--name", "patient", "--param", "lr=0..2", "--minimize",
                                  "loss", "--", "/bin/true", "{lr}"});
  EXPECT_EQ(other.code, 4) << other.err;
  cli_.Write("go", "");
  EXPECT_EQ(first->Wait().code, 0);
}

TEST_F(CliTest, AnInterruptStopsGracefullyAndTheSameCommandGoesOn) {
  const std::vector<std::string> more = {"--max-trials", "3", "--parallel", "2"};
  const auto run = StartPatient(more);
  run->Signal(SIGINT);
  const Outcome interrupted = run->Wait();
  EXPECT_EQ(interrupted.code, 130);
  EXPECT_THAT(interrupted.err, HasSubstr("To go on:\n  shirabe run --name patient"));
  EXPECT_EQ(interrupted.out, "");
  const auto attempts = cli_.Json({"get", "attempts", "patient", "-o", "json"});
  for (const auto& attempt : attempts["items"]) {
    EXPECT_EQ(attempt["status"]["cause"], "suspended") << attempt;
  }
  cli_.Write("go", "");
  const Outcome again = cli_.Run(cli_.Quick("patient", kPatientTrial, more));
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("goes on"));
  const auto trials = cli_.Json({"get", "trials", "patient", "-o", "json"})["items"];
  ASSERT_EQ(trials.size(), 3u);
  EXPECT_EQ(trials[0]["status"]["shirabe"]["attempts"], 2);
}

TEST_F(CliTest, TheSameCommandInAnotherFolderGoesOnWhereItBegan) {
  for (const char* folder : {"begun", "other"})
    std::filesystem::create_directory(cli_.Path(folder));
  cli_.Write("begun/t.sh", kPatientTrial);
  const std::vector<std::string> same = {
      "run",          "--name", "moved", "--param", "lr=0..1", "--minimize", "loss",
      "--max-trials", "2",      "--",    "/bin/sh", "t.sh",    "{lr}"};
  cli_.Enter(cli_.Path("begun"));
  const auto run = cli_.Start(same);
  EXPECT_TRUE(Eventually([&] {
    return cli_.Run({"get", "metrics", "moved/1", "--no-headers"}).out.find("loss") !=
           std::string::npos;
  })) << run->Err();
  run->Signal(SIGINT);
  EXPECT_EQ(run->Wait().code, 130);
  cli_.Enter(cli_.Path("other"));
  std::filesystem::rename(cli_.Path("begun"), cli_.Path("hidden"));
  const Outcome gone = cli_.Run(same);
  EXPECT_EQ(gone.code, 4);
  EXPECT_THAT(gone.err, HasSubstr("there is no such folder any more"));
  std::filesystem::rename(cli_.Path("hidden"), cli_.Path("begun"));
  cli_.Write("go", "");
  const Outcome again = cli_.Run(same);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.err, AllOf(HasSubstr("trials start in /"),
                               HasSubstr("/begun, where the experiment was begun")));
  EXPECT_THAT(cli_.Run({"get", "trials", "moved", "--filter", "state=Succeeded", "-o", "name"}).out,
              "trial/moved-1\ntrial/moved-2\n");
}

TEST_F(CliTest, ASecondInterruptDoesNotWait) {
  const auto run = cli_.Start(cli_.Quick("deaf", R"(
trap '' TERM
touch "$DIR/deaf"
while [ ! -e "$DIR/go" ]; do sleep 0.05; done
)"));
  ASSERT_TRUE(Eventually([&] { return cli_.Exists("deaf"); })) << run->Err();
  run->Signal(SIGTERM);
  ASSERT_TRUE(Eventually([&] { return run->Err().find("stopping") != std::string::npos; }));
  run->Signal(SIGINT);
  EXPECT_EQ(run->Wait().code, 130);
}

TEST_F(CliTest, MetricsAppearWhileATrialRuns) {
  const auto run = StartPatient({"--max-trials", "1"});
  const auto watch = cli_.Start({"get", "trials", "patient", "-w"});
  EXPECT_TRUE(Eventually([&] {
    return watch->Out().find("Running") != std::string::npos &&
           watch->Out().find("0.") != std::string::npos;
  })) << watch->Out();
  EXPECT_THAT(watch->Out(), MatchesRegex("TRIAL +STATE +loss +STEP +lr +bs +RAN\n"
                                         "(.|\n)*patient-1 +Running +0.[0-9]+ +1 (.|\n)*"));
  const auto logs = cli_.Start({"logs", "-f", "patient/1"});
  EXPECT_TRUE(Eventually([&] { return logs->Out().find("loss=0.") != std::string::npos; }));
  cli_.Write("go", "");
  EXPECT_EQ(run->Wait().code, 0);
  const Outcome watched = watch->Wait();
  EXPECT_EQ(watched.code, 0);
  EXPECT_THAT(watched.out, HasSubstr("Succeeded"));
  EXPECT_EQ(logs->Wait().code, 0);
}

TEST_F(CliTest, DeleteAsksTheHolderAndTakesEverythingAway) {
  const auto run = StartPatient();
  const Outcome deleted = cli_.Run({"delete", "patient"});
  EXPECT_EQ(deleted.code, 0) << deleted.err;
  EXPECT_EQ(deleted.out, "experiment/patient deleted\n");
  EXPECT_EQ(run->Wait().code, 3);
  EXPECT_EQ(cli_.Run({"get", "exp", "patient"}).code, 3);
  EXPECT_FALSE(cli_.Exists("home/trials/default/patient"));
}

TEST_F(CliTest, AKilledRunIsTakenOverByDelete) {
  auto run = StartPatient();
  run->Signal(SIGKILL);
  EXPECT_EQ(run->Wait().code, 128 + SIGKILL);
  EXPECT_EQ(cli_.Run({"delete", "patient"}).code, 0);
  EXPECT_FALSE(cli_.Exists("home/trials/default/patient"));
}

TEST_F(CliTest, ScaleReachesARunningExperiment) {
  const auto run = StartPatient({"--max-trials", "2"});
  EXPECT_EQ(cli_.Run({"scale", "patient", "--max-trials", "9", "--parallel", "3"}).code, 0);
  EXPECT_TRUE(Eventually([&] {
    return cli_.Json({"get", "exp", "patient", "-o", "json"})["status"]["trialsRunning"] == 3;
  }));
  EXPECT_EQ(cli_.Run({"stop", "patient"}).code, 0);
  EXPECT_THAT(run->Wait().err, HasSubstr("stopped by a user"));
}

TEST_F(CliTest, CompletionKnowsVerbsAndExperiments) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    EXPECT_THAT(cli_.Run({"completion", shell}).out, HasSubstr("shirabe __complete"));
  }
  EXPECT_EQ(cli_.Run({"completion", "tcsh"}).code, 2);
  EXPECT_EQ(cli_.Run({"__complete", "val"}).out, "validate\n");
  ASSERT_EQ(cli_.Run(cli_.Quick("named", kQuickTrial, {"--max-trials", "1"})).code, 0);
  EXPECT_EQ(cli_.Run({"__complete", "best", "na"}).out, "named\n");
  EXPECT_EQ(cli_.Run({"__complete", "get", "tr"}).out, "trials\n");
}

TEST_F(CliTest, CompletionKnowsTheFlagsOfEachVerb) {
  EXPECT_EQ(cli_.Run({"__complete", "run", "--ma"}).out,
            "--maximize\n--max-trials\n--max-failed\n");
  EXPECT_EQ(cli_.Run({"__complete", "run", "-f", "a.yaml", "--mini"}).out, "--minimize\n");
  const std::string verbs = cli_.Run({"__complete", ""}).out;
  for (const std::string& verb : std::vector<std::string>(absl::StrSplit(verbs, '\n'))) {
    if (verb.empty()) continue;
    const Outcome outcome = cli_.Run({"__complete", verb, "--"});
    EXPECT_THAT(outcome.out, HasSubstr("--help\n")) << verb;
    EXPECT_THAT(outcome.err, IsEmpty()) << verb;
  }
  // What stands behind "--" is a program's, and what is no verb has no flags.
  const std::vector<std::vector<std::string>> without_flags = {
      {"__complete", "run", "--", "sh", "--ma"},
      {"__complete", "pod", "--"},
      {"__complete", "nonsense", "--"},
      {"__complete", "ai-platform", "--nonsense"}};
  for (const std::vector<std::string>& words : without_flags) {
    const Outcome outcome = cli_.Run(words);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_THAT(outcome.out + outcome.err, IsEmpty());
  }
}

TEST_F(CliTest, WhatIsNoDatabaseIsSaidInOneLine) {
  const std::string path = cli_.Write("text.db", std::string(5000, 'x'));
  const Outcome outcome = cli_.Run({"--db", "sqlite:" + path, "get", "exp"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, MatchesRegex("error: [^\n]*text.db[^\n]*\n"));
}

TEST_F(CliTest, ADatabaseOfANewerProgramIsRefused) {
  ASSERT_EQ(cli_.Run(cli_.Quick("old", kQuickTrial, {"--max-trials", "1"})).code, 0);
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((cli_.state() + "/shirabe.db").c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "PRAGMA user_version = 99", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
  for (const auto& words : {std::vector<std::string>{"get", "exp"},
                            cli_.Quick("old", kQuickTrial, {"--max-trials", "1"})}) {
    const Outcome outcome = cli_.Run(words);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err, HasSubstr("99"));
    EXPECT_THAT(outcome.err, StartsWith("error: "));
  }
}

TEST_F(CliTest, AFullDiskForTheOutputIsAnError) {
  ASSERT_EQ(cli_.Run(cli_.Quick("full", kQuickTrial, {"--max-trials", "1"})).code, 0);
  const std::string command = "exec " + Program() + " get exp >/dev/full";
  setenv("SHIRABE_HOME", cli_.state().c_str(), 1);
  const int status = std::system(command.c_str());
  unsetenv("SHIRABE_HOME");
  EXPECT_NE(WEXITSTATUS(status), 0);
}

// ---- libraries: a start costs milliseconds for each dozen of them ------------------------------

// The first words of ldd's lines.
std::set<std::string> LinkedLibraries(const std::string& program) {
  std::set<std::string> names;
  FILE* pipe = popen(("ldd " + program).c_str(), "r");
  CHECK(pipe != nullptr);
  std::string text;
  char piece[4096];
  for (size_t n = 0; (n = fread(piece, 1, sizeof piece, pipe)) > 0;) text.append(piece, n);
  EXPECT_EQ(pclose(pipe), 0);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t begin = line.find_first_not_of("\t ");
    names.insert(line.substr(begin, line.find(' ', begin) - begin));
  }
  return names;
}

TEST(LibrariesTest, LinksTheLibrariesOfCAndCppOnly) {
  const std::set<std::string> names = LinkedLibraries(Program());
  EXPECT_THAT(names, testing::Contains("libc.so.6"));
  EXPECT_THAT(names, Each(AnyOf("libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1",
                                StartsWith("linux-vdso"), HasSubstr("/ld-linux"))));
}

TEST(LibrariesTest, ARunOnALaptopOpensNoOther) {
  Cli cli;
  const auto run = cli.Start(
      cli.Quick("laptop", "echo loss=$1\nwhile [ ! -e \"$DIR/go\" ]; do sleep 0.05; done\n",
                {"--max-trials", "1"}));
  ASSERT_TRUE(Eventually([&] {
    return cli.Run({"get", "metrics", "laptop/1", "--no-headers"}).out.find("loss") !=
           std::string::npos;
  })) << run->Err();
  const auto maps = ReadFile("/proc/" + std::to_string(run->pid()) + "/maps");
  ASSERT_TRUE(maps.ok()) << maps.status();
  EXPECT_THAT(*maps, HasSubstr("libc.so"));
  for (const char* name : {"libcurl", "libpq", "libssl", "libnghttp2"}) {
    EXPECT_THAT(*maps, Not(HasSubstr(name)));
  }
  (void)cli.Write("go", "");
  EXPECT_EQ(run->Wait().code, 0) << run->Err();
}

}  // namespace
}  // namespace shirabe::cmd
