// Mean and variance of points, and their slopes. Columns of the matrices are points.
#include <cmath>

#include "suggestion/gpu/covariance.h"
#include "suggestion/gpu/stages.h"
#include "suggestion/gpu/tile.h"

namespace shirabe::suggestion::gpu {
namespace {

// What kernels get: by value, because it stands on the host.
struct Both {
  Item item;
  ScoreStage stage;
};

// Block (tile of points, tile of the model).
__global__ void CrossKernel(Both both) {
  const Item& item = both.item;
  const int i = static_cast<int>(blockIdx.y), j = static_cast<int>(blockIdx.x);
  const Side row_side{item.points, i}, column_side{both.stage.points, j};
  const Distances distances = DistancesOf(item.kernel, row_side, column_side);
  UNROLL
  for (int b = 0; b < kEach; ++b) {
    UNROLL
    for (int a = 0; a < kEach; ++a) {
      const int row = i * kTile + RowOf(a);
      const int64_t place = static_cast<int64_t>(j * kTile + ColumnOf(b)) * item.padded + row;
      const bool padding = row >= item.points.count;
      const Covaried pair = Covary(item.kernel, distances.r2.at[a][b], distances.hamming.at[a][b]);
      both.stage.k[place] = padding ? 0 : pair.k;
      if (both.stage.slope != nullptr) both.stage.slope[place] = padding ? 0 : pair.slope;
    }
  }
}

// Block (sixteen points, scenario): sixteen threads a point.
__global__ void MeanKernel(Both both) {
  __shared__ double parts[kSide][kSide + 1];
  const int lane = static_cast<int>(threadIdx.x) % kSide;
  const int group = static_cast<int>(threadIdx.x) / kSide;
  const int begin = static_cast<int>(blockIdx.x) * kSide, scenario = static_cast<int>(blockIdx.y);
  const double* k = both.stage.k + static_cast<int64_t>(begin + group) * both.item.padded;
  const double* alpha = both.item.alpha + static_cast<int64_t>(scenario) * both.item.padded;
  double sum = 0;
  for (int i = lane; i < both.item.points.count; i += kSide) sum += k[i] * alpha[i];
  parts[group][lane] = sum;
  __syncthreads();
  const int point = begin + static_cast<int>(threadIdx.x);
  if (threadIdx.x >= kSide || point >= both.stage.points.count) return;
  double total = both.item.scalars[kMean];
  for (int other = 0; other < kSide; ++other) total += parts[threadIdx.x][other];
  both.stage.mean[static_cast<int64_t>(scenario) * both.stage.points.count + point] = total;
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
__global__ void SolveKernel(Both both) {
  __shared__ Slices slices;
  __shared__ double squares[kSide][kTile + 1];
  const Item& item = both.item;
  const int i = static_cast<int>(blockIdx.y), j = static_cast<int>(blockIdx.x);
  Elements sum = Zeros();
  for (int t = 0; t <= i; ++t) {
    AddProduct({TileAt(item.w, item.padded, i, t), item.padded, false},
               {TileAt(both.stage.k, item.padded, t, j), item.padded, true}, slices, sum);
  }
  if (both.stage.solved != nullptr) {
    Store(sum, 1, TileAt(both.stage.solved, item.padded, i, j), item.padded);
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
  const int64_t width = static_cast<int64_t>(both.stage.tiles) * kTile;
  both.stage.explained[i * width + j * kTile + static_cast<int>(threadIdx.x)] = total;
}

// Block (256 points).
__global__ void VarianceKernel(Both both) {
  const int point = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (point >= both.stage.points.count) return;
  const int64_t width = static_cast<int64_t>(both.stage.tiles) * kTile;
  double explained = 0;
  for (int i = 0; i < both.item.tiles; ++i) explained += both.stage.explained[i * width + point];
  const double variance = both.item.kernel.scale - explained;
  both.stage.variance[point] =
      variance > both.stage.least_variance ? variance : both.stage.least_variance;
}

// Block (tile of points, tile of the model): a tile of -2 Wᵀ W k, ∂variance/∂k.
__global__ void PullKernel(Both both) {
  __shared__ Slices slices;
  const Item& item = both.item;
  const int i = static_cast<int>(blockIdx.y), j = static_cast<int>(blockIdx.x);
  Elements sum = Zeros();
  for (int t = i; t < item.tiles; ++t) {
    AddProduct({TileAt(item.w, item.padded, t, i), item.padded, true},
               {TileAt(both.stage.solved, item.padded, t, j), item.padded, true}, slices, sum);
  }
  Store(sum, -2, TileAt(both.stage.pull, item.padded, i, j), item.padded);
}

// Block (point, function): Σ_i ∂f/∂k_i ∂k_i/∂r² ∂r²/∂x_d, the last 2 (x_d - x_id) / ℓ_d².
__global__ void SlopesKernel(Both both) {
  __shared__ Sums sums;
  const Item& item = both.item;
  const int point = static_cast<int>(blockIdx.x), function = static_cast<int>(blockIdx.y);
  const int64_t points = both.stage.points.count, n = item.points.count;
  const double* weights = function < both.stage.mean_functions
                              ? item.alpha + static_cast<int64_t>(function) * item.padded
                              : both.stage.pull + static_cast<int64_t>(point) * item.padded;
  const double* slope = both.stage.slope + static_cast<int64_t>(point) * item.padded;
  for (int begin = 0; begin < item.kernel.p; begin += kTogether) {
    double values[kTogether] = {};
    for (int i = static_cast<int>(threadIdx.x); i < n; i += kThreads) {
      const double q = weights[i] * slope[i];
      UNROLL
      for (int s = 0; s < kTogether && begin + s < item.kernel.p; ++s) {
        const int64_t d = begin + s;
        values[s] += q * (both.stage.points.x[d * points + point] - item.points.x[d * n + i]);
      }
    }
    const double sum = SumOverBlock(values, sums);
    const int d = begin + static_cast<int>(threadIdx.x);
    if (threadIdx.x < kTogether && d < item.kernel.p) {
      const double inverse = item.kernel.inverse_lengths[d];
      both.stage.slopes[(static_cast<int64_t>(function) * item.kernel.p + d) * points + point] =
          2 * sum * inverse * inverse;
    }
  }
}

unsigned Blocks(int count, int each) { return static_cast<unsigned>((count + each - 1) / each); }

}  // namespace

void Score(const Item& item, const ScoreStage& stage) {
  const Both both{item, stage};
  const int points = stage.points.count;
  const dim3 tiles(static_cast<unsigned>(stage.tiles), static_cast<unsigned>(item.tiles), 1);
  Launch(CrossKernel, tiles, both);
  if (stage.mean != nullptr) {
    Launch(MeanKernel, dim3(Blocks(points, kSide), static_cast<unsigned>(item.m), 1), both);
  }
  if (stage.explained != nullptr) {
    Launch(SolveKernel, tiles, both);
    if (stage.variance != nullptr) {
      Launch(VarianceKernel, dim3(Blocks(points, kThreads), 1, 1), both);
    }
  }
  if (stage.pull != nullptr) Launch(PullKernel, tiles, both);
  const int functions = stage.mean_functions + (stage.pull != nullptr ? 1 : 0);
  if (stage.slopes == nullptr || functions == 0) return;
  const dim3 grid(static_cast<unsigned>(points), static_cast<unsigned>(functions), 1);
  Launch(SlopesKernel, grid, both);
}

}  // namespace shirabe::suggestion::gpu
