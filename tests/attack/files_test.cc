// What a trial leaves on the disk: pipes, links, folders and endless files where its log, metrics,
// records and checkpoints are looked for. Each may end that trial, with the reason, and nothing
// else: the other experiments go on, no thread waits, the server can be ended and its files
// removed.
#include <sys/stat.h>

#include <csignal>
#include <fstream>

#include "tests/attack/attacked_server.h"
#include "tests/support/eventually.h"

namespace shirabe::attack {
namespace {

constexpr char kSecret[] = "nobody-outside-may-read-this";
// In a program: the folder of its attempt.
constexpr char kHere[] = "cd $SHIRABE_CHECKPOINT_DIR/..; ";

class FilesAttack : public AttackTest {
 protected:
  // An administrator's, since its programs run on the server's machine.
  void Run(const std::string& name, const std::string& script, const std::string& collector = "") {
    std::string spec = Spec(kHonestSpec, "red", name, script);
    if (!collector.empty()) {
      spec = absl::StrReplaceAll(
          spec, {{"  objective:", "  metricsCollectorSpec: " + collector + "\n  objective:"}});
    }
    ASSERT_LT(Create("red", spec, kAdminToken), 300);
  }

  std::vector<v1::Trial> Trials(const std::string& name) const {
    v1::ListTrialsRequest request;
    request.mutable_experiment()->set_namespace_("red");
    request.mutable_experiment()->set_name(name);
    auto context = As(kRedToken);
    const auto reader = Shirabe()->ListTrials(context.get(), request);
    std::vector<v1::Trial> trials;
    for (v1::Trial trial; reader->Read(&trial);) trials.push_back(trial);
    EXPECT_TRUE(reader->Finish().ok());
    return trials;
  }

  // Both trials have ended.
  void AwaitEnd(const std::string& name) const {
    EXPECT_TRUE(Eventually(
        [&] {
          const auto trials = Trials(name);
          return trials.size() == 2 && trials[0].phase() >= v1::TRIAL_SUCCEEDED &&
                 trials[1].phase() >= v1::TRIAL_SUCCEEDED;
        },
        absl::Seconds(60)))
        << server_->Err();
  }

  void ExpectFailed(const std::string& name, const std::string& why) const {
    AwaitEnd(name);
    for (const v1::Trial& trial : Trials(name)) {
      EXPECT_EQ(trial.phase(), v1::TRIAL_FAILED) << name << ": " << trial.message();
      EXPECT_THAT(trial.message(), testing::HasSubstr(why)) << name;
    }
  }

  std::string Log(const std::string& name, int trial) const {
    return Http(absl::StrCat("GET /api/v1/namespaces/red/experiments/", name, "/trials/", trial,
                             "/attempts/1/log"),
                kRedToken)
        .body;
  }

