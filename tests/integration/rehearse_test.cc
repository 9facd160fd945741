// `shirabe rehearse` with real programs: a careful one, and one that does everything wrong.
//
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/file_io.h"
#include "tests/integration/cli.h"
#include "tests/support/eventually.h"
#include "tests/support/small_spec.h"

namespace shirabe::cmd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Twenty steps of a tenth of a second. Its state is the sum of the steps done: saved at each step,
// and on SIGTERM at once.
constexpr char kCareful[] = R"(
save() {
  rm -rf "$SHIRABE_CHECKPOINT_DIR/$step.tmp"
  mkdir "$SHIRABE_CHECKPOINT_DIR/$step.tmp" 2>/dev/null || return 0
  echo "$sum" >"$SHIRABE_CHECKPOINT_DIR/$step.tmp/sum"
  mv "$SHIRABE_CHECKPOINT_DIR/$step.tmp" "$SHIRABE_CHECKPOINT_DIR/$step"
}
stop=0
trap 'stop=1' TERM
step=0 sum=0
if [ -n "$SHIRABE_RESUME_FROM" ]; then
  step=${SHIRABE_RESUME_FROM##*/}
  sum=$(cat "$SHIRABE_RESUME_FROM/sum")
fi
while [ $step -lt 20 ]; do
  sleep 0.1
  step=$((step + 1)) sum=$((sum + step))
  echo "{\"step\": $step, \"metrics\": {\"loss\": $sum}}" >>"$SHIRABE_METRICS_FILE"
  save
  [ $stop = 0 ] || exit 75
done
echo '{"done": true}' >>"$SHIRABE_METRICS_FILE"
)";

constexpr char kCareless[] = R"(
trap '' TERM
for i in 1 2 3 4 5 6 7 8 9 10; do echo "loss=$i"; sleep 0.1; done
)";

class RehearseTest : public testing::Test {
 protected:
  std::string Experiment(const std::string& script) {
    const std::string path = cli_.Write("trial.sh", script);
    return cli_.Write("experiment.yaml",
                      Yaml({.name = "rehearsed", .trials = 5, .container = ScriptCommand(path)}));
  }

  Cli cli_;
};

TEST_F(RehearseTest, AProgramThatSavesAndResumesIsSafe) {
  const Outcome outcome =
      cli_.Run({"rehearse", "-f", Experiment(kCareful), "--notice", "5", "-o", "json"});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  const auto report = nlohmann::json::parse(outcome.out, nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(report.is_object()) << outcome.out;
  EXPECT_EQ(report["safe"], true);
  EXPECT_EQ(report["continuity"]["different"], 0) << outcome.out;
  EXPECT_EQ(report["checkpoints"], 20);
  ASSERT_GE(report["lostAttempts"].size(), 1u);
  const auto& first = report["lostAttempts"][0];
  EXPECT_EQ(first["noticeSeconds"], 0);
  EXPECT_GT(first["savedStep"], 0);
  EXPECT_EQ(first["resumedFromStep"], first["savedStep"]);
  EXPECT_EQ(first["firstStep"], first["savedStep"].get<int>() + 1);
  EXPECT_FALSE(cli_.Exists("home/trials")) << "nothing of a rehearsal is kept";
  EXPECT_FALSE(cli_.Exists("home/shirabe.db"));
}

// The first run reads what the others find in a cache, or the machine was busy: what is planned by
// it comes when all is done.
TEST_F(RehearseTest, AProgramThatIsQuickerTheSecondTimeIsTakenAwayAllTheSame) {
  const std::string slow = absl::StrReplaceAll(
      kCareful,
      {{"sleep 0.1", "sleep $pause"},
       {"stop=0\n", "stop=0 pause=0.05\n[ -e \"" + cli_.Path("cached") + "\" ] || pause=0.4\n"},
       {"echo '{\"done\": true}'",
        "touch \"" + cli_.Path("cached") + "\"\necho '{\"done\": true}'"}});
  const Outcome outcome =
      cli_.Run({"rehearse", "-f", Experiment(slow), "--reclaims", "1", "-o", "json"});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  const auto report = nlohmann::json::parse(outcome.out, nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(report.is_object()) << outcome.out;
  EXPECT_EQ(report["lostAttempts"].size(), 1u) << outcome.out;
}

// The program is nowhere but in a store; nothing else goes there.
TEST_F(RehearseTest, TheProgramOfAStoreIsRehearsed) {
  ASSERT_TRUE(MakeDirs(cli_.Path("root")).ok());
  ASSERT_TRUE(MakeDirs(cli_.Path("program")).ok());
  cli_.Write("program/trial.sh", kCareful);
  const std::string stores =
      cli_.Write("stores.yaml", absl::StrCat("stores:\n  - {name: kept, type: directory, root: ",
                                             cli_.Path("root"), ", namespaces: ['*']}\n"));
  std::string yaml =
      Yaml({.name = "rehearsed", .trials = 5, .container = ScriptCommand("trial.sh")});
  yaml = absl::StrReplaceAll(
      yaml, {{"\nspec:\n", "\nspec:\n  shirabe: {artifacts: {store: kept, outputs: true}}\n"}});
  const std::string file = cli_.Write("stored.yaml", yaml);
  const Outcome outcome = cli_.Run({"rehearse", "-f", file, "--stores", stores, "--code",
                                    cli_.Path("program"), "--reclaims", "1", "-o", "json"});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\"safe\": true"));
  int64_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(cli_.Path("root"))) {
    files += entry.is_regular_file() ? 1 : 0;
  }
  EXPECT_EQ(files, 1) << "the package, and no copy of what the trial saved";
}

