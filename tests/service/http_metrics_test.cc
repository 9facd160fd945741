// The text that Prometheus reads, held against a strict reading of its format, and what is counted
// from the store.
#include <re2/re2.h>

#include <atomic>
#include <functional>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "service/common/store_metrics.h"
#include "tests/service/http_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/paths.h"

namespace shirabe::service {
namespace {

using testing::HasSubstr;
using testing::Not;

// Checks a text as format 0.0.4 wants it; "" if it is right.
class Checker {
 public:
  std::string Check(const std::string& text) {
    if (text.empty() || text.back() != '\n') return "no newline at the end";
    for (const auto& line : absl::StrSplit(text.substr(0, text.size() - 1), '\n')) {
      const std::string problem = CheckLine(std::string(line));
      if (!problem.empty()) return absl::StrCat(problem, ": ", std::string(line));
    }
    return "";
  }
  const std::map<std::string, std::string>& types() const { return types_; }

 private:
  std::string CheckLine(const std::string& line) {
    static const RE2 help(R"(# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) .+)");
    static const RE2 type(R"(# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram))");
    static const RE2 sample(
        R"re(([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-zA-Z_]\w*="(?:[^"\\]|\\["\\n])*",?)*\})? )re"
        R"re((NaN|[+-]?Inf|[-+0-9.e]+))re");
    std::string name, kind, labels, value;
    if (RE2::FullMatch(line, help, &name)) return helped_.insert(name).second ? "" : "two HELPs";
    if (RE2::FullMatch(line, type, &name, &kind)) {
      family_ = name;
      return helped_.contains(name) && types_.emplace(name, kind).second ? "" : "a wrong TYPE";
    }
    if (!RE2::FullMatch(line, sample, &name, &labels, &value)) return "no sample";
    if (!seen_.insert(name + labels).second) return "a series twice";
    return CheckSample(name, labels);
  }

  std::string CheckSample(const std::string& name, const std::string& labels) const {
    if (types_.at(family_) != "histogram") return name == family_ ? "" : "outside of its family";
    for (const char* end : {"_sum", "_count"}) {
      if (name == family_ + end) return "";
    }
    const bool bucket = name == family_ + "_bucket" && absl::StrContains(labels, "le=\"");
    return bucket ? "" : "no part of a histogram";
  }

  std::map<std::string, std::string> types_;
  std::set<std::string> helped_;
  std::set<std::string> seen_;
  std::string family_;
};

TEST(HttpMetricsTest, PrintsWhatPrometheusReads) {
  Metrics metrics;
  metrics.RecordHttpCall(
      {.method = "GET", .route = "/x", .status = 200, .took = absl::Milliseconds(3)});
  metrics.RecordHttpCall({.method = "", .route = "", .status = 404, .took = absl::ZeroDuration()});
  metrics.RecordGrpcCall({.method = "/a/b", .code = "OK", .took = absl::Seconds(100)});
  metrics.Set("katib_trials_current", {"a \"quoted\"\\\nname", "Running"}, 3);
  const std::string text = metrics.Text();
  Checker checker;
  EXPECT_EQ(checker.Check(text), "") << text;
  EXPECT_EQ(checker.types().at("shirabe_http_request_duration_seconds"), "histogram");
  EXPECT_THAT(text, HasSubstr(R"({namespace="a \"quoted\"\\\nname",status="Running"} 3)"));
  EXPECT_THAT(text, HasSubstr("_bucket{method=\"GET\",route=\"/x\",le=\"0.0025\"} 0"));
  EXPECT_THAT(text, HasSubstr("_bucket{method=\"GET\",route=\"/x\",le=\"0.005\"} 1"));
  EXPECT_THAT(text, HasSubstr("_bucket{method=\"/a/b\",le=\"10\"} 0"));
  EXPECT_THAT(text, HasSubstr("_bucket{method=\"/a/b\",le=\"+Inf\"} 1"));
}

TEST(HttpMetricsTest, DashboardAndAlertsNameOnlyWhatThereIs) {
  const auto table = ReadFile(absl::StrCat(SourceDir(), "/service/common/server_metrics.cc"));
  ASSERT_TRUE(table.ok()) << table.status();
  static const RE2 name(R"(\b((?:katib|shirabe|process)_\w+))");
  for (const char* file : {"dashboard.json", "alerts.yaml"}) {
    const auto text = ReadFile(absl::StrCat(SourceDir(), "/deploy/grafana/", file));
    ASSERT_TRUE(text.ok()) << text.status();
    re2::StringPiece rest(*text);
    std::string found;
    int count = 0;
    while (RE2::FindAndConsume(&rest, name, &found)) {
      if (absl::EndsWith(found, "_bucket")) found.resize(found.size() - 7);
      EXPECT_THAT(*table, HasSubstr(absl::StrCat("\"", found, "\""))) << file;
      ++count;
    }
    EXPECT_GT(count, 5) << file;
  }
}

TEST(HttpMetricsTest, HasAnEndOfSeries) {
  Metrics metrics;
  for (int i = 0; i < 6000; ++i) {
    metrics.Add("katib_trial_created_total", {absl::StrCat("ns", i)});
  }
  EXPECT_EQ(metrics.Value("shirabe_metrics_series_dropped_total", {"katib_trial_created_total"}),
            1000);
  EXPECT_EQ(metrics.Value("katib_trial_created_total", {"ns0"}), 1);
}

class StoreMetricsTest : public testing::Test {
 protected:
  std::unique_ptr<StoreMetrics> Make(bool process_only = false) {
    return std::make_unique<StoreMetrics>(StoreMetrics::Options{.client = &http_.client(),
                                                                .hub = &http_.hub(),
                                                                .metrics = &http_.metrics(),
                                                                .clock = &clock_,
                                                                .process_only = process_only});
  }
  std::string Text() {
    clock_.Advance(absl::Seconds(2));
    return http_.metrics().Text();
  }
  double Value(const char* family, const Labels& labels) {
    return http_.metrics().Value(family, labels);
  }

