// Scores of any number of points, in as few parts as the memory allows. The parts make no
// difference to the numbers.
#include <cmath>

#include "suggestion/gpu/context.h"

namespace shirabe::suggestion::gpu {
namespace {

constexpr double kMinVariance = 1e-12;     // as in suggestion/gp/gaussian_process.cc
constexpr int64_t kMaxDoubles = 64 << 20;  // of the workspace: what is read again soon

// What was asked, with the sizes that belong to it.
struct Question {
  const DevicePosterior& posterior;
  const Scoring& scoring;

  const Item& item() const { return posterior.item; }
  int p() const { return item().kernel.p; }
  int c() const { return item().kernel.c; }
  bool mean_slopes() const { return scoring.mean_slopes != nullptr && p() > 0; }
  bool variance_slopes() const { return scoring.variance_slopes != nullptr && p() > 0; }
  int functions() const { return (mean_slopes() ? item().m : 0) + (variance_slopes() ? 1 : 0); }
};

struct Range {
  int64_t begin, count;
};

// The memory of a part; points, and what is copied to the host, by column without gaps.
struct Room {
  double *x, *u;
  ScoreStage stage;
};

Room DivideForPoints(Divider& memory, const Question& question, int64_t count) {
  const Item& item = question.item();
  Room room{};
  ScoreStage& stage = room.stage;
  stage.tiles = TilesOf(count);
  const int64_t width = static_cast<int64_t>(stage.tiles) * kTile, matrix = width * item.padded;
  room.x = memory.Next(count * question.p());
  room.u = memory.Next(count * question.c());
  stage.points = {room.x, room.u, static_cast<int>(count)};
  stage.k = memory.Next(matrix);
  if (question.scoring.mean != nullptr) stage.mean = memory.Next(count * item.m);
  if (question.scoring.variance != nullptr) stage.variance = memory.Next(count);
  if (question.scoring.variance != nullptr || question.variance_slopes()) {
    stage.explained = memory.Next(width * item.tiles);
  }
  if (question.functions() > 0) {
    stage.slope = memory.Next(matrix);
    stage.slopes = memory.Next(count * question.p() * question.functions());
  }
  if (question.variance_slopes()) {
    stage.solved = memory.Next(matrix);
    stage.pull = memory.Next(matrix);
  }
  stage.mean_functions = question.mean_slopes() ? item.m : 0;
  stage.least_variance = kMinVariance * std::max(1.0, item.kernel.scale);
  return room;
}

int64_t SizeOfPoints(const Question& question, int64_t count) {
  Divider none(nullptr);
  DivideForPoints(none, question, count);
  return none.used();
}

// Columns of the caller's matrix of all points, of which a range of rows goes to the device or
// comes from it.
struct Rows {
  double* device;
  int columns;
};
Code CopyIn(const Question& question, const Range& range, const Rows& rows, const double* from) {
  if (rows.columns == 0) return kOk;
  std::vector<double> some(static_cast<size_t>(range.count * rows.columns));
  for (int j = 0; j < rows.columns; ++j) {
    std::copy_n(from + j * question.scoring.count + range.begin, range.count,
                some.data() + j * range.count);
  }
  return CopyToDevice(rows.device, some.data(), some.size() * sizeof(double));
}
Code CopyOut(const Question& question, const Range& range, const Rows& rows, double* to) {
  if (to == nullptr || rows.columns == 0) return kOk;
  std::vector<double> some(static_cast<size_t>(range.count * rows.columns));
  const Code code = CopyToHost(some.data(), rows.device, some.size() * sizeof(double));
  if (code != kOk) return code;
  for (int j = 0; j < rows.columns; ++j) {
    std::copy_n(some.data() + j * range.count, range.count,
                to + j * question.scoring.count + range.begin);
  }
  return kOk;
}

Code ScorePart(const Question& question, const Range& range) {
  Buffer& workspace = question.posterior.context->workspace;
  Code code = workspace.Reserve(SizeOfPoints(question, range.count));
  if (code != kOk) return code;
  Divider memory(workspace.data());
  const Room room = DivideForPoints(memory, question, range.count);
  const Scoring& scoring = question.scoring;
  code = CopyIn(question, range, {room.x, question.p()}, scoring.x);
  if (code == kOk) code = CopyIn(question, range, {room.u, question.c()}, scoring.u);
  if (code != kOk) return code;
  Score(question.item(), room.stage);
  code = Synchronize();
  const int m = question.item().m, by_mean = room.stage.mean_functions * question.p();
  if (code == kOk) code = CopyOut(question, range, {room.stage.mean, m}, scoring.mean);
  if (code == kOk) code = CopyOut(question, range, {room.stage.variance, 1}, scoring.variance);
  if (code == kOk && by_mean > 0) {
    code = CopyOut(question, range, {room.stage.slopes, by_mean}, scoring.mean_slopes);
  }
  if (code == kOk && question.variance_slopes()) {
    const Rows rows{room.stage.slopes + by_mean * range.count, question.p()};
    code = CopyOut(question, range, rows, scoring.variance_slopes);
  }
  return code;
}

}  // namespace

Code ScorePoints(const DevicePosterior& posterior, const Scoring& scoring) {
  const Question question{posterior, scoring};
  const int64_t budget = std::min(posterior.context->budget(), kMaxDoubles);
  const int64_t each = SizeOfPoints(question, kTile);  // a tile of points
  int64_t most = std::max<int64_t>(1, budget / each) * kTile;
  for (int64_t begin = 0; begin < scoring.count;) {
    const int64_t count = std::min(most, scoring.count - begin);
    const Code code = ScorePart(question, {begin, count});
    if (code == kNoMemory && count > kTile) {
      most = std::max<int64_t>(kTile, count / 2 / kTile * kTile);
      continue;
    }
    if (code != kOk) return code;
    begin += count;
  }
  return kOk;
}

}  // namespace shirabe::suggestion::gpu
