// The real programs, as in a pod: init, the supervisor with a command, and a sidecar that is
// killed.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/open_beneath.h"
#include "google/protobuf/util/json_util.h"
#include "tests/sidecar/pod_harness.h"
#include "tests/support/eventually.h"
#include "tests/support/paths.h"
#include "trial/pod/final_sync_log.h"

namespace shirabe::sidecar {
namespace {

using ::testing::HasSubstr;

// A child of ours; killed at the end of its scope if it still runs.
class Child {
 public:
  Child(std::vector<std::string> arguments, const std::string& output,
        std::vector<std::string> extra_env = {}) {
    std::vector<char*> argv, env;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    for (char** entry = environ; *entry != nullptr; ++entry) env.push_back(*entry);
    for (std::string& entry : extra_env) env.push_back(entry.data());
    env.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                     0644);
    EXPECT_EQ(posix_spawnp(&pid_, argv[0], &actions, nullptr, argv.data(), env.data()), 0);
    posix_spawn_file_actions_destroy(&actions);
  }
  ~Child() {
    if (pid_ > 0) Kill(SIGKILL);
    if (pid_ > 0) Wait();
  }
  void Kill(int signal) const { kill(pid_, signal); }
  // Whether SIGTERM no longer ends it at once: it is blocked, for whoever waits for it.
  bool HoldsBackSigterm() const {
    const auto status = ReadFile(absl::StrCat("/proc/", pid_, "/status"));
    if (!status.ok()) return false;
    uint64_t blocked = 0;
    const size_t at = status->find("SigBlk:\t");
    return at != status->npos && absl::SimpleHexAtoi(status->substr(at + 8, 16), &blocked) &&
           (blocked >> (SIGTERM - 1) & 1) != 0;
  }
  // Its exit code; 128 + signal.
  int Wait() {
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    pid_ = 0;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  pid_t pid_ = 0;
};

class ProcessTest : public testing::Test {
 protected:
  ProcessTest() : pod_(PodAt(folder_, ConfigOf(server_.address()))) {}

  std::unique_ptr<Child> Pod(const std::string& verb) {
    std::string json;
    EXPECT_TRUE(google::protobuf::util::MessageToJsonString(pod_.config, &json).ok());
    return std::make_unique<Child>(std::vector<std::string>{BinaryDir() + "/bin/shirabe", "pod",
                                                            verb, "--root", folder_.path()},
                                   Words(), std::vector<std::string>{"SHIRABE_POD=" + json});
  }
  void Init() { ASSERT_EQ(Pod("init")->Wait(), 0); }

  std::vector<std::string> Supervised(const std::string& script) const {
    return {folder_.path() + "/bin/supervisor",
            "--dir",
            pod_.paths.dir,
            "--id",
            "x",
            "--log",
            pod_.paths.log,
            "--env-file",
            pod_.run("env"),
            "--control",
            pod_.paths.control_file,
            "--grace-ms",
            "5000",
            "--",
            "/bin/sh",
            "-c",
            script};
  }
  std::unique_ptr<Child> ProgramState(const std::string& script) const {
    return std::make_unique<Child>(Supervised(script), Output());
  }
  std::string Output() const { return folder_.path() + "/output"; }
  std::string Words() const { return folder_.path() + "/words"; }
  std::string Log() const { return *ReadFile(pod_.paths.log); }

