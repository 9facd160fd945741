// Every verb that speaks to a client, twice: over a store of this machine, and over a server in
// another process, with another home. Each script is a list of commands with the exit codes that
// they must have both times; what they print must be the same, but for times, tokens, processes and
// callers, and for when a schedule is due next, which only a server writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <re2/re2.h>

#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "tests/import/optuna_tables.h"
#include "tests/integration/cli.h"
#include "tests/support/eventually.h"

namespace shirabe::cmd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

using Words = std::vector<std::string>;

struct VerbStep {
  Words words;
  int code = 0;
};
constexpr char kVerbsAsked[] = R"(apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: asked}
spec:
  objective: {type: minimize, objectiveMetricName: loss}
  algorithm: {algorithmName: random}
  maxTrialCount: 4
  parameters:
    - {name: x, parameterType: double, feasibleSpace: {min: "0", max: "1"}}
    - {name: kind, parameterType: categorical, feasibleSpace: {list: [plain, "with blank"]}}
  shirabe: {askAndTell: true, seed: 3}
)";

std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

// Without what differs from run to run.
std::string Settled(std::string text) {
  RE2::GlobalReplace(&text, R"(\d{4}-\d\d-\d\dT[0-9:.]+Z)", "TIME");
  RE2::GlobalReplace(&text, R"([0-9a-f]{32,})", "HEX");
  RE2::GlobalReplace(&text, R"(\b\d+(\.\d+)?(ms|s|m|h)(\d+[smh])?\b)", "AGE");
  RE2::GlobalReplace(&text, R"re("(seconds|wastedSeconds)": [0-9.e-]+,\n *)re", "");
  RE2::GlobalReplace(&text, R"(\bseconds: [0-9.e-]+)", "seconds: N");
  RE2::GlobalReplace(&text, R"(process \d+ on \S+)", "PROCESS");
  RE2::GlobalReplace(&text, R"(Run by: [^\n]*)", "Run by: OWNER");  // only a server is one here
  RE2::GlobalReplace(&text, R"re((?m)^( *"?nextScheduleTime"?: "?TIME"?,?|Next:[^\n]*)\n)re", "");
  RE2::GlobalReplace(&text, R"((asked-\d+-a\d+ [^\n]* - +\d+ +\S+ +\S+ +)\d+\.\d)", R"(\1SECONDS)");
  RE2::GlobalReplace(&text, R"(asked for by \S+:)", "asked for by WHO:");
  RE2::GlobalReplace(&text, R"(\S+ \((command line|grpc)\)|\bname: \S+\s+door: [^\n]*)", "WHO");
  RE2::GlobalReplace(&text, R"re("name": "[^"]*",\s*"door": "[^"]*")re", "WHO");
  RE2::GlobalReplace(&text, R"re((actor"?: |; by )[^\n]+)re", R"(\1WHO)");
  RE2::GlobalReplace(&text, R"(\byearly-r[0-9a-z]+)", "yearly-NOW");  // named after the second
  RE2::GlobalReplace(&text, R"( +)", " ");
  return text;
}

// One of the two ways: a home, and what every command is given on top.
class Way {
 public:
  virtual ~Way() = default;
  virtual Outcome Run(Words words) = 0;
};

class Local : public Way {
 public:
  Outcome Run(Words words) override { return cli_.Run(words); }

 private:
  Cli cli_;
};

