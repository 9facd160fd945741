// What sidecar/pod_init.h promises: all is in place, and running it again takes nothing away.
#include "sidecar/pod_init.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/open_beneath.h"
#include "base/sha256.h"
#include "tests/sidecar/pod_harness.h"
#include "trial/checkpoint/checkpoint_store.h"
#include "trial/checkpoint/katib_folder.h"

namespace shirabe::sidecar {
namespace {

using ::testing::HasSubstr;

// A store whose objects cannot be had, or are all `text`.
class OneAnswer : public artifacts::ArtifactStore {
 public:
  explicit OneAnswer(Status status, std::string text = "")
      : status_(std::move(status)), text_(std::move(text)) {}
  Status Put(const std::string&, const artifacts::PutSource&, std::stop_token) override {
    return status_;
  }
  Status Get(const std::string&, const artifacts::ByteRange&, const artifacts::PieceSink& sink,
             std::stop_token) override {
    ++gets;
    RETURN_IF_ERROR(status_);
    return sink(text_);
  }
  StatusOr<artifacts::ObjectInfo> Head(const std::string& key, std::stop_token) override {
    return artifacts::ObjectInfo{key};
  }
  StatusOr<artifacts::ObjectPage> List(const std::string&, const std::string&,
                                       std::stop_token) override {
    return artifacts::ObjectPage();
  }
  Status Remove(const std::string&, std::stop_token) override { return status_; }
  StatusOr<artifacts::PresignedUrl> Presign(const artifacts::PresignedRequest&,
                                            absl::Duration) override {
    return absl::UnimplementedError("");
  }

  int gets = 0;

 private:
  const Status status_;
  const std::string text_;
};

class InitTest : public testing::Test {
 protected:
  InitTest()
      : pod_(PodAt(folder_, ConfigOf("127.0.0.1:1"))), layout_(pod_.home()), store_(&layout_) {
    pod_.config.set_attempt(2);
    pod_.key.number = 2;
    pod_.paths = trial::PodPaths(pod_.key, folder_.path());
  }

  // What the first attempt has left; also a candidate to go on from.
  v1::Checkpoint SaveByFirst(int64_t step, const std::string& contents) {
    const std::string path = absl::StrCat(layout_.Paths(kKey).checkpoint_dir, "/", step);
    EXPECT_TRUE(MakeDirs(path).ok());
    EXPECT_TRUE(WriteFileAtomic(path + "/model", contents).ok());
    auto checkpoint = store_.Commit(kKey, step);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    *pod_.config.add_resume() = *checkpoint;
    return *checkpoint;
  }
  v1::PodState Begin() const {
    v1::PodState begin;
    EXPECT_TRUE(ReadMessage(pod_.run("begin"), begin).ok());
    return begin;
  }
  std::string Model(int64_t step) const {
    const auto text = ReadFile(absl::StrCat(pod_.paths.checkpoint_dir, "/", step, "/model"));
    return text.ok() ? *text : "none";
  }