  Folder folder_;
  FakeServer server_;
  sidecar::Pod pod_;
};

TEST_F(ProcessTest, KilledInMidStreamNothingIsLostOrDoubled) {
  Init();
  auto sidecar = Pod("sidecar");
  auto program =
      ProgramState("i=0; while [ $i -lt 30000 ]; do echo line $i; i=$((i+1)); done; exit 3");
  int calls = 0;
  for (int i = 0; i < 4; ++i) {
    const size_t before = server_.Copy("log").size();
    EXPECT_TRUE(
        Eventually([&] { return server_.Copy("log").size() > before || server_.complete(); }));
    sidecar->Kill(SIGKILL);
    sidecar->Wait();
    calls = server_.calls();
    sidecar = Pod("sidecar");
  }
  // The last one is ready to be told to end once it is heard: of its calls the first may still be
  // one that its predecessor died in.
  EXPECT_TRUE(Eventually([&] { return server_.calls() >= calls + 2; }));
  EXPECT_EQ(program->Wait(), 3);
  EXPECT_TRUE(Eventually([this] { return server_.complete(); }));
  std::string expected;
  for (int i = 0; i < 30000; ++i) absl::StrAppend(&expected, "line ", i, "\n");
  EXPECT_TRUE(server_.Copy("log") == expected);
  EXPECT_EQ(server_.state().exit().code(), 3);
  sidecar->Kill(SIGTERM);
  EXPECT_EQ(sidecar->Wait(), 0);
}

// Of what the image or the template has in it, the code of the experiment is before all.
TEST_F(ProcessTest, ALineThatGoesBeforeAVariableKeepsWhatIsThere) {
  Init();
  AppendTo(pod_.run("env"), "PYTHONPATH+=/code\n");
  AppendTo(pod_.run("env"), "NOT_OF_THE_IMAGE+=/code\n");
  std::vector<std::string> words = Supervised("echo $PYTHONPATH $NOT_OF_THE_IMAGE");
  words.insert(words.begin(), {"/usr/bin/env", "PYTHONPATH=/image"});
  EXPECT_EQ(Child(words, Output()).Wait(), 0);
  EXPECT_EQ(Log(), "/code:/image /code\n");
}

TEST_F(ProcessTest, APreemptedProgramSavesAndIsHeard) {
  Init();
  auto sidecar = Pod("sidecar");
  auto program = ProgramState(
      "trap 'echo saving; cat $SHIRABE_CONTROL; exit 75' TERM; echo ready; "
      "while :; do sleep 0.05; done");
  EXPECT_TRUE(Eventually([this] { return server_.Copy("log") == "ready\n"; }));
  EXPECT_EQ(Pod("stop")->Wait(), 0);
  program->Kill(SIGTERM);
  EXPECT_EQ(program->Wait(), 75);
  EXPECT_THAT(*ReadFile(pod_.paths.control_file), HasSubstr("\"reason\":\"preempt\""));
  sidecar->Kill(SIGTERM);
  EXPECT_EQ(sidecar->Wait(), 0);
  EXPECT_TRUE(server_.complete());
  EXPECT_TRUE(server_.state().exit().told());
  EXPECT_THAT(server_.Copy("log"), HasSubstr("saving"));
  EXPECT_EQ(*ReadFile(Output()), server_.Copy("log")) << "kubectl logs shows the same";
}

TEST_F(ProcessTest, ASupervisorKilledWithItsProgramIsSeen) {
  Init();
  auto sidecar = Pod("sidecar");
  auto program = ProgramState("echo ready; sleep 100");
  EXPECT_TRUE(Eventually([this] { return server_.Copy("log") == "ready\n"; }));
  EXPECT_FALSE(server_.complete());
  program->Kill(SIGKILL);
  program->Wait();
  EXPECT_TRUE(Eventually([this] { return server_.complete(); }));
  EXPECT_FALSE(server_.state().has_exit());
}

TEST_F(ProcessTest, LastWordsAreInItsOwnLog) {
  Init();
  server_.Stop();
  pod_.config.mutable_grace()->set_seconds(2);
  EXPECT_EQ(ProgramState("echo unheard; exit 1")->Wait(), 1);
  auto sidecar = Pod("sidecar");
  sidecar->Kill(SIGTERM);
  sidecar->Wait();
  // A signal that came before it was ready ends it; its successor speaks.
  auto successor = Pod("sidecar");
  ASSERT_TRUE(Eventually([&] { return successor->HoldsBackSigterm(); }));
  successor->Kill(SIGTERM);
  EXPECT_EQ(successor->Wait(), 0);
  const auto words = trial::ParseFinalSync(*ReadFile(Words()));
  ASSERT_FALSE(words.empty());
  EXPECT_EQ(words.back().state().exit().code(), 1);
  EXPECT_EQ(words.back().files(0).data(), "unheard\n");
}

// ---- the supervisor as the first process --------------------------------------------------------

TEST_F(ProcessTest, TheEnvironmentOfTheFileYieldsToWhatIsThere) {
  Init();
  AppendTo(pod_.run("env"), "MINE=from the file\nHOME=/elsewhere\n");
  EXPECT_EQ(ProgramState("echo $MINE; echo $HOME; echo $KUBEFLOW_TRAINER_SERVER_URL")->Wait(), 0);
  EXPECT_THAT(Log(), HasSubstr("from the file\n"));
  EXPECT_THAT(Log(), testing::Not(HasSubstr("/elsewhere")));
  EXPECT_THAT(Log(), HasSubstr("http://127.0.0.1:"));
}

TEST_F(ProcessTest, ARequestOfTheServerIsNotReplacedByANotice) {
  Init();
  const std::string asked = "{\"deadline\":1,\"id\":4,\"reason\":\"early-stop\"}\n";
  ASSERT_TRUE(WriteFileAtomic(pod_.paths.control_file, asked).ok());
  auto program = ProgramState("trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done");
  EXPECT_TRUE(Eventually([this] { return TailBeneath("", pod_.paths.log, 1) == "ready"; }));
  program->Kill(SIGTERM);
  EXPECT_EQ(program->Wait(), 0);
  EXPECT_EQ(*ReadFile(pod_.paths.control_file), asked);
}

TEST_F(ProcessTest, ARequestForACheckpointIsReplacedByANotice) {
  Init();
  ASSERT_TRUE(WriteFileAtomic(pod_.paths.control_file,
                              "{\"deadline\":1,\"id\":4,\"reason\":\"checkpoint\"}\n")
                  .ok());
  auto program = ProgramState("trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done");
  EXPECT_TRUE(Eventually([this] { return TailBeneath("", pod_.paths.log, 1) == "ready"; }));
  program->Kill(SIGTERM);
  EXPECT_EQ(program->Wait(), 0);
  EXPECT_THAT(*ReadFile(pod_.paths.control_file), HasSubstr("\"id\":5,\"reason\":\"preempt\""));
}

TEST_F(ProcessTest, AReaderThatHangsHoldsNobodyUp) {
  Init();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string never_read = absl::StrCat("/proc/self/fd/", ends[1]);
  Child program(Supervised("head -c 20000000 /dev/zero | tr '\\0' x"), never_read);
  EXPECT_EQ(program.Wait(), 0);
  EXPECT_EQ(std::filesystem::file_size(pod_.paths.log), 20'000'000u);
  close(ends[0]);
  close(ends[1]);
}

TEST_F(ProcessTest, AReaderThatGoesAwayHoldsNobodyUp) {
  Init();
  const std::vector<std::string> command = Supervised("yes hello | head -c 5000000");
  std::string line = "exec 3>&1; (";
  for (const std::string& word : command) absl::StrAppend(&line, " '", word, "'");
  Child program({"/bin/bash", "-c", line + ") | head -1; exit ${PIPESTATUS[0]}"}, Output());
  EXPECT_EQ(program.Wait(), 0);
  EXPECT_EQ(std::filesystem::file_size(pod_.paths.log), 5'000'000u);
}

TEST_F(ProcessTest, AFullDiskEndsTheLogNotTheProgram) {
  Init();
  std::vector<std::string> command = Supervised("echo one; echo two; exit 7");
  for (std::string& word : command) {
    if (word == pod_.paths.log) word = "/dev/full";
  }
  EXPECT_EQ(Child(command, Output()).Wait(), 7);
  EXPECT_EQ(*ReadFile(Output()), "one\ntwo\n");
}

TEST_F(ProcessTest, ACommandThatIsNotThereIsSaidInTheLog) {
  Init();
  std::vector<std::string> command = Supervised("");
  command.resize(command.size() - 3);
  command.push_back("/no/such/program");
  EXPECT_EQ(Child(command, Output()).Wait(), 127);
  EXPECT_THAT(Log(), HasSubstr("cannot start '/no/such/program'"));
  EXPECT_EQ(Child(command, Output()).Wait(), 125) << "an attempt is taken up once";
}

TEST_F(ProcessTest, AsPidOneItReapsAndLeavesNothing) {
  if (geteuid() != 0) GTEST_SKIP() << "a PID namespace needs root";
  Init();
  std::vector<std::string> command = Supervised(
      "echo $PPID; i=0; while [ $i -lt 50 ]; do (setsid sleep 100 &); i=$((i+1)); done; "
      "sleep 0.2; ls /proc | grep -c '^[0-9]'; exit 5");
  command.insert(command.begin(), {"unshare", "--pid", "--fork", "--mount-proc"});
  EXPECT_EQ(Child(command, Output()).Wait(), 5);
  const std::vector<std::string> lines = absl::StrSplit(Log(), '\n');
  ASSERT_GE(lines.size(), 2u);
  EXPECT_EQ(lines[0], "1");
  int processes = 0;
  EXPECT_TRUE(absl::SimpleAtoi(lines[1], &processes));
  EXPECT_GE(processes, 51);
  EXPECT_EQ(access(pod_.run("exit").c_str(), F_OK), 0);
}

TEST_F(ProcessTest, SigtermReachesTheCommandOfPidOne) {
  if (geteuid() != 0) GTEST_SKIP() << "a PID namespace needs root";
  Init();
  // The namespace's own SIGTERM: sent from within, as the kubelet's comes from outside.
  std::vector<std::string> command = Supervised(
      "trap 'echo told; exit 75' TERM; (sleep 0.3; kill -TERM 1) & while :; do sleep 0.05; done");
  command.insert(command.begin(), {"unshare", "--pid", "--fork", "--mount-proc"});
  EXPECT_EQ(Child(command, Output()).Wait(), 75);
  EXPECT_THAT(Log(), HasSubstr("told\n"));
  EXPECT_THAT(*ReadFile(pod_.paths.control_file), HasSubstr("preempt"));
}

}  // namespace
}  // namespace shirabe::sidecar
