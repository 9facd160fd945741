// Mean and variance of points, and their slopes. Columns of the matrices are points; blocks beyond
// the size of their own scoring, which the batch's largest asks for, end at once.
#include <cmath>

#include "suggestion/gpu/covariance.h"
#include "suggestion/gpu/stages.h"
#include "suggestion/gpu/tile.h"

namespace shirabe::suggestion::gpu {
namespace {

// Block (tile of points, tile of the model).
__global__ void CrossKernel(const Scored* batch) {
  const Item& item = batch[blockIdx.z].item;
  const ScoreStage& stage = batch[blockIdx.z].stage;
  const int i = static_cast<int>(blockIdx.y), j = static_cast<int>(blockIdx.x);
  if (i >= item.tiles || j >= stage.tiles) return;
  const Side row_side{item.points, i}, column_side{stage.points, j};
  const Distances distances = DistancesOf(item.kernel, row_side, column_side);
  UNROLL
  for (int b = 0; b < kEach; ++b) {
    UNROLL
    for (int a = 0; a < kEach; ++a) {
      const int row = i * kTile + RowOf(a);
      const int64_t place = static_cast<int64_t>(j * kTile + ColumnOf(b)) * item.padded + row;
      const bool padding = row >= item.points.count;
      const Covaried pair = Covary(item.kernel, distances.r2.at[a][b], distances.hamming.at[a][b]);
      stage.k[place] = padding ? 0 : pair.k;
      if (stage.slope != nullptr) stage.slope[place] = padding ? 0 : pair.slope;
    }
  }
}

// Block (sixteen points, scenario): sixteen threads a point.
__global__ void MeanKernel(const Scored* batch) {
  __shared__ double parts[kSide][kSide + 1];
  const int lane = static_cast<int>(threadIdx.x) % kSide;
  const int group = static_cast<int>(threadIdx.x) / kSide;
  const int begin = static_cast<int>(blockIdx.x) * kSide, scenario = static_cast<int>(blockIdx.y);
  const Item& item = batch[blockIdx.z].item;
  const ScoreStage& stage = batch[blockIdx.z].stage;
  if (stage.mean == nullptr || begin >= stage.points.count || scenario >= item.m) return;
  const double* k = stage.k + static_cast<int64_t>(begin + group) * item.padded;
  const double* alpha = item.alpha + static_cast<int64_t>(scenario) * item.padded;
  double sum = 0;
  for (int i = lane; i < item.points.count; i += kSide) sum += k[i] * alpha[i];
  parts[group][lane] = sum;
  __syncthreads();
  const int point = begin + static_cast<int>(threadIdx.x);
  if (threadIdx.x >= kSide || point >= stage.points.count) return;
  double total = item.scalars[kMean];
  for (int other = 0; other < kSide; ++other) total += parts[threadIdx.x][other];
  stage.mean[static_cast<int64_t>(scenario) * stage.points.count + point] = total;
}

__device__ void Store(const Elements& elements, double factor, double* tile, int64_t rows) {
  UNROLL
  for (int b = 0; b < kEach; ++b) {
    UNROLL
    for (int a = 0; a < kEach; ++a)
      tile[ColumnOf(b) * rows + RowOf(a)] = factor * elements.at[a][b];
  }
}

// Block (tile of points, tile of the model): a tile of W k, and the squares in it by point.
__global__ void SolveKernel(const Scored* batch) {
  __shared__ Slices slices;
  __shared__ double squares[kSide][kTile + 1];
  const Item& item = batch[blockIdx.z].item;
  const ScoreStage& stage = batch[blockIdx.z].stage;
  const int i = static_cast<int>(blockIdx.y), j = static_cast<int>(blockIdx.x);
  if (stage.explained == nullptr || i >= item.tiles || j >= stage.tiles) return;
  Elements sum = Zeros();
  for (int t = 0; t <= i; ++t) {
    AddProduct({TileAt(item.w, item.padded, i, t), item.padded, false},
               {TileAt(stage.k, item.padded, t, j), item.padded, true}, slices, sum);
  }
  if (stage.solved != nullptr) {
    Store(sum, 1, TileAt(stage.solved, item.padded, i, j), item.padded);
  }
  UNROLL
  for (int b = 0; b < kEach; ++b) {
    double square = 0;
    UNROLL
    for (int a = 0; a < kEach; ++a) square += sum.at[a][b] * sum.at[a][b];
    squares[threadIdx.x % kSide][ColumnOf(b)] = square;
  }
  __syncthreads();
  if (threadIdx.x >= kTile) return;
  double total = 0;
  for (int part = 0; part < kSide; ++part) total += squares[part][threadIdx.x];
  const int64_t width = static_cast<int64_t>(stage.tiles) * kTile;
  stage.explained[i * width + j * kTile + static_cast<int>(threadIdx.x)] = total;
}

// Block (256 points).
__global__ void VarianceKernel(const Scored* batch) {
  const Item& item = batch[blockIdx.z].item;
  const ScoreStage& stage = batch[blockIdx.z].stage;
  const int point = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (stage.variance == nullptr || point >= stage.points.count) return;
  const int64_t width = static_cast<int64_t>(stage.tiles) * kTile;
  double explained = 0;
  for (int i = 0; i < item.tiles; ++i) explained += stage.explained[i * width + point];
  const double variance = item.kernel.scale - explained;
  stage.variance[point] = variance > stage.least_variance ? variance : stage.least_variance;
}

// Block (tile of points, tile of the model): a tile of -2 Wᵀ W k, ∂variance/∂k.
__global__ void PullKernel(const Scored* batch) {
  __shared__ Slices slices;
  const Item& item = batch[blockIdx.z].item;
  const ScoreStage& stage = batch[blockIdx.z].stage;
  const int i = static_cast<int>(blockIdx.y), j = static_cast<int>(blockIdx.x);
  if (stage.pull == nullptr || i >= item.tiles || j >= stage.tiles) return;
  Elements sum = Zeros();
  for (int t = i; t < item.tiles; ++t) {
    AddProduct({TileAt(item.w, item.padded, t, i), item.padded, true},
               {TileAt(stage.solved, item.padded, t, j), item.padded, true}, slices, sum);
  }
  Store(sum, -2, TileAt(stage.pull, item.padded, i, j), item.padded);
}

// Block (point, function): Σ_i ∂f/∂k_i ∂k_i/∂r² ∂r²/∂x_d, the last 2 (x_d - x_id) / ℓ_d².
__global__ void SlopesKernel(const Scored* batch) {
  __shared__ Sums sums;
  const Item& item = batch[blockIdx.z].item;
  const ScoreStage& stage = batch[blockIdx.z].stage;
  const int point = static_cast<int>(blockIdx.x), function = static_cast<int>(blockIdx.y);
  if (point >= stage.points.count || function >= stage.functions) return;
  const int64_t points = stage.points.count, n = item.points.count;
  const double* weights = function < stage.mean_functions
                              ? item.alpha + static_cast<int64_t>(function) * item.padded
                              : stage.pull + static_cast<int64_t>(point) * item.padded;
  const double* slope = stage.slope + static_cast<int64_t>(point) * item.padded;
  for (int begin = 0; begin < item.kernel.p; begin += kTogether) {
    double values[kTogether] = {};
    for (int i = static_cast<int>(threadIdx.x); i < n; i += kThreads) {
      const double q = weights[i] * slope[i];
      UNROLL
      for (int s = 0; s < kTogether && begin + s < item.kernel.p; ++s) {
        const int64_t d = begin + s;
        values[s] += q * (stage.points.x[d * points + point] - item.points.x[d * n + i]);
      }
    }
    const double sum = SumOverBlock(values, sums);
    const int d = begin + static_cast<int>(threadIdx.x);
    if (threadIdx.x < kTogether && d < item.kernel.p) {
      const double inverse = item.kernel.inverse_lengths[d];
      stage.slopes[(static_cast<int64_t>(function) * item.kernel.p + d) * points + point] =
          2 * sum * inverse * inverse;
    }
  }
}

unsigned Blocks(int count, int each) { return static_cast<unsigned>((count + each - 1) / each); }

}  // namespace

void Score(const ScoreBatch& batch) {
  const auto count = static_cast<unsigned>(batch.count);
  const dim3 tiles(static_cast<unsigned>(batch.tiles), static_cast<unsigned>(batch.model_tiles),
                   count);
  Launch(CrossKernel, tiles, batch.items);
  if (batch.means > 0) {
    Launch(MeanKernel, dim3(Blocks(batch.points, kSide), static_cast<unsigned>(batch.means), count),
           batch.items);
  }
  if (batch.explained) {
    Launch(SolveKernel, tiles, batch.items);
    Launch(VarianceKernel, dim3(Blocks(batch.points, kThreads), 1, count), batch.items);
  }
  if (batch.pull) Launch(PullKernel, tiles, batch.items);
  if (batch.functions == 0) return;
  const dim3 grid(static_cast<unsigned>(batch.sloped_points),
                  static_cast<unsigned>(batch.functions), count);
  Launch(SlopesKernel, grid, batch.items);
}

}  // namespace shirabe::suggestion::gpu