  Folder folder_;
  Pod pod_;
  const trial::FileLayout layout_;
  const trial::CheckpointStore store_;
};

TEST_F(InitTest, PutsAllInPlace) {
  ASSERT_TRUE(Init(pod_).ok());
  EXPECT_EQ(*ReadFile(pod_.paths.params_file), "{\"lr\": 0.1}\n");
  EXPECT_EQ(access((folder_.path() + "/bin/supervisor").c_str(), X_OK), 0);
  const std::string env = *ReadFile(pod_.run("env"));
  EXPECT_THAT(env, HasSubstr("SHIRABE_RESUME_FROM=\n"));
  EXPECT_THAT(env, HasSubstr("KUBEFLOW_TRAINER_SERVER_URL=http://127.0.0.1:"));
  EXPECT_THAT(env, HasSubstr("KUBEFLOW_TRAINER_SERVER_TOKEN=" + pod_.paths.dir));
  EXPECT_FALSE(Begin().has_resumed());
}

TEST_F(InitTest, KatibsFolderHoldsACopyThatTheProgramsUserMayChange) {
  pod_.katib_folder = true;
  SaveByFirst(1, "parent");
  const mode_t old = umask(022);
  ASSERT_TRUE(Init(pod_).ok());
  umask(old);
  const std::string folder = trial::KatibFolder(layout_.Paths(pod_.key));
  EXPECT_EQ(*ReadFile(folder + "/model"), "parent");
  struct stat info;
  ASSERT_EQ(stat((folder + "/model").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0666u);
  ASSERT_EQ(stat(folder.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0777u);
  // Once the program may have started nothing is touched.
  ASSERT_TRUE(WriteFileAtomic(folder + "/model", "child").ok());
  ASSERT_TRUE(Init(pod_).ok());
  EXPECT_EQ(*ReadFile(folder + "/model"), "child");
}

TEST_F(InitTest, AProgramOfAnotherUserCanWriteAndTheNextAttemptToo) {
  const mode_t old = umask(022);
  ASSERT_TRUE(Init(pod_).ok());
  umask(old);
  for (const std::string& dir :
       {pod_.paths.dir, pod_.paths.checkpoint_dir, pod_.paths.output_dir,
        layout_.TrialDir(pod_.key.trial), layout_.ExperimentDir(pod_.key.trial.experiment)}) {
    struct stat info;
    ASSERT_EQ(stat(dir.c_str(), &info), 0) << dir;
    EXPECT_EQ(info.st_mode & 0777, 0777u) << dir;
  }
}

TEST_F(InitTest, TheNewestIntactCheckpointIsResumed) {
  SaveByFirst(30, "newest");
  const v1::Checkpoint middle = SaveByFirst(20, "middle");
  SaveByFirst(10, "oldest");
  AppendTo(layout_.Paths(kKey).checkpoint_dir + "/30/model", "damage");
  ASSERT_TRUE(Init(pod_).ok());
  EXPECT_THAT(*ReadFile(pod_.run("env")),
              HasSubstr("SHIRABE_RESUME_FROM=" + pod_.paths.checkpoint_dir + "/20\n"));
  EXPECT_EQ(Model(20), "middle");
  EXPECT_EQ(Begin().resumed().digest(), middle.digest());
  ASSERT_EQ(Begin().damaged_size(), 1);
  EXPECT_EQ(Begin().damaged(0).step(), 30);
  EXPECT_NE(Begin().damaged(0).gone(), "");
}

TEST_F(InitTest, NoneIntactIsTheBeginning) {
  SaveByFirst(30, "newest");
  ASSERT_TRUE(RemoveAll(layout_.Paths(kKey).checkpoint_dir).ok());
  ASSERT_TRUE(Init(pod_).ok());
  EXPECT_THAT(*ReadFile(pod_.run("env")), HasSubstr("SHIRABE_RESUME_FROM=\n"));
  EXPECT_EQ(Begin().damaged_size(), 1);
}

TEST_F(InitTest, AgainItOverwritesNothingNewer) {
  SaveByFirst(20, "given");
  ASSERT_TRUE(Init(pod_).ok());
  const std::string env = *ReadFile(pod_.run("env"));
  // The program has saved the same step anew, and a later one.
  ASSERT_TRUE(WriteFileAtomic(pod_.paths.checkpoint_dir + "/20/model", "by the program").ok());
  ASSERT_TRUE(MakeDirs(pod_.paths.checkpoint_dir + "/25").ok());
  ASSERT_TRUE(WriteFileAtomic(pod_.paths.checkpoint_dir + "/25/model", "later").ok());
  ASSERT_TRUE(Init(pod_).ok());
  EXPECT_EQ(Model(20), "by the program");
  EXPECT_EQ(Model(25), "later");
  EXPECT_EQ(*ReadFile(pod_.run("env")), env);
}

TEST_F(InitTest, CutShortItIsDoneAgain) {
  SaveByFirst(20, "given");
  ASSERT_TRUE(Init(pod_).ok());
  ASSERT_EQ(unlink(pod_.run("begin").c_str()), 0);
  ASSERT_EQ(unlink((pod_.paths.checkpoint_dir + "/20/model").c_str()), 0);
  ASSERT_TRUE(Init(pod_).ok());
  EXPECT_EQ(Model(20), "given");
  EXPECT_EQ(Begin().resumed().step(), 20);
}

// ---- a volume that trials share
// ------------------------------------------------------------------

TEST_F(InitTest, FoldersAreMadeBeforeTheyAreMounted) {
  ASSERT_TRUE(MakeDirs(pod_.home()).ok());
  const v1::Checkpoint saved = SaveByFirst(30, "saved");
  v1::Checkpoint gone = saved;
  gone.set_trial(7);
  *pod_.config.add_resume() = gone;
  ASSERT_EQ(MakeHomeFolders(pod_), absl::OkStatus());
  ASSERT_EQ(MakeHomeFolders(pod_), absl::OkStatus());
  AttemptKey parent = kKey;
  parent.trial.number = 7;
  for (const std::string& dir :
       {pod_.paths.checkpoint_dir, pod_.paths.output_dir, layout_.Paths(parent).checkpoint_dir}) {
    EXPECT_EQ(access(dir.c_str(), W_OK), 0) << dir;
  }
  pod_.config.set_home_in_parts(true);
  ASSERT_EQ(Init(pod_), absl::OkStatus());
  EXPECT_EQ(Model(30), "saved");
}

// A program of an earlier attempt may have had the whole volume, and left a link for the next one.
TEST_F(InitTest, FoldersAreNotMadeThroughALink) {
  const Folder elsewhere;
  ASSERT_TRUE(MakeDirs(layout_.ExperimentDir(kKey.trial.experiment)).ok());
  ASSERT_EQ(symlink(elsewhere.path().c_str(), layout_.TrialDir(kKey.trial).c_str()), 0);
  const Status refused = MakeHomeFolders(pod_);
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_TRUE(std::filesystem::is_empty(elsewhere.path()));
}

// The digest is the record's: a manifest that was written anew beside poisoned files is damage.
TEST_F(InitTest, APoisonedCheckpointIsNotResumedWhateverItsManifestSays) {
  SaveByFirst(30, "honest");
  const std::string path = layout_.Paths(kKey).checkpoint_dir + "/30";
  ASSERT_TRUE(RemoveAll(path).ok());
  ASSERT_TRUE(MakeDirs(path).ok());
  ASSERT_TRUE(WriteFileAtomic(path + "/model", "poison").ok());
  ASSERT_TRUE(store_.Commit(kKey, 30).ok());
  ASSERT_EQ(Init(pod_), absl::OkStatus());
  EXPECT_THAT(*ReadFile(pod_.run("env")), HasSubstr("SHIRABE_RESUME_FROM=\n"));
  EXPECT_EQ(Begin().damaged_size(), 1);
}

TEST(ReadPodTest, SaysWhatIsWrong) {
  EXPECT_THAT(Message(ReadPod("", "/shirabe").status()), HasSubstr("$SHIRABE_POD is not set"));
  EXPECT_THAT(Message(ReadPod("{", "/shirabe").status()), HasSubstr("$SHIRABE_POD"));
  EXPECT_THAT(Message(ReadPod("{\"namespace\": \"../x\"}", "/shirabe").status()),
              HasSubstr("$SHIRABE_POD"));
  const auto pod = ReadPod(
      "{\"namespace\": \"ns\", \"experiment\": \"exp\", \"trial\": \"3\", \"attempt\": 2, "
      "\"fieldOfTomorrow\": 1}",
      "/shirabe");
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(pod->paths.checkpoint_dir, "/shirabe/home/trials/ns/exp/exp-3/exp-3-a2/checkpoints");
  EXPECT_EQ(pod->paths.log, "/shirabe/run/log");
}

// The collector's folder, where it is a claim, which is root's.
TEST_F(InitTest, TheCollectorsFolderIsOpenedToAll) {
  const std::string collected = pod_.root + "/collected";
  ASSERT_TRUE(MakeDirs(collected).ok());
  ASSERT_EQ(chmod(collected.c_str(), 0755), 0);
  ASSERT_TRUE(Init(pod_, {}).ok());
  struct stat info;
  ASSERT_EQ(stat(collected.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0777u);
}

// As of a claim whose driver gives it to root, in a pod whose program is not.
TEST_F(InitTest, AVolumeThatIsOfAnotherUserNamesTheFix) {
  if (geteuid() != 0) GTEST_SKIP() << "another user needs root";
  ASSERT_EQ(chmod(folder_.path().c_str(), 0755), 0);
  if (seteuid(65534) != 0) GTEST_SKIP() << "there is no other user here";
  const Status status = Init(pod_, {});
  ASSERT_EQ(seteuid(0), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("user 65534 may not write to the volume"));
  EXPECT_THAT(Message(status), HasSubstr("securityContext.fsGroup"));
}

// An attempt ends for good only where no other try of the same package could do better.
TEST_F(InitTest, CodeThatIsNotToBeHadJustNowIsAskedForAgain) {
  using Code = absl::StatusCode;
  const auto run = [&](std::shared_ptr<OneAnswer> store,  // shared: as PodStores has it
                       const std::string& digest) {
    InitOptions options;
    options.fetch.attempts = 2;
    options.fetch.backoff = {absl::Milliseconds(1), absl::Milliseconds(1)};
    options.stores.code = std::move(store);
    pod_.config.set_code(digest);
    return Init(pod_, options);
  };
  for (const Code code : {Code::kUnavailable, Code::kPermissionDenied, Code::kInvalidArgument,
                          Code::kFailedPrecondition, Code::kUnimplemented, Code::kInternal}) {
    const auto store = std::make_shared<OneAnswer>(Status(code, "says the store"));
    const Status status = run(store, std::string(64, 'a'));
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr("says the store"));
    EXPECT_EQ(store->gets, 2) << status;
  }
  for (const Code code : {Code::kNotFound, Code::kDataLoss}) {
    const Status status = run(std::make_shared<OneAnswer>(Status(code, "")), std::string(64, 'a'));
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  }
  const Status other =
      run(std::make_shared<OneAnswer>(absl::OkStatus(), "no package"), std::string(64, 'a'));
  EXPECT_TRUE(absl::IsDataLoss(other)) << other;
  const Status damaged =
      run(std::make_shared<OneAnswer>(absl::OkStatus(), "no package"), HexSha256("no package"));
  EXPECT_TRUE(absl::IsDataLoss(damaged)) << damaged;
  EXPECT_THAT(Message(damaged), HasSubstr("no gzip file"));
}

}  // namespace
}  // namespace shirabe::sidecar