class Remote : public Way {
 public:
  Remote() {
    const std::string ready = server_home_.Path("ready");
    server_ = server_home_.Start(
        {"serve", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--ready-file", ready});
    EXPECT_TRUE(Eventually([&] { return server_home_.Exists("ready"); })) << server_->Err();
    const auto tree = nlohmann::json::parse(ReadFile(ready).value_or("{}"));
    address_ = tree.value("grpc", "");
    token_file_ = tree.value("tokenFile", "");
  }

  Outcome Run(Words words) override {
    words.insert(words.begin(), {"--server", address_, "--token-file", token_file_});
    return cli_.Run(words);
  }

  const std::string& address() const { return address_; }
  const std::string& token_file() const { return token_file_; }
  Cli& cli() { return cli_; }
  void EndServer() {
    server_->Signal(SIGKILL);
    server_->Wait();
  }

 private:
  Cli server_home_;
  Cli cli_;
  std::string address_;
  std::string token_file_;
  std::unique_ptr<Running> server_;
};

class VerbsTest : public testing::Test {
 protected:
  VerbsTest() {
    asked_ = files_.Write("asked.yaml", kVerbsAsked);
    larger_ =
        files_.Write("larger.yaml", Replaced(kVerbsAsked, "maxTrialCount: 4", "maxTrialCount: 9"));
    other_ = files_.Write("other.yaml",
                          Replaced(kVerbsAsked, "parameterType: double", "parameterType: int"));
    wrong_ = files_.Write("wrong.yaml", Replaced(kVerbsAsked, "minimize", "minimise"));
  }

  // The outputs of the steps, which were the same both ways.
  std::vector<std::string> Both(const std::vector<VerbStep>& steps) {
    const std::vector<std::string> local = Play(local_, steps, "local");
    const std::vector<std::string> remote = Play(remote_, steps, "remote");
    for (size_t i = 0; i < steps.size(); ++i) {
      EXPECT_EQ(local[i], remote[i]) << testing::PrintToString(steps[i].words);
    }
    return local;
  }
  std::string One(const Words& words, int code = 0) {
    return Both(std::vector<VerbStep>{{words, code}})[0];
  }

  static std::vector<std::string> Play(Way& way, const std::vector<VerbStep>& steps,
                                       const std::string& name) {
    std::vector<std::string> outputs;
    for (const VerbStep& step : steps) {
      const Outcome outcome = way.Run(step.words);
      EXPECT_EQ(outcome.code, step.code)
          << name << " " << testing::PrintToString(step.words) << outcome.out << outcome.err;
      if (step.code == 0) {
        EXPECT_THAT(outcome.err, Not(HasSubstr("error:")));
      }
      outputs.push_back(Settled(outcome.out));
    }
    return outputs;
  }

  // Until it prints this both ways: what another process owns takes a moment.
  void Await(const Words& words, const std::string& text) {
    for (Way* way : {static_cast<Way*>(&local_), static_cast<Way*>(&remote_)}) {
      std::string printed;
      for (int i = 0; i < 500 && printed != text; ++i) {
        if (i > 0) Pause(absl::Milliseconds(20));
        printed = way->Run(words).out;
      }
      EXPECT_EQ(printed, text);
    }
  }

  // Three trials, of which the second has failed and the third is the best.
  void PlayThreeTrials() {
    Both({{{"apply", "-f", asked_}},
          {{"ask", "asked", "--caller", "w"}},
          {{"report", "asked/1", "loss=0.5", "--step", "1"}},
          {{"tell", "asked/1", "loss=0.4", "--step", "2"}},
          {{"ask", "asked", "--caller", "w"}},
          {{"tell", "asked/2", "--failed", "--message", "it burns"}},
          {{"ask", "asked", "--caller", "w"}},
          {{"tell", "asked-3", "loss=0.1"}}});
  }

  Cli files_;
  std::string asked_, larger_, other_, wrong_;
  Local local_;
  Remote remote_;
};

TEST_F(VerbsTest, ApplyDiffAndScaleSayWhatChanges) {
  EXPECT_THAT(One({"diff", "-f", asked_}, 1), HasSubstr("does not exist"));
  EXPECT_EQ(One({"apply", "-f", asked_}), "experiment/asked created\n");
  EXPECT_EQ(One({"apply", "-f", asked_}), "experiment/asked unchanged\n");
  One({"create", "-f", asked_}, 4);
  EXPECT_EQ(One({"diff", "-f", asked_}), "");
  EXPECT_EQ(One({"diff", "-f", larger_}, 1),
            "--- default/asked\n- spec.maxTrialCount: 4\n+ spec.maxTrialCount: 9\n");
  EXPECT_THAT(One({"diff", "-f", other_}, 1), HasSubstr("another search"));
  EXPECT_THAT(One({"diff", "-f", larger_, "-o", "json"}, 1), HasSubstr("\"changeable\": true"));
  One({"diff", "-f", wrong_}, 5);
  One({"diff", "-f", "/nowhere.yaml"}, 3);
  One({"diff"}, 2);
  One({"apply", "-f", other_}, 4);
  One({"apply", "-f", wrong_}, 5);
  Both({{{"scale", "asked", "--max-trials", "9"}}, {{"scale", "asked"}, 2}});
  Both({{{"scale", "asked", "--param", "x=..0.5"}},
        {{"scale", "asked", "--param", "y=..0.5"}, 5},
        {{"scale", "asked", "--param", "x"}, 5},
        {{"scale", "asked", "--param", "x=a,b"}, 5}});
  One({"scale", "nobody", "--parallel", "2"}, 3);
}

TEST_F(VerbsTest, SchedulesAreMadeSteeredAndDeleted) {
  const std::string spec(kVerbsAsked + std::string(kVerbsAsked).find("spec:\n"));
  std::string indented;
  for (const auto line : absl::StrSplit(spec, '\n', absl::SkipEmpty())) {
    absl::StrAppend(&indented, "    ", line, "\n");
  }
  const std::string text =
      "apiVersion: kubeflow.org/v1beta1\nkind: ScheduledExperiment\nmetadata: {name: yearly}\n"
      "spec:\n  schedule: \"0 0 1 1 *\"\n  experimentTemplate:\n" +
      indented;
  const std::string yearly = files_.Write("yearly.yaml", text);
  const std::string later = files_.Write("later.yaml", Replaced(text, "0 0 1 1 *", "0 9 1 1 *"));
  const std::string odd = files_.Write("odd.yaml", Replaced(text, "0 0 1 1 *", "0 9 1 13 *"));
  const std::string mixed = files_.Write("mixed.yaml", kVerbsAsked + std::string("---\n") + text);
  EXPECT_EQ(One({"apply", "-f", mixed}), "experiment/asked created\nschedule/yearly created\n");
  EXPECT_EQ(One({"apply", "-f", yearly}), "schedule/yearly unchanged\n");
  EXPECT_EQ(One({"apply", "-f", later}), "schedule/yearly changed\n");
  One({"apply", "-f", odd}, 5);
  One({"create", "-f", yearly}, 4);
  EXPECT_EQ(One({"apply", "-f", yearly, "-o", "name"}), "schedule/yearly\n");
  EXPECT_THAT(One({"apply", "-f", yearly, "-o", "json"}), HasSubstr("ScheduledExperiment"));
  EXPECT_THAT(One({"get", "schedules"}), HasSubstr("yearly 0 0 1 1 * Etc/UTC False 0"));
  EXPECT_EQ(One({"get", "schedule", "yearly", "-o", "name"}), "schedule/yearly\n");
  EXPECT_THAT(One({"get", "schedules", "-A", "-o", "yaml"}), HasSubstr("schedule: 0 0 1 1 *"));
  Both({{{"pause", "schedule/yearly"}}, {{"pause", "schedule/yearly"}}});
  EXPECT_THAT(One({"get", "schedules"}), HasSubstr("Etc/UTC True"));
  EXPECT_THAT(One({"describe", "schedule", "yearly"}),
              AllOf(HasSubstr("Suspended: yes"), HasSubstr("ScheduleSuspended")));
  One({"create", "--from", "schedule/yearly", "-o", "name"});
  EXPECT_THAT(One({"describe", "schedule/yearly"}), HasSubstr("Started: 1"));
  Both({{{"resume", "schedule/yearly"}},
        {{"create", "--from", "yearly"}, 2},
        {{"create", "--from", "schedule/none"}, 3},
        {{"create", "--from", "schedule/yearly", "-f", yearly}, 2},
        {{"pause", "schedule/none"}, 3},
        {{"pause", "schedule/No"}, 2},
        {{"describe", "schedule", "none"}, 3},
        {{"get", "schedules", "-w"}, 2}});
  EXPECT_EQ(One({"delete", "schedule/yearly"}), "schedule/yearly deleted\n");
  One({"delete", "schedule", "yearly"}, 3);
  EXPECT_EQ(One({"delete", "schedule/yearly", "--ignore-not-found"}), "");
}

TEST_F(VerbsTest, AskReportAndTellRunAnExperiment) {
  One({"apply", "-f", asked_});
  const std::string first = One({"ask", "asked", "--caller", "w", "-o", "json"});
  EXPECT_THAT(first, HasSubstr("\"trial\": \"asked-1\""));
  EXPECT_THAT(first, HasSubstr("\"token\": \"HEX\""));
  EXPECT_EQ(One({"ask", "asked", "--caller", "w", "-o", "json"}), first);
  EXPECT_THAT(One({"ask", "asked", "--caller", "w", "-o", "env"}),
              MatchesRegex("SHIRABE_TRIAL=asked-1\nSHIRABE_ATTEMPT=1\nSHIRABE_TRIAL_TOKEN=HEX\n"
                           "SHIRABE_PARAM_X=0[.0-9]*\nSHIRABE_PARAM_KIND=.*\n"));
  EXPECT_THAT(One({"ask", "asked", "--caller", "w", "-o", "args"}), testing::StartsWith("--x="));
  EXPECT_EQ(One({"report", "asked/1", "loss=0.5", "--step", "3"}), "");
  EXPECT_THAT(One({"report", "asked/1", "loss=0.4", "--step", "4", "-o", "json"}),
              HasSubstr("\"stop\": false"));
  One({"report", "asked/1"}, 2);
  One({"report", "asked/1", "loss"}, 2);
  One({"report", "asked/1", "los=1"}, 5);
  EXPECT_EQ(One({"tell", "asked/1", "loss=0.25"}), "trial/asked-1 Succeeded loss=0.25\n");
  EXPECT_EQ(One({"tell", "asked/1", "loss=0.25"}), "trial/asked-1 Succeeded loss=0.25\n");
  One({"tell", "asked/1", "loss=0.75"}, 4);
  One({"tell", "asked/1", "loss=0.25", "--token", "00"}, 6);
  One({"tell", "asked/9", "loss=1"}, 3);
  One({"tell", "asked/1", "--failed", "--completed"}, 2);
  One({"ask", "asked", "--caller", "w"});
  One({"report", "asked/2", "loss=0.5"});
  One({"stop", "asked/2"});
  EXPECT_THAT(One({"tell", "asked/2", "loss=0.5"}), HasSubstr("trial/asked-2 EarlyStopped"));
  One({"tell", "asked/2", "loss=0.1"}, 4);
  One({"ask", "asked", "--caller", "w"});
  One({"tell", "asked/3"}, 2);
  EXPECT_THAT(One({"tell", "asked/3", "loss=0.5"}), HasSubstr("trial/asked-3 Succeeded"));
  One({"plot", "asked", "curves", "-o", "-", "--metric", "los"}, 3);
  One({"get", "trials", "asked", "--filter", "state=Complete"}, 2);
}

TEST_F(VerbsTest, AnExperimentThatIsToldToItsEndHasNoFurtherTrial) {
  PlayThreeTrials();
  Both({{{"ask", "asked", "--caller", "v"}},
        {{"ask", "asked", "--caller", "u", "--wait", "1s"}, 124},
        {{"tell", "asked/4", "loss=nan"}},
        {{"wait", "asked", "--timeout", "20s"}},
        {{"ask", "asked", "--caller", "v"}, 3}});
  EXPECT_THAT(One({"ask", "asked", "-o", "json"}, 3), HasSubstr("\"ended\": true"));
  One({"retry", "asked/2"}, 4);
  One({"scale", "asked", "--max-trials", "9"}, 4);
  One({"apply", "-f", larger_}, 4);
  Both({{{"stop", "asked"}}, {{"stop", "asked"}}, {{"cancel", "asked"}}});
}

TEST_F(VerbsTest, WaitKnowsItsConditions) {
  One({"wait", "asked"}, 3);
  EXPECT_EQ(One({"wait", "asked", "--for", "deleted"}), "experiment/asked deleted\n");
  PlayThreeTrials();
  EXPECT_EQ(One({"wait", "asked/1", "asked/3", "--for", "succeeded"}),
            "trial/asked-1 succeeded\ntrial/asked-3 succeeded\n");
  Both({{{"wait", "asked/2", "--for", "failed"}},
        {{"wait", "asked/2", "--for", "succeeded"}, 8},
        {{"wait", "asked/2", "--for", "completed"}},
        {{"wait", "asked", "--for", "best<0.2"}},
        {{"wait", "asked", "--for", "best=loss<0.2"}},
        {{"wait", "asked", "--for", "metric=loss<0.2"}},
        {{"wait", "asked/3", "--for", "loss<=0.1"}},
        {{"wait", "asked/1", "--for", "loss<=0.1"}, 8},
        {{"wait", "asked", "--for", "best<0.01", "--timeout", "100ms"}, 124},
        {{"wait", "asked", "--timeout", "0.1"}, 124},
        {{"wait", "asked", "--for", "acc>1"}, 2},
        {{"wait", "asked", "--for", "weather"}, 2},
        {{"wait", "asked", "--timeout", "soon"}, 2},
        {{"wait", "asked/7"}, 3}});
}

TEST_F(VerbsTest, RetryGivesThePointToTheNextWhoAsks) {
  PlayThreeTrials();
  const auto printed = Both({{{"retry", "asked/77"}, 3},
                             {{"retry", "asked/1"}},
                             {{"ask", "asked", "--caller", "v"}},
                             {{"retry", "asked/4"}, 4},
                             {{"retry", "asked/1"}, 4}});  // its four trials have been made
  EXPECT_THAT(printed[2], HasSubstr("asked-4"));
  EXPECT_THAT(local_.Run({"describe", "trial", "asked/4"}).out,
              HasSubstr("the point of trial 1, tried again"));
}

TEST_F(VerbsTest, TryGivesThePointToTheNextWhoAsks) {
  Both({{{"apply", "-f", asked_}},
        {{"try", "asked", "--param", "x=0.25", "-p", "kind=with blank"}},
        {{"try", "asked", "-p", "x=3"}, 5},
        {{"try", "asked", "-p", "y=3"}, 5},
        {{"try", "asked", "-p", "x"}, 2},
        {{"try", "asked", "-p", "x=0.1", "-p", "x=0.2"}, 2},
        {{"try", "asked"}, 2},
        {{"try", "nothing", "-p", "x=0.1"}, 3}});
  EXPECT_THAT(One({"ask", "asked", "--caller", "w", "-o", "args"}), HasSubstr("x=0.25"));
  Both({{{"try", "asked", "-p", "x=0.5", "--like", "1"}},
        {{"try", "asked", "-p", "x=0.5", "--like", "asked/9"}, 3},
        {{"try", "asked", "-p", "x=0.5", "--like", "other/1"}, 2}});
  const std::string second = One({"ask", "asked", "--caller", "v", "-o", "args"});
  EXPECT_THAT(second, HasSubstr("x=0.5"));
  EXPECT_THAT(second, HasSubstr("with blank")) << "as the trial that it is like";
  EXPECT_THAT(One({"describe", "trial", "asked/2"}), HasSubstr("the others as in trial 1"));
}

TEST_F(VerbsTest, StopEndsOneTrial) {
  Both({{{"apply", "-f", asked_}},
        {{"ask", "asked", "--caller", "w"}},
        {{"report", "asked/1", "loss=0.5", "--step", "1"}},
        {{"stop", "asked/1"}},
        {{"stop", "asked/9"}, 3},
        {{"ask", "asked", "--caller", "v"}},
        {{"wait", "asked/1", "--for", "completed"}},
        {{"stop", "asked/1"}}});
  EXPECT_THAT(
      One({"describe", "trial", "asked/1"}),
      AllOf(HasSubstr("State: EarlyStopped"), HasSubstr("(StoppedByUser: stopped by a user)")));
  EXPECT_THAT(One({"best", "asked", "-o", "json"}), HasSubstr("0.5"));
}

TEST_F(VerbsTest, NoteAndTagsAreKept) {
  PlayThreeTrials();
  Both({{{"note", "asked", "# Plan\nlr *first*", "--tag", "thesis", "--tag", "gpu"}},
        {{"note", "asked/1", "odd", "--tag", "again"}},
        {{"note", "asked", "--untag", "gpu"}},
        {{"note", "asked/1", "both", "--remove"}, 2},
        {{"note", "asked", "--tag", "a,b"}, 5},
        {{"note", "asked/77"}, 3}});
  Await({"note", "asked"}, "tags: thesis\n# Plan\nlr *first*\n");
  Await({"note", "asked/1"}, "tags: again\nodd\n");
  Both({{{"note", "asked/1", "--remove"}}});
  Await({"note", "asked/1"}, "tags: again\n");
  EXPECT_THAT(One({"describe", "exp", "asked"}), HasSubstr("Note:\n # Plan\n lr *first*\n"));
  EXPECT_THAT(One({"get", "trials", "asked", "-o", "json"}), HasSubstr("\"tags\": ["));
}

TEST_F(VerbsTest, CompareShowsWhatDiffers) {
  PlayThreeTrials();
  const std::string table = One({"compare", "asked/1", "asked/3"});
  EXPECT_THAT(table, HasSubstr("FIELD asked-1 asked-3\nstate Succeeded Succeeded\nloss 0.4 0.1\n"));
  EXPECT_THAT(One({"compare", "asked/1", "asked/3", "-o", "json"}),
              HasSubstr("\"kind\": \"Comparison\""));
  Both({{{"apply", "-f", files_.Write("b.yaml", Replaced(kVerbsAsked, "asked", "second"))}},
        {{"ask", "second", "--caller", "w"}},
        {{"tell", "second/1", "loss=0.3"}}});
  EXPECT_THAT(One({"compare", "asked", "second"}), HasSubstr("\nbest of 1 0.4 0.3\n"));
  Both({{{"compare", "asked", "second/1"}, 2},
        {{"compare", "asked"}, 2},
        {{"retry", "asked"}, 2},
        {{"compare", "asked/1", "asked/9"}, 3}});
}

TEST_F(VerbsTest, EveryReaderReadsTheSame) {
  PlayThreeTrials();
  const std::vector<Words> readers = {{"get", "exp"},
                                      {"get", "exp", "-A"},
                                      {"get", "exp", "asked", "-o", "name"},
                                      {"get", "trials", "asked"},
                                      {"get", "trials", "asked", "-o", "wide"},
                                      {"get", "trials", "asked", "-o", "json"},
                                      {"get", "trials", "asked", "--sort-by", "loss"},
                                      {"get", "checkpoints", "asked/1"},
                                      {"get", "metrics", "asked/1", "-o", "yaml"},
                                      {"best", "asked"},
                                      {"best", "asked", "-o", "args"},
                                      {"export", "asked"},
                                      {"export", "asked", "-o", "jsonl"},
                                      {"suggest", "asked", "--dry-run", "-k", "2"},
                                      {"importance", "asked", "-o", "json"},
                                      {"importance", "asked", "--method", "ped"},
                                      {"ablation", "asked", "-o", "yaml"},
                                      {"plot", "asked", "history", "-o", "-"},
                                      {"plot", "asked", "slice", "-o", "-", "-p", "kind"},
                                      {"plot", "asked", "parallel", "-o", "-", "--log"},
                                      {"plot", "asked", "curves", "-o", "-"},
                                      {"plot", "asked", "importance", "-o", "-"},
                                      {"plot", "asked", "ablation", "-o", "-"},
                                      {"plot", "asked", "pdp", "-o", "-"},
                                      {"plot", "asked", "contour", "-o", "-"},
                                      {"events", "asked"},
                                      {"events", "-A", "-o", "json"},
                                      {"top"},
                                      {"top", "-o", "json"},
                                      {"top", "-A"}};
  for (const Words& words : readers) One(words);
  One({"get", "exp", "nobody"}, 3);
  One({"logs", "asked/9"}, 3);
  One({"logs", "asked/1", "--all-attempts", "--tail", "2"}, 2);
  One({"events", "asked", "-A"}, 2);
  One({"importance", "nobody"}, 3);
  One({"importance", "asked", "--method", "fanova"}, 2);
  One({"ablation", "asked", "--from", "99"}, 5);
  One({"plot", "asked", "pie", "-o", "-"}, 2);
  One({"plot", "asked", "history", "-o", "picture.png"}, 2);
  One({"plot", "asked", "slice", "-o", "-", "-p", "knd"}, 2);
  One({"plot", "asked", "pdp", "-o", "-", "-p", "knd"}, 5);
  One({"plot", "asked", "contour", "-o", "-", "-p", "x"}, 2);
  // Its bars are as long as the attempts were.
  const std::string picture = files_.Path("timeline.svg");
  EXPECT_EQ(One({"plot", "asked", "timeline", "-o", picture}), "");
  EXPECT_THAT(ReadFile(picture).value_or(""), HasSubstr("<svg "));
}

TEST_F(VerbsTest, WhatAnotherToolHasFoundIsImported) {
  const std::string table = files_.Write("t.csv", "lr,loss\n1,2\n3,1\n");
  const Words words = {"import", "csv", table, "--minimize", "loss"};
  EXPECT_THAT(Both({{words}, {words, 4}, {{"best", "t"}}})[0], HasSubstr("2 trials"));
}

// Studies of Optuna: one without trials, and two whose names give the same one.
constexpr char kStudies[] = R"sql(
INSERT INTO studies VALUES (1, 'empty'), (2, 'A b'), (3, 'a-b');
INSERT INTO study_directions SELECT study_id, 'MINIMIZE', 0 FROM studies;
INSERT INTO trials SELECT study_id, 0, study_id, 'COMPLETE', '2026-01-01 00:00:00',
  '2026-01-01 00:00:10' FROM studies WHERE study_id > 1;
INSERT INTO trial_params SELECT trial_id, trial_id, 'lr', 0.5, '{"name": "FloatDistribution",
  "attributes": {"low": 0, "high": 1, "log": false, "step": null}}' FROM trials;
INSERT INTO trial_values SELECT trial_id, 0, 0.5, 'FINITE' FROM trials;
)sql";

