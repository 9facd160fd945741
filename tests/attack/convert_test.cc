// Files of other systems are written by others: what is deep, long, wrong or full of tricks is
// refused in a moment with its place, and nothing of a text is run or expanded on the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "tests/artifacts/archives.h"
#include "tests/integration/cli.h"

namespace shirabe::cmd {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

using Words = std::vector<std::string>;

class ConvertAttack : public testing::Test {
 protected:
  // Refused with code 5 within seconds, and with these words.
  void ExpectRefused(const std::string& text, const std::string& words) {
    const std::string path = cli_.Write("hostile.yaml", text);
    const absl::Duration began = RealClock()->Monotonic();
    for (const Words& call :
         {Words{"convert", "-f", path}, Words{"validate", "-f", path}, Words{"run", "-f", path}}) {
      const Outcome outcome = cli_.Run(call);
      EXPECT_EQ(outcome.code, 5) << outcome.err.substr(0, 500);
      EXPECT_THAT(outcome.err, HasSubstr(words)) << call[0];
      EXPECT_EQ(outcome.out, "");
    }
    EXPECT_LT(RealClock()->Monotonic() - began, absl::Seconds(30));
  }

  Cli cli_;
};

TEST_F(ConvertAttack, WhatIsTooDeepTooLongOrTooManyIsRefused) {
  ExpectRefused("trainingInput: " + std::string(5'000, '[') + "\n", "more than 64 levels");
  // Longer than a specification may be: not read to its end.
  const std::string endless = "trainingInput: {args: [" + std::string(2 << 20, 'a') + "]}\n";
  const Outcome outcome = cli_.Run({"convert", "-f", cli_.Write("endless.yaml", endless)});
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("is larger than"));
  std::string keys = "method: random\nmetric: {name: a}\nparameters:\n";
  for (int i = 0; i < 3'000; ++i) absl::StrAppend(&keys, "  p", i, ": {min: 0, max: 1}\n");
  ExpectRefused(keys, "3000 keys");
}

TEST_F(ConvertAttack, ArgsAreNotMultipliedWithoutABound) {
  std::string sweep = "method: random\nprogram: t\nmetric: {name: a}\nparameters:\n";
  for (int i = 0; i < 900; ++i) absl::StrAppend(&sweep, "  p", i, ": {min: 0, max: 1}\n");
  absl::StrAppend(&sweep, "command: [",
                  absl::StrJoin(std::vector<std::string>(9'000, "'${args}'"), ", "), "]\n");
  ExpectRefused(sweep, "5000 words");
}

TEST_F(ConvertAttack, AliasesDoNotGrowIntoATreeOfAnySize) {
  std::string bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c < 'k'; ++c) {
    const std::string before(1, static_cast<char>(c - 1));
    absl::StrAppend(&bomb, std::string(1, c), ": &", std::string(1, c), " [*",
                    absl::StrJoin(std::vector<std::string>(10, before), ", *"), "]\n");
  }
  ExpectRefused("trainingInput: {}\n" + bomb, "100000");
}

TEST_F(ConvertAttack, NumbersAndNamesThatNoSearchCanHaveAreRefused) {
  const auto with = [](const std::string& param) {
    return "trainingInput: {pythonModule: a, hyperparameters: {params: [" + param + "]}}\n";
  };
  ExpectRefused(with("{parameterName: x, type: DOUBLE, minValue: .nan, maxValue: 1}"), "finite");
  ExpectRefused(with("{parameterName: x, type: DOUBLE, minValue: -.inf, maxValue: 1}"), "finite");
  ExpectRefused(with("{parameterName: 'a}b', type: INTEGER, minValue: 1, maxValue: 2}"),
                "${trialParameters.a} is bound by no");
  ExpectRefused(with("{parameterName: x, type: INTEGER, minValue: 1, maxValue: 1e300}"), "2^53");
  ExpectRefused("trainingInput: [1]\n", "must be a mapping");
  ExpectRefused("trainingInput: {}\nrun_cap: 1\n", "keep those of one");
}

TEST_F(ConvertAttack, WhatLooksLikeAVariableStaysText) {
  const std::string path = cli_.Write(
      "tricks.yaml",
      "trainingInput: {pythonModule: 'a; touch x', args: ['$(HOME)', '$$(HOME)', '`id`'],"
      " masterConfig: {imageUri: \"i\\e[31m\"}}\n");
  const Outcome outcome = cli_.Run({"convert", "-f", path});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              AllOf(HasSubstr("- a; touch x"), HasSubstr("$$(HOME)"), HasSubstr("$$$$(HOME)")));
  EXPECT_THAT(outcome.err, Not(HasSubstr("\x1b"))) << "a report must not steer a terminal";
}

TEST_F(ConvertAttack, AnExperimentThatIsToCrossIsHeldToTheSameRules) {
  const auto cross = [this](const std::string& text) {
    return cli_.Run(
        {"convert", "--to", "optimization-job", "-f", cli_.Write("experiment.yaml", text)});
  };
  const std::string head = "apiVersion: kubeflow.org/v1beta1\nkind: Experiment\n";
  for (const auto& [text, words] : std::vector<std::pair<std::string, std::string>>{
           {head + "spec: " + std::string(5'000, '[') + "\n", "more than 64 levels"},
           {head + "---\n" + head, "is required"},
           {"trainingInput: {}\n", "apiVersion"},
           {"", "no document"},
           {head + "metadata: {name: '../../etc'}\n", "metadata.name"}}) {
    const Outcome outcome = cross(text);
    EXPECT_EQ(outcome.code, 5) << text.substr(0, 100) << outcome.err.substr(0, 500);
    EXPECT_THAT(outcome.err, HasSubstr(words));
    EXPECT_EQ(outcome.out, "");
  }
  for (const Words& words :
       {Words{"--to", "job"}, Words{"--to", "optimization-job", "--from", "wandb"},
        Words{"--to", "optimization-job", "--name", "a"}}) {
    Words call = {"convert", "-f", cli_.Path("experiment.yaml")};
    call.insert(call.end(), words.begin(), words.end());
    EXPECT_EQ(cli_.Run(call).code, 2) << absl::StrJoin(call, " ");
  }
}

TEST_F(ConvertAttack, AJobThatACommandLineMakesIsHeldToTheSameRules) {
  for (const Words& words :
       {Words{"jobs", "submit", "training", "../../etc/passwd/and/what/follows/it/there"},
        Words{"jobs", "submit", "training", "---"},
        Words{"jobs", "submit", "training", "a", "--module-name", "m", "--labels", "x"},
        Words{"jobs", "submit", "training", "a", "--module-name", "m", "--master-accelerator",
              "two"},
        Words{"jobs", "submit", "training", "a", "--module-name", "m", "--package-path",
              "/no/such/folder"}}) {
    Words call = {"ai-platform"};
    call.insert(call.end(), words.begin(), words.end());
    EXPECT_EQ(cli_.Run(call).code, 2) << absl::StrJoin(call, " ");
  }
  const Outcome server = cli_.Run({"ai-platform", "jobs", "submit", "training", "a",
                                   "--module-name", "m", "--server", "192.0.2.1:1"});
  EXPECT_EQ(server.code, 1);
  EXPECT_THAT(server.err, HasSubstr("--master-image-uri"));
}

// ---- packages that a file or a command line names
// ------------------------------------------------

class PackagesAttack : public ConvertAttack {
 protected:
  PackagesAttack() {
    CHECK(MakeDirs(cli_.Path("root")).ok());
    setenv("THEIRS_ACCESS_KEY", "theirs", 1);
    setenv("THEIRS_SECRET_KEY", "very-secret", 1);
    stores_ = cli_.Write(
        "stores.yaml",
        absl::StrCat(
            "stores:\n- {name: kept, type: directory, root: ", cli_.Path("root"),
            ", namespaces: ['*']}\n- {name: theirs, type: gcs, bucket: theirs, endpoint: "
            "'http://192.0.2.1:1', namespaces: [blue], credentials: {environment: THEIRS}}\n"));
  }
  // A job with these archives of this machine.
  Outcome Submit(const std::string& archives) {
    return cli_.Run({"ai-platform", "jobs", "submit", "training", absl::StrCat("job", ++count_),
                     "--module-name", "trainer.task", "--packages", archives, "--stores", stores_,
                     "--stream-logs"});
  }
  Outcome SubmitBytes(const std::string& bytes) {
    return Submit(cli_.Write(absl::StrCat("package-", ++count_, ".tar.gz"), bytes));
  }

  std::string stores_;
  int count_ = 0;
};

TEST_F(PackagesAttack, OnlyObjectsOfBucketsAreNamed) {
  const auto job = [](const std::string& uris) {
    return "trainingInput: {pythonModule: a, packageUris: [" + uris + "]}\n";
  };
  for (const char* uri :
       {"/etc/passwd", "file:///etc/passwd", "http://169.254.169.254/latest", "s3://bucket/a",
        "gs://", "gs://bucket", "gs://bucket/", "gs:///a", "gs://../a/b", "gs://BUCKET/a",
        "'gs://bucket/a,gs://bucket/b'", "'gs://bucket/a@sha256:0'", "'gs://bucket/a b'",
        "'gs://bucket//etc/passwd'", "\"gs://bucket/a\\nb\"", "'-rf'"}) {
    ExpectRefused(job(uri), "packageUris");
  }
  ExpectRefused(job(std::string("gs://bucket/") + std::string(2'000, 'a')), "packageUris");
  ExpectRefused(job(absl::StrJoin(std::vector<std::string>(101, "gs://bucket/a"), ", ")),
                "more than 100");
}

// Nothing is asked of a store that the namespace may not use, and it is as good as none.
TEST_F(PackagesAttack, ABucketOfOthersIsAsGoodAsNone) {
  const auto run = [&](const std::string& uri) {
    const std::string file =
        cli_.Write("job.yaml", "trainingInput: {pythonModule: a, packageUris: [" + uri + "]}\n");
    const absl::Duration began = RealClock()->Monotonic();
    Outcome outcome = cli_.Run({"run", "-f", file, "--stores", stores_});
    EXPECT_LT(RealClock()->Monotonic() - began, absl::Seconds(20));
    EXPECT_EQ(outcome.code, 5) << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("trainingInput.packageUris[0]"), HasSubstr("--stores"),
                                   Not(HasSubstr("very-secret")), Not(HasSubstr("192.0.2.1"))));
    return outcome.err;
  };
  const std::string theirs = run("gs://theirs/a.tar.gz"), none = run("gs://unheld/a.tar.gz");
  EXPECT_EQ(absl::StrReplaceAll(none, {{"unheld", "theirs"}}), theirs);
}

TEST_F(PackagesAttack, NoArchiveLeadsOutOfItsFolder) {
  using artifacts::RawEntry;
  using artifacts::RawPackage;
  const RawEntry module{.name = "trainer/task.py", .bytes = "print('ran')\n"};
  for (const std::vector<RawEntry>& entries : std::vector<std::vector<RawEntry>>{
           {module, {.name = "../out.py", .bytes = "x"}},
           {module, {.name = "/tmp/out.py", .bytes = "x"}},
           {module, {.name = "trainer/link", .type = '2', .target = "/etc/passwd"}},
           {module, {.name = "trainer/link", .type = '2', .target = "../../../etc/passwd"}},
           {module, {.name = "trainer/hard", .type = '1', .target = "/etc/passwd"}},
           {module, {.name = "trainer/device", .type = '3'}},
           {module, {.name = "trainer/pipe", .type = '6'}},
           {module, module}}) {
    const Outcome outcome = SubmitBytes(RawPackage(entries));
    EXPECT_EQ(outcome.code, 1) << entries[1].name << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("--packages"));
    EXPECT_THAT(outcome.out, Not(HasSubstr("ran")));
  }
  EXPECT_EQ(SubmitBytes("no archive").code, 1);
  EXPECT_EQ(SubmitBytes("").code, 1);
  EXPECT_EQ(Submit("/dev/zero").code, 2);
  EXPECT_EQ(Submit(cli_.Path("root")).code, 2);
  EXPECT_EQ(Submit("/no/such.tar.gz").code, 2);
  EXPECT_TRUE(std::filesystem::is_empty(cli_.Path("root"))) << "nothing of them was kept";
}

// What would be run at an installation is not; lists of a distribution are read as texts of its
// own.
TEST_F(PackagesAttack, NothingOfADistributionIsRunOrFollowed) {
  using artifacts::RawEntry;
  const std::string ran = cli_.Path("setup-ran");
  const std::string setup = "open('" + ran + "', 'w')\n";
  const std::string egg = "trainer-1/trainer.egg-info/";
  const std::vector<RawEntry> good = {
      {.name = "trainer-1/setup.py", .bytes = setup},
      {.name = "trainer-1/conftest.py", .bytes = setup},
      {.name = "trainer-1/trainer/__init__.py"},
      {.name = "trainer-1/trainer/task.py", .bytes = "print('ran', __file__)\n"},
      {.name = egg + "top_level.txt", .bytes = "trainer\n../../etc\n/etc\n"},
      {.name = egg + "requires.txt", .bytes = "numpy>=1\n\x1b[31mred\n\n[gpu]\ncupy\n"}};
  const Outcome outcome = SubmitBytes(artifacts::RawPackage(good));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("ran "), HasSubstr("/trainer/task.py")));
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("numpy>=1"), HasSubstr("not installed"),
                                 Not(HasSubstr("\x1b")), Not(HasSubstr("cupy"))));
  EXPECT_FALSE(cli_.Exists("setup-ran"));
  // The same module in two packages: which one would it be?
  const std::string twice = cli_.Write("twice.tar.gz", artifacts::RawPackage(good));
  const Outcome both = Submit(twice + "," + twice);
  EXPECT_EQ(both.code, 1);
  EXPECT_THAT(both.err, HasSubstr("another of the packages has too"));
  const std::vector<RawEntry> links = {
      good[0],
      good[2],
      good[3],
      {.name = egg + "PKG-INFO", .bytes = "x"},
      {.name = egg + "requires.txt", .type = '2', .target = "../trainer/task.py"}};
  const Outcome followed = SubmitBytes(artifacts::RawPackage(links));
  EXPECT_EQ(followed.code, 0) << followed.err;
  EXPECT_THAT(followed.err, Not(HasSubstr("requires")));
}

}  // namespace
}  // namespace shirabe::cmd
