// What every collector keeps, whatever it reads: the suite runs over the registry. A collector that
// reads a file of its own gets all of it by a line in `OwnCases`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "base/open_beneath.h"
#include "base/rng.h"
#include "base/text/number.h"
#include "metrics/collector.h"
#include "metrics/describe_source.h"
#include "tests/metrics/tf_records.h"
#include "tests/support/paths.h"

namespace shirabe::metrics {
namespace {

constexpr char kText[] =
    "starting\r\nloss=1 acc=0.5\n\x1b[32mloss: nan\x1b[0m\n10% loss=2\r20% loss=3\r\n"
    "2026-11-21T08:30:00Z loss=4\nval_loss=9 loss=1_000\n\xff\xfe acc=-inf\n\n{\"loss\": "
    "5}\nloss=6";
constexpr char kJson[] =
    "{\"loss\": 1, \"acc\": \"0.5\"}\n{\"loss\": NaN, \"step\": 7}\n\n{\"lo\n"
    "{\"timestamp\": 5, \"acc\": 2}\r\n{\"loss\": \"x\", \"acc\": 3}\n{\"loss\": 5, \"step\": 7}";
constexpr char kJournal[] =
    "{\"step\": 1, \"metrics\": {\"loss\": 1, \"acc\": 0.5}}\n{\"step\": 2, \"metr\n"
    "{\"metrics\": {\"loss\": Infinity}}\n{\"step\": 2, \"metrics\": {\"loss\": 2}}\n{\"done\": "
    "true}";

constexpr char kHypertune[] =
    "{\"global_step\": \"1\", \"loss\": \"0.5\", \"timestamp\": 7.5}\n{\"lo\n"
    "{\"global_step\": \"2\", \"acc\": \"0.25\", \"timestamp\": 8}\n"
    "{\"global_step\": \"3\", \"loss\": \"nan\", \"timestamp\": 9}";
constexpr char kScrapes[] =
    "# no answer: reset\n{\"step\": 1, \"timestamp\": 5, \"metrics\": {\"loss\": 1}}\n"
    "! loss has 2 series: …\n{\"timestamp\": 6, \"metrics\": {\"acc\": -Infinity}}\n"
    "{\"timestamp\": 7, \"metrics\": {\"acc\": 2}}";

// With one event that is damaged.
std::string Events() {
  std::string damaged = ScalarRecord("loss", 2, 1);
  damaged[20] ^= 1;
  return ScalarRecord("loss", 1, 0.5f) + ScalarRecord("other", 1, 1) + damaged +
         ScalarRecord("acc", 1, HUGE_VALF) + ScalarRecord("loss", 3, 0.25f);
}

// One way to run one collector: which of its files gets which contents.
struct Case {
  std::string name;
  v1::MetricsCollectorSpec spec;
  std::string file;
  std::string contents;
  int bad = 1;               // in the contents
  std::string joint = "\n";  // between two of them
  bool remembers = false;    // a line that comes again is the same line
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

v1::CollectorKind KindOf(const std::string& name) {
  const auto* kinds = v1::CollectorKind_descriptor();
  for (int i = 0; i < kinds->value_count(); ++i) {
    if (kinds->value(i)->options().GetExtension(v1::value).yaml() == name) {
      return static_cast<v1::CollectorKind>(kinds->value(i)->number());
    }
  }
  return v1::COLLECTOR_KIND_UNSPECIFIED;
}

v1::MetricsCollectorSpec SpecOf(const std::string& name) {
  v1::MetricsCollectorSpec spec;
  spec.mutable_collector()->set_kind(KindOf(name));
  spec.mutable_source()->mutable_file_system_path()->set_path("own");
  // Nothing answers there: what was seen at an endpoint is what the suite writes.
  spec.mutable_source()->mutable_http_get()->mutable_port()->set_number_value(1);
  if (name == "Custom") spec.mutable_collector()->mutable_custom_collector();
  return spec;
}

std::vector<Case> OwnCases() {
  const v1::MetricsCollectorSpec file = SpecOf("File");
  v1::MetricsCollectorSpec json = file;
  json.mutable_source()->mutable_file_system_path()->set_format(v1::JSON);
  return {{"StdOut", SpecOf("StdOut"), "log", kText},
          {"FileText", file, "own", kText},
          {"FileJson", json, "own", kJson, 2},
          {"TensorFlowEvent", SpecOf("TensorFlowEvent"), "own/x.tfevents.1", Events(), 1, ""},
          {"PrometheusMetric", SpecOf("PrometheusMetric"), "scrapes", kScrapes},
          {"Hypertune", SpecOf("None"), "hypertune", kHypertune, 1, "\n", true}};
}

std::vector<Case> Cases() {
  std::vector<Case> cases = OwnCases();
  for (const std::string& name : Registry<CollectorInfo>::Get().Names()) {
    cases.push_back({name + "Journal", SpecOf(name), "metrics", kJournal});
  }
  return cases;
}

class CollectorContract : public testing::TestWithParam<Case> {
 protected:
  CollectorContract() {
    const char* base = std::getenv("TMPDIR");
    dir_ = absl::StrCat(base == nullptr ? "/tmp" : base, "/shirabe-contract-XXXXXX");
    CHECK(mkdtemp(dir_.data()) != nullptr);
    source_.metrics = {"loss", "acc"};
    source_.files.log = dir_ + "/log";
    source_.files.metrics = dir_ + "/metrics";
    source_.files.hypertune = dir_ + "/hypertune";
    source_.files.scrapes = dir_ + "/scrapes";
    source_.files.path = dir_ + "/own";
    source_.now = absl::FromUnixSeconds(1000);
    path_ = dir_ + "/" + GetParam().file;
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path());
    collector_ = CreateCollector(GetParam().spec).value();
  }
  ~CollectorContract() override { (void)RemoveAll(dir_); }