TEST_F(VerbsTest, AStudyThatCannotBeImportedKeepsNoOtherFromIt) {
  const std::string path = files_.Path("studies.db");
  import::WriteSqlite(path, import::kOptunaTables + std::string(kStudies));
  One({"import", "optuna", path, "--dry-run"}, 5);
  One({"import", "optuna", path}, 5);
  EXPECT_EQ(One({"get", "experiments", "-o", "name"}), "experiment/a-b\nexperiment/a-b-2\n");
}

TEST_F(VerbsTest, PausingResumingAndDeletingMayBeRepeated) {
  One({"apply", "-f", asked_});
  Both({{{"pause", "asked"}},
        {{"pause", "asked"}},
        {{"resume", "asked"}},
        {{"resume", "asked"}},
        {{"delete", "asked"}},
        {{"delete", "asked"}, 3},
        {{"delete", "asked", "--ignore-not-found"}},
        {{"pause", "asked"}, 3},
        {{"wait", "asked", "--for", "deleted"}}});
}

// It would be recorded, and change nothing.
TEST_F(VerbsTest, WhatHasEndedIsNotPausedOrResumed) {
  const std::string table = files_.Write("t.csv", "lr,loss\n1,2\n3,1\n");
  One({"import", "csv", table, "--minimize", "loss"});
  Both({{{"pause", "t"}, 4}, {{"resume", "t"}, 4}, {{"stop", "t"}}});
  EXPECT_THAT(One({"events", "t"}), Not(HasSubstr("Requested")));
}

