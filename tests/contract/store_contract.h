// The fixture of the contract suites: an empty store of each registered kind, and short ways to
// fill and read it. The suites of db/store.h are the *_test.cc files beside this one that include
// it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "base/open_beneath.h"
#include "db/commit_rules.h"
#include "db/store.h"
#include "tests/db/postgres_server.h"

namespace shirabe::db {

inline const ExperimentKey kMnist{"default", "mnist"};
inline const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000) + absl::Nanoseconds(123);

inline v1::Experiment Experiment(const ExperimentKey& key) {
  v1::Experiment experiment;
  experiment.mutable_metadata()->set_namespace_(key.ns);
  experiment.mutable_metadata()->set_name(key.name);
  return experiment;
}

template <class Record>
Record Of(const ExperimentKey& key) {
  Record record;
  record.set_namespace_(key.ns);
  record.set_experiment(key.name);
  return record;
}

inline v1::Trial Trial(int64_t number, v1::TrialPhase phase = v1::TRIAL_PENDING) {
  auto trial = Of<v1::Trial>(kMnist);
  trial.set_number(number);
  trial.set_phase(phase);
  return trial;
}

inline v1::Attempt Attempt(int64_t trial, int32_t number,
                           v1::AttemptState state = v1::ATTEMPT_CREATED) {
  auto attempt = Of<v1::Attempt>(kMnist);
  attempt.set_trial(trial);
  attempt.set_number(number);
  attempt.set_state(state);
  return attempt;
}

inline v1::Checkpoint Checkpoint(int64_t trial, int32_t attempt, int64_t step) {
  auto checkpoint = Of<v1::Checkpoint>(kMnist);
  checkpoint.set_trial(trial);
  checkpoint.set_attempt(attempt);
  checkpoint.set_step(step);
  return checkpoint;
}

inline v1::Event Event(const std::string& reason) {
  auto event = Of<v1::Event>(kMnist);
  event.set_reason(reason);
  return event;
}

inline v1::Intent Intent(v1::Intent::Verb verb) {
  auto intent = Of<v1::Intent>(kMnist);
  intent.set_verb(verb);
  return intent;
}

inline StoredObservation Row(int64_t step, const std::string& metric, double value) {
  return {.trial = 1, .attempt = 1, .metric = metric, .step = step, .value = value, .time = kNow};
}

// Equal to the last bit, but any NaN is as good as another.
inline bool SameBits(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

// By value: a loop over a temporary's value would outlive it.
template <class Value>
Value Must(StatusOr<Value> result) {
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *std::move(result) : Value();
}

class StoreContract : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/shirabe-contract-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    if (GetParam() == "postgres" && SharedPostgres() == nullptr) {
      GTEST_SKIP() << "there is no PostgreSQL here (package postgresql-15)";
    }
    const StoreInfo* info = Registry<StoreInfo>::Get().Find(GetParam());
    const auto address = info->scratch(folder_);
    if (!address) GTEST_SKIP() << "this machine has no " << GetParam() << " to test with";
    address_ = GetParam() + ":" + *address;
    store_ = OpenAgain();
    ASSERT_NE(store_, nullptr);
  }
  // The same records from a second store, as another process has one.
  std::unique_ptr<Store> OpenAgain(bool read_only = false) {
    auto opened = Open(address_, read_only);
    EXPECT_TRUE(opened.ok()) << opened.status();
    return opened.ok() ? *std::move(opened) : nullptr;
  }
  // Whether it does: what is in memory is this store's alone.
  bool CanShare() const { return GetParam() != "memory"; }
  void TearDown() override {
    store_.reset();
    ASSERT_TRUE(RemoveAll(folder_).ok());
  }

  Batch For(const ExperimentKey& key = kMnist) { return {.experiment = key}; }
  int64_t MustCommit(const Batch& batch) { return Must(store_->Commit(batch)); }
  Status Refusal(const Batch& batch) { return store_->Commit(batch).status(); }
  int64_t Create(const ExperimentKey& key = kMnist) {
    Batch batch = For(key);
    batch.put = {Experiment(key), 0};
    return MustCommit(batch);
  }
  int64_t CreateWithTrial() {
    Batch batch = For();
    batch.put = {Experiment(kMnist), 0};
    batch.trials = {{Trial(1), 0}};
    return MustCommit(batch);
  }
  void Delete(const ExperimentKey& key = kMnist) {
    Batch batch = For(key);
    batch.delete_experiment = true;
    MustCommit(batch);
  }
  void Observe(std::vector<StoredObservation> rows) {
    Batch batch = For();
    batch.observations = std::move(rows);
    MustCommit(batch);
  }
  std::vector<StoredObservation> Observations(const std::string& metric = "",
                                              bool superseded = false) {
    return Must(store_->ListObservations(
        {.trial = {kMnist, 1}, .metric = metric, .include_superseded = superseded}));
  }
  std::vector<int64_t> Numbers(const TrialQuery& query) {
    std::vector<int64_t> numbers;
    for (const auto& row : Must(store_->ListTrials(query))) numbers.push_back(row.record.number());
    return numbers;
  }
  // kind:trial@revision
  std::vector<std::string> Feed(int64_t after, int64_t limit = -1) {
    static constexpr const char* kNames[] = {"experiment", "trial", "attempt", "intent", "deleted"};
    std::vector<std::string> feed;
    for (const Change& change : Must(store_->Changes(after, limit))) {
      feed.push_back(absl::StrCat(kNames[static_cast<int>(change.kind)], ":", change.trial, "@",
                                  change.revision));
    }
    return feed;
  }
  StatusOr<v1::Lease> Acquire(const std::string& holder, absl::Time now = kNow) {
    return store_->AcquireLease({.experiment = kMnist,
                                 .holder = holder,
                                 .now = now,
                                 .ttl = absl::Seconds(10),
                                 .dead_epoch = std::nullopt});
  }

  std::string folder_;
  std::string address_;
  std::unique_ptr<Store> store_;
};

}  // namespace shirabe::db
