// Products of W with vectors: β, W (y - β), α, and the diagonal of K⁻¹.
#include "suggestion/gpu/stages.h"
#include "suggestion/gpu/tile.h"

namespace shirabe::suggestion::gpu {
namespace {

__device__ bool Skips(const Item& item, int tile, int column) {
  return tile >= item.tiles || column >= item.m || item.scalars[kFailed] != 0;
}

// Block (tile, column, item): 64 rows of W times a column of y, or, for column 0, ones. Four
// threads share a row.
__global__ void WhitenKernel(const Item* items) {
  constexpr int kShare = kThreads / kTile;
  __shared__ double parts[kShare][kTile];
  const Item& item = items[blockIdx.z];
  const int tile = static_cast<int>(blockIdx.x);
  const int column = static_cast<int>(blockIdx.y) - 1;  // -1: ones
  if (Skips(item, tile, column)) return;
  const int row = static_cast<int>(threadIdx.x) % kTile;
  const int part = static_cast<int>(threadIdx.x) / kTile;
  const int begun = (tile + 1) * kTile;
  const int end = begun < item.points.count ? begun : item.points.count;
  const double* y = item.y + static_cast<int64_t>(column < 0 ? 0 : column) * item.points.count;
  const double* w = item.w + tile * kTile + row;
  double sum = 0;
  for (int j = part; j < end; j += kShare) {
    sum += w[static_cast<int64_t>(j) * item.padded] * (column < 0 ? 1 : y[j]);
  }
  parts[part][row] = sum;
  __syncthreads();
  if (part != 0) return;
  for (int other = 1; other < kShare; ++other) sum += parts[other][row];
  double* out = column < 0 ? item.ones : item.whitened + static_cast<int64_t>(column) * item.padded;
  out[tile * kTile + row] = sum;
}

// Block (item).
__global__ void AverageKernel(const Item* items) {
  __shared__ Sums sums;
  const Item& item = items[blockIdx.x];
  if (item.scalars[kFailed] != 0) return;
  double values[kTogether] = {};
  for (int i = static_cast<int>(threadIdx.x); i < item.padded; i += kThreads) {
    values[0] += item.ones[i] * item.whitened[i];
    values[1] += item.ones[i] * item.ones[i];
  }
  __shared__ double both[2];
  const double sum = SumOverBlock(values, sums);
  if (threadIdx.x < 2) both[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) item.scalars[kMean] = both[0] / both[1];
}

// Block (tile, column, item).
__global__ void CentreKernel(const Item* items) {
  const Item& item = items[blockIdx.z];
  const int tile = static_cast<int>(blockIdx.x), column = static_cast<int>(blockIdx.y);
  if (Skips(item, tile, column) || threadIdx.x >= kTile) return;
  const int row = tile * kTile + static_cast<int>(threadIdx.x);
  item.whitened[static_cast<int64_t>(column) * item.padded + row] -=
      item.scalars[kMean] * item.ones[row];
}

// The columns of a tile, sixteen at a time, as many threads along each: Σ_k W_kj v_k for the j-th,
// or of squares where there is no v. Threads 0 to 15 write what they have summed.
struct ColumnSums {
  double parts[kSide][kSide + 1];
};
__device__ void SumColumns(const Item& item, const double* v, double* out, ColumnSums& sums) {
  const int tile = static_cast<int>(blockIdx.x);
  const int lane = static_cast<int>(threadIdx.x) % kSide;
  const int group = static_cast<int>(threadIdx.x) / kSide;
  for (int begin = tile * kTile; begin < (tile + 1) * kTile; begin += kSide) {
    const double* w = item.w + static_cast<int64_t>(begin + group) * item.padded;
    double sum = 0;
    for (int k = tile * kTile + lane; k < item.padded; k += kSide) {
      sum += w[k] * (v == nullptr ? w[k] : v[k]);
    }
    sums.parts[group][lane] = sum;
    __syncthreads();
    if (threadIdx.x < kSide) {
      double total = 0;
      for (int other = 0; other < kSide; ++other) total += sums.parts[threadIdx.x][other];
      out[begin + static_cast<int>(threadIdx.x)] = total;
    }
    __syncthreads();
  }
}

// Block (tile, column, item).
__global__ void AlphaKernel(const Item* items) {
  __shared__ ColumnSums sums;
  const Item& item = items[blockIdx.z];
  const int tile = static_cast<int>(blockIdx.x), column = static_cast<int>(blockIdx.y);
  if (Skips(item, tile, column)) return;
  const int64_t begin = static_cast<int64_t>(column) * item.padded;
  SumColumns(item, item.whitened + begin, item.alpha + begin, sums);
}

// Block (tile, item).
__global__ void SquareKernel(const Item* items) {
  __shared__ ColumnSums sums;
  const Item& item = items[blockIdx.y];
  if (Skips(item, static_cast<int>(blockIdx.x), 0)) return;
  SumColumns(item, nullptr, item.gradient, sums);
}

dim3 TilesAndColumns(const Batch& batch, int columns) {
  return dim3(static_cast<unsigned>(batch.tiles), static_cast<unsigned>(columns),
              static_cast<unsigned>(batch.count));
}

}  // namespace

void Whiten(const Batch& batch) {
  Launch(WhitenKernel, TilesAndColumns(batch, batch.m + 1), batch.items);
}

void Average(const Batch& batch) {
  Launch(AverageKernel, dim3(static_cast<unsigned>(batch.count), 1, 1), batch.items);
}

void Centre(const Batch& batch) {
  Launch(CentreKernel, TilesAndColumns(batch, batch.m), batch.items);
  Launch(AlphaKernel, TilesAndColumns(batch, batch.m), batch.items);
}

void SquareColumns(const Batch& batch) {
  const dim3 grid(static_cast<unsigned>(batch.tiles), static_cast<unsigned>(batch.count), 1);
  Launch(SquareKernel, grid, batch.items);
}

}  // namespace shirabe::suggestion::gpu