  HttpFixture http_;
  ManualClock clock_{absl::UnixEpoch()};
};

TEST_F(StoreMetricsTest, CountsWhatHappensInKatibsWords) {
  http_.Create("a", "before");
  const auto store = Make();
  http_.Create("a", "one", 3);
  http_.Create("b", "two");
  http_.RunTrials("a", "one", 3);
  http_.RunTrials("b", "two", 1);
  Checker checker;
  const std::string text = Text();
  EXPECT_EQ(checker.Check(text), "") << text;
  EXPECT_EQ(Value("katib_experiment_created_total", {"a"}), 1);
  EXPECT_EQ(Value("katib_experiment_succeeded_total", {"a"}), 1);
  EXPECT_EQ(Value("katib_trial_created_total", {"a"}), 3);
  EXPECT_EQ(Value("katib_trial_succeeded_total", {"b"}), 1);
  EXPECT_EQ(Value("katib_experiments_current", {"a", "Succeeded"}), 1);
  EXPECT_EQ(Value("katib_experiments_current", {"a", "Created"}), 1);
  EXPECT_EQ(Value("katib_trials_current", {"a", "Succeeded"}), 3);
  const client::Wait wait = [](absl::Duration time) { return ShutdownWait().Wait(time); };
  ASSERT_TRUE(http_.client().Delete({"a", "one"}, absl::Seconds(20), wait).ok());
  Text();
  EXPECT_EQ(Value("katib_experiment_deleted_total", {"a"}), 1);
  EXPECT_EQ(Value("katib_trial_deleted_total", {"a"}), 3);
  EXPECT_EQ(Value("katib_experiments_current", {"a", "Succeeded"}), 0);
}

TEST_F(StoreMetricsTest, CountsAttemptsByTheirEnd) {
  const auto store = Make();
  http_.Create("a", "one");
  http_.RunTrials("a", "one", 2);
  // What the hub tells comes by another thread.
  EXPECT_TRUE(Eventually([&] { return Value("shirabe_attempts_total", {"a", "completed"}) >= 2; }));
  EXPECT_EQ(Value("shirabe_attempts_total", {"a", "completed"}), 2);
  EXPECT_EQ(Value("shirabe_trial_queue_wait_seconds", {"a"}), 2);
  EXPECT_EQ(Value("shirabe_metric_ingest_points_total", {"a"}), 2);
}

// Days before a notification is given up.
TEST_F(StoreMetricsTest, CountsEndpointsThatTakeNothing) {
  const auto store = Make();
  http_.Create("a", "one");
  db::Store& records = http_.client().store();
  const auto write = [&](const std::string& error, int64_t pending) {
    const auto lease = records.GetLease({"a", "one"});
    auto experiment = *records.GetExperiment({"a", "one"});
    v1::ShirabeStatus& status = *experiment.record.mutable_status()->mutable_shirabe();
    status.clear_notifications();
    v1::NotificationStatus& endpoint = *status.add_notifications();
    endpoint.set_error(error);
    endpoint.set_pending(pending);
    db::Batch batch{.experiment = {"a", "one"}};
    if (lease.ok() && lease->epoch() > 0) batch.epoch = lease->epoch();
    batch.put = {experiment.record, experiment.revision};
    const auto committed = records.Commit(batch);
    ASSERT_TRUE(committed.ok()) << committed.status();
    Text();
  };
  write("HTTP 500", 2);
  EXPECT_EQ(Value("shirabe_notifications_failing", {"a"}), 1);
  write("", 1);  // under way
  EXPECT_EQ(Value("shirabe_notifications_failing", {"a"}), 0);
}

// A replica that waits to lead.
TEST_F(StoreMetricsTest, OfTheProcessAloneItSaysNothingOfTheStore) {
  const auto store = Make(/*process_only=*/true);
  std::atomic<bool> told = false;  // after it, of an attempt that has ended
  const int listener = http_.hub().Listen([&](const std::vector<db::Change>& changes) {
    for (const db::Change& change : changes) {
      if (change.kind == db::Change::Kind::kAttempt) told = true;
    }
  });
  http_.Create("a", "one");
  http_.RunTrials("a", "one", 2);
  EXPECT_TRUE(Eventually([&] { return told.load(); }));
  http_.hub().Unlisten(listener);
  const std::string text = Text();
  EXPECT_THAT(text, Not(HasSubstr("\nkatib_")));
  EXPECT_THAT(text, Not(HasSubstr("\nshirabe_attempt")));
  EXPECT_GT(Value("process_resident_memory_bytes", {}), 1e6);
}

TEST_F(StoreMetricsTest, NamesNoExperimentAndNoTrial) {
  const auto store = Make();
  http_.Create("a", "very-secret-name");
  http_.RunTrials("a", "very-secret-name", 1);
  http_.Get("/api/v1/namespaces/a/experiments/very-secret-name/trials/1");
  EXPECT_THAT(Text(), Not(HasSubstr("very-secret-name")));
}

}  // namespace
}  // namespace shirabe::service
