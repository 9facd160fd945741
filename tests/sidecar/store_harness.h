// A pod without credentials, and a server of Shirabe that signs its URLs to a real S3 server.
#pragma once

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sidecar/store_access.h"
#include "tests/artifacts/s3_server.h"
#include "tests/sidecar/pod_harness.h"
#include "trial/checkpoint/checkpoint_store.h"
#include "trial/pod/store_grants.h"

namespace shirabe::sidecar {

// To a server that knows who calls.
class DirectLink : public ServerLink {
 public:
  // Kills the process before the n-th URL (from 1); 0 = never.
  DirectLink(const trial::StoreGrants* grants, const AttemptKey& key, int kill_at = 0)
      : grants_(*grants), key_(key), kill_at_(kill_at) {}
  StatusOr<v1::SyncReply> Sync(const v1::SyncRequest&, absl::Duration) override {
    return absl::UnimplementedError("");
  }
  StatusOr<v1::GrantReply> Grant(const v1::GrantRequest& request, absl::Duration) override {
    if (++calls_ == kill_at_) kill(getpid(), SIGKILL);
    return grants_.Grant(key_, request);
  }

 private:
  const trial::StoreGrants& grants_;
  const AttemptKey key_;
  const int kill_at_;
  int calls_ = 0;
};

class StoreAccessTest : public testing::Test {
 protected:
  StoreAccessTest() : server_layout_(server_home_.path()) {}

  void SetUp() override {
    if (!artifacts::S3Server::IsInstalled()) GTEST_SKIP() << artifacts::S3Server::kMissing;
    s3_ = std::make_unique<artifacts::S3Server>();
    OpenTable(s3_->endpoint());
  }
  void OpenTable(const std::string& endpoint, const std::string& ns = "*") {
    v1::ArtifactStores entries;
    v1::ArtifactStore& entry = *entries.add_stores();
    entry.set_name("team");
    entry.set_type("s3");
    entry.add_namespaces(ns);
    entry.set_endpoint(endpoint);
    entry.set_bucket(artifacts::S3Server::kBucket);
    entry.set_folder("shirabe");
    entry.mutable_credentials()->set_file(s3_->CredentialFile());
    stores_ = *artifacts::StoreTable::Create(entries);
    grants_ = std::make_unique<trial::StoreGrants>(&server_layout_, stores_);
    spec_.mutable_artifacts()->set_store("team");
    spec_.mutable_artifacts()->set_prefix("vision");
    spec_.mutable_artifacts()->set_checkpoints(true);
    spec_.mutable_artifacts()->set_outputs(true);
    grants_->SetPolicy(kKey.trial.experiment, spec_);
  }

  static AttemptKey Attempt(int32_t number) { return {kKey.trial, number}; }
  v1::PodConfig Config(const AttemptKey& key) const {
    v1::PodConfig config = ConfigOf("127.0.0.1:1");
    config.set_attempt(key.number);
    config.set_trial(key.trial.number);
    *config.mutable_artifacts() = spec_.artifacts();
    config.mutable_artifacts()->clear_prefix();
    return config;
  }
  PodStores Open(const v1::PodConfig& config, const AttemptKey& key, int kill_at = 0) const {
    PodStores stores;
    stores.code =
        *OpenGrantedStore(config, std::make_unique<DirectLink>(grants_.get(), key, kill_at));
    v1::ArtifactStore entry;
    entry.set_name("team");
    entry.add_namespaces("default");
    stores.copies = artifacts::StoreTable::Of(entry, stores.code);
    return stores;
  }
  // The namespace's part, as a copier of the pod finds it.
  PodStores::Store Part(const AttemptKey& key, int kill_at = 0) const {
    return *Open(Config(key), key, kill_at).copies->Find("team", "default");
  }
  std::string Object(const std::string& name) const {
    return absl::StrCat(s3_->bucket(), "/shirabe/default/vision/_/exp/", name);
  }
  v1::Checkpoint Save(const trial::FileLayout& layout, const AttemptKey& key, int64_t step,
                      const std::string& model) {
    const std::string path = absl::StrCat(layout.Paths(key).checkpoint_dir, "/", step);
    EXPECT_TRUE(MakeDirs(path).ok());
    EXPECT_TRUE(WriteFileAtomic(path + "/model", model).ok());
    return *trial::CheckpointStore(&layout).Commit(key, step);
  }

  const Folder server_home_;
  const trial::FileLayout server_layout_;
  std::unique_ptr<artifacts::S3Server> s3_;
  std::shared_ptr<const artifacts::StoreTable> stores_;  // shared: with the grants
  std::unique_ptr<trial::StoreGrants> grants_;
  v1::ShirabeSpec spec_;
};

}  // namespace shirabe::sidecar
