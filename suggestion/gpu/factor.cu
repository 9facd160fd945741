// Cholesky's factor and its inverse in one sweep over the tiles of the diagonal. Step s
//   1. factors tile (s, s) and inverts that factor, in shared memory,
//   2. makes column s of L, L_is = A_is W_ssᵀ, and row s of W, W_sj = W_ss T_sj,
//   3. subtracts what they explain: A_ij -= L_is L_jsᵀ for j > s, T_ij -= L_is W_sj for j ≤ s,
// where A is what is left of K, and T, in the place of W, that of the identity.
#include <cmath>

#include "suggestion/gpu/stages.h"
#include "suggestion/gpu/tile.h"

namespace shirabe::suggestion::gpu {
namespace {

// A tile's lower half is A, then L; above the diagonal stands T (i, j) at [j][i], whose diagonal is
// 1. Nothing is scaled before the end, so that a step reads one column and writes those after it.
constexpr int kRow = kTile + 1;

__device__ void Eliminate(double (&s)[kTile][kRow], int step) {
  const int i = static_cast<int>(threadIdx.x) % kTile;
  if (i <= step) return;
  const double share = s[i][step] / s[step][step];
  for (int j = static_cast<int>(threadIdx.x) / kTile; j <= i; j += kThreads / kTile) {
    if (j > step) {
      s[i][j] -= share * s[j][step];
    } else if (j == step) {
      s[j][i] = -share;
    } else {
      s[j][i] -= share * s[j][step];
    }
  }
}

// Block (item): tile (step, step).
__global__ void DiagonalKernel(const Item* items, int step) {
  __shared__ double s[kTile][kRow];
  const Item& item = items[blockIdx.x];
  if (step >= item.tiles || item.scalars[kFailed] != 0) return;
  double* l = TileAt(item.k, item.padded, step, step);
  double* w = TileAt(item.w, item.padded, step, step);
  const int thread = static_cast<int>(threadIdx.x);
  for (int e = thread; e < kTile * kTile; e += kThreads) {
    const int row = e % kTile, column = e / kTile;
    s[row][column] = row >= column ? l[static_cast<int64_t>(column) * item.padded + row] : 0;
  }
  __syncthreads();
  for (int pivot = 0; pivot < kTile; ++pivot) {
    if (!(s[pivot][pivot] > 0)) {
      if (thread == 0) item.scalars[kFailed] = 1;
      return;
    }
    Eliminate(s, pivot);
    __syncthreads();
  }
  for (int e = thread; e < kTile * kTile; e += kThreads) {
    const int row = e % kTile, column = e / kTile;
    const int64_t place = static_cast<int64_t>(column) * item.padded + row;
    if (row < column) {
      l[place] = w[place] = 0;
    } else {
      l[place] = s[row][column] / sqrt(s[column][column]);
      w[place] = (row == column ? 1 : s[column][row]) / sqrt(s[row][row]);
    }
  }
  if (thread != 0) return;
  double sum = step == 0 ? 0 : item.scalars[kLogDeterminant];
  for (int pivot = 0; pivot < kTile; ++pivot) sum += 0.5 * log(s[pivot][pivot]);
  item.scalars[kLogDeterminant] = sum;
}

__device__ void StoreTile(const Elements& elements, double* tile, int64_t rows) {
  UNROLL
  for (int b = 0; b < kEach; ++b) {
    UNROLL
    for (int a = 0; a < kEach; ++a) tile[ColumnOf(b) * rows + RowOf(a)] = elements.at[a][b];
  }
}

// Block (t, item): L (t, step), or W (step, t).
__global__ void PanelKernel(const Item* items, int step) {
  __shared__ Slices slices;
  const Item& item = items[blockIdx.y];
  const int t = static_cast<int>(blockIdx.x);
  if (step >= item.tiles || t >= item.tiles || t == step || item.scalars[kFailed] != 0) return;
  const Factored corner{TileAt(item.w, item.padded, step, step), item.padded, false};
  Elements sum = Zeros();
  if (t > step) {
    double* l = TileAt(item.k, item.padded, t, step);
    AddProduct({l, item.padded, false}, corner, slices, sum);
    StoreTile(sum, l, item.padded);
  } else {
    double* w = TileAt(item.w, item.padded, step, t);
    AddProduct(corner, {w, item.padded, true}, slices, sum);
    StoreTile(sum, w, item.padded);
  }
}

// Block (i - step - 1, j, item): A (i, j), or T (i, j).
__global__ void UpdateKernel(const Item* items, int step) {
  __shared__ Slices slices;
  const Item& item = items[blockIdx.z];
  const int i = step + 1 + static_cast<int>(blockIdx.x), j = static_cast<int>(blockIdx.y);
  if (i >= item.tiles || j > i || item.scalars[kFailed] != 0) return;
  const Factored l{TileAt(item.k, item.padded, i, step), item.padded, false};
  const bool inverse = j <= step;
  const Factored other{
      inverse ? TileAt(item.w, item.padded, step, j) : TileAt(item.k, item.padded, j, step),
      item.padded, inverse};
  Elements sum = Zeros();
  AddProduct(l, other, slices, sum);
  double* tile = TileAt(inverse ? item.w : item.k, item.padded, i, j);
  UNROLL
  for (int b = 0; b < kEach; ++b) {
    UNROLL
    for (int a = 0; a < kEach; ++a) {
      double& place = tile[static_cast<int64_t>(ColumnOf(b)) * item.padded + RowOf(a)];
      place = (j == step ? 0 : place) - sum.at[a][b];
    }
  }
}

}  // namespace

void Factor(const Batch& batch) {
  const auto tiles = static_cast<unsigned>(batch.tiles), count = static_cast<unsigned>(batch.count);
  for (unsigned step = 0; step < tiles; ++step) {
    const int s = static_cast<int>(step);
    Launch(DiagonalKernel, dim3(count, 1, 1), batch.items, s);
    if (tiles == 1) break;
    Launch(PanelKernel, dim3(tiles, count, 1), batch.items, s);
    if (step + 1 < tiles) {
      Launch(UpdateKernel, dim3(tiles - step - 1, tiles, count), batch.items, s);
    }
  }
}

}  // namespace shirabe::suggestion::gpu
