// A program that prints without end: every metric in its output counts, and little of the disk is
// taken. With real processes and a real store.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <map>

#include "base/file_io.h"
#include "base/open_beneath.h"
#include "experiment/conditions.h"
#include "experiment/experiment_controller.h"
#include "experiment/submission.h"
#include "tests/integration/small_experiment.h"
#include "trial/file_layout.h"
#include "trial/log_file.h"

namespace shirabe::experiment {
namespace {

constexpr int kSteps = 30;
constexpr int64_t kMiB = 1 << 20;

// 12 MiB of noise between any two values: 360 MiB.
constexpr char kScript[] = R"(
for i in $(seq 30); do
  yes "noise that nobody will ever read, line after line" | head -c 12582912
  echo; echo "loss=$i"
done
)";

TEST(LongLog, EveryValueCountsAndTheMiddleIsLeftOut) {
  std::string home = testing::TempDir() + "shirabe-chatty-XXXXXX";
  ASSERT_NE(mkdtemp(home.data()), nullptr);
  if (!trial::CanTrim(home)) {
    ASSERT_TRUE(RemoveAll(home).ok());
    GTEST_SKIP() << "the file system of " << home << " has no holes";
  }
  const std::string script = home + "/chatter.sh";
  ASSERT_TRUE(WriteFileAtomic(script, kScript).ok());
  const v1::Experiment experiment = Read({.name = "chatty", .script = script});
  const ExperimentKey key = KeyOf(experiment);
  const auto store = OpenHome(home);
  ASSERT_TRUE(Submit(*store, *RealClock(), experiment).ok());
  ControllerOptions options{.store = store.get(), .clock = RealClock()};
  options.executor_options = {.home = home, .clock = RealClock()};
  auto controller = *Controller::Create(options);
  ASSERT_TRUE(controller->Own(key).ok());
  const Status ended = controller->Await(key, absl::Minutes(3));
  EXPECT_TRUE(ended.ok()) << ended;
  controller = nullptr;

  const auto rows = store->ListObservations({.trial = {key, 1}});
  ASSERT_TRUE(rows.ok()) << rows.status();
  std::map<int64_t, double> values;
  for (const db::StoredObservation& row : *rows) values[row.step] = row.value;
  ASSERT_EQ(values.size(), size_t{kSteps});
  for (const auto& [step, value] : values) EXPECT_EQ(value, static_cast<double>(step));

  const std::string log = trial::FileLayout(home).Paths({{key, 1}, 1}).log;
  EXPECT_GT(static_cast<int64_t>(std::filesystem::file_size(log)), 360 * kMiB);
  EXPECT_LE(trial::DiskBytes(log), 96 * kMiB);
  int64_t shown = 0;
  bool said = false;
  for (int64_t offset = 0;;) {
    const auto piece = trial::ReadLog(log, offset, kMiB);
    ASSERT_TRUE(piece.ok()) << piece.status();
    shown += static_cast<int64_t>(piece->text.size());
    said = said || piece->text.find("are left out here") != std::string::npos;
    offset = piece->next;
    if (piece->at_end) break;
  }
  EXPECT_TRUE(said);
  EXPECT_LE(shown, 96 * kMiB);
  EXPECT_TRUE(RemoveAll(home).ok());
}

}  // namespace
}  // namespace shirabe::experiment
