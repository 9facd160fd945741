// What db/store.h promises of observations.
#include <limits>
#include <set>

#include "tests/contract/store_contract.h"

namespace shirabe::db {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_P(StoreContract, KeepsObservationsToTheLastBit) {
  CreateWithTrial();
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> values = {0.1,
                                      -0.0,
                                      0.0,
                                      std::nan(""),
                                      inf,
                                      -inf,
                                      std::numeric_limits<double>::denorm_min(),
                                      std::numeric_limits<double>::max(),
                                      9007199254740993.0,
                                      -3};
  std::vector<StoredObservation> rows;
  for (size_t i = 0; i < values.size(); ++i) rows.push_back(Row(i, "loss", values[i]));
  Observe(rows);
  const auto found = Observations();
  ASSERT_THAT(found, SizeIs(values.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_TRUE(SameBits(found[i].value, values[i])) << values[i] << " became " << found[i].value;
    EXPECT_EQ(found[i].step, static_cast<int64_t>(i));
    EXPECT_EQ(found[i].time, kNow);
  }
}

TEST_P(StoreContract, ObservationsAreASet) {
  CreateWithTrial();
  const std::vector<StoredObservation> rows = {Row(1, "loss", 0.5), Row(1, "acc", std::nan(""))};
  Observe(rows);
  const auto first = Observations();
  auto replay = rows;
  for (StoredObservation& row : replay) row.time = kNow + absl::Hours(1);
  Observe(replay);
  const auto second = Observations();
  ASSERT_THAT(second, SizeIs(2));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(second[i].time, first[i].time) << "a replayed value changed its row";
  }
  Observe({Row(1, "loss", 0.25), Row(1, "loss", 0.125)});
  EXPECT_EQ(Observations("loss").at(0).value, 0.125) << "the last write of a step counts";
  Observe({Row(1, "acc", 1)});
  EXPECT_EQ(Observations("acc").at(0).value, 1);
  Observe({Row(1, "acc", std::nan(""))});
  EXPECT_TRUE(std::isnan(Observations("acc").at(0).value));
}

TEST_P(StoreContract, ListsObservationsByAttemptStepAndMetric) {
  CreateWithTrial();
  auto later = Row(1, "zeta", 1);
  later.attempt = 2;
  auto implicit = Row(-5, "zeta", 2);
  implicit.implicit_step = true;
  Observe({later, Row(2, "zeta", 3), Row(2, "Alpha", 4), Row(2, "alpha", 5), implicit});
  std::vector<double> values;
  for (const StoredObservation& row : Observations()) values.push_back(row.value);
  EXPECT_THAT(values, ElementsAre(2, 4, 5, 3, 1));
  EXPECT_TRUE(Observations()[0].implicit_step);
  EXPECT_FALSE(Observations()[1].implicit_step);
  EXPECT_THAT(Observations("alpha"), SizeIs(1));
  EXPECT_THAT(Observations("alph"), IsEmpty());
  EXPECT_EQ(Observations("zeta")[2].attempt, 2);
}

TEST_P(StoreContract, MetricNamesMayBeAnything) {
  CreateWithTrial();
  const std::vector<std::string> names = {
      "a b",  "'",    "損失", std::string("nul\0byte", 8), "\xff",
      "Loss", "loss", "x%",   std::string(5000, 'm')};
  std::vector<StoredObservation> rows;
  for (const std::string& name : names) rows.push_back(Row(1, name, 1));
  Observe(rows);
  std::set<std::string> found;
  for (const StoredObservation& row : Observations()) found.insert(row.metric);
  EXPECT_EQ(found, std::set<std::string>(names.begin(), names.end()));
  for (const std::string& name : names) EXPECT_THAT(Observations(name), SizeIs(1)) << name;
}

// What a store remembers of metrics to be quick is forgotten with the batch that was refused.
TEST_P(StoreContract, AMetricThatCameWithARefusedBatchIsStillNew) {
  CreateWithTrial();
  Batch refused = For();
  refused.trials = {{Trial(2), 0}};
  refused.observations = {Row(1, "loss", 1), Row(1, "accuracy", 1)};
  refused.observations.push_back(Row(1, "of a trial that is not there", 1));
  refused.observations.back().trial = 77;
  EXPECT_FALSE(Refusal(refused).ok());
  Batch other = For();
  other.observations = {Row(1, "first", 3)};
  MustCommit(other);
  Observe({Row(1, "accuracy", 0.5), Row(1, "loss", 0.25)});
  EXPECT_THAT(Observations("first"), SizeIs(1));
  ASSERT_THAT(Observations("loss"), SizeIs(1));
  EXPECT_EQ(Observations("loss")[0].value, 0.25);
  ASSERT_THAT(Observations("accuracy"), SizeIs(1));
  EXPECT_EQ(Observations("accuracy")[0].value, 0.5);
  EXPECT_THAT(Observations(), SizeIs(3));
  if (!CanShare()) return;
  EXPECT_THAT(Must(OpenAgain()->ListObservations({.trial = {kMnist, 1}})), SizeIs(3));
}

TEST_P(StoreContract, SupersedesWhatLiesPastTheResume) {
  CreateWithTrial();
  std::vector<StoredObservation> rows;
  for (const int32_t attempt : {1, 2, 3}) {
    for (const int64_t step : {10, 20, 30}) {
      rows.push_back(Row(step, "loss", attempt * 100.0 + static_cast<double>(step)));
      rows.back().attempt = attempt;
    }
  }
  Observe(rows);
  Batch batch = For();
  batch.supersede = {{.trial = 1, .attempt = 2, .past_step = 20}};
  MustCommit(batch);
  std::vector<double> values;
  for (const StoredObservation& row : Observations()) values.push_back(row.value);
  EXPECT_THAT(values, ElementsAre(110, 120, 210, 220, 310, 320, 330));
  EXPECT_THAT(Observations("loss", true), SizeIs(9));
  EXPECT_TRUE(Observations("loss", true)[2].superseded);

  // Neither a replay nor a new value brings a superseded row back.
  auto changed = rows[2];
  changed.value = 7;
  Observe({rows[2], changed});
  EXPECT_THAT(Observations(), SizeIs(7));
  EXPECT_EQ(Observations("loss", true)[2].value, 7);
  // A row may come already superseded.
  auto late = Row(40, "loss", 1);
  late.superseded = true;
  Observe({late});
  EXPECT_THAT(Observations(), SizeIs(7));
  // Rows of the same batch are covered as well.
  batch.supersede = {{.trial = 1, .attempt = 1, .past_step = 0}};
  batch.observations = {Row(50, "loss", 1)};
  MustCommit(batch);
  EXPECT_THAT(Observations(), SizeIs(5));
}

// Steps that were counted have nothing to do with those that programs report: each metric has a
// count of its own at the checkpoint.
TEST_P(StoreContract, SupersedesCountedStepsByTheirCounts) {
  CreateWithTrial();
  std::vector<StoredObservation> rows;
  for (const int64_t step : {0, 1, 2, 3}) {
    rows.push_back(Row(step, "reported", static_cast<double>(step)));
    if (step == 0) continue;
    for (const char* metric : {"counted", "other"}) {
      rows.push_back(Row(step, metric, static_cast<double>(step)));
      rows.back().implicit_step = true;
    }
  }
  Observe(rows);
  Batch batch = For();
  batch.supersede = {{.trial = 1, .attempt = 1, .past_step = 1, .counts = {{"counted", 2}}}};
  MustCommit(batch);
  EXPECT_THAT(Observations("reported"), SizeIs(2));
  EXPECT_THAT(Observations("counted"), SizeIs(2));
  EXPECT_THAT(Observations("other"), IsEmpty());
  batch.supersede = {{.trial = 1, .attempt = 1, .past_step = -1}};
  MustCommit(batch);
  EXPECT_THAT(Observations(), IsEmpty());
}

// F11: whoever was replaced changes nothing, however late it writes.
TEST_P(StoreContract, RefusesWhatAnAttemptWritesThatIsNotCurrent) {
  CreateWithTrial();
  v1::Attempt attempt = Attempt(1, 1);
  attempt.set_token("secret");
  Batch open = For();
  open.attempts = {{attempt, 0}};
  const int64_t revision = MustCommit(open);
  const auto write = [this](const std::string& token) {
    Batch batch = For();
    batch.fences = {{.trial = 1, .attempt = 1, .token = token}};
    batch.observations = {Row(1, "loss", 0.5)};
    return store_->Commit(batch).status();
  };
  EXPECT_EQ(write("guessed").code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(Observations(), IsEmpty());
  EXPECT_TRUE(write("secret").ok());
  // The batch that closes it may carry its last rows.
  attempt.set_state(v1::ATTEMPT_CLOSED);
  Batch close = For();
  close.fences = {{.trial = 1, .attempt = 1, .token = "secret"}};
  close.attempts = {{attempt, revision}};
  close.observations = {Row(2, "loss", 0.4)};
  MustCommit(close);
  EXPECT_THAT(write("secret").ToString(), testing::HasSubstr("has ended"));
  EXPECT_THAT(Observations(), SizeIs(2));
  Batch unknown = For();
  unknown.fences = {{.trial = 1, .attempt = 9, .token = "secret"}};
  EXPECT_EQ(store_->Commit(unknown).status().code(), absl::StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace shirabe::db