TEST_F(RehearseTest, OneThatIgnoresSigtermAndNeverSavesFailsWithBothReasons) {
  const Outcome outcome = cli_.Run({"rehearse", "-f", Experiment(kCareless)});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("it never saves"), HasSubstr("it ignores SIGTERM"),
                                 HasSubstr("fix: "), HasSubstr("not safe")));
}

TEST_F(RehearseTest, OneThatFailsUndisturbedIsNotRehearsed) {
  const Outcome outcome = cli_.Run({"rehearse", "-f", Experiment("echo no such data\nexit 3\n")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("does not succeed even undisturbed"), HasSubstr("no such data")));
}

TEST_F(RehearseTest, ParametersAreThoseOfTheSearchSpace) {
  const std::string file = Experiment("test \"$1\" = 0.25 && echo loss=1\n");
  EXPECT_EQ(cli_.Run({"rehearse", "-f", file, "--param", "lr=7"}).code, 2);
  EXPECT_EQ(cli_.Run({"rehearse", "-f", file, "--param", "rate=0.5"}).code, 2);
  EXPECT_EQ(cli_.Run({"rehearse", "-f", file, "--tolerance", "much"}).code, 2);
  // It ends before anything can be taken away, and so proves nothing; but it was given the value.
  const Outcome outcome = cli_.Run({"rehearse", "-f", file, "--param", "lr=0.25"});
  EXPECT_THAT(outcome.err, HasSubstr("2/2 its machine is taken away"));
}

TEST_F(RehearseTest, WhatFollowsASuccessIsNotRehearsed) {
  const std::string job = absl::StrCat(
      "{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {restartPolicy: Never, "
      "containers: "
      "[{name: deploy, image: none, command: [touch, ",
      cli_.Path("deployed"), "]}]}}}}");
  const std::string file = cli_.Write(
      "experiment.yaml",
      Yaml({.trials = 1,
            .container = ScriptCommand(cli_.Write("trial.sh", kCareful)),
            .more = absl::StrCat("shirabe: {onSuccess: {job: ", job, "}, notifications: ",
                                 "[{webhook: {endpoint: nowhere}, events: [Succeeded]}]}")}));
  const Outcome outcome = cli_.Run({"rehearse", "-f", file, "--reclaims", "1"});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_FALSE(cli_.Exists("deployed"));
}

TEST_F(RehearseTest, AnInterruptEndsIt) {
  auto run = cli_.Start({"rehearse", "-f", Experiment("touch \"$DIR/there\"; exec sleep 100\n")});
  ASSERT_TRUE(Eventually([&] { return cli_.Exists("there"); })) << run->Err();
  run->Signal(SIGINT);
  EXPECT_EQ(run->Wait().code, 130);
}

}  // namespace
}  // namespace shirabe::cmd
