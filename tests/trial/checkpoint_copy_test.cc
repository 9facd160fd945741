// Copies of checkpoints elsewhere: what comes back is what was committed, however a copy was cut
// off, and whatever was done to it.
#include "trial/checkpoint/checkpoint_copy.h"

#include <unistd.h>

#include "artifacts/directory_store.h"
#include "base/sha256.h"
#include "tests/support/killed_at_each_step.h"
#include "tests/trial/checkpoint_harness.h"

namespace shirabe::trial {
namespace {

using artifacts::ByteRange;
using artifacts::ObjectInfo;
using artifacts::ObjectPage;
using artifacts::PieceSink;
using artifacts::PutSource;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

// A store of which one call fails, or ends the process.
class FailingStore : public artifacts::ArtifactStore {
 public:
  explicit FailingStore(const std::string& root) : store_(root) {}

  // From the n-th call on (from 1), all give this error; kills the process before the n-th.
  void FailFrom(int call, Status error) { fail_from_ = call, error_ = std::move(error); }
  void KillAt(int call) { kill_at_ = call; }
  int calls() const { return calls_; }
  artifacts::ArtifactStore& whole() { return store_; }

  Status Put(const std::string& key, const PutSource& source, std::stop_token stop) override {
    RETURN_IF_ERROR(Count());
    return store_.Put(key, source, stop);
  }
  Status Get(const std::string& key, const ByteRange& range, const PieceSink& sink,
             std::stop_token stop) override {
    RETURN_IF_ERROR(Count());
    return store_.Get(key, range, sink, stop);
  }
  StatusOr<ObjectInfo> Head(const std::string& key, std::stop_token stop) override {
    RETURN_IF_ERROR(Count());
    return store_.Head(key, stop);
  }
  StatusOr<ObjectPage> List(const std::string& prefix, const std::string& after,
                            std::stop_token stop) override {
    RETURN_IF_ERROR(Count());
    return store_.List(prefix, after, stop);
  }
  Status Remove(const std::string& key, std::stop_token stop) override {
    RETURN_IF_ERROR(Count());
    return store_.Remove(key, stop);
  }
  StatusOr<artifacts::PresignedUrl> Presign(const artifacts::PresignedRequest&,
                                            absl::Duration) override {
    return absl::UnimplementedError("");
  }

 private:
  Status Count() {
    ++calls_;
    if (calls_ == kill_at_) kill(getpid(), SIGKILL);
    return calls_ >= fail_from_ ? error_ : absl::OkStatus();
  }

  artifacts::DirectoryStore store_;
  int calls_ = 0;
  int fail_from_ = 1 << 30;
  int kill_at_ = 0;
  Status error_;
};

class CheckpointCopyTest : public testing::Test {
 protected:
  CheckpointCopyTest() {
    CHECK(MakeDirs(root()).ok());
    checkpoint_ = home_.SaveAndCommit(AttemptOf(1), 10, files_);
  }
  std::string root() const { return home_.home() + "/store"; }
  std::string folder() const { return root() + "/p/_/exp/1/1/10"; }
  FailingStore MakeStore() const { return FailingStore(root()); }
  Status Out(FailingStore& store) {
    return CopyOut(checkpoint_, home_.Dir(AttemptOf(1)), {&store, "p"});
  }
  Status In(FailingStore& store) {
    return CopyIn(checkpoint_, home_.Path(AttemptOf(1, 2), 10), {&store, "p"});
  }
  // The other machine's copy, and nothing but it.
  void ExpectCameBack() {
    EXPECT_EQ(CheckpointHome::Read(home_.Path(AttemptOf(1, 2), 10)), files_);
    const auto fork = home_.store().Fork(checkpoint_, AttemptOf(1, 2));
    EXPECT_TRUE(fork.ok()) << fork.status();
    EXPECT_FALSE(fs::exists(home_.Path(AttemptOf(1, 2), 10) + ".tmp"));
  }
  std::string AnyFile() const {
    for (const auto& entry : fs::directory_iterator(folder() + "/files")) return entry.path();
    return "";
  }

