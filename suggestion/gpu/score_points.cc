// A batch of scorings, each of any number of points, in as few parts as the memory allows. The
// parts make no difference to the numbers. What a part reads goes over in one copy, and so comes
// back what it gives: many scorings of a few points each are as quick as one of many.
#include <cmath>

#include "suggestion/gpu/context.h"

namespace shirabe::suggestion::gpu {
namespace {

constexpr double kMinVariance = 1e-12;     // as in suggestion/gp/gaussian_process.cc
constexpr int64_t kMaxDoubles = 64 << 20;  // of the workspace: what is read again soon
constexpr int64_t kWithoutGaps = 1;        // what comes back is copied whole: all of it is written

// Where one piece has what is copied, on the device or on the host; by column without gaps.
struct Place {
  double *x, *u;                     // in
  double *mean, *variance, *slopes;  // out
};

// Some points of a scoring.
struct Piece {
  const Scoring* scoring;
  int64_t begin, count;

  const Item& item() const { return scoring->posterior->item; }
  int p() const { return item().kernel.p; }
  int c() const { return item().kernel.c; }
  bool mean_slopes() const { return scoring->mean_slopes != nullptr && p() > 0; }
  bool variance_slopes() const { return scoring->variance_slopes != nullptr && p() > 0; }
  int functions() const { return (mean_slopes() ? item().m : 0) + (variance_slopes() ? 1 : 0); }
};
using Pieces = std::vector<Piece>;

void DivideIn(Divider& memory, const Piece& piece, Place& place) {
  place.x = memory.Next(piece.count * piece.p());
  place.u = memory.Next(piece.count * piece.c());
}

void DivideOut(Divider& memory, const Piece& piece, Place& place) {
  const Scoring& scoring = *piece.scoring;
  if (scoring.mean != nullptr) place.mean = memory.Next(piece.count * piece.item().m);
  if (scoring.variance != nullptr) place.variance = memory.Next(piece.count);
  if (piece.functions() > 0)
    place.slopes = memory.Next(piece.count * piece.p() * piece.functions());
}

// The stage, with memory for what lies between.
ScoreStage DivideStage(Divider& memory, const Piece& piece, const Place& place) {
  const Item& item = piece.item();
  ScoreStage stage{};
  stage.points = {place.x, place.u, static_cast<int>(piece.count)};
  stage.tiles = TilesOf(piece.count);
  stage.mean = place.mean;
  stage.variance = place.variance;
  stage.slopes = place.slopes;
  const int64_t width = static_cast<int64_t>(stage.tiles) * kTile, matrix = width * item.padded;
  stage.k = memory.Next(matrix);
  if (piece.scoring->variance != nullptr || piece.variance_slopes()) {
    stage.explained = memory.Next(width * item.tiles);
  }
  if (piece.functions() > 0) stage.slope = memory.Next(matrix);
  if (piece.variance_slopes()) {
    stage.solved = memory.Next(matrix);
    stage.pull = memory.Next(matrix);
  }
  stage.mean_functions = piece.mean_slopes() ? item.m : 0;
  stage.functions = piece.functions();
  stage.least_variance = kMinVariance * std::max(1.0, item.kernel.scale);
  return stage;
}

int64_t SizeOf(const Piece& piece) {
  Divider none(nullptr);
  Place place{};
  DivideIn(none, piece, place);
  DivideOut(none, piece, place);
  DivideStage(none, piece, place);
  return none.used();
}

// The points that come next, in order, as many as fit into the budget: at least a tile of one.
struct Cursor {
  int64_t scoring = 0, point = 0;
};
Pieces NextPieces(const Scorings& batch, int64_t budget, Cursor& next) {
  Pieces pieces;
  int64_t left = budget;
  while (next.scoring < batch.count) {
    const Scoring& scoring = batch.begin[next.scoring];
    const int64_t rest = scoring.count - next.point;
    const int64_t tiles = left / SizeOf({&scoring, next.point, kTile});
    if (tiles < 1 && !pieces.empty()) break;
    const int64_t count = std::min(rest, std::max<int64_t>(1, tiles) * kTile);
    pieces.push_back({&scoring, next.point, count});
    left -= SizeOf(pieces.back());
    next = count == rest ? Cursor{next.scoring + 1, 0} : Cursor{next.scoring, next.point + count};
  }
  return pieces;
}

// Rows of the caller's matrix of all points of a scoring.
void CopyRows(const Piece& piece, int columns, const double* all, double* some) {
  for (int j = 0; j < columns; ++j) {
    std::copy_n(all + j * piece.scoring->count + piece.begin, piece.count, some + j * piece.count);
  }
}
void PutRows(const Piece& piece, int columns, const double* some, double* all) {
  for (int j = 0; j < columns; ++j) {
    std::copy_n(some + j * piece.count, piece.count, all + j * piece.scoring->count + piece.begin);
  }
}

// A part of a batch, at work.
struct PartOfScorings {
  const Pieces& pieces;
  std::vector<Place> here, there;  // by piece: on the host, on the device
  std::vector<double> in, out;     // on the host
  double* out_there = nullptr;
  std::vector<Scored> scored;
  ScoreBatch batch{};
};

void DivideHost(PartOfScorings& part) {
  Divider in_size(nullptr), out_size(nullptr, kWithoutGaps);
  Place none{};
  for (const Piece& piece : part.pieces) {
    DivideIn(in_size, piece, none);
    DivideOut(out_size, piece, none);
  }
  part.in.resize(static_cast<size_t>(in_size.used()));
  part.out.resize(static_cast<size_t>(out_size.used()));
  Divider in(part.in.data()), out(part.out.data(), kWithoutGaps);
  for (const Piece& piece : part.pieces) {
    Place& place = part.here.emplace_back();
    DivideIn(in, piece, place);
    DivideOut(out, piece, place);
  }
}

void DivideDevice(double* memory, PartOfScorings& part) {
  Divider all(memory);
  part.there.resize(part.pieces.size());
  for (size_t i = 0; i < part.pieces.size(); ++i) DivideIn(all, part.pieces[i], part.there[i]);
  part.out_there = all.Next(static_cast<int64_t>(part.out.size()));
  Divider out(part.out_there, kWithoutGaps);
  for (size_t i = 0; i < part.pieces.size(); ++i) DivideOut(out, part.pieces[i], part.there[i]);
  ScoreBatch& batch = part.batch;
  batch.count = static_cast<int>(part.pieces.size());
  for (size_t i = 0; i < part.pieces.size(); ++i) {
    const Item& item = part.pieces[i].item();
    const ScoreStage stage = DivideStage(all, part.pieces[i], part.there[i]);
    part.scored.push_back({item, stage});
    batch.tiles = std::max(batch.tiles, stage.tiles);
    batch.points = std::max(batch.points, stage.points.count);
    batch.model_tiles = std::max(batch.model_tiles, item.tiles);
    batch.means = std::max(batch.means, stage.mean != nullptr ? item.m : 0);
    batch.functions = std::max(batch.functions, stage.functions);
    if (stage.functions > 0)
      batch.sloped_points = std::max(batch.sloped_points, stage.points.count);
    batch.explained = batch.explained || stage.explained != nullptr;
    batch.pull = batch.pull || stage.pull != nullptr;
  }
}

Code CopyIn(Context& context, PartOfScorings& part) {
  for (size_t i = 0; i < part.pieces.size(); ++i) {
    const Piece& piece = part.pieces[i];
    CopyRows(piece, piece.p(), piece.scoring->x, part.here[i].x);
    CopyRows(piece, piece.c(), piece.scoring->u, part.here[i].u);
  }
  Code code =
      CopyToDevice(context.workspace.data(), part.in.data(), part.in.size() * sizeof(double));
  if (code == kOk) code = UploadTo(context.items, part.scored);
  part.batch.items = reinterpret_cast<const Scored*>(context.items.data());
  return code;
}

Code CopyOut(PartOfScorings& part) {
  if (part.out.empty()) return Synchronize();
  const Code code = CopyToHost(part.out.data(), part.out_there, part.out.size() * sizeof(double));
  if (code != kOk) return code;
  for (size_t i = 0; i < part.pieces.size(); ++i) {
    const Piece& piece = part.pieces[i];
    const Place& place = part.here[i];
    const Scoring& to = *piece.scoring;
    const int by_mean = part.scored[i].stage.mean_functions * piece.p();
    if (to.mean != nullptr) PutRows(piece, piece.item().m, place.mean, to.mean);
    if (to.variance != nullptr) PutRows(piece, 1, place.variance, to.variance);
    if (by_mean > 0) PutRows(piece, by_mean, place.slopes, to.mean_slopes);
    if (piece.variance_slopes()) {
      PutRows(piece, piece.p(), place.slopes + by_mean * piece.count, to.variance_slopes);
    }
  }
  return kOk;
}

Code ScorePart(Context& context, const Pieces& pieces) {
  int64_t size = 0;
  for (const Piece& piece : pieces) size += SizeOf(piece);
  Code code = context.workspace.Reserve(size);
  if (code != kOk) return code;
  PartOfScorings part{.pieces = pieces};
  DivideHost(part);
  DivideDevice(context.workspace.data(), part);
  code = CopyIn(context, part);
  if (code != kOk) return code;
  Score(part.batch);
  return CopyOut(part);
}

}  // namespace

Code ScorePoints(Context& context, const Scorings& batch) {
  int64_t budget = std::min(context.budget(), kMaxDoubles);
  for (Cursor next; next.scoring < batch.count;) {
    const Cursor begin = next;
    const Pieces pieces = NextPieces(batch, budget, next);
    const Code code = ScorePart(context, pieces);
    if (code == kNoMemory && (pieces.size() > 1 || pieces[0].count > kTile)) {
      budget /= 2;
      next = begin;
      continue;
    }
    if (code != kOk) return code;
  }
  return kOk;
}

}  // namespace shirabe::suggestion::gpu
