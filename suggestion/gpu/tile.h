// What kernels share: how the 256 threads of a block divide a tile of 64 × 64, the product of two
// tiles, and sums over a block in a fixed order. Include in .cu files only.
#pragma once

#include "suggestion/gpu/portable.h"
#include "suggestion/gpu/stages.h"

namespace shirabe::suggestion::gpu {

// A thread has 4 × 4 elements of a tile: rows row + 16 a, columns column + 16 b.
constexpr int kSide = 16, kEach = 4;
static_assert(kThreads == kSide * kSide && kTile == kSide * kEach);

__device__ inline int RowOf(int a) { return static_cast<int>(threadIdx.x) % kSide + kSide * a; }
__device__ inline int ColumnOf(int b) { return static_cast<int>(threadIdx.x) / kSide + kSide * b; }

struct Elements {
  double at[kEach][kEach];
};

__device__ inline Elements Zeros() {
  Elements zeros;
  UNROLL
  for (int a = 0; a < kEach; ++a) {
    UNROLL
    for (int b = 0; b < kEach; ++b) zeros.at[a][b] = 0;
  }
  return zeros;
}

// Of a matrix of tiles by column, tile (i, j).
__device__ inline double* TileAt(double* matrix, int64_t rows, int i, int j) {
  return matrix + static_cast<int64_t>(j) * kTile * rows + static_cast<int64_t>(i) * kTile;
}

// A tile as a factor of a product.
struct Factored {
  const double* data;
  int64_t rows;  // from one column to the next
  bool transposed;
};

// Room for a slice of both factors; 65, so that threads of a warp use different banks.
constexpr int kSlice = 16;
struct Slices {
  double a[kSlice][kTile + 1], b[kSlice][kTile + 1];
};

// Slice of a 64 × 64 factor whose element (i, k) goes to slice[k][i]; neighbouring threads read
// neighbouring places.
__device__ inline void LoadSlice(const Factored& factor, int begin, double (&slice)[kSlice][65]) {
  for (int e = static_cast<int>(threadIdx.x); e < kSlice * kTile; e += kThreads) {
    const int i = factor.transposed ? e / kSlice : e % kTile;
    const int k = factor.transposed ? e % kSlice : e / kTile;
    slice[k][i] = factor.transposed ? factor.data[i * factor.rows + begin + k]
                                    : factor.data[(begin + k) * factor.rows + i];
  }
}

// sum += a bᵀ, tiles (of a transposed factor, its transpose). All threads; they may write to where
// the factors come from when it returns.
__device__ inline void AddProduct(const Factored& a, const Factored& b, Slices& slices,
                                  Elements& sum) {
  for (int begin = 0; begin < kTile; begin += kSlice) {
    LoadSlice(a, begin, slices.a);
    LoadSlice(b, begin, slices.b);
    __syncthreads();
    UNROLL
    for (int k = 0; k < kSlice; ++k) {
      double left[kEach], right[kEach];
      UNROLL
      for (int e = 0; e < kEach; ++e) {
        left[e] = slices.a[k][RowOf(e)];
        right[e] = slices.b[k][ColumnOf(e)];
      }
      UNROLL
      for (int r = 0; r < kEach; ++r) {
        UNROLL
        for (int c = 0; c < kEach; ++c) sum.at[r][c] += left[r] * right[c];
      }
    }
    __syncthreads();
  }
}

// Room for sums over a block of a few numbers at the same time.
constexpr int kTogether = 8;
struct Sums {
  double parts[kTogether][kThreads];
  double lanes[kTogether][32];
};

// Sums of values[…] over the threads: thread s (below kTogether) gets that of the s-th, all others
// 0. The order of additions is fixed. May be called again at once.
__device__ inline double SumOverBlock(const double (&values)[kTogether], Sums& sums) {
  const int thread = static_cast<int>(threadIdx.x);
  UNROLL
  for (int s = 0; s < kTogether; ++s) sums.parts[s][thread] = values[s];
  __syncthreads();
  const int mine = thread / 32, lane = thread % 32;
  double part = 0;
  for (int other = lane; other < kThreads; other += 32) part += sums.parts[mine][other];
  sums.lanes[mine][lane] = part;
  __syncthreads();
  double sum = 0;
  if (thread < kTogether) {
    for (int other = 0; other < 32; ++other) sum += sums.lanes[thread][other];
  }
  return sum;
}

}  // namespace shirabe::suggestion::gpu
