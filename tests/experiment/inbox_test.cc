// What experiment/report_queue.h promises: bounded, in order, and nothing is said to count that was
// not committed.
#include "experiment/report_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace shirabe::experiment {
namespace {

using ::testing::HasSubstr;

PendingReportPtr MakeReport(size_t points) {
  auto pending_report = std::make_shared<PendingReport>();  // shared: see the header
  pending_report->report.points.resize(points);
  return pending_report;
}

TEST(ReportQueue, TakesTheOldestUpToItsPointsButAtLeastOne) {
  ReportQueue inbox;
  std::vector<PendingReportPtr> pending_reports;
  for (const size_t points : {60'000, 60'000, 10, 100'000, 0, 1}) {
    pending_reports.push_back(MakeReport(points));
    ASSERT_TRUE(inbox.Put(pending_reports.back()).ok());
  }
  using Batch = std::vector<PendingReportPtr>;
  EXPECT_EQ(inbox.Drain(), Batch(pending_reports.begin(), pending_reports.begin() + 2))
      << "100,000 points and more";
  EXPECT_EQ(inbox.Drain(), Batch(pending_reports.begin() + 2, pending_reports.begin() + 4));
  EXPECT_EQ(inbox.Drain(), Batch(pending_reports.begin() + 4, pending_reports.end()));
  EXPECT_TRUE(inbox.empty());
}

TEST(ReportQueue, IsFullAt4096AndHasRoomAgainOnceSomeWereTaken) {
  ReportQueue inbox;
  for (int i = 0; i < 4096; ++i) ASSERT_TRUE(inbox.Put(MakeReport(1)).ok()) << i;
  const Status full = inbox.Put(MakeReport(1));
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_THAT(Message(full), HasSubstr("4096 reports of this experiment are waiting"));
  EXPECT_EQ(inbox.Drain().size(), 4096u);
  EXPECT_TRUE(inbox.Put(MakeReport(1)).ok());
}

TEST(ReportQueue, WhatWasNotCommittedIsNotAnsweredOk) {
  ReportQueue inbox;
  const PendingReportPtr counts = MakeReport(1), fails = MakeReport(1);
  counts->answer = ReportReply{.stop = "it is poor"};
  inbox.Answer({counts}, absl::OkStatus());
  inbox.Answer({fails}, absl::ResourceExhaustedError("disk full"));
  const auto first = inbox.Await(counts, absl::ZeroDuration());
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->stop, "it is poor");
  const Status second = inbox.Await(fails, absl::ZeroDuration()).status();
  EXPECT_TRUE(absl::IsUnavailable(second)) << second;
  EXPECT_THAT(Message(second), HasSubstr("was not stored (disk full): send it again"));
}

TEST(ReportQueue, WhoeverWaitsIsWokenAndGivesUpInTime) {
  ReportQueue inbox;
  const PendingReportPtr pending_report = MakeReport(1);
  EXPECT_TRUE(absl::IsUnavailable(inbox.Await(pending_report, absl::Milliseconds(1)).status()));
  std::thread answers([&] { inbox.Answer({pending_report}, absl::OkStatus()); });
  EXPECT_TRUE(inbox.Await(pending_report, absl::Seconds(20)).ok());
  answers.join();
}

}  // namespace
}  // namespace shirabe::experiment