  bool Deleted(const std::string& name) const {
    return Http("DELETE /api/v1/namespaces/red/experiments/" + name, kAdminToken).status / 100 == 2;
  }
  bool Gone(const std::string& name) const {
    return Eventually([&] { return !std::filesystem::exists(TrialFolder(name)); },
                      absl::Seconds(30));
  }
  std::string TrialFolder(const std::string& name) const {
    return cli_.state() + "/trials/red/" + name;
  }
};

// attacks: CRD spec.metricsCollectorSpec.source.fileSystemPath.path
TEST_F(FilesAttack, MetricsThatAreNoFileEndTheirTrialAndNothingElse) {
  Serve();
  std::ofstream(cli_.Path("secret")) << "loss=1 " << kSecret;
  Run("pipe", "mkfifo $SHIRABE_METRICS_FILE; sleep 60");
  Run("folder", "mkdir $SHIRABE_METRICS_FILE; sleep 60");
  Run("link", "ln -s " + cli_.Path("secret") + " $SHIRABE_METRICS_FILE; sleep 60");
  Run("left", "mkfifo $SHIRABE_METRICS_FILE");
  Run("path", "echo loss=1",
      "{collector: {kind: File}, source: {fileSystemPath: {path: /tmp, kind: File}}}");
  Run("device", "echo loss=1",
      "{collector: {kind: File}, source: {fileSystemPath: {path: /dev/zero, kind: File}}}");
  ExpectAlive();
  ExpectFailed("pipe", "named pipe");
  ExpectFailed("folder", "directory");
  ExpectFailed("link", "symbolic link");
  ExpectFailed("left", "named pipe");
  ExpectFailed("path", "/tmp is a directory");
  ExpectFailed("device", "/dev/zero is a device");
  ExpectAlive();
}

// attacks: HTTP GET
// /api/v1/namespaces/{namespace}/experiments/{name}/trials/{trial}/attempts/{attempt}/log
TEST_F(FilesAttack, EightReadsOfALogThatIsAPipeBlockNobodyAndTheServerStillEnds) {
  Serve();
  Run("piped", absl::StrCat(kHere, "rm log; mkfifo log; sleep 60"));
  ASSERT_TRUE(Eventually(
      [&] { return std::filesystem::is_fifo(TrialFolder("piped") + "/piped-1/piped-1-a1/log"); }));
  std::vector<std::unique_ptr<service::Wire>> readers;
  for (int i = 0; i < 16; ++i) {
    readers.push_back(std::make_unique<service::Wire>(http_port_));
    readers.back()->Send(service::RequestText(
        "GET /api/v1/namespaces/red/experiments/piped/trials/1/attempts/1/log", kRedToken));
  }
  for (const auto& reader : readers) EXPECT_EQ(reader->ReadReply().status / 100, 4);
  ExpectAlive();
  ExpectFailed("piped", "named pipe");
  server_->Signal(SIGTERM);
  EXPECT_EQ(server_->Wait().code, 0);
}

// attacks: gRPC shirabe.v1.Shirabe/ReadLog
TEST_F(FilesAttack, ALogThatIsALinkShowsNoOtherFile) {
  Serve();
  std::ofstream(cli_.Path("secret")) << kSecret;
  std::filesystem::create_directory(cli_.Path("elsewhere"));
  std::ofstream(cli_.Path("elsewhere/log")) << kSecret;
  Run("linked", absl::StrCat(kHere, "rm log; ln -s ", cli_.Path("secret"), " log; sleep 60"));
  Run("moved", absl::StrCat(kHere, "cd ..; mv $SHIRABE_TRIAL-a1 away; ln -s ",
                            cli_.Path("elsewhere"), " $SHIRABE_TRIAL-a1; sleep 60"));
  ASSERT_TRUE(Eventually([&] {
    return std::filesystem::is_symlink(TrialFolder("linked") + "/linked-1/linked-1-a1/log") &&
           std::filesystem::is_symlink(TrialFolder("moved") + "/moved-1/moved-1-a1");
  }));
  for (const char* name : {"linked", "moved"}) {
    EXPECT_THAT(Log(name, 1), testing::Not(testing::HasSubstr(kSecret))) << name;
    v1::ReadLogRequest request;
    v1::LogChunk chunk;
    request.mutable_trial()->set_namespace_("red");
    request.mutable_trial()->set_experiment(name);
    request.mutable_trial()->set_number(1);
    request.set_attempt(1);
    EXPECT_FALSE(Shirabe()->ReadLog(As(kRedToken).get(), request, &chunk).ok()) << name;
    EXPECT_EQ(chunk.text(), "") << name;
  }
  AwaitEnd("linked");
  for (const v1::Trial& trial : Trials("linked")) {
    EXPECT_THAT(trial.SerializeAsString(), testing::Not(testing::HasSubstr(kSecret)));
  }
  ExpectAlive();
}

// attacks: HTTP DELETE /api/v1/namespaces/{namespace}/experiments/{name}
TEST_F(FilesAttack, PipesInPlaceOfRequestsAndRecordsDoNotHoldUpADeletion) {
  Serve();
  Run("control", absl::StrCat(kHere, "mkfifo control.json control.json.tmp reclaim resumed.json; ",
                              "touch done; sleep 60"));
  ASSERT_TRUE(Eventually([&] {
    return std::filesystem::exists(TrialFolder("control") + "/control-1/control-1-a1/done");
  }));
  EXPECT_TRUE(Deleted("control"));
  EXPECT_TRUE(Gone("control"));
  ExpectAlive();
}

// attacks: HTTP DELETE /api/v1/namespaces/{namespace}/experiments/{name}
TEST_F(FilesAttack, DeepNamelessAndUnreadableFoldersAreRemovedWithTheirExperiment) {
  Serve();
  std::filesystem::create_directory(cli_.Path("kept"));
  Run("deep", absl::StrCat("cd $SHIRABE_CHECKPOINT_DIR; ln -s ", cli_.Path("kept"), " link; ",
                           "touch 'new\\nline' -- -rf; mkdir locked; touch locked/x; ",
                           "chmod 0 locked; i=0; while [ $i -lt 1500 ]; do mkdir d && cd d; ",
                           "i=$((i+1)); done; echo loss=1"));
  AwaitEnd("deep");
  EXPECT_TRUE(Deleted("deep"));
  EXPECT_TRUE(Gone("deep"));
  EXPECT_TRUE(std::filesystem::exists(cli_.Path("kept")));
  ExpectAlive();
}

// What the next attempt of a trial finds was put there by the one before.
TEST_F(FilesAttack, AnAttemptThatBlocksTheNextOneEndsItsTrialOnly) {
  Serve();
  Run("next",
      "d=$SHIRABE_CHECKPOINT_DIR/../../$SHIRABE_TRIAL-a2; mkdir $d; mkfifo $d/log; "
      "exit 75");
  Run("taken", "touch $SHIRABE_CHECKPOINT_DIR/../../$SHIRABE_TRIAL-a2; exit 75");
  ExpectFailed("next", "named pipe");
  ExpectFailed("taken", "link or a file");
  ExpectAlive();
}

TEST_F(FilesAttack, ADeepRecordOfAResumeDoesNotEndTheNextServer) {
  Serve();
  Run("nested", absl::StrCat(kHere, "(printf '{\\\"resumed\\\":{\\\"a\\\":'; ",
                             "head -c 3000000 /dev/zero | tr '\\\\0' '[') >resumed.json; ",
                             "touch done; sleep 60"));
  ASSERT_TRUE(Eventually([&] {
    return std::filesystem::exists(TrialFolder("nested") + "/nested-1/nested-1-a1/done");
  }));
  server_->Signal(SIGKILL);
  server_->Wait();
  Serve();
  ExpectAlive();
  EXPECT_TRUE(Deleted("nested"));
}

TEST_F(FilesAttack, ASparseCheckpointOfATerabyteIsRefusedAndHoldsUpNobody) {
  Serve();
  Run("sparse",
      "mkdir $SHIRABE_CHECKPOINT_DIR/1; truncate -s 1T $SHIRABE_CHECKPOINT_DIR/1/w; "
      "echo loss=1");
  AwaitEnd("sparse");
  EXPECT_EQ(Trials("sparse")[0].phase(), v1::TRIAL_SUCCEEDED);
  EXPECT_THAT(Http("GET /api/v1/namespaces/red/experiments/sparse/events", kRedToken).body,
              testing::HasSubstr("it is sparse: 1"));
  ExpectAlive();
}

TEST_F(FilesAttack, CheckpointsOfLinksAndPipesAreRefused) {
  Serve();
  std::ofstream(cli_.Path("secret")) << kSecret;
  Run("links", absl::StrCat("cd $SHIRABE_CHECKPOINT_DIR; mkdir 1 2; ln -s ", cli_.Path("secret"),
                            " 1/w; mkfifo 2/w; ln -s ", cli_.Path("."), " 3; mkdir 4; touch 4/w; ",
                            "mkfifo 4/.shirabe-manifest.json; echo loss=1"));
  AwaitEnd("links");
  const std::string events =
      Http("GET /api/v1/namespaces/red/experiments/links/events", kRedToken).body;
  for (const char* step : {"at step 1 ", "at step 2 ", "at step 3 ", "at step 4 "}) {
    EXPECT_THAT(events, testing::HasSubstr(absl::StrCat("the checkpoint ", step)));
  }
  EXPECT_THAT(events, testing::Not(testing::HasSubstr("CheckpointCommitted")));
  ExpectAlive();
}

int ModeOf(const std::string& path) {
  struct stat info = {};
  EXPECT_EQ(stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 0777;
}

TEST_F(FilesAttack, OthersOnTheMachineReadNothing) {
  std::filesystem::permissions(cli_.state(), static_cast<std::filesystem::perms>(0755));
  Serve();
  Run("private", "echo loss=1");
  AwaitEnd("private");
  EXPECT_EQ(ModeOf(cli_.state()), 0700);
  EXPECT_EQ(ModeOf(TrialFolder("private") + "/private-1"), 0700);
  EXPECT_EQ(ModeOf(TrialFolder("private") + "/private-1/private-1-a1/params.json"), 0600);
  EXPECT_EQ(ModeOf(TrialFolder("private") + "/private-1/private-1-a1/log"), 0600);
}

TEST_F(FilesAttack, AServerInMemoryMakesItsToken) {
  const std::string ready = cli_.Path("ready-memory");
  server_ = cli_.Start({"serve", "--db", "memory:", "--grpc", "127.0.0.1:0", "--http",
                        "127.0.0.1:0", "--ready-file", ready});
  ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(ready); }, absl::Seconds(20)))
      << server_->Err();
  const auto written = nlohmann::json::parse(ReadFile(ready).value_or("{}"));
  const std::string token = written.value("tokenFile", "");
  EXPECT_EQ(ModeOf(token), 0600);
  EXPECT_EQ(ReadFile(token).value_or("").size(), 49u);
  server_->Signal(SIGTERM);
  EXPECT_EQ(server_->Wait().code, 0);
}

}  // namespace
}  // namespace shirabe::attack
