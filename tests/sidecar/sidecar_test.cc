// What sidecar/sidecar.h promises: every byte once and in order, however the server behaves.
#include "sidecar/sidecar.h"

#include <gmock/gmock.h>
#include <sys/mount.h>
#include <unistd.h>

#include <thread>

#include "tests/sidecar/pod_harness.h"
#include "tests/support/eventually.h"
#include "trial/checkpoint/katib_folder.h"
#include "trial/pod/final_sync_log.h"

namespace shirabe::sidecar {
namespace {

using ::testing::HasSubstr;

std::string Lines(int from, int to) {
  std::string text;
  for (int i = from; i < to; ++i) absl::StrAppend(&text, "line ", i, " loss=", i * 0.5, "\n");
  return text;
}

// A store that is away, or slow, for some time.
class HardStore : public artifacts::ArtifactStore {
 public:
  explicit HardStore(std::shared_ptr<ArtifactStore> store)  // shared: as StoreTable has it
      : store_(std::move(store)) {}
  Status Put(const std::string& key, const artifacts::PutSource& source,
             std::stop_token stop) override {
    ++puts;
    if (away > 0 && away-- > 0) return absl::UnavailableError("away");
    while (slow && !stop.stop_requested()) Pause(absl::Milliseconds(5));
    return stop.stop_requested() ? absl::CancelledError("interrupted")
                                 : store_->Put(key, source, stop);
  }
  Status Get(const std::string& key, const artifacts::ByteRange& range,
             const artifacts::PieceSink& sink, std::stop_token stop) override {
    return store_->Get(key, range, sink, stop);
  }
  StatusOr<artifacts::ObjectInfo> Head(const std::string& key, std::stop_token stop) override {
    return store_->Head(key, stop);
  }
  StatusOr<artifacts::ObjectPage> List(const std::string& prefix, const std::string& after,
                                       std::stop_token stop) override {
    return store_->List(prefix, after, stop);
  }
  Status Remove(const std::string& key, std::stop_token stop) override {
    if (key.ends_with("/manifest.json")) ++removed;
    return store_->Remove(key, stop);
  }
  StatusOr<artifacts::PresignedUrl> Presign(const artifacts::PresignedRequest& request,
                                            absl::Duration lifetime) override {
    return store_->Presign(request, lifetime);
  }

  std::atomic<int> puts = 0;
  std::atomic<int> removed = 0;  // manifests
  std::atomic<int> away = 0;     // so many calls find it away
  std::atomic<bool> slow = false;

 private:
  const std::shared_ptr<ArtifactStore> store_;  // shared: as StoreTable has it
};

class SidecarTest : public testing::Test {
 protected:
  SidecarTest() : pod_(PodAt(folder_, ConfigOf(server_.address()))), program_(pod_) {}
  ~SidecarTest() override { Stop(); }

  void Start() {
    link_ = MakeServerLink(pod_.config);
    SidecarOptions options;
    options.pod = &pod_;
    options.link = link_.get();
    options.clock = RealClock();
    options.stores = stores_;
    options.copy_time = copy_time_;
    options.copies.calls.attempts = 1;
    options.copies.checkpoints.backoff = {absl::Milliseconds(1), absl::Milliseconds(1)};
    options.print = [this](const std::string& line) { words_ += line; };
    options.interval = absl::Milliseconds(20);
    options.urgent = absl::Milliseconds(20);
    options.patience = absl::Seconds(2);
    options.stay = absl::Milliseconds(50);
    thread_ = std::jthread([this, options](const std::stop_token& stop) {
      RunSidecar(options, stop);
      ended_ = true;
    });
  }
  // SIGTERM; returns once it has ended.
  void Stop() {
    if (!thread_.joinable()) return;
    thread_.request_stop();
    thread_.join();
  }
  void EndProgram(int code = 0) { program_.End(code); }
  // Its checkpoints and outputs go to a store in a folder.
  void MakeCopies() {
    v1::ArtifactStores entries;
    entries.add_stores()->set_name("team");
    entries.mutable_stores(0)->set_type("directory");
    entries.mutable_stores(0)->add_namespaces("default");
    entries.mutable_stores(0)->set_root(objects_.path());
    store_ = std::make_shared<HardStore>(
        *(*artifacts::StoreTable::Create(entries))->Find("team", "default"));
    stores_.copies = artifacts::StoreTable::Of(entries.stores(0), store_);
    pod_.config.mutable_artifacts()->set_store("team");
    pod_.config.mutable_artifacts()->set_checkpoints(true);
    pod_.config.mutable_artifacts()->set_outputs(true);
    ASSERT_TRUE(MakeDirs(pod_.paths.output_dir).ok());
    ASSERT_TRUE(WriteFileAtomic(pod_.paths.output_dir + "/model", "m").ok());
  }