  void Add(std::string_view contents) {
    std::ofstream(path_, std::ios::binary | std::ios::app) << contents;
  }

  Collected Collect(const v1::CollectorCursor& cursor, bool ended) {
    source_.ended = ended;
    auto collected = collector_->Collect(source_, cursor);
    EXPECT_TRUE(collected.ok()) << collected.status();
    return *std::move(collected);
  }

  // What the collector makes of `pieces` when it reads after each of them; then starts over.
  std::vector<std::string> Read(const std::vector<std::string_view>& pieces) {
    std::vector<std::string> rows;
    v1::CollectorCursor cursor;
    int64_t bad = 0;
    for (size_t i = 0; i < pieces.size(); ++i) {
      Add(pieces[i]);
      const Collected collected = Collect(cursor, i + 1 == pieces.size());
      for (const Observation& point : collected.observations) rows.push_back(Show(point));
      bad += collected.bad_lines;
      cursor = collected.cursor;
    }
    rows.push_back(absl::StrCat("bad ", bad));
    std::filesystem::remove(path_);
    return rows;
  }

  static std::string Show(const Observation& point) {
    return absl::StrCat(point.metric, "@", point.step, point.implicit_step ? "*" : "", "=",
                        FormatNumber(point.value), " ", absl::ToUnixMillis(point.time));
  }

  static std::vector<std::string> Show(const Collected& collected) {
    std::vector<std::string> rows;
    for (const Observation& point : collected.observations) rows.push_back(Show(point));
    rows.push_back(absl::StrCat("bad ", collected.bad_lines, " ", collected.bad_sample));
    rows.push_back(collected.cursor.DebugString());
    return rows;
  }

