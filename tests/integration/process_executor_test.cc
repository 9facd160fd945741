// The process executor with real programs: how they end, what they are given, what they print.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/open_beneath.h"
#include "tests/trial/executor_harness.h"

namespace shirabe::trial {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using State = AttemptStatus::State;

class ProcessExecutorTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(harness_.Open(), nullptr); }

  AttemptStatus Run(const AttemptKey& key, const Ask& ask) {
    const Status status = harness_.Start(key, ask);
    EXPECT_TRUE(status.ok()) << status;
    return status.ok() ? harness_.AwaitEnd(key) : AttemptStatus();
  }

  // What the shell script prints.
  std::string Print(const std::string& script, Ask ask = {}) {
    const AttemptKey key = Attempt(++trials_);
    ask.argv = Shell(script);
    EXPECT_EQ(Run(key, ask).exit_code, 0) << script;
    return harness_.Log(key);
  }

  ExecutorHarness harness_;
  int64_t trials_ = 1000;
};

TEST_F(ProcessExecutorTest, KeepsEveryExitCode) {
  int64_t trial = 0;
  for (int code : {0, 1, 2, 42, 75, 125, 126, 127, 134, 137, 139, 143, 255}) {
    const AttemptStatus end = Run(Attempt(++trial), {.argv = Shell(absl::StrCat("exit ", code))});
    EXPECT_EQ(end.state, State::kExited);
    EXPECT_EQ(end.exit_code, code);
    EXPECT_EQ(end.signal, 0);
    EXPECT_FALSE(end.out_of_memory);
  }
}

TEST_F(ProcessExecutorTest, NamesTheSignalThatEndedIt) {
  int64_t trial = 0;
  for (int signal : {SIGHUP, SIGINT, SIGABRT, SIGKILL, SIGSEGV, SIGPIPE, SIGTERM}) {
    const AttemptStatus end =
        Run(Attempt(++trial), {.argv = Shell(absl::StrCat("kill -", signal, " $$$$"))});
    EXPECT_EQ(end.state, State::kExited);
    EXPECT_EQ(end.signal, signal);
    EXPECT_EQ(end.exit_code, std::nullopt);
    EXPECT_FALSE(end.out_of_memory);
  }
}

TEST_F(ProcessExecutorTest, SaysWhyACommandCannotStart) {
  const std::string script = harness_.home() + "/script";
  ASSERT_TRUE(WriteFileAtomic(script, "#!/no/such/interpreter\n").ok());
  const struct {
    std::vector<std::string> argv;
    int code;
    std::string message;
  } cases[] = {
      {{"no-such-program"}, 127, "cannot start 'no-such-program': No such file or directory"},
      {{"/no/such/program"}, 127, "cannot start '/no/such/program': No such file"},
      {{script}, 126, "Permission denied"},
      {{harness_.home()}, 126, "Permission denied"},
  };
  int64_t trial = 0;
  for (const auto& one : cases) {
    const AttemptStatus end = Run(Attempt(++trial), {.argv = one.argv});
    EXPECT_EQ(end.exit_code, one.code);
    EXPECT_THAT(end.message, HasSubstr(one.message));
    EXPECT_THAT(harness_.Log(Attempt(trial)), HasSubstr(one.message));
  }
  ASSERT_EQ(chmod(script.c_str(), 0755), 0);
  const AttemptStatus end = Run(Attempt(++trial), {.argv = {script}});
  EXPECT_EQ(end.exit_code, 127);
  EXPECT_THAT(end.message, HasSubstr("interpreter"));
}

TEST_F(ProcessExecutorTest, AMessageNeverCutsACharacterInTwo) {
  std::string name(299, 'x');
  name += "é";
  const AttemptStatus end = Run(Attempt(1), {.argv = {name}});
  EXPECT_EQ(end.exit_code, 126);  // the name is too long for a file
  EXPECT_THAT(end.message, HasSubstr("'" + std::string(299, 'x') + "'"));
}

TEST_F(ProcessExecutorTest, PassesArgumentsAsTheyAre) {
  const std::vector<std::string> words = {"a b",   "",   "'q'", "\"d\"", ";",     "$HOME", "$(id)",
                                          "`id`",  "*",  "\\",  "a\nb",  "--x=1", "é調",   "&&",
                                          "| cat", "-n", "#",   "~",     "!",     "{a,b}"};
  // $( is Kubernetes' own syntax: what is no variable stays as it is.
  std::vector<std::string> argv = {"printf", "<%s>\n"};
  argv.insert(argv.end(), words.begin(), words.end());
  std::string wanted;
  for (const std::string& word : words) wanted += "<" + word + ">\n";
  EXPECT_EQ(Run(Attempt(1), {.argv = argv}).exit_code, 0);
  EXPECT_EQ(harness_.Log(Attempt(1)), wanted);
}

