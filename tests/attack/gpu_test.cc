// The two variables by which an administrator says which GPU, and from where its library comes:
// hostile values, and folders that others can write to. The library of these tests is one that
// works (tests/accelerator/fake), so that "ready" is what opening it says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "tests/integration/cli.h"
#include "tests/support/paths.h"
#include "tests/support/small_spec.h"

namespace shirabe::attack {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kGpuLibrary[] = "/libshirabe-cuda.so";

class GpuAttackTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "shirabe-gpu-XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    own_ = MakeFolder("own");
    std::filesystem::copy(BinaryDir() + "/fake_gpu" + kGpuLibrary, own_ + kGpuLibrary);
    ASSERT_EQ(chmod((own_ + kGpuLibrary).c_str(), 0755), 0);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string MakeFolder(const std::string& name, mode_t mode = 0755) const {
    const std::string path = folder_ + "/" + name;
    CHECK(mkdir(path.c_str(), 0755) == 0);
    CHECK(chmod(path.c_str(), mode) == 0);
    return path;
  }

  // With these variables, and no others of ours.
  cmd::Outcome Run(const std::vector<std::string>& variables,
                   const std::vector<std::string>& words) {
    std::vector<std::string> all = {"/usr/bin/env", "-i", "PATH=/usr/bin:/bin",
                                    "SHIRABE_HOME=" + folder_ + "/home"};
    all.insert(all.end(), variables.begin(), variables.end());
    all.push_back(cmd::Program());
    all.insert(all.end(), words.begin(), words.end());
    std::vector<char*> argv;
    for (std::string& word : all) argv.push_back(word.data());
    argv.push_back(nullptr);
    const std::string stem = folder_ + "/run" + std::to_string(++runs_);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    const int make = O_WRONLY | O_CREAT;
    posix_spawn_file_actions_addopen(&actions, 1, (stem + ".out").c_str(), make, 0600);
    posix_spawn_file_actions_addopen(&actions, 2, (stem + ".err").c_str(), make, 0600);
    pid_t pid = 0;
    CHECK(posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
    return cmd::Running(pid, stem + ".out", stem + ".err").Wait();
  }

  // What `version` says of it.
  json Found(const std::string& folder) {
    const cmd::Outcome outcome =
        Run({"SHIRABE_GPU_LIBRARY_DIR=" + folder}, {"version", "-o", "json"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out, nullptr, /*allow_exceptions=*/false).value("gpu", json());
  }
  void ExpectRefused(const std::string& folder, const std::string& reason) {
    const json gpu = Found(folder);
    EXPECT_EQ(gpu.value("state", ""), "none") << gpu;
    EXPECT_TRUE(gpu["reason"].is_string() && absl::StrContains(gpu["reason"].dump(), reason))
        << gpu;
  }

  std::string folder_, own_;
  int runs_ = 0;
};

TEST_F(GpuAttackTest, HostileValuesAreNamedAndEndEveryVerb) {
  for (const std::string& value :
       {std::string("on"), std::string("-1"), std::string("256"), std::string("0x1"),
        std::string("0;reboot"), std::string("$(id)"), std::string("../../0"),
        std::string("\x1b]0;x\a"), std::string("\xff\xfe"), std::string(100'000, '9')}) {
    for (const char* verb : {"run", "serve", "controller", "get"}) {
      const cmd::Outcome outcome = Run({"SHIRABE_GPU=" + value}, {verb, "experiments"});
      EXPECT_NE(outcome.code, 0) << verb;
      EXPECT_THAT(outcome.err, AllOf(HasSubstr("SHIRABE_GPU: "), HasSubstr("auto, off or the num"),
                                     Not(HasSubstr("\x1b]0")), Not(HasSubstr("\xff"))));
      EXPECT_LT(outcome.err.size(), 1000);
    }
  }
  const std::pair<std::string, const char*> folders[] = {
      {"lib", "absolute path"},
      {"../lib", "absolute path"},
      {"~/lib", "absolute path"},
      {"/" + std::string(60'000, 'x'), "too long"},
      {"/a\x1b]0;x\a", "control character"},
      {"/a\n/b", "control character"}};
  for (const auto& [value, words] : folders) {
    for (const char* verb : {"run", "serve", "get"}) {
      const cmd::Outcome outcome = Run({"SHIRABE_GPU_LIBRARY_DIR=" + value}, {verb, "experiments"});
      EXPECT_NE(outcome.code, 0) << verb;
      EXPECT_THAT(outcome.err, AllOf(HasSubstr("SHIRABE_GPU_LIBRARY_DIR: "), HasSubstr(words),
                                     Not(HasSubstr("\x1b]0"))));
      EXPECT_LT(outcome.err.size(), 1000);
    }
  }
}

// A library that others could have written, or put there, is not opened.
TEST_F(GpuAttackTest, OnlyATrustedLibraryIsOpened) {
  ASSERT_EQ(Found(own_).value("state", ""), "ready");
  ASSERT_EQ(Found(own_ + "/../own/.").value("state", ""), "ready");
  ExpectRefused(folder_ + "/nowhere", "no libshirabe-cuda.so in");
  ExpectRefused(own_ + kGpuLibrary, "no libshirabe-cuda.so in");  // a file as a folder
  for (const mode_t mode : {0775, 0757, 0777, 01777}) {
    ASSERT_EQ(chmod(own_.c_str(), mode), 0);
    ExpectRefused(own_, own_ + " can be written by others: chmod go-w");
  }
  ASSERT_EQ(chmod(own_.c_str(), 0755), 0);
  for (const mode_t mode : {0775, 0757}) {
    ASSERT_EQ(chmod((own_ + kGpuLibrary).c_str(), mode), 0);
    ExpectRefused(own_, "can be written by others: chmod go-w");
  }
  ASSERT_EQ(chmod((own_ + kGpuLibrary).c_str(), 0755), 0);
  // Above it: a user who may rename the folder may put another in its place.
  ASSERT_EQ(chmod(folder_.c_str(), 0777), 0);
  ExpectRefused(own_, folder_ + " can be written by others");
  ASSERT_EQ(chmod(folder_.c_str(), 01777), 0);
  EXPECT_EQ(Found(own_).value("state", ""), "ready");
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
}

TEST_F(GpuAttackTest, LinksCountForWhereTheyLead) {
  const std::string open = MakeFolder("open", 0777), link = MakeFolder("link");
  std::filesystem::copy(own_ + kGpuLibrary, open + kGpuLibrary);
  ASSERT_EQ(chmod((open + kGpuLibrary).c_str(), 0755), 0);
  std::filesystem::create_symlink(open + kGpuLibrary, link + kGpuLibrary);
  ExpectRefused(link, open + " can be written by others");
  std::filesystem::create_directory_symlink(open, folder_ + "/way");
  ExpectRefused(folder_ + "/way", open + " can be written by others");
  const std::string fine = MakeFolder("fine");
  std::filesystem::create_symlink(own_ + kGpuLibrary, fine + kGpuLibrary);
  EXPECT_EQ(Found(fine).value("state", ""), "ready");
  const std::string loop = MakeFolder("loop");
  std::filesystem::create_symlink(loop + kGpuLibrary, loop + kGpuLibrary);
  ExpectRefused(loop, "no libshirabe-cuda.so in");
  const std::string pipe = MakeFolder("pipe");
  ASSERT_EQ(mkfifo((pipe + kGpuLibrary).c_str(), 0600), 0);
  ExpectRefused(pipe, "is not a file");
  const std::string device = MakeFolder("device");
  std::filesystem::create_symlink("/dev/zero", device + kGpuLibrary);
  ExpectRefused(device, "is not a file");
  const std::string text = MakeFolder("text");
  std::ofstream(text + kGpuLibrary) << "not a library";
  ExpectRefused(text, "cannot be loaded");
}

TEST_F(GpuAttackTest, AnotherUsersLibraryIsNotOpened) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  ASSERT_EQ(chown((own_ + kGpuLibrary).c_str(), 12345, 12345), 0);
  ExpectRefused(own_, "belongs to another user");
  ASSERT_EQ(chown((own_ + kGpuLibrary).c_str(), 0, 0), 0);
  ASSERT_EQ(chown(own_.c_str(), 12345, 12345), 0);
  ExpectRefused(own_, own_ + " belongs to another user");
  ASSERT_EQ(chown(own_.c_str(), 0, 0), 0);
  ASSERT_EQ(chown(folder_.c_str(), 12345, 12345), 0);
  ExpectRefused(own_, folder_ + " belongs to another user");
  ASSERT_EQ(chown(folder_.c_str(), 0, 0), 0);
  EXPECT_EQ(Found(own_).value("state", ""), "ready");
}

// Of an experiment nothing is asked: neither a setting of its algorithm nor the environment of its
// trials says which library the server opens. The trials run with theirs; the server knows none.
TEST_F(GpuAttackTest, AnExperimentHasNoSay) {
  for (const char* name : {"SHIRABE_GPU", "SHIRABE_GPU_LIBRARY_DIR", "gpu", "gpu_library_dir"}) {
    SmallSpec spec{.trials = 1, .container = ShellCommand("echo loss=1")};
    std::string text = Yaml(spec);
    const std::string algorithm = "algorithm: {algorithmName: random";
    text.replace(text.find(algorithm), algorithm.size(),
                 "algorithm: {algorithmName: bayesianoptimization, algorithmSettings: "
                 "[{name: " +
                     std::string(name) + ", value: \"" + own_ + "\"}]");
    const std::string path = folder_ + "/spec.yaml";
    std::ofstream(path) << text;
    const cmd::Outcome outcome = Run({}, {"validate", path});
    EXPECT_NE(outcome.code, 0) << name;
    EXPECT_THAT(outcome.out + outcome.err, HasSubstr(name));
  }
  const std::string library = folder_ + "/opened",
                    script = "echo gpu=$SHIRABE_GPU dir=$SHIRABE_GPU_LIBRARY_DIR >> " + library +
                             "; echo loss=$1";
  const std::string trial = "command: [/bin/sh, -c, \"" + script +
                            "\", sh, \"${trialParameters.lr}\"]\n"
                            "env: [{name: SHIRABE_GPU, value: nonsense}, "
                            "{name: SHIRABE_GPU_LIBRARY_DIR, value: " +
                            own_ + "}]";
  const std::string path = folder_ + "/trial.yaml";
  std::ofstream(path) << Yaml({.name = "sets", .trials = 2, .container = trial});
  const cmd::Outcome outcome = Run({"SHIRABE_GPU=off"}, {"run", "-f", path});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(ReadFile(library).value_or(""), HasSubstr("gpu=nonsense dir=" + own_));
}

}  // namespace
}  // namespace shirabe::attack
