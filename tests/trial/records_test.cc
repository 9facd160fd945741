// The small parts around a process: its records, paths, environment and control file.
#include "trial/local/supervisor_records.h"

#include "nlohmann/json.hpp"
#include "tests/trial/executor_harness.h"
#include "trial/control_file.h"
#include "trial/file_layout.h"
#include "trial/local/spawn_supervisor.h"
#include "trial/local/trial_environment.h"

namespace shirabe::trial {
namespace {

using ::testing::HasSubstr;

class RecordsTest : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomic(dir() + "/" + name, text).ok());
  }
  const std::string& dir() { return harness_.home(); }
  ExecutorHarness harness_;
};

TEST_F(RecordsTest, ReadsBoth) {
  Write("pid",
        "pid 12\nstart 345\nboot b-1\nid abc\nbegan 1500000000\ndevices 0,1\nchild     13\n");
  const auto pid = ReadPidRecord(dir());
  ASSERT_TRUE(pid.ok()) << pid.status();
  EXPECT_EQ(pid->pid, 12);
  EXPECT_EQ(pid->start, 345);
  EXPECT_EQ(pid->boot, "b-1");
  EXPECT_EQ(pid->id, "abc");
  EXPECT_EQ(pid->devices, "0,1");
  EXPECT_EQ(pid->began, absl::UnixEpoch() + absl::Milliseconds(1500));
  Write("exit",
        "id abc\ncode 137\nsignal 9\noom 1\nkilled 0\nbegan 1\nended 2\nmessage a b: c\n\n\n");
  const auto exit = ReadExitRecord(dir());
  ASSERT_TRUE(exit.ok()) << exit.status();
  EXPECT_EQ(exit->code, 137);
  EXPECT_EQ(exit->signal, 9);
  EXPECT_TRUE(exit->oom);
  EXPECT_FALSE(exit->killed);
  EXPECT_EQ(exit->message, "a b: c");
}

// Also where the program ended well once it was asked to.
TEST_F(RecordsTest, WhoOutranItsTimeHasFailed) {
  for (const auto& [whose, overdue] : {std::pair{kJobLimit, AttemptStatus::Overdue::kJob},
                                       std::pair{kPodLimit, AttemptStatus::Overdue::kPod}}) {
    Write("exit", absl::StrCat("id abc\ncode 0\nsignal 0\noom 0\nkilled 0\ntold 1\noverdue ", whose,
                               "\nbegan 1\nended 2\nmessage too long\n"));
    AttemptProcess found;
    found.state = AttemptProcess::State::kEnded;
    found.exit = *ReadExitRecord(dir());
    AttemptStatus observed;
    UpdateStatus(found, absl::FromUnixSeconds(9), observed);
    EXPECT_EQ(observed.overdue, overdue);
    EXPECT_EQ(observed.platform, v1::APP_ERROR);
    EXPECT_EQ(observed.message, "too long");
  }
}

TEST_F(RecordsTest, RefusesWhatIsNone) {
  EXPECT_EQ(ReadPidRecord(dir()).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadExitRecord(dir()).status().code(), absl::StatusCode::kNotFound);
  for (const char* text : {"", "\n\n", "pid 1", "pid 1\nstart -4\nbegan 1\n", "code 1x\n"}) {
    Write("pid", text);
    Write("exit", text);
    EXPECT_EQ(ReadPidRecord(dir()).status().code(), absl::StatusCode::kDataLoss) << text;
    EXPECT_EQ(ReadExitRecord(dir()).status().code(), absl::StatusCode::kDataLoss) << text;
  }
}

TEST_F(RecordsTest, AnExitOfAnotherAttemptIsNotThisOnes) {
  Write("pid", "pid 1\nstart 1\nboot none\nid abc\nbegan 1\n");
  Write("exit", "id xyz\ncode 0\nsignal 0\noom 0\nkilled 0\nbegan 1\nended 2\nmessage \n");
  EXPECT_EQ(FindAttemptProcess(dir(), "abc").state, AttemptProcess::State::kVanished);
  EXPECT_EQ(FindAttemptProcess(dir(), "xyz").state, AttemptProcess::State::kForeign);
  EXPECT_EQ(FindAttemptProcess(dir() + "/none", "abc").state, AttemptProcess::State::kNeverStarted);
}

TEST(AttemptIdTest, DependsOnNameAndToken) {
  EXPECT_EQ(AttemptId(Attempt(1), "t").size(), 32);
  EXPECT_EQ(AttemptId(Attempt(1), "t"), AttemptId(Attempt(1), "t"));
  EXPECT_NE(AttemptId(Attempt(1), "t"), AttemptId(Attempt(1), "u"));
  EXPECT_NE(AttemptId(Attempt(1), "t"), AttemptId(Attempt(2), "t"));
  EXPECT_NE(AttemptId(Attempt(1), "t"), AttemptId({{{"other", "exp"}, 1}, 1}, "t"));
}

TEST(SightingTest, TimeNeverRunsBackwards) {
  AttemptProcess found;
  found.state = AttemptProcess::State::kRunning;
  found.pid.pid = 5;
  found.pid.began = absl::FromUnixSeconds(1000);
  AttemptStatus observed;
  UpdateStatus(found, absl::FromUnixSeconds(1000), observed);
  found.state = AttemptProcess::State::kEnded;
  found.exit.began = absl::FromUnixSeconds(900);
  found.exit.ended = absl::FromUnixSeconds(950);
  found.exit.code = 3;
  UpdateStatus(found, absl::FromUnixSeconds(2000), observed);
  EXPECT_EQ(FromProto(observed.placement.start_time()), absl::FromUnixSeconds(1000));
  EXPECT_EQ(FromProto(observed.placement.end_time()), absl::FromUnixSeconds(1000));
  EXPECT_EQ(observed.exit_code, 3);
}

