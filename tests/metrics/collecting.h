// A collector in a test: a source whose files lie in a folder of their own, and what reading on
// gives, as short text.
#pragma once

#include <gtest/gtest.h>

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
    source_.log = dir_.File("log");
    source_.metrics_file = dir_.File("metrics.jsonl");
    source_.hypertune_file = dir_.File("hypertune.jsonl");
    source_.scrapes_file = dir_.File("scrapes.jsonl");
    source_.working_dir = dir_.path();
    source_.now = absl::FromUnixSeconds(1'000'000);
  }

  // Reads on; "loss@1*=0.5" is an implicit step.
  std::string Collect(bool ended = false) {
    source_.ended = ended;
    const auto collector = CreateCollector(source_.spec);
    EXPECT_TRUE(collector.ok()) << collector.status();
    auto collected = (*collector)->Collect(source_, cursor_);
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
  Source source_;
  v1::CollectorCursor cursor_;
  Collected last_;
};

}  // namespace shirabe::metrics