// An editor that changes one line of its file.
TEST_F(VerbsTest, EditChangesWhatMayChange) {
  One({"apply", "-f", asked_});
  unsetenv("VISUAL");
  setenv("EDITOR", "sed -i 's/maxTrialCount: 4/maxTrialCount: 7/'", 1);
  EXPECT_THAT(One({"edit", "asked"}), HasSubstr("+ spec.maxTrialCount: 7\n"));
  setenv("EDITOR", "true", 1);
  EXPECT_EQ(One({"edit", "asked"}), "experiment/asked unchanged\n");
  setenv("EDITOR", "sed -i 's/maxTrialCount:.*/maxTrialCount: -1/'", 1);
  One({"edit", "asked"}, 5);
  setenv("EDITOR", "sed -i 's/maxTrialCount:.*/resumePolicy: Never/'", 1);
  One({"edit", "asked"}, 5);
  setenv("EDITOR", "false", 1);
  One({"edit", "asked"}, 1);
  One({"edit", "nobody"}, 3);
  unsetenv("EDITOR");
}

// ---- what only a server can do -----------------------------------------------------------------

TEST_F(VerbsTest, AServerThatIsStrangeGoneOrDenyingHasACodeOfItsOwn) {
  const std::string wrong = files_.Write("wrong.token", "0123456789abcdef0123456789abcdef\n");
  Cli& cli = remote_.cli();
  const Words get = {"get", "exp"};
  EXPECT_EQ(remote_.Run(get).code, 0);
  EXPECT_EQ(cli.Run({"get", "exp", "--server", remote_.address(), "--token-file", wrong}).code, 6);
  EXPECT_EQ(cli.Run({"get", "exp", "--server", remote_.address()}).code, 6);
  EXPECT_EQ(cli.Run({"get", "exp", "--server", "nonsense"}).code, 2);
  EXPECT_EQ(cli.Run({"get", "exp", "--server", remote_.address(), "--db", "memory:"}).code, 2);
  for (const char* verb : {"run", "rehearse"}) {
    const Outcome refused = cli.Run({verb, "-f", asked_, "--server", remote_.address()});
    EXPECT_EQ(refused.code, 2) << verb;
    EXPECT_THAT(refused.err, HasSubstr("works on this machine")) << verb;
  }
  const Outcome refused =
      cli.Run({"cp", "asked/1", "new", "--server", remote_.address(), "--stores", "stores.yaml"});
  EXPECT_EQ(refused.code, 2) << refused.err;
  // A server takes no packages.
  for (const Words& words : {Words{"upload", "."}, {"apply", "-f", asked_, "--code", "."}}) {
    const Outcome nowhere = remote_.Run(words);
    EXPECT_NE(nowhere.code, 0);
    EXPECT_THAT(nowhere.err, HasSubstr("--stores FILE"));
  }
  remote_.EndServer();
  const Outcome gone = remote_.Run(get);
  EXPECT_EQ(gone.code, 7);
  EXPECT_THAT(gone.err, HasSubstr(remote_.address()));
}

