#include "suggestion/gpu/covariance.h"
#include "suggestion/gpu/stages.h"
#include "suggestion/gpu/tile.h"

namespace shirabe::suggestion::gpu {
namespace {

// Block (i, j, item): a tile of the lower half.
__global__ void GramKernel(const Item* items) {
  const Item& item = items[blockIdx.z];
  const int i = static_cast<int>(blockIdx.x), j = static_cast<int>(blockIdx.y);
  if (i >= item.tiles || j > i) return;
  if (i == 0 && threadIdx.x < kScalars) item.scalars[threadIdx.x] = 0;
  const Side row_side{item.points, i}, column_side{item.points, j};
  const Distances distances = DistancesOf(item.kernel, row_side, column_side);
  double* tile = TileAt(item.k, item.padded, i, j);
  UNROLL
  for (int b = 0; b < kEach; ++b) {
    UNROLL
    for (int a = 0; a < kEach; ++a) {
      const int row = i * kTile + RowOf(a), column = j * kTile + ColumnOf(b);
      const bool padding = row >= item.points.count || column >= item.points.count;
      double value = row == column ? 1 : 0;
      if (!padding) {
        value = Covary(item.kernel, distances.r2.at[a][b], distances.hamming.at[a][b]).k;
        if (row == column) value += item.kernel.diagonal;
      }
      tile[static_cast<int64_t>(ColumnOf(b)) * item.padded + RowOf(a)] = value;
    }
  }
}

}  // namespace

void MakeGram(const Batch& batch) {
  const auto tiles = static_cast<unsigned>(batch.tiles);
  Launch(GramKernel, dim3(tiles, tiles, static_cast<unsigned>(batch.count)), batch.items);
}

}  // namespace shirabe::suggestion::gpu
