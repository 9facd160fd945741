// -log p(y | θ) and its gradient, ½ Σ_ij P_ij ∂K_ij/∂θ with P = K⁻¹ - α αᵀ. A tile of P is made of
// W and summed at once: neither P nor ∂K is ever stored.
#include "suggestion/gpu/covariance.h"
#include "suggestion/gpu/stages.h"
#include "suggestion/gpu/tile.h"

namespace shirabe::suggestion::gpu {
namespace {

// A thread's part of the sums over a tile, weighted: 1 below the diagonal, because the other half
// is the same, ½ on it, 0 above it and in the padding.
struct Weighted {
  Elements by_r2;   // P ∂k/∂r²
  Elements by_k_u;  // P ∂k/∂k_u k_u
  double by_scale, by_noise, by_mix;
};

__device__ Elements PrecisionTile(const Item& item, Slices& slices) {
  const int i = static_cast<int>(blockIdx.x), j = static_cast<int>(blockIdx.y);
  Elements sum = Zeros();
  for (int k = i; k < item.tiles; ++k) {
    AddProduct({TileAt(item.w, item.padded, k, i), item.padded, true},
               {TileAt(item.w, item.padded, k, j), item.padded, true}, slices, sum);
  }
  return sum;
}

__device__ Weighted WeightedOf(const Item& item, const Elements& precision) {
  const int i = static_cast<int>(blockIdx.x), j = static_cast<int>(blockIdx.y);
  const Side row_side{item.points, i}, column_side{item.points, j};
  const Distances distances = DistancesOf(item.kernel, row_side, column_side);
  Weighted weighted{Zeros(), Zeros(), 0, 0, 0};
  UNROLL
  for (int a = 0; a < kEach; ++a) {
    UNROLL
    for (int b = 0; b < kEach; ++b) {
      const int row = i * kTile + RowOf(a), column = j * kTile + ColumnOf(b);
      if (row < column || row >= item.points.count) continue;
      const double share = row == column ? 0.5 : 1;
      const double p = share * (precision.at[a][b] - item.alpha[row] * item.alpha[column]);
      const Covaried pair = Covary(item.kernel, distances.r2.at[a][b], distances.hamming.at[a][b]);
      weighted.by_r2.at[a][b] = p * pair.slope;
      weighted.by_k_u.at[a][b] = p * pair.k_u_slope;
      weighted.by_scale += p * pair.k;
      weighted.by_mix += p * pair.mix_slope;
      if (row == column) weighted.by_noise += p * item.kernel.noise;
    }
  }
  return weighted;
}

// Of coordinate d: ∂r²/∂log ℓ = -2 (z - z')² and ∂k_u/∂log ℓ = k_u [u ≠ u'] / ℓ.
__device__ double ByLength(const Item& item, const Weighted& weighted, int d) {
  const bool numeric = d < item.kernel.p;
  const int64_t n = item.points.count;
  const double* values = numeric ? item.points.x + d * n : item.points.u + (d - item.kernel.p) * n;
  const double inverse = item.kernel.inverse_lengths[d];
  const Places rows = RowPlaces(static_cast<int>(blockIdx.x), item.points.count);
  const Places columns = ColumnPlaces(static_cast<int>(blockIdx.y), item.points.count);
  double sum = 0;
  UNROLL
  for (int a = 0; a < kEach; ++a) {
    UNROLL
    for (int b = 0; b < kEach; ++b) {
      const double left = values[rows.at[a]], right = values[columns.at[b]];
      const double z = (left - right) * inverse;
      if (numeric) {
        sum -= 2 * weighted.by_r2.at[a][b] * z * z;
      } else if (left != right) {
        sum += weighted.by_k_u.at[a][b] * inverse;
      }
    }
  }
  return sum;
}

// Block (i, j, item): a row of partials.
__global__ void __launch_bounds__(kThreads, 2) TileKernel(const Item* items) {
  __shared__ Slices slices;
  __shared__ Sums sums;
  const Item& item = items[blockIdx.z];
  const int i = static_cast<int>(blockIdx.x), j = static_cast<int>(blockIdx.y);
  if (i >= item.tiles || j > i || item.scalars[kFailed] != 0) return;
  const Weighted weighted = WeightedOf(item, PrecisionTile(item, slices));
  const int lengths = item.kernel.p + item.kernel.c, slots = lengths + 3;
  double* out = item.partials + static_cast<int64_t>(i * (i + 1) / 2 + j) * slots;
  for (int begin = 0; begin < slots; begin += kTogether) {
    double values[kTogether];
    UNROLL
    for (int s = 0; s < kTogether; ++s) {
      const int slot = begin + s;
      values[s] = slot < lengths        ? ByLength(item, weighted, slot)
                  : slot == lengths     ? weighted.by_scale
                  : slot == lengths + 1 ? weighted.by_noise
                                        : weighted.by_mix;
    }
    const double sum = SumOverBlock(values, sums);
    const int slot = begin + static_cast<int>(threadIdx.x);
    if (threadIdx.x < kTogether && slot < slots) out[slot] = sum;
  }
}

// Block (slots / 8, item): eight numbers of the gradient over all tiles, 0 of an item that failed;
// the first also the value.
__global__ void GradientKernel(const Item* items) {
  __shared__ Sums sums;
  const Item& item = items[blockIdx.y];
  const int slots = item.kernel.p + item.kernel.c + 3;
  const int begin = static_cast<int>(blockIdx.x) * kTogether;
  if (begin >= slots) return;
  const int thread = static_cast<int>(threadIdx.x), tiles = item.tiles * (item.tiles + 1) / 2;
  if (item.scalars[kFailed] != 0) {
    if (thread < kTogether && begin + thread < slots) item.gradient[begin + thread] = 0;
    return;
  }
  double values[kTogether] = {};
  for (int tile = thread; tile < tiles; tile += kThreads) {
    const double* row = item.partials + static_cast<int64_t>(tile) * slots;
    UNROLL
    for (int s = 0; s < kTogether && begin + s < slots; ++s) values[s] += row[begin + s];
  }
  const double sum = SumOverBlock(values, sums);
  if (thread < kTogether && begin + thread < slots) item.gradient[begin + thread] = sum;
  if (begin != 0) return;
  UNROLL
  for (int s = 0; s < kTogether; ++s) values[s] = 0;
  for (int k = thread; k < item.padded; k += kThreads) {
    values[0] += item.whitened[k] * item.whitened[k];
  }
  const double square = SumOverBlock(values, sums);
  if (thread == 0) item.scalars[kValue] = 0.5 * square + item.scalars[kLogDeterminant];
}

}  // namespace

void Differentiate(const Batch& batch) {
  const auto tiles = static_cast<unsigned>(batch.tiles), count = static_cast<unsigned>(batch.count);
  Launch(TileKernel, dim3(tiles, tiles, count), batch.items);
  const auto groups = static_cast<unsigned>((batch.slots + kTogether - 1) / kTogether);
  Launch(GradientKernel, dim3(groups, count, 1), batch.items);
}

}  // namespace shirabe::suggestion::gpu