  const Folder objects_;
  std::shared_ptr<HardStore> store_;  // shared: with the table
  Folder folder_;
  FakeServer server_;
  Pod pod_;
  const FakeProgram program_;
  PodStores stores_;
  absl::Duration copy_time_ = absl::Minutes(10);
  std::unique_ptr<ServerLink> link_;
  std::string words_;
  std::atomic<bool> ended_ = false;
  std::jthread thread_;
};

// Thousands of them may start at once.
TEST_F(SidecarTest, AQuietStartIsOneRequest) {
  server_.next_ms = 60'000;
  Start();
  ASSERT_TRUE(Eventually([this] { return server_.calls() > 0; }));
  program_.Print("hello\n");
  EXPECT_TRUE(Eventually([this] { return server_.Copy("log") == "hello\n"; }));
  EXPECT_EQ(server_.calls(), 2);
}

TEST_F(SidecarTest, ALifeOfAProgram) {
  Start();
  program_.Begin();
  program_.Print("hello\n");
  program_.Report("{\"step\":1,\"metrics\":{\"loss\":1}}\n");
  EXPECT_TRUE(Eventually([this] { return server_.Copy("log") == "hello\n"; }));
  program_.Save(10, "weights");
  EXPECT_TRUE(Eventually([this] { return server_.state().checkpoints_size() == 1; }));
  EXPECT_EQ(server_.state().checkpoints(0).step(), 10);
  EXPECT_FALSE(server_.state().has_exit());
  program_.Print("bye");
  program_.Save(20, "more");
  EndProgram(3);
  EXPECT_TRUE(Eventually([this] { return server_.complete(); }));
  const v1::PodState state = server_.state();
  EXPECT_EQ(state.exit().code(), 3);
  EXPECT_EQ(state.exit().ran().seconds(), 2);
  EXPECT_EQ(state.checkpoints_size(), 2);
  EXPECT_EQ(server_.Copy("log"), "hello\nbye");
  EXPECT_EQ(server_.Copy("metrics.jsonl"), "{\"step\":1,\"metrics\":{\"loss\":1}}\n");
  Stop();
  EXPECT_EQ(words_, "");
}

// Programs of Katib's save in one folder, in place, and their checkpoint counts once they have
// ended.
TEST_F(SidecarTest, WhatIsInKatibsFolderAtTheEndIsACheckpoint) {
  const trial::FileLayout layout(pod_.home());
  const std::string folder = trial::KatibFolder(layout.Paths(kKey));
  ASSERT_TRUE(MakeDirs(folder).ok());
  Start();
  program_.Begin();
  ASSERT_TRUE(WriteFileAtomic(folder + "/training.ckpt", "weights").ok());
  program_.Print("saved\n");
  EXPECT_TRUE(Eventually([this] { return server_.Copy("log") == "saved\n"; }));
  EXPECT_EQ(server_.state().checkpoints_size(), 0);
  EndProgram();
  EXPECT_TRUE(Eventually([this] { return server_.complete(); }));
  ASSERT_EQ(server_.state().checkpoints_size(), 1);
  EXPECT_EQ(server_.state().checkpoints(0).step(), 1);
}

// What is not there yet would be gone with the pod.
TEST_F(SidecarTest, AllIsSentOnceTheCopiesAreMadeToo) {
  MakeCopies();
  Start();
  program_.Begin();
  program_.Save(10, "weights");
  EndProgram();
  EXPECT_TRUE(Eventually([this] { return server_.complete(); }));
  const v1::PodState state = server_.state();
  EXPECT_THAT(state.copied(), HasSubstr("the latest at step 10, to store team"));
  EXPECT_EQ(state.uncopied() + state.outputs_uncopied(), "");
  EXPECT_EQ(state.outputs().bytes(), 1);
  EXPECT_FALSE(state.copying());
  for (const char* step : {"10", "0"}) {
    const std::string copy = absl::StrCat(objects_.path(), "/default/default/_/exp/1/1/", step);
    EXPECT_EQ(access((copy + "/manifest.json").c_str(), F_OK), 0) << copy;
  }
}

// A controller that is restarted takes longer than a call is worth trying for by itself.
TEST_F(SidecarTest, CopiesAreTriedForAsLongAsThePodWaitsForThem) {
  const auto tries = PodCopyRetries();
  absl::Duration waits;
  for (int i = 0; i + 1 < tries.checkpoints.attempts; ++i) {
    waits += tries.checkpoints.backoff.Delay(i);
    for (int k = 0; k + 1 < tries.calls.attempts; ++k) waits += tries.calls.backoff.Delay(k);
  }
  EXPECT_GE(waits, absl::Minutes(9));
  EXPECT_LE(waits, absl::Minutes(11));
  MakeCopies();
  store_->away = 20;
  Start();
  program_.Begin();
  EndProgram();
  EXPECT_TRUE(Eventually([this] { return server_.complete(); }));
  EXPECT_EQ(server_.state().outputs_uncopied(), "");
  EXPECT_EQ(server_.state().outputs().bytes(), 1);
  EXPECT_GT(store_->puts, 20);
}

// Copies that take longer than the grace of the pod would have been.
TEST_F(SidecarTest, WhatTheCopiesCameToIsSentAfterThemToo) {
  pod_.config.mutable_grace()->set_seconds(2);
  MakeCopies();
  store_->slow = true;
  Start();
  program_.Begin();
  EndProgram();
  EXPECT_TRUE(Eventually([this] { return server_.state().copying(); }));
  thread_.request_stop();
  Pause(absl::Seconds(2.2));
  EXPECT_FALSE(ended_);
  store_->slow = false;
  thread_.join();
  EXPECT_TRUE(server_.complete());
  EXPECT_FALSE(server_.state().copying());
  EXPECT_EQ(server_.state().outputs().bytes(), 1);
  EXPECT_EQ(words_, "");
}

TEST_F(SidecarTest, CopiesWithoutAnEndAreNotWaitedForWithoutEnd) {
  pod_.config.mutable_grace()->set_seconds(1);
  copy_time_ = absl::Milliseconds(1);
  MakeCopies();
  store_->slow = true;
  Start();
  program_.Begin();
  EndProgram();
  EXPECT_TRUE(Eventually([this] { return server_.state().copying(); }));
  Stop();
  EXPECT_FALSE(server_.complete());
  EXPECT_NE(words_, "");
}

// The server asks until it has heard that it is done.
TEST_F(SidecarTest, ACopyIsDeletedOnceHoweverOftenThatIsAsked) {
  MakeCopies();
  Start();
  program_.Begin();
  program_.Save(10, "weights");
  EXPECT_TRUE(Eventually([this] {
    const v1::PodState state = server_.state();
    return state.checkpoints_size() == 1 && state.checkpoints(0).copy() == v1::COPY_MADE;
  }));
  const int before = store_->removed;  // what is copied replaces what may stand there
  server_.AskToPrune(server_.state().checkpoints(0));
  EXPECT_TRUE(Eventually([&] { return store_->removed > before; }));
  const int calls = server_.calls();
  EXPECT_TRUE(Eventually([&] { return server_.calls() > calls + 5; }));
  EXPECT_EQ(store_->removed, before + 1);
}

// One pod of several: its checkpoint is not one of all.
TEST_F(SidecarTest, CommitsNoneWhereNoneAreKept) {
  pod_.checkpoints = false;
  Start();
  program_.Begin();
  program_.Save(10, "weights");
  program_.Print("bye");
  EndProgram();
  EXPECT_TRUE(Eventually([this] { return server_.complete(); }));
  EXPECT_EQ(server_.state().checkpoints_size(), 0);
  EXPECT_EQ(server_.Copy("log"), "bye");
}

// Katib's collectors wait for all processes that they found when they began.
TEST_F(SidecarTest, MakesWayForACollectorOfTheUsersOnceAllIsSent) {
  pod_.config.mutable_collector()->mutable_collector()->set_kind(v1::CUSTOM);
  program_.Begin();
  program_.Print(Lines(0, 1000));
  Start();
  EXPECT_TRUE(Eventually([this] { return server_.Copy("log") == Lines(0, 1000); }));
  EXPECT_FALSE(ended_);
  EndProgram();
  EXPECT_TRUE(Eventually([this] { return ended_.load(); }));
  EXPECT_TRUE(server_.complete());
  ended_ = false;
  Start();  // as the kubelet does
  EXPECT_TRUE(Eventually([this] { return ended_.load(); }));
  EXPECT_EQ(words_, "");
}

TEST_F(SidecarTest, AProgramThatEndsFirstIsTakenWhole) {
  program_.Begin();
  program_.Print(Lines(0, 1000));
  EndProgram();
  Start();
  EXPECT_TRUE(Eventually([this] { return server_.complete(); }));
  EXPECT_EQ(server_.Copy("log"), Lines(0, 1000));
}

TEST_F(SidecarTest, EveryByteOnceWhateverTheServerDoes) {
  server_.refuse = 3;
  Start();
  program_.Begin();
  std::string written;
  for (int i = 0; i < 40; ++i) {
    const std::string lines = Lines(i * 100, i * 100 + 100);
    program_.Print(lines);
    written += lines;
    if (i % 7 == 1) server_.refuse = 1;
    if (i % 5 == 2) server_.swallow = 2;
    if (i == 15) server_.LoseCopies();
    if (i == 25) server_.Stop();
    if (i == 30) server_.Restart();
    server_.delay_ms = i % 3 == 0 ? 30 : 0;
    Pause(absl::Milliseconds(15));
  }
  server_.delay_ms = 0;
  EndProgram();
  EXPECT_TRUE(Eventually([this] { return server_.complete(); }));
  EXPECT_TRUE(server_.Copy("log") == written);
}

TEST_F(SidecarTest, ItsSuccessorGoesOnWhereTheServerIs) {
  Start();
  program_.Begin();
  program_.Print(Lines(0, 500));
  EXPECT_TRUE(Eventually([this] { return server_.Copy("log").size() == Lines(0, 500).size(); }));
  Stop();
  EXPECT_EQ(words_, "") << "the program runs on, and so does its log";
  program_.Print(Lines(500, 900));
  Start();
  EndProgram();
  EXPECT_TRUE(Eventually([this] { return server_.complete(); }));
  EXPECT_EQ(server_.Copy("log"), Lines(0, 900));
}

TEST_F(SidecarTest, LongLinesAndManyBytesPass) {
  program_.Begin();
  Start();
  std::string written;
  for (int i = 0; i < 24; ++i) {
    const std::string line = std::string(1 << 20, static_cast<char>('a' + i)) + "\n";
    program_.Print(line);
    written += line;
  }
  EndProgram();
  EXPECT_TRUE(Eventually([this] { return server_.complete(); }));
  EXPECT_TRUE(server_.Copy("log") == written);
}

TEST_F(SidecarTest, AFileThatIsRewrittenReplacesItsCopy) {
  program_.Begin();
  Start();
  ASSERT_TRUE(WriteFileAtomic(pod_.paths.hypertune_file, "report 1\nreport 2\n").ok());
  EXPECT_TRUE(Eventually([this] { return server_.Copy("hypertune.jsonl").size() == 18; }));
  AppendTo(pod_.paths.hypertune_file, "report 3\n");
  EXPECT_TRUE(Eventually([this] { return server_.Copy("hypertune.jsonl").size() == 27; }));
  std::ofstream(pod_.paths.hypertune_file, std::ios::trunc) << "report 2\nreport 3\nreport 4\n";
  EXPECT_TRUE(Eventually(
      [this] { return server_.Copy("hypertune.jsonl") == "report 2\nreport 3\nreport 4\n"; }));
}

TEST_F(SidecarTest, AFileOfTheProgramIsFollowedThroughRotation) {
  const std::string path = folder_.path() + "/out/metrics.log";
  ASSERT_TRUE(MakeDirs(folder_.path() + "/out").ok());
  pod_.config.mutable_collector()->mutable_collector()->set_kind(v1::FILE_COLLECTOR);
  pod_.config.mutable_collector()->mutable_source()->mutable_file_system_path()->set_path(path);
  program_.Begin();
  Start();
  AppendTo(path, "loss=1\n");
  EXPECT_TRUE(Eventually([&] { return server_.Copy("files" + path) == "loss=1\n"; }));
  AppendTo(path, "loss=2\n");
  ASSERT_EQ(rename(path.c_str(), (path + ".1").c_str()), 0);
  AppendTo(path, "loss=3\n");
  EndProgram();
  EXPECT_TRUE(Eventually([this] { return server_.complete(); }));
  EXPECT_EQ(server_.Copy("files" + path), "loss=3\n");
}

TEST_F(SidecarTest, RequestsReachTheProgramAndAreAnswered) {
  program_.Begin();
  Start();
  v1::PodRequest request;
  request.set_id(7);
  request.set_reason("early-stop");
  request.mutable_deadline()->set_seconds(1'800'000'000);
  server_.Ask(request);
  EXPECT_TRUE(Eventually([this] { return server_.state().heeded() == 7; }));
  const std::string control = *ReadFile(pod_.paths.control_file);
  EXPECT_THAT(control, HasSubstr("\"reason\":\"early-stop\""));
  EXPECT_THAT(control, HasSubstr("\"deadline\":1800000000"));
  Stop();
  Start();
  EXPECT_TRUE(Eventually([this] { return server_.state().heeded() == 7; }));
  EXPECT_EQ(*ReadFile(pod_.paths.control_file), control) << "told again, not asked again";
}

TEST_F(SidecarTest, PrunesWhatTheServerNames) {
  program_.Begin();
  Start();
  program_.Save(10, "old");
  program_.Save(20, "new");
  EXPECT_TRUE(Eventually([this] { return server_.state().checkpoints_size() == 2; }));
  server_.AskToPrune(server_.state().checkpoints(0));
  EXPECT_TRUE(Eventually([this] { return server_.state().pruned_size() == 1; }));
  EXPECT_NE(access((pod_.paths.checkpoint_dir + "/10").c_str(), F_OK), 0);
  EXPECT_EQ(access((pod_.paths.checkpoint_dir + "/20").c_str(), F_OK), 0);
}

TEST_F(SidecarTest, DeniedItSendsNothingMoreAndEndsWhenTold) {
  server_.deny = true;
  program_.Begin();
  program_.Print("secret\n");
  Start();
  EXPECT_TRUE(Eventually([this] { return server_.calls() > 0; }));
  Pause(absl::Milliseconds(600));
  EXPECT_EQ(server_.calls(), 1);
  EXPECT_TRUE(thread_.joinable());
  Stop();
  EXPECT_EQ(words_, "");
  EXPECT_EQ(server_.Copy("log"), "");
}

TEST_F(SidecarTest, WithoutAServerItPrintsItsLastWords) {
  server_.Stop();
  pod_.config.mutable_grace()->set_seconds(2);
  program_.Begin();
  program_.Print(Lines(0, 50'000));
  program_.Report("{\"step\":1,\"metrics\":{\"loss\":1}}\n");
  program_.Save(5, "weights");
  EndProgram(1);
  Start();
  Stop();
  std::map<std::string, std::string> files;
  const auto words = trial::ParseFinalSync(words_);
  ASSERT_FALSE(words.empty());
  for (const v1::SyncRequest& request : words) {
    EXPECT_EQ(request.token(), "");
    for (const v1::FilePiece& piece : request.files()) {
      EXPECT_EQ(piece.offset(), static_cast<int64_t>(files[piece.name()].size()));
      files[piece.name()] += piece.data();
    }
  }
  EXPECT_EQ(words.front().state().exit().code(), 1);
  EXPECT_EQ(words.front().state().checkpoints_size(), 1);
  EXPECT_TRUE(words.back().state().complete());
  EXPECT_EQ(files["log"], Lines(0, 50'000));
  EXPECT_EQ(files["metrics.jsonl"], "{\"step\":1,\"metrics\":{\"loss\":1}}\n");
}

TEST_F(SidecarTest, APodWhoseProgramNeverStartedIsComplete) {
  Start();
  EXPECT_TRUE(Eventually([this] { return server_.calls() > 0; }));
  Stop();
  EXPECT_TRUE(server_.complete());
  EXPECT_FALSE(server_.state().has_exit());
}

TEST_F(SidecarTest, ASupervisorThatWasKilledIsSeen) {
  program_.Begin();
  ASSERT_TRUE(WriteFileAtomic(pod_.run("alive"), "").ok());  // and nobody holds it
  program_.Print("killed in mid-sen");
  Start();
  EXPECT_TRUE(Eventually([this] { return server_.complete(); }));
  EXPECT_FALSE(server_.state().has_exit());
  EXPECT_THAT(server_.state().trouble(), HasSubstr("has left no exit record"));
  EXPECT_EQ(server_.Copy("log"), "killed in mid-sen");
}

TEST_F(SidecarTest, ALogThatGrowsFasterThanMostDisks) {
  program_.Begin();
  Start();
  const std::string chunk(1 << 20, 'x');
  const absl::Duration from = RealClock()->Monotonic();
  int64_t written = 0;
  while (written < int64_t{100} << 20) {
    program_.Print(chunk);
    written += static_cast<int64_t>(chunk.size());
    const absl::Duration due = absl::Seconds(written / (50.0 * (1 << 20)));
    const absl::Duration ahead = due - (RealClock()->Monotonic() - from);
    if (ahead > absl::ZeroDuration()) Pause(ahead);
  }
  EndProgram();
  EXPECT_TRUE(Eventually([this] { return server_.complete(); }));
  const absl::Duration took = RealClock()->Monotonic() - from;
  EXPECT_EQ(static_cast<int64_t>(server_.Copy("log").size()), written);
  RecordProperty("seconds", absl::StrCat(absl::ToDoubleSeconds(took)));
}

// F14: what finds no room at the server stays here, until there is some.
TEST_F(SidecarTest, AServerWhoseDiskIsFullGetsTheRestLater) {
  const std::string disk = server_.dir();
  ASSERT_TRUE(MakeDirs(disk).ok());
  if (mount("none", disk.c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "mounting a tmpfs is not permitted here: a full disk is not tried";
  }
  Start();
  program_.Begin();
  const std::string lines = Lines(0, 200'000);  // 4 MiB
  program_.Print(lines);
  EXPECT_TRUE(Eventually([&] { return server_.Copy("log").size() >= 900'000; }));
  program_.Report("{\"step\":1,\"metrics\":{\"loss\":1}}\n");
  program_.Print("the end\n");
  EndProgram();
  const int calls = server_.calls();
  EXPECT_TRUE(Eventually([&] { return server_.calls() > calls + 2; })) << "it goes on trying";
  EXPECT_FALSE(server_.complete());
  EXPECT_EQ(mount("none", disk.c_str(), nullptr, MS_REMOUNT, "size=32m"), 0);
  EXPECT_TRUE(Eventually([&] { return server_.complete(); }));
  EXPECT_TRUE(server_.Copy("log") == lines + "the end\n") << "every byte, once and in order";
  EXPECT_EQ(server_.Copy("metrics.jsonl"), "{\"step\":1,\"metrics\":{\"loss\":1}}\n");
  Stop();
  EXPECT_EQ(words_, "");
  EXPECT_EQ(umount(disk.c_str()), 0);
}

}  // namespace
}  // namespace shirabe::sidecar