TEST_F(VerbsTest, AContextStandsForItsServer) {
  Cli& cli = remote_.cli();
  setenv("XDG_CONFIG_HOME", files_.Path("config").c_str(), 1);
  const auto set = [&](const Words& more) {
    Words words = {"config", "set-context"};
    words.insert(words.end(), more.begin(), more.end());
    return cli.Run(words);
  };
  EXPECT_EQ(cli.Run({"config", "current-context"}).code, 3);
  EXPECT_EQ(set({"here"}).code, 2);
  EXPECT_EQ(set({"here", "--server", remote_.address(), "--token-file", remote_.token_file()}).out,
            "context/here created\n");
  EXPECT_EQ(remote_.Run({"apply", "-f", asked_}).code, 0);
  EXPECT_THAT(cli.Run({"get", "exp", "--context", "here"}).out, HasSubstr("asked"));
  EXPECT_EQ(cli.Run({"get", "exp"}).out, "");
  EXPECT_EQ(cli.Run({"get", "exp", "--context", "here2"}).code, 3);
  EXPECT_EQ(cli.Run({"config", "use-context", "here"}).code, 0);
  EXPECT_THAT(cli.Run({"get", "exp"}).out, HasSubstr("asked"));
  EXPECT_EQ(cli.Run({"config", "current-context"}).out, "here\n");
  EXPECT_THAT(cli.Run({"__complete", "--context", ""}).out, HasSubstr("here"));
  // A flag and the environment win over the file.
  EXPECT_EQ(cli.Run({"get", "exp", "--db", "memory:"}).out, "");
  EXPECT_EQ(set({"here", "-n", "elsewhere"}).out, "context/here changed\n");
  EXPECT_EQ(cli.Run({"get", "exp"}).out, "");
  EXPECT_THAT(cli.Run({"get", "exp", "-n", "default"}).out, HasSubstr("asked"));
  const auto list = cli.Json({"config", "get-contexts", "-o", "json"});
  EXPECT_EQ(list["items"][0]["server"], remote_.address());
  EXPECT_EQ(cli.Run({"config", "delete-context", "here"}).code, 0);
  EXPECT_EQ(cli.Run({"config", "delete-context", "here"}).code, 3);
  std::ofstream(files_.Path("config") + "/shirabe/config.yaml") << "contexts:\n- nmae: x\n";
  const Outcome broken = cli.Run({"get", "exp"});
  EXPECT_EQ(broken.code, 2);
  EXPECT_THAT(broken.err, HasSubstr("config.yaml:2:3: unknown field \"nmae\""));
  unsetenv("XDG_CONFIG_HOME");
}

TEST_F(VerbsTest, DoctorSaysWhatIsWrong) {
  const Outcome well = remote_.Run({"doctor"});
  EXPECT_EQ(well.code, 0) << well.out << well.err;
  EXPECT_THAT(well.out, HasSubstr("may use every namespace"));
  const auto checks = remote_.cli().Json({"doctor", "-o", "json"});
  EXPECT_EQ(checks["items"][0]["check"], "home");
  EXPECT_EQ(checks["items"][0]["state"], "ok");
  const std::string wrong = files_.Write("wrong.token", "0123456789abcdef0123456789abcdef\n");
  const Outcome denied =
      remote_.cli().Run({"doctor", "--server", remote_.address(), "--token-file", wrong});
  EXPECT_EQ(denied.code, 1);
  EXPECT_THAT(denied.out, HasSubstr("--token-file FILE"));
  remote_.EndServer();
  const Outcome gone = remote_.Run({"doctor"});
  EXPECT_EQ(gone.code, 1);
  EXPECT_THAT(gone.out, HasSubstr("shirabe serve"));
}

}  // namespace
}  // namespace shirabe::cmd