TEST(LayoutTest, MakesHomeAbsolute) {
  EXPECT_EQ(FileLayout("/a//b/../c/").home(), "/a/c");
  EXPECT_EQ(FileLayout("x").home(), std::filesystem::current_path().string() + "/x");
  EXPECT_EQ(FileLayout("/h").Paths({{{"ns", "exp"}, 2}, 3}).log,
            "/h/trials/ns/exp/exp-2/exp-2-a3/log");
}

TEST(LayoutTest, ChecksKeys) {
  EXPECT_TRUE(ValidateKey(Attempt(1)).ok());
  EXPECT_FALSE(ValidateKey(Attempt(0)).ok());
  EXPECT_FALSE(ValidateKey(Attempt(1, 0)).ok());
  EXPECT_FALSE(ValidateKey(AttemptKey{{{"..", "exp"}, 1}, 1}).ok());
}

TEST(EnvironmentTest, ParsesAndLayers) {
  const char* entries[] = {"A=1", "B=x=y", "EMPTY=", "=odd", "none", nullptr};
  const Environment inherited = ParseEnvironment(entries);
  EXPECT_EQ(inherited, (Environment{{"A", "1"}, {"B", "x=y"}, {"EMPTY", ""}}));
  const Variables container = {{"B", "container"}, {"SHIRABE_ATTEMPT_ID", "forged"}};
  const Environment contract = {{"A", "contract"}, {"B", "contract"}};
  const Environment merged = MergeEnvironment({inherited, contract, container, {"1"}, "id"});
  EXPECT_EQ(merged.at("A"), "contract");
  EXPECT_EQ(merged.at("B"), "container");
  EXPECT_EQ(merged.at("CUDA_VISIBLE_DEVICES"), "1");
  EXPECT_EQ(merged.at("SHIRABE_ATTEMPT_ID"), "id");
}

// Also where others set it, and within another trial.
TEST(EnvironmentTest, PythonpathBeginsWithTheCode) {
  const Environment outer = {{"SHIRABE_CODE_DIR", "/outer"}, {"PYTHONPATH", "/inherited"}};
  const Environment code = {{"SHIRABE_CODE_DIR", "/code"}};
  EXPECT_EQ(MergeEnvironment({outer, code, {}, {}, "id"}).at("PYTHONPATH"), "/code:/inherited");
  const Variables own = {{"PYTHONPATH", "/own"}};
  EXPECT_EQ(MergeEnvironment({outer, code, own, {}, "id"}).at("PYTHONPATH"), "/code:/own");
  EXPECT_EQ(MergeEnvironment({{}, code, {}, {}, "id"}).at("PYTHONPATH"), "/code");
  const Environment without = MergeEnvironment({outer, {}, {}, {}, "id"});
  EXPECT_EQ(without.at("PYTHONPATH"), "/inherited");
  EXPECT_EQ(without.count("SHIRABE_CODE_DIR"), 0u);
}

TEST(EnvironmentTest, KeepsWhatTheRequestSays) {
  AttemptRequest request;
  request.environment = {{"SHIRABE_RESUME_FROM", "/c/120"}};
  request.grace = absl::Milliseconds(1500);
  const Environment contract = ContractEnvironment(request, FileLayout("/h").Paths(Attempt(1)));
  EXPECT_EQ(contract.at("SHIRABE_RESUME_FROM"), "/c/120");
  EXPECT_EQ(contract.at("SHIRABE_GRACE_SECONDS"), "1.5");
}

TEST(ControlTest, CountsItsRequests) {
  ExecutorHarness harness;
  const std::string path = harness.home() + "/control.json";
  const absl::Time deadline = absl::FromUnixSeconds(1'700'000'000);
  for (int id : {1, 2}) {
    ASSERT_TRUE(WriteControl(path, {"cancel", deadline}).ok());
    const auto json = nlohmann::json::parse(*ReadFile(path), nullptr, false);
    EXPECT_EQ(json["id"], id);
    EXPECT_EQ(json["deadline"], 1'700'000'000);
  }
  ASSERT_TRUE(WriteFileAtomic(path, "{\"id\": \"text\"").ok());
  ASSERT_TRUE(WriteControl(path, {"preempt", deadline}).ok());
  EXPECT_THAT(*ReadFile(path), HasSubstr("\"id\":1"));
}

TEST(ControlTest, TellsPreemptionFromTheEnd) {
  EXPECT_EQ(ControlReason(v1::PREEMPTED_SPOT), "preempt");
  EXPECT_EQ(ControlReason(v1::SUSPENDED), "preempt");
  EXPECT_EQ(ControlReason(v1::EARLY_STOPPED), "early-stop");
  EXPECT_EQ(ControlReason(v1::USER), "cancel");
  EXPECT_EQ(ControlReason(v1::EXPERIMENT_ENDED), "cancel");
}

TEST(SupervisorFileTest, IsUnpackedOnceAndPutRight) {
  ExecutorHarness harness;
  const auto path = UnpackSupervisor(harness.home());
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(*ReadFile(*path), SupervisorProgram());
  const auto written = std::filesystem::last_write_time(*path);
  EXPECT_EQ(*UnpackSupervisor(harness.home()), *path);
  EXPECT_EQ(std::filesystem::last_write_time(*path), written);
  ASSERT_TRUE(WriteFileAtomic(*path, "torn").ok());
  EXPECT_EQ(*UnpackSupervisor(harness.home()), *path);
  EXPECT_EQ(*ReadFile(*path), SupervisorProgram());
}

}  // namespace
}  // namespace shirabe::trial
