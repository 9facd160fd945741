// A collector in a test: a source whose files lie in a folder of their own, and what reading on
// gives, as short text.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/text/number.h"
#include "metrics/collector.h"
#include "metrics/describe_source.h"
#include "tests/metrics/testing.h"

namespace shirabe::metrics {

class CollectingTest : public testing::Test {
 protected:
  CollectingTest() {
    source_.metrics = {"loss", "acc"};
    source_.files.log = dir_.File("log");
    source_.files.metrics = dir_.File("metrics.jsonl");
    source_.files.hypertune = dir_.File("hypertune.jsonl");
    source_.files.scrapes = dir_.File("scrapes.jsonl");
    source_.now = absl::FromUnixSeconds(1'000'000);
  }

  // The collector of spec_, whose file is looked for below dir_.
  std::unique_ptr<Collector> Create() {
    const std::filesystem::path path = spec_.source().file_system_path().path();
    source_.files.path = (dir_.path() / path).lexically_normal().string();
    auto collector = CreateCollector(spec_);
    EXPECT_TRUE(collector.ok()) << collector.status();
    return *std::move(collector);
  }

  std::string Describe() { return DescribeSource(*Create(), source_); }
  v1::CollectorCursor Start() { return StartCursor(*Create(), source_); }

  // Reads on; "loss@1*=0.5" is an implicit step.
  std::string Collect(bool ended = false) {
    source_.ended = ended;
    auto collected = Create()->Collect(source_, cursor_);
    EXPECT_TRUE(collected.ok()) << collected.status();
    last_ = *std::move(collected);
    cursor_ = last_.cursor;
    std::string text;
    for (const Observation& point : last_.observations) {
      absl::StrAppend(&text, text.empty() ? "" : " ", point.metric, "@", point.step,
                      point.implicit_step ? "*" : "", "=", FormatNumber(point.value));
    }
    return text;
  }

  TempDir dir_;
  v1::MetricsCollectorSpec spec_;
  Source source_;
  v1::CollectorCursor cursor_;
  Collected last_;
};

}  // namespace shirabe::metrics
