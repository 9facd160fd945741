// A store that counts what it is asked for: what waits must ask for nothing and write nothing.
// Around another one. Thread-safe.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "db/bulk_leases.h"

namespace shirabe::experiment {

class CountingStore : public db::Store, public db::Bulk {
 public:
  explicit CountingStore(db::Store* store) : store_(store) {}

  std::atomic<int> commits = 0;
  std::atomic<int> acquired = 0;  // leases, one by one
  std::atomic<int> renewed = 0;   // all leases at once
  std::atomic<int> reads = 0;     // of what belongs to one experiment
  void Reset() { commits = acquired = renewed = reads = 0; }

  StatusOr<int64_t> Commit(const db::Batch& batch) override {
    ++commits;
    return store_->Commit(batch);
  }
  StatusOr<v1::Lease> AcquireLease(const db::LeaseRequest& request) override {
    ++acquired;
    return store_->AcquireLease(request);
  }
  StatusOr<std::vector<db::LeaseClaim>> RenewLeases(const db::LeaseRenewal& renewal) override {
    ++renewed;
    return db::BulkOf(*store_).RenewLeases(renewal);
  }
  StatusOr<bool> RemoveRows(const db::LeaseClaim& claim, int64_t most) override {
    return db::BulkOf(*store_).RemoveRows(claim, most);
  }
  StatusOr<v1::Lease> GetLease(const ExperimentKey& key) override {
    ++reads;
    return store_->GetLease(key);
  }
  Status ReleaseLease(const db::LeaseClaim& claim) override { return store_->ReleaseLease(claim); }
  Status ReleaseLeases(const std::vector<db::LeaseClaim>& claims) override {
    return db::BulkOf(*store_).ReleaseLeases(claims);
  }
  StatusOr<db::Versioned<v1::Experiment>> GetExperiment(const ExperimentKey& key) override {
    ++reads;
    return store_->GetExperiment(key);
  }
  StatusOr<std::vector<db::Versioned<v1::Experiment>>> ListExperiments(
      const std::string& ns) override {
    ++reads;
    return store_->ListExperiments(ns);
  }
  StatusOr<int64_t> CountExperiments(const std::string& ns) override {
    return db::BulkOf(*store_).CountExperiments(ns);
  }
  StatusOr<db::Versioned<v1::Trial>> GetTrial(const TrialKey& key) override {
    ++reads;
    return store_->GetTrial(key);
  }
  StatusOr<std::vector<db::Versioned<v1::Trial>>> ListTrials(const db::TrialQuery& query) override {
    ++reads;
    return store_->ListTrials(query);
  }
  StatusOr<std::vector<db::Versioned<v1::Attempt>>> ListAttempts(
      const db::AttemptQuery& query) override {
    ++reads;
    return store_->ListAttempts(query);
  }
  StatusOr<std::vector<db::Versioned<v1::Checkpoint>>> ListCheckpoints(
      const TrialKey& key) override {
    ++reads;
    return store_->ListCheckpoints(key);
  }
  StatusOr<std::vector<db::StoredObservation>> ListObservations(
      const db::ObservationQuery& query) override {
    ++reads;
    return store_->ListObservations(query);
  }
  StatusOr<std::vector<v1::Event>> ListEvents(const db::EventQuery& query) override {
    ++reads;
    return store_->ListEvents(query);
  }
  StatusOr<std::vector<v1::Intent>> ListIntents(const ExperimentKey& key) override {
    ++reads;
    return store_->ListIntents(key);
  }
  // Of the whole store: whoever follows it asks so all the time.
  StatusOr<int64_t> Revision() override { return store_->Revision(); }
  StatusOr<std::vector<db::Change>> Changes(int64_t after, int64_t limit) override {
    return store_->Changes(after, limit);
  }
  StatusOr<int64_t> AwaitChange(int64_t after, absl::Duration timeout) override {
    return store_->AwaitChange(after, timeout);
  }

 private:
  db::Store* const store_;
};

}  // namespace shirabe::experiment
