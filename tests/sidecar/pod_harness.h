// What tests of the sidecar share: a pod's folder, a server that misbehaves on demand, and a
// program that is only files. Not thread-safe unless it says so.
#pragma once

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <mutex>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "base/open_beneath.h"
#include "base/timestamp.h"
#include "proto/shirabe/v1/pod.grpc.pb.h"
#include "sidecar/pod_config.h"
#include "tests/support/eventually.h"
#include "trial/file_layout.h"
#include "trial/pod/file_mirror.h"

namespace shirabe::sidecar {

inline const AttemptKey kKey = {{{"default", "exp"}, 1}, 1};

class Folder {
 public:
  Folder() : path_(testing::TempDir() + "shirabe-pod-XXXXXX") {
    EXPECT_NE(mkdtemp(path_.data()), nullptr);
  }
  ~Folder() { EXPECT_TRUE(RemoveAll(path_).ok()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline v1::PodConfig ConfigOf(const std::string& server) {
  v1::PodConfig config;
  config.set_namespace_("default");
  config.set_experiment("exp");
  config.set_trial(1);
  config.set_attempt(1);
  config.set_token("secret");
  config.set_server(server);
  config.set_parameters_json("{\"lr\": 0.1}\n");
  config.mutable_grace()->set_seconds(15);
  return config;
}

// The server: a mirror behind gRPC, on a port of its own. Its switches may be set at any time.
class FakeServer : public v1::Pods::Service {
 public:
  FakeServer() : layout_(home_.path()) { Start(0); }
  ~FakeServer() override { Stop(); }

  // The port stays the same; what it knew is in its copies only.
  void Start(int port) {
    mirror_ = std::make_unique<trial::FileMirror>(trial::FileMirrorOptions{.layout = &layout_});
    grpc::ServerBuilder builder;
    builder.AddListeningPort(absl::StrCat("127.0.0.1:", port), grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }
  void Stop() {
    if (server_ == nullptr) return;
    server_->Shutdown(gpr_inf_past(GPR_CLOCK_MONOTONIC));
    server_->Wait();
    server_ = nullptr;
  }
  void Restart() { Start(port_); }
  // As after a fail-over to a server that has no copies.
  void LoseCopies() {
    std::lock_guard lock(mutex_);
    EXPECT_TRUE(RemoveAll(layout_.Paths(kKey).dir).ok());
  }

  // Where its copies lie.
  std::string dir() const { return layout_.Paths(kKey).dir; }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }
  std::string Copy(const std::string& name) const {
    const auto text = ReadFile(layout_.Paths(kKey).dir + "/" + name, int64_t{1} << 30);
    return text.ok() ? *text : "";
  }
  v1::PodState state() const {
    std::lock_guard lock(mutex_);
    return state_;
  }
  bool complete() const { return state().complete(); }
  int calls() const { return calls_; }
  void Ask(const v1::PodRequest& request) {
    std::lock_guard lock(mutex_);
    *reply_.mutable_request() = request;
  }
  void AskToPrune(const v1::Checkpoint& checkpoint) {
    std::lock_guard lock(mutex_);
    *reply_.add_prune() = checkpoint;
  }

  std::atomic<int> refuse = 0;   // so many calls are not heard
  std::atomic<int> swallow = 0;  // of so many the answer is lost
  std::atomic<bool> deny = false;
  std::atomic<int> delay_ms = 0;
  std::atomic<int64_t> next_ms = 100;

 private:
  grpc::Status Sync(grpc::ServerContext*, const v1::SyncRequest* request,
                    v1::SyncReply* reply) override {
    ++calls_;
    if (delay_ms > 0) Pause(absl::Milliseconds(delay_ms.load()));
    if (deny || request->token() != "secret") return {grpc::StatusCode::PERMISSION_DENIED, "no"};
    if (refuse > 0 && refuse-- > 0) return {grpc::StatusCode::UNAVAILABLE, "not yet"};
    std::lock_guard lock(mutex_);
    auto taken = mirror_->Apply(kKey, *request, request->state().complete());
    if (!taken.ok()) return {grpc::StatusCode::INTERNAL, Message(taken.status())};
    state_ = request->state();
    if (swallow > 0 && swallow-- > 0) return {grpc::StatusCode::UNAVAILABLE, "lost"};
    *reply = reply_;
    for (v1::FileHave& have : taken->have) *reply->add_files() = std::move(have);
    *reply->mutable_next() = ToProto(absl::Milliseconds(next_ms.load()));
    return grpc::Status::OK;
  }

  const Folder home_;
  const trial::FileLayout layout_;
  int port_ = 0;
  std::unique_ptr<trial::FileMirror> mirror_;
  std::unique_ptr<grpc::Server> server_;
  std::atomic<int> calls_ = 0;
  mutable std::mutex mutex_;
  v1::PodState state_;   // guarded by mutex_
  v1::SyncReply reply_;  // guarded by mutex_
};

inline void AppendTo(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::app | std::ios::binary) << text;
}

// A program that is only the files that it and its supervisor would write.
class FakeProgram {
 public:
  explicit FakeProgram(const Pod& pod) : pod_(pod) {
    EXPECT_TRUE(MakeDirs(pod.paths.dir).ok());
    EXPECT_TRUE(MakeDirs(pod.paths.checkpoint_dir).ok());
  }
  void Begin() const { EXPECT_TRUE(WriteFileAtomic(pod_.run("pid"), "pid 1\nstart 1\n").ok()); }
  void Print(const std::string& text) const { AppendTo(pod_.paths.log, text); }
  void Report(const std::string& line) const { AppendTo(pod_.paths.metrics_file, line); }
  void Save(int64_t step, const std::string& contents) const {
    const std::string path = absl::StrCat(pod_.paths.checkpoint_dir, "/", step);
    EXPECT_TRUE(MakeDirs(path + ".tmp").ok());
    EXPECT_TRUE(WriteFileAtomic(path + ".tmp/model", contents).ok());
    EXPECT_EQ(rename((path + ".tmp").c_str(), path.c_str()), 0);
  }
  void End(int code) const {
    EXPECT_TRUE(WriteFileAtomic(pod_.run("exit"),
                                absl::StrCat("id x\ncode ", code,
                                             "\nsignal 0\noom 0\nkilled 0\ntold 0\nbegan 1000000000"
                                             "\nended 3000000000\nran 2000000000\nmessage \n"))
                    .ok());
  }

 private:
  const Pod& pod_;
};

inline Pod PodAt(const Folder& folder, const v1::PodConfig& config) {
  Pod pod;
  pod.config = config;
  pod.key = kKey;
  pod.root = folder.path();
  pod.paths = trial::PodPaths(kKey, folder.path());
  return pod;
}

}  // namespace shirabe::sidecar
