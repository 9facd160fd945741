// Cholesky's factor and its inverse in one sweep over the tiles of the diagonal. Step s
//   1. factors tile (s, s) and inverts that factor, in registers,
//   2. makes column s of L, L_is = A_is W_ssᵀ, and row s of W, W_sj = W_ss T_sj,
//   3. subtracts what they explain: A_ij -= L_is L_jsᵀ for j > s, T_ij -= L_is W_sj for j ≤ s,
// where A is what is left of K, and T, in the place of W, that of the identity.
#include <cmath>

#include "suggestion/gpu/stages.h"
#include "suggestion/gpu/tile.h"

namespace shirabe::suggestion::gpu {
namespace {

// Of a tile on the diagonal, thread t has sixteen elements of row t % 64, from column
// 16 ⌊t / 64⌋ on: A, which becomes L √d with the pivots d, and T. Nothing is scaled before the end.
constexpr int kRun = kTile * kTile / kThreads;
struct DiagonalRow {
  double a[kRun], t[kRun];
  int row, part;
};

// Column 16 part + run: the part as the threads have it, the run as an unrolled loop has it, so
// that what is in registers is never sought by a number.
struct Column {
  int part, run;

  __device__ int index() const { return part * kRun + run; }
};
__device__ inline bool IsAfter(int part, int run, const Column& column) {
  return run > column.run ? part >= column.part : part > column.part;
}

// What a step needs of other rows, by column: A of the pivot's column after the pivot, and T of the
// pivot's row up to it.
struct Pivot {
  double value;
  double shared[kTile];
};

__device__ inline void SharePivot(const DiagonalRow& mine, const Column& column, Pivot& pivot) {
  const int step = column.index();
  if (mine.part == column.part) {
    if (mine.row > step) pivot.shared[mine.row] = mine.a[column.run];
    if (mine.row == step) pivot.value = mine.a[column.run];
  }
  if (mine.row != step) return;
  UNROLL
  for (int run = 0; run < kRun; ++run) {
    if (!IsAfter(mine.part, run, column)) pivot.shared[mine.part * kRun + run] = mine.t[run];
  }
}

__device__ inline void Eliminate(const Pivot& pivot, const Column& column, DiagonalRow& mine) {
  const double share = pivot.shared[mine.row] / pivot.value;
  UNROLL
  for (int run = 0; run < kRun; ++run) {
    const double change = share * pivot.shared[mine.part * kRun + run];
    if (IsAfter(mine.part, run, column)) {
      mine.a[run] -= change;
    } else {
      mine.t[run] -= change;
    }
  }
}

__device__ DiagonalRow LoadRow(const double* l, int64_t rows) {
  DiagonalRow mine;
  mine.row = static_cast<int>(threadIdx.x) % kTile;
  mine.part = static_cast<int>(threadIdx.x) / kTile;
  UNROLL
  for (int run = 0; run < kRun; ++run) {
    const int column = mine.part * kRun + run;
    mine.a[run] = mine.row >= column ? l[column * rows + mine.row] : 0;
    mine.t[run] = mine.row == column ? 1 : 0;
  }
  return mine;
}

// Block (item): tile (step, step).
__global__ void DiagonalKernel(const Item* items, int step) {
  __shared__ Pivot pivots[2];  // in turn, so that a step waits once
  __shared__ double inverse_roots[kTile], logarithms[kTile];
  const Item& item = items[blockIdx.x];
  if (step >= item.tiles || item.scalars[kFailed] != 0) return;
  double* l = TileAt(item.k, item.padded, step, step);
  double* w = TileAt(item.w, item.padded, step, step);
  const int thread = static_cast<int>(threadIdx.x);
  DiagonalRow mine = LoadRow(l, item.padded);
  for (int part = 0; part < kTile / kRun; ++part) {
    UNROLL
    for (int run = 0; run < kRun; ++run) {
      const Column column{part, run};
      Pivot& pivot = pivots[run % 2];
      SharePivot(mine, column, pivot);
      __syncthreads();
      if (!(pivot.value > 0)) {
        if (thread == 0) item.scalars[kFailed] = 1;
        return;
      }
      if (thread == column.index()) {
        inverse_roots[thread] = 1 / sqrt(pivot.value);
        logarithms[thread] = 0.5 * log(pivot.value);
      }
      if (mine.row > column.index()) Eliminate(pivot, column, mine);
    }
  }
  __syncthreads();
  UNROLL
  for (int run = 0; run < kRun; ++run) {
    const int column = mine.part * kRun + run;
    const int64_t place = static_cast<int64_t>(column) * item.padded + mine.row;
    const bool upper = mine.row < column;
    l[place] = upper ? 0 : mine.a[run] * inverse_roots[column];
    w[place] = upper ? 0 : mine.t[run] * inverse_roots[mine.row];
  }
  if (thread != 0) return;
  double sum = step == 0 ? 0 : item.scalars[kLogDeterminant];
  for (int column = 0; column < kTile; ++column) sum += logarithms[column];
  item.scalars[kLogDeterminant] = sum;
}

__device__ void StoreTile(const Elements& elements, double* tile, int64_t rows) {
  UNROLL
  for (int b = 0; b < kEach; ++b) {
    UNROLL
    for (int a = 0; a < kEach; ++a) tile[ColumnOf(b) * rows + RowOf(a)] = elements.at[a][b];
  }
}

// Block (t, item): L (t, step) and the 0 of W (step, t), or W (step, t).
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
    StoreTile(Zeros(), TileAt(item.w, item.padded, step, t), item.padded);
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