TEST_F(ProcessExecutorTest, GivesTheContract) {
  const std::string printed =
      Print(R"(echo "$SHIRABE_TRIAL|$SHIRABE_PARAM_LR|$SHIRABE_GRACE_SECONDS|$OWN|$SHIRABE_TRIAL_X"
               for v in PARAMS_FILE METRICS_FILE CHECKPOINT_DIR OUTPUT_DIR CONTROL_FILE RESUME_FROM
               do eval "echo \$SHIRABE_$v"; done
               echo $CLOUD_ML_HP_METRIC_FILE; echo "${HOME:+inherited}"; echo $TERM_OF_TEST)",
            {.env = {{"OWN", "of $(SHIRABE_TRIAL)"}, {"TERM_OF_TEST", "x=y z"}}});
  const AttemptPaths paths = harness_.executor().Paths(Attempt(trials_));
  EXPECT_EQ(printed, absl::StrCat("exp-", trials_, "|0.5|10|of exp-", trials_, "|\n",
                                  absl::StrCat(paths.params_file, "\n", paths.metrics_file, "\n",
                                               paths.checkpoint_dir, "\n", paths.output_dir),
                                  "\n", paths.control_file, "\n\n", paths.hypertune_file,
                                  "\ninherited\nx=y z\n"));
}

TEST_F(ProcessExecutorTest, TheContainersEnvironmentWins) {
  EXPECT_EQ(
      Print("echo $PATH_OF_TEST $SHIRABE_TRIAL",
            {.env = {{"PATH_OF_TEST", "1"}, {"PATH_OF_TEST", "2"}, {"SHIRABE_TRIAL", "mine"}}}),
      "2 mine\n");
}

TEST_F(ProcessExecutorTest, TheProgramIsFoundInThePathOfTheTrial) {
  ASSERT_TRUE(MakeDirs(harness_.home() + "/tools").ok());
  const std::string tool = harness_.home() + "/tools/tool-of-test";
  ASSERT_TRUE(WriteFileAtomic(tool, "#!/bin/sh\necho found\n").ok());
  ASSERT_EQ(chmod(tool.c_str(), 0755), 0);
  const Ask ask = {.argv = {"tool-of-test"},
                   .env = {{"PATH", "/nowhere:" + harness_.home() + "/tools:/usr/bin:/bin"}}};
  EXPECT_EQ(Run(Attempt(1), ask).exit_code, 0);
  EXPECT_EQ(harness_.Log(Attempt(1)), "found\n");
}

TEST_F(ProcessExecutorTest, AFileWithoutAnInterpreterGetsNoShell) {
  const std::string script = harness_.home() + "/script";
  ASSERT_TRUE(WriteFileAtomic(script, "echo a shell ran\n").ok());
  ASSERT_EQ(chmod(script.c_str(), 0755), 0);
  const AttemptStatus end = Run(Attempt(1), {.argv = {script}});
  EXPECT_EQ(end.exit_code, 126);
  EXPECT_THAT(end.message, HasSubstr("Exec format error"));
}

TEST_F(ProcessExecutorTest, GivesDevices) {
  ASSERT_NE(harness_.Open("process", {"2", "GPU-x", "7"}), nullptr);
  EXPECT_EQ(Print("echo $CUDA_VISIBLE_DEVICES", {.gpus = 2}), "2,GPU-x\n");
  ASSERT_EQ(unsetenv("CUDA_VISIBLE_DEVICES"), 0);
  EXPECT_EQ(Print("echo ${CUDA_VISIBLE_DEVICES-unset}"), "unset\n");
}

TEST_F(ProcessExecutorTest, RunsInItsWorkingDirectory) {
  ASSERT_TRUE(MakeDirs(harness_.home() + "/base/sub").ok());
  const auto pwd = [&](const std::string& base, const std::string& dir) {
    AttemptRequest request =
        MakeRequest(Attempt(++trials_), {.argv = {"pwd", "-P"}, .working_dir = dir});
    request.working_dir = base;
    EXPECT_TRUE(harness_.executor().Start(request).ok());
    harness_.AwaitEnd(request.key);
    return harness_.Log(request.key);
  };
  const std::string home = std::filesystem::canonical(harness_.home()).string();
  EXPECT_EQ(pwd(harness_.home() + "/base", ""), home + "/base\n");
  EXPECT_EQ(pwd(harness_.home() + "/base", "sub"), home + "/base/sub\n");
  EXPECT_EQ(pwd(harness_.home() + "/base", harness_.home()), home + "\n");
  EXPECT_EQ(pwd("", ""), std::filesystem::current_path().string() + "\n");
}

TEST_F(ProcessExecutorTest, SaysThatAWorkingDirectoryIsMissing) {
  const AttemptStatus end = Run(Attempt(1), {.argv = {"true"}, .working_dir = "/no/such/place"});
  EXPECT_EQ(end.state, State::kExited);
  EXPECT_EQ(end.exit_code, 126);
  EXPECT_EQ(end.message, "cannot enter workingDir '/no/such/place': No such file or directory");
}

