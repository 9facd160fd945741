// A store that fails on command: before or after a Commit took effect, and reads that fail. Around
// the memory store, which survives the simulated crashes as a disk would.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "db/schedules.h"
#include "db/store.h"

namespace shirabe::simulation {

class FaultyStore : public db::Store, public db::Schedules {
 public:
  FaultyStore(db::Store* store, Rng* rng) : store_(store), rng_(rng) {}

  double refuse = 0;  // Commit fails, nothing is written
  double forget = 0;  // Commit is written, and fails all the same: the answer was lost
  double unreadable = 0;
  bool dead = false;  // its owner has crashed: nothing that is still called has any effect
  // Sees what is about to be written, before it is.
  std::function<void(const db::Batch&)> watch;
  std::function<void()> at_write;  // before each write takes effect

  StatusOr<int64_t> Commit(const db::Batch& batch) override {
    if (at_write) at_write();
    if (dead) return absl::UnavailableError("dead");
    if (rng_->Uniform() < refuse) return absl::ResourceExhaustedError("disk full (injected)");
    if (watch) watch(batch);
    auto revision = store_->Commit(batch);
    if (revision.ok() && rng_->Uniform() < forget) {
      return absl::UnavailableError("connection lost after commit (injected)");
    }
    return revision;
  }

  StatusOr<db::Versioned<v1::Experiment>> GetExperiment(const ExperimentKey& key) override {
    RETURN_IF_ERROR(Read());
    return store_->GetExperiment(key);
  }
  StatusOr<std::vector<db::Versioned<v1::Experiment>>> ListExperiments(
      const std::string& ns) override {
    return store_->ListExperiments(ns);
  }
  StatusOr<db::Versioned<v1::Trial>> GetTrial(const TrialKey& key) override {
    return store_->GetTrial(key);
  }
  StatusOr<std::vector<db::Versioned<v1::Trial>>> ListTrials(const db::TrialQuery& query) override {
    RETURN_IF_ERROR(Read());
    return store_->ListTrials(query);
  }
  StatusOr<std::vector<db::Versioned<v1::Attempt>>> ListAttempts(
      const db::AttemptQuery& query) override {
    RETURN_IF_ERROR(Read());
    return store_->ListAttempts(query);
  }
  StatusOr<std::vector<db::Versioned<v1::Checkpoint>>> ListCheckpoints(
      const TrialKey& key) override {
    RETURN_IF_ERROR(Read());
    return store_->ListCheckpoints(key);
  }
  StatusOr<std::vector<db::StoredObservation>> ListObservations(
      const db::ObservationQuery& query) override {
    RETURN_IF_ERROR(Read());
    return store_->ListObservations(query);
  }
  StatusOr<std::vector<v1::Event>> ListEvents(const db::EventQuery& query) override {
    return store_->ListEvents(query);
  }
  StatusOr<std::vector<v1::Intent>> ListIntents(const ExperimentKey& key) override {
    RETURN_IF_ERROR(Read());
    return store_->ListIntents(key);
  }
  StatusOr<int64_t> Revision() override { return store_->Revision(); }
  StatusOr<std::vector<db::Change>> Changes(int64_t after, int64_t limit) override {
    return store_->Changes(after, limit);
  }
  StatusOr<v1::Lease> AcquireLease(const db::LeaseRequest& request) override {
    return store_->AcquireLease(request);
  }
  StatusOr<v1::Lease> GetLease(const ExperimentKey& key) override { return store_->GetLease(key); }
  Status ReleaseLease(const db::LeaseClaim& claim) override { return store_->ReleaseLease(claim); }

  StatusOr<db::Versioned<v1::ScheduledExperiment>> GetSchedule(const ExperimentKey& key) override {
    RETURN_IF_ERROR(Read());
    return db::SchedulesOf(*store_).GetSchedule(key);
  }
  StatusOr<std::vector<db::Versioned<v1::ScheduledExperiment>>> ListSchedules(
      const std::string& ns) override {
    RETURN_IF_ERROR(Read());
    return db::SchedulesOf(*store_).ListSchedules(ns);
  }
  Status WriteSchedule(const db::ScheduleWrite& write) override {
    if (at_write) at_write();
    if (dead) return absl::UnavailableError("dead");
    if (rng_->Uniform() < refuse) return absl::ResourceExhaustedError("disk full (injected)");
    RETURN_IF_ERROR(db::SchedulesOf(*store_).WriteSchedule(write));
    if (write.start && watch) watch(*write.start);
    if (rng_->Uniform() < forget) {
      return absl::UnavailableError("connection lost after commit (injected)");
    }
    return absl::OkStatus();
  }

 private:
  Status Read() {
    if (dead) return absl::UnavailableError("dead");
    if (rng_->Uniform() < unreadable) return absl::UnavailableError("cannot read (injected)");
    return absl::OkStatus();
  }

  db::Store* store_;
  Rng* rng_;
};

}  // namespace shirabe::simulation
