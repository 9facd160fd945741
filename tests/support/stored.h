// A store of its own with hand-made records in it, and a client that reads it, for tests. The
// store is a file in a directory that goes with it, since the client opens it by its address.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "base/process_id.h"
#include "client/local_client.h"
#include "db/store.h"
#include "experiment/conditions.h"
#include "tests/support/records.h"

namespace shirabe {

class Stored {
 public:
  explicit Stored(bool read_only = true) {
    home_ = ::testing::TempDir() + "/shirabe-client-XXXXXX";
    CHECK(mkdtemp(home_.data()) != nullptr);
    const std::string address = "sqlite:" + home_ + "/shirabe.db";
    store_ = db::Open(address).value();
    PutExperiment();
    client_ = client::LocalClient::Open({.place = {.home = home_, .db = address, .ns = "default"},
                                         .read_only = read_only,
                                         .clock = &clock})
                  .value();
  }
  ~Stored() { std::filesystem::remove_all(home_); }

  ExperimentKey key() const { return experiment::KeyOf(experiment); }
  client::LocalClient& client() { return *client_; }
  db::Store& store() { return *store_; }
  const std::string& home() const { return home_; }

  void PutExperiment() {
    db::Batch batch;
    batch.experiment = key();
    const auto old = store_->GetExperiment(key());
    batch.put = {experiment, old.ok() ? old->revision : 0};
    Commit(batch);
  }

  void Put(const v1::Trial& trial) {
    db::Batch batch;
    batch.experiment = key();
    const auto old = store_->GetTrial({key(), trial.number()});
    batch.trials.push_back({trial, old.ok() ? old->revision : 0});
    Commit(batch);
  }

  // This process runs the experiment from now on; what is put is put under its lease.
  void Own() {
    const auto lease = store_->AcquireLease({.experiment = key(),
                                             .holder = ToString(ThisProcess()),
                                             .now = clock.Now(),
                                             .ttl = absl::Seconds(15)});
    ASSERT_TRUE(lease.ok()) << lease.status();
    epoch_ = lease->epoch();
  }

  void Commit(db::Batch batch) {
    batch.epoch = epoch_;
    const auto revision = store_->Commit(batch);
    ASSERT_TRUE(revision.ok()) << revision.status();
  }

  ManualClock clock{At(100)};
  v1::Experiment experiment = MakeExperiment();

 private:
  std::string home_;
  std::optional<int64_t> epoch_;
  std::unique_ptr<db::Store> store_;
  std::unique_ptr<client::LocalClient> client_;
};

}  // namespace shirabe