TEST_F(ProcessExecutorTest, KeepsMuchOutputAndBinaryOutput) {
  const std::string script =
      "head -c 10000000 /dev/zero | tr '\\0' x; printf '\\000\\377\\033[1m'; echo err >&2";
  ASSERT_EQ(Run(Attempt(1), {.argv = Shell(script)}).exit_code, 0);
  const std::string log = harness_.Log(Attempt(1));
  EXPECT_EQ(log, std::string(10'000'000, 'x') + std::string("\0\377\033[1m", 6) + "err\n");
}

TEST_F(ProcessExecutorTest, TheProgramHasThreeDescriptorsAndNoInput) {
  // Of ours that is not closed on exec.
  const int leak = open("/dev/null", O_RDONLY);
  EXPECT_EQ(Print("cat; ls /proc/self/fd | tr '\\n' ' '"), "0 1 2 3 ");  // 3 is of ls itself
  close(leak);
}

TEST_F(ProcessExecutorTest, SignalsAreAsByDefault) {
  const auto before = signal(SIGPIPE, SIG_IGN);
  sigset_t set, old;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigprocmask(SIG_BLOCK, &set, &old);
  const std::string status = Print("grep -E '^Sig(Blk|Ign)' /proc/self/status | cut -f2");
  sigprocmask(SIG_SETMASK, &old, nullptr);
  signal(SIGPIPE, before);
  // 32 to 34 belong to the C library, whose posix_spawn ignores them.
  const std::vector<std::string> masks = absl::StrSplit(status, '\n', absl::SkipEmpty());
  ASSERT_EQ(masks.size(), 2);
  for (const std::string& mask : masks) {
    EXPECT_EQ(std::stoull(mask, nullptr, 16) & ~0x3'8000'0000ull, 0) << status;
  }
}

TEST_F(ProcessExecutorTest, ALogThatIsALinkOrAPipeEndsThatAttemptAndMakesNobodyWait) {
  const AttemptPaths paths = harness_.executor().Paths(Attempt(1));
  ASSERT_TRUE(MakeDirs(paths.dir).ok());
  ASSERT_EQ(symlink("/dev/full", paths.log.c_str()), 0);
  const Status link = harness_.Start(Attempt(1), {.argv = Shell("echo lost")});
  EXPECT_TRUE(absl::IsDataLoss(link)) << link;
  EXPECT_THAT(Message(link), HasSubstr("symbolic link"));
  ASSERT_EQ(unlink(paths.log.c_str()), 0);
  ASSERT_EQ(mkfifo(paths.log.c_str(), 0600), 0);
  const Status pipe = harness_.Start(Attempt(1), {.argv = Shell("echo lost")});
  EXPECT_TRUE(absl::IsDataLoss(pipe)) << pipe;
  ASSERT_EQ(unlink(paths.log.c_str()), 0);
  EXPECT_EQ(Run(Attempt(1), {.argv = Shell("exit 44")}).exit_code, 44);
}

TEST_F(ProcessExecutorTest, AHomeThatCannotBeWrittenIsAStatus) {
  ASSERT_TRUE(WriteFileAtomic(harness_.home() + "/trials", "in the way").ok());
  const Status status = harness_.Start(Attempt(1), {.argv = {"true"}});
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(Message(status), HasSubstr(harness_.home()));
  EXPECT_THAT(harness_.executor().Observe(kExperiment), IsEmpty());
}

TEST_F(ProcessExecutorTest, ArgumentsThatAreTooLargeAreTheTemplatesError) {
  const Status status = harness_.Start(Attempt(1), {.argv = {"true", std::string(1 << 22, 'x')}});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(status), HasSubstr("SHIRABE_PARAMS_FILE"));
}

TEST_F(ProcessExecutorTest, TheSupervisorIsUnpackedAgainIfSomebodyRemovesIt) {
  EXPECT_EQ(Run(Attempt(1), {.argv = {"true"}}).exit_code, 0);
  ASSERT_TRUE(RemoveAll(harness_.home() + "/bin").ok());
  EXPECT_EQ(Run(Attempt(2), {.argv = {"true"}}).exit_code, 0);
}

TEST_F(ProcessExecutorTest, RemoveFilesNeverLeavesItsOwnDirectories) {
  const std::string precious = harness_.home() + "/precious";
  ASSERT_TRUE(MakeDirs(precious + "/inner").ok());
  // A trial may leave links behind, and somebody may have moved a directory to a larger disk.
  EXPECT_EQ(Run(Attempt(1), {.argv = {"ln", "-s", precious,
                                      harness_.home() + "/trials/default/exp/exp-1/output/link"}})
                .exit_code,
            0);
  ASSERT_EQ(symlink(precious.c_str(), (harness_.home() + "/trials/default/moved").c_str()), 0);
  EXPECT_TRUE(harness_.executor().RemoveFiles(kExperiment, 0).ok());
  const Status moved = harness_.executor().RemoveFiles({"default", "moved"}, 0);
  EXPECT_EQ(moved.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(std::filesystem::exists(precious + "/inner"));
}

}  // namespace
}  // namespace shirabe::trial