  const Files files_ = {{"model/weights.bin", std::string(100'000, 'w')},
                        {"model/a name of its own?", "x"},
                        {"optimizer", "o"},
                        {"empty", ""},
                        {"same", "o"}};
  CheckpointHome home_;
  v1::Checkpoint checkpoint_;
};

TEST_F(CheckpointCopyTest, ComesBackWhole) {
  FailingStore store = MakeStore();
  ASSERT_TRUE(Out(store).ok());
  const int calls = store.calls();
  ASSERT_TRUE(Out(store).ok());
  EXPECT_EQ(store.calls(), calls + 1) << "a copy that is complete is only looked at";
  fs::remove_all(home_.Dir(AttemptOf(1)));
  const Status in = In(store);
  ASSERT_TRUE(in.ok()) << in;
  ExpectCameBack();
}

TEST_F(CheckpointCopyTest, NothingThereIsNotFound) {
  FailingStore store = MakeStore();
  EXPECT_TRUE(absl::IsNotFound(In(store)));
  EXPECT_FALSE(fs::exists(home_.Path(AttemptOf(1, 2), 10) + ".tmp"));
}

// Whichever call fails: the error comes out, nothing half is taken for a whole, and the next try
// goes on.
TEST_F(CheckpointCopyTest, AFailureOfAnyCallLosesNothing) {
  bool copied = false;
  for (int call = 1; !copied; ++call) {
    fs::remove_all(root() + "/p");
    FailingStore store = MakeStore();
    store.FailFrom(call, absl::ResourceExhaustedError("no space"));
    const Status out = Out(store);
    copied = out.ok();
    if (copied) break;
    EXPECT_TRUE(absl::IsResourceExhausted(out)) << out;
    FailingStore reader = MakeStore();
    EXPECT_TRUE(absl::IsNotFound(In(reader))) << call << ": half a copy is none";
    FailingStore again = MakeStore();
    ASSERT_TRUE(Out(again).ok()) << call;
    ASSERT_TRUE(In(reader).ok()) << call;
    ExpectCameBack();
  }
  for (int call = 1; call < 100; ++call) {
    fs::remove_all(home_.Dir(AttemptOf(1, 2)));
    FailingStore store = MakeStore();
    store.FailFrom(call, absl::UnavailableError("gone"));
    const Status in = In(store);
    if (in.ok()) return ExpectCameBack();
    EXPECT_TRUE(absl::IsUnavailable(in)) << in;
    EXPECT_FALSE(fs::exists(home_.Path(AttemptOf(1, 2), 10))) << call;
  }
}

// The same for a process that is killed before any call.
TEST_F(CheckpointCopyTest, KilledAtAnyCallTheNextProcessGoesOn) {
  const auto work = [&](int call) {
    fs::remove_all(root() + "/p");
    fs::remove_all(home_.Dir(AttemptOf(1, 2)));
    FailingStore store = MakeStore();
    store.KillAt(call);
    return Out(store).ok() && In(store).ok();
  };
  const auto check = [&](int call) {
    FailingStore store = MakeStore();
    ASSERT_TRUE(Out(store).ok()) << call;
    ASSERT_TRUE(In(store).ok()) << call;
    ExpectCameBack();
  };
  EXPECT_GT(KilledAtEachStep(work, check), 10) << "it has been killed at each of its calls before";
}

TEST_F(CheckpointCopyTest, WhatWasChangedInTheStoreIsFoundOut) {
  FailingStore store = MakeStore();
  ASSERT_TRUE(Out(store).ok());
  const std::string file = AnyFile();
  const std::string manifest = folder() + "/manifest.json";
  const std::string text = *ReadFile(file);
  const std::vector<std::pair<std::string, std::string>> changes = {
      {file, text + "more"},
      {file, "other"},
      {manifest, "{}"},
      {manifest, ""},
      {manifest, *ReadFile(manifest) + " "}};
  for (const auto& [path, contents] : changes) {
    const std::string before = *ReadFile(path);
    ASSERT_TRUE(WriteFileAtomic(path, contents).ok());
    const Status in = In(store);
    EXPECT_TRUE(absl::IsDataLoss(in)) << in;
    EXPECT_FALSE(fs::exists(home_.Path(AttemptOf(1, 2), 10)));
    ASSERT_TRUE(WriteFileAtomic(path, before).ok());
  }
  fs::remove(file);
  EXPECT_TRUE(absl::IsDataLoss(In(store)));
}

// A manifest that would lead out of the checkpoint's folder, or is another's; its digest is right,
// as only our own record could make it.
TEST_F(CheckpointCopyTest, AManifestThatLeadsElsewhereIsRefused) {
  FailingStore store = MakeStore();
  ASSERT_TRUE(Out(store).ok());
  const std::string own = *ReadFile(folder() + "/manifest.json");
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"\"optimizer\"", "\"../../evil\""},
                                                        {"\"optimizer\"", "\"/etc/evil\""},
                                                        {"\"exp-1\"", "\"exp-2\""},
                                                        {"\"step\":10", "\"step\":11"}}) {
    std::string text = own;
    ASSERT_NE(text.find(from), std::string::npos) << own;
    text.replace(text.find(from), from.size(), to);
    ASSERT_TRUE(WriteFileAtomic(folder() + "/manifest.json", text).ok());
    checkpoint_.set_digest(HexSha256(text));
    const Status in = In(store);
    EXPECT_TRUE(absl::IsDataLoss(in)) << in;
    EXPECT_FALSE(fs::exists(home_.Path(AttemptOf(1, 2), 10)));
  }
}

TEST_F(CheckpointCopyTest, WhatChangedHereSinceItWasCommittedIsNotCopied) {
  ASSERT_TRUE(WriteFileAtomic(home_.Path(AttemptOf(1), 10) + "/optimizer", "p").ok());
  FailingStore store = MakeStore();
  EXPECT_TRUE(absl::IsInvalidArgument(Out(store)));
  EXPECT_TRUE(absl::IsNotFound(In(store)));
}

TEST_F(CheckpointCopyTest, AnOlderExperimentOfTheSameNameIsReplaced) {
  FailingStore store = MakeStore();
  ASSERT_TRUE(Out(store).ok());
  fs::remove_all(home_.Dir(AttemptOf(1)));
  checkpoint_ = home_.SaveAndCommit(AttemptOf(1), 10, {{"model", "new"}});
  ASSERT_TRUE(Out(store).ok());
  ASSERT_TRUE(In(store).ok());
  EXPECT_EQ(CheckpointHome::Read(home_.Path(AttemptOf(1, 2), 10)), (Files{{"model", "new"}}));
}

// ---- outputs -----------------------------------------------------------------------------------

class OutputsCopyTest : public CheckpointCopyTest {
 protected:
  OutputsCopyTest() {
    for (const auto& [name, contents] : files_) Write(name, contents);
  }
  std::string Dir() const { return home_.layout().Paths(AttemptOf(1)).output_dir; }
  void Write(const std::string& name, const std::string& contents) const {
    const std::string path = Dir() + "/" + name;
    ASSERT_TRUE(MakeDirs(fs::path(path).parent_path().string()).ok());
    ASSERT_TRUE(WriteFileAtomic(path, contents).ok());
  }
  StatusOr<v1::Checkpoint> OutputsOut(FailingStore& store) {
    return CopyOutputsOut(AttemptOf(1), Dir(), {&store, "p"});
  }
  void ExpectOutputsCameBack(const v1::Checkpoint& outputs) {
    FailingStore store = MakeStore();
    const std::string back = home_.home() + "/back";
    const Status in = CopyIn(outputs, back, {&store, "p"});
    ASSERT_TRUE(in.ok()) << in;
    EXPECT_EQ(CheckpointHome::Read(back), files_);
    fs::remove_all(back);
  }
};

TEST_F(OutputsCopyTest, ComeBackWhole) {
  FailingStore store = MakeStore();
  const auto outputs = OutputsOut(store);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ(outputs->bytes(), 100'003);
  EXPECT_EQ(CopyOf("p", *outputs), "p/_/exp/1/1/0/");
  const int calls = store.calls();
  EXPECT_EQ(OutputsOut(store)->digest(), outputs->digest());
  EXPECT_EQ(store.calls(), calls + 1) << "a copy that is complete is only looked at";
  fs::remove_all(Dir());
  ExpectOutputsCameBack(*outputs);
}

TEST_F(OutputsCopyTest, AFailureOfAnyCallLosesNothing) {
  for (int call = 1; call < 100; ++call) {
    fs::remove_all(root() + "/p");
    FailingStore store = MakeStore();
    store.FailFrom(call, absl::ResourceExhaustedError("no space"));
    const auto out = OutputsOut(store);
    if (out.ok()) return ExpectOutputsCameBack(*out);
    EXPECT_TRUE(absl::IsResourceExhausted(out.status())) << out.status();
    EXPECT_FALSE(fs::exists(root() + "/p/_/exp/1/1/0/manifest.json")) << call;
    FailingStore again = MakeStore();
    const auto next = OutputsOut(again);
    ASSERT_TRUE(next.ok()) << call;
    ExpectOutputsCameBack(*next);
  }
  FAIL() << "it never came to its end";
}

TEST_F(OutputsCopyTest, KilledAtAnyCallTheNextProcessGoesOn) {
  const auto work = [&](int call) {
    fs::remove_all(root() + "/p");
    FailingStore store = MakeStore();
    store.KillAt(call);
    return OutputsOut(store).ok();
  };
  const auto check = [&](int call) {
    FailingStore store = MakeStore();
    const auto outputs = OutputsOut(store);
    ASSERT_TRUE(outputs.ok()) << call;
    ExpectOutputsCameBack(*outputs);
  };
  EXPECT_GT(KilledAtEachStep(work, check), 6) << "it has been killed at each of its calls before";
}

TEST_F(OutputsCopyTest, WithoutFilesNothingIsPut) {
  fs::remove_all(Dir());
  FailingStore store = MakeStore();
  EXPECT_EQ(OutputsOut(store)->digest(), "");
  fs::create_directories(Dir() + "/empty");
  EXPECT_EQ(OutputsOut(store)->digest(), "");
  EXPECT_EQ(store.calls(), 0);
}

TEST_F(OutputsCopyTest, WhatIsNoFileIsRefusedByName) {
  fs::create_symlink("/etc/passwd", Dir() + "/passwd");
  FailingStore store = MakeStore();
  const Status link = OutputsOut(store).status();
  EXPECT_TRUE(absl::IsInvalidArgument(link));
  EXPECT_THAT(Message(link), HasSubstr("passwd"));
  fs::remove(Dir() + "/passwd");
  fs::remove_all(home_.home() + "/moved");
  fs::rename(Dir(), home_.home() + "/moved");
  fs::create_directory_symlink(home_.home() + "/moved", Dir());
  EXPECT_TRUE(absl::IsInvalidArgument(OutputsOut(store).status()));
  EXPECT_EQ(store.calls(), 0);
}

TEST_F(OutputsCopyTest, ACopyThatIsNotWantedAnyMoreStops) {
  std::stop_source stop;
  stop.request_stop();
  FailingStore store = MakeStore();
  const auto out = CopyOutputsOut(AttemptOf(1), Dir(), {&store, "p", stop.get_token()});
  EXPECT_TRUE(absl::IsCancelled(out.status())) << out.status();
}

TEST_F(CheckpointCopyTest, RemovesWhatIsItsOwnAndNothingElse) {
  FailingStore store = MakeStore();
  ASSERT_TRUE(Out(store).ok());
  // An experiment whose prefix looks like a part of this one's, and one with a longer name.
  for (const char* beside : {"/p/_/exp2/1", "/p/more/_/exp/1", "/other"}) {
    ASSERT_TRUE(MakeDirs(root() + beside).ok());
    ASSERT_TRUE(WriteFileAtomic(root() + beside + "/object", "x").ok());
  }
  ASSERT_TRUE(RemoveCopy(checkpoint_, {&store, "p"}).ok());
  EXPECT_FALSE(fs::exists(folder()));
  ASSERT_TRUE(Out(store).ok());
  ASSERT_TRUE(RemoveCopies({"default", "exp"}, {&store, "p"}).ok());
  EXPECT_FALSE(fs::exists(root() + "/p/_/exp"));
  for (const char* beside : {"/p/_/exp2/1", "/p/more/_/exp/1", "/other"}) {
    EXPECT_TRUE(fs::exists(root() + beside + "/object")) << beside;
  }
}

}  // namespace
}  // namespace shirabe::trial