  std::string dir_;
  std::string path_;
  Source source_;
  std::unique_ptr<Collector> collector_;
};

TEST_P(CollectorContract, FindsNothingWhereThereIsNoFile) {
  const Collected collected = Collect({}, true);
  EXPECT_TRUE(collected.observations.empty());
  EXPECT_EQ(collected.bad_lines, 0);
  EXPECT_FALSE(collected.more);
}

TEST_P(CollectorContract, FindsSomethingGoodAndSomethingBad) {
  const std::vector<std::string> rows = Read({GetParam().contents});
  EXPECT_GT(rows.size(), 3u);
  EXPECT_EQ(rows.back(), absl::StrCat("bad ", GetParam().bad));
}

TEST_P(CollectorContract, GivesTheSameRowsFromTheSameCursor) {
  const std::string_view contents = GetParam().contents;
  Add(contents.substr(0, contents.size() / 2));
  const Collected first = Collect({}, false);
  EXPECT_EQ(Show(Collect({}, false)), Show(first));
  Add(contents.substr(contents.size() / 2));
  const Collected second = Collect(first.cursor, true);
  EXPECT_EQ(Show(Collect(first.cursor, true)), Show(second));
  EXPECT_TRUE(Collect(second.cursor, true).observations.empty());
}

TEST_P(CollectorContract, GivesTheSameRowsWhereverItsReadingIsCut) {
  const std::string_view contents = GetParam().contents;
  const std::vector<std::string> whole = Read({contents});
  for (size_t cut = 0; cut <= contents.size(); ++cut) {
    ASSERT_EQ(Read({contents.substr(0, cut), contents.substr(cut)}), whole) << "cut at " << cut;
  }
}

TEST_P(CollectorContract, GivesTheSameRowsForAnyPieces) {
  const std::string repeated = GetParam().contents + GetParam().joint + GetParam().contents;
  const std::vector<std::string> whole = Read({repeated});
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Rng rng(seed);
    std::vector<std::string_view> pieces;
    for (std::string_view rest = repeated; !rest.empty();) {
      pieces.push_back(rest.substr(0, 1 + rng.Below(60)));
      rest.remove_prefix(pieces.back().size());
    }
    ASSERT_EQ(Read(pieces), whole) << "seed " << seed;
  }
}

TEST_P(CollectorContract, HoldsALastLineUntilItEndsOrTheProgramDoes) {
  Add(GetParam().contents);
  const Collected running = Collect({}, false);
  const Collected ended = Collect({}, true);
  const uint64_t held = ended.cursor.files(0).offset() - running.cursor.files(0).offset();
  const std::string& joint = GetParam().joint;
  const size_t last =
      joint.empty() ? 0 : GetParam().contents.size() - GetParam().contents.rfind(joint) - 1;
  EXPECT_EQ(held, last);
}

TEST_P(CollectorContract, ReadsAFileThatReplacesAnotherFromItsBeginning) {
  Add(GetParam().contents);
  const Collected first = Collect({}, true);
  ASSERT_EQ(std::rename(path_.c_str(), (dir_ + "/moved").c_str()), 0);
  Add(GetParam().contents);
  const Collected second = Collect(first.cursor, true);
  if (GetParam().remembers) {
    EXPECT_TRUE(second.observations.empty());
    return;
  }
  ASSERT_EQ(second.observations.size(), first.observations.size());
  for (size_t i = 0; i < first.observations.size(); ++i) {
    EXPECT_EQ(second.observations[i].metric, first.observations[i].metric);
    EXPECT_EQ(FormatNumber(second.observations[i].value),
              FormatNumber(first.observations[i].value));
    EXPECT_EQ(second.observations[i].step > first.observations[i].step,
              first.observations[i].implicit_step);
  }
}

TEST_P(CollectorContract, KeepsItsCursorShort) {
  for (int i = 0; i < 200; ++i) Add(GetParam().contents + GetParam().joint);
  EXPECT_LT(Collect({}, false).cursor.ByteSizeLong(), 700u);
}

TEST_P(CollectorContract, SaysWhereItLooked) {
  const std::string text = DescribeSource(*collector_, source_);
  EXPECT_THAT(text, testing::HasSubstr("looked for metrics \"loss\" and \"acc\" "));
  EXPECT_THAT(text, testing::HasSubstr("in the metrics file (absent)"));
}

INSTANTIATE_TEST_SUITE_P(All, CollectorContract, testing::ValuesIn(Cases()),
                         [](const auto& test) { return test.param.name; });

TEST(CollectorRegistry, HasAVariantForEachFile) {
  std::vector<std::string> files;
  for (const auto& file :
       std::filesystem::directory_iterator(SourceDir() + "/metrics/collectors")) {
    if (file.path().extension() == ".cc") files.push_back(file.path().stem().string());
  }
  std::vector<std::string> names = Registry<CollectorInfo>::Get().Names();
  for (std::string& name : names) {
    EXPECT_NE(KindOf(name), v1::COLLECTOR_KIND_UNSPECIFIED) << name;
    std::transform(name.begin(), name.end(), name.begin(), [](char c) { return c | 0x20; });
  }
  EXPECT_THAT(names, testing::UnorderedElementsAreArray(files));
}

}  // namespace
}  // namespace shirabe::metrics
