// What kernels share: what they use of a GPU, how the 256 threads of a block divide a tile of 64 ×
// 64, the product of two tiles, and sums over a block in a fixed order. Include in .cu files only.
#pragma once

#include <gpu_platform.h>

#include "suggestion/gpu/stages.h"

namespace shirabe::suggestion::gpu {

// All that kernels use of a GPU, so that the same sources run on one and, in the tests, on the
// processor. gpu_platform.h is that of suggestion/gpu/cuda (nvcc) or of tests/gpu/shim (g++),
// whichever the build's include path has, and brings
//
//   __global__, __device__, __shared__ (of fixed size), __syncthreads(), UNROLL before a loop
//   __launch_bounds__(), threadIdx.x, blockIdx, dim3
//   Launch(kernel, grid, arguments…): blocks of kThreads threads, one launch after another
//
// Kernels use nothing else of CUDA: no warp intrinsics, no atomics, no textures (tests/tidy).
// What the code around them needs is in suggestion/gpu/runtime.h.

constexpr int kThreads = kBlockThreads;

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

// A thread's share of a slice of a factor, on its way from the device's memory.
constexpr int kFetched = kSlice * kTile / kThreads;
struct Fetched {
  double at[kFetched];
};

// Where the e-th number that a thread fetches belongs: element (i, k) of a slice of a 64 × 64
// factor; neighbouring threads read neighbouring places.
struct SlicePlace {
  int i, k;
};
__device__ inline SlicePlace SlicePlaceOf(int e, bool transposed) {
  const int place = static_cast<int>(threadIdx.x) + e * kThreads;
  return transposed ? SlicePlace{place / kSlice, place % kSlice}
                    : SlicePlace{place % kTile, place / kTile};
}

__device__ inline Fetched FetchSlice(const Factored& factor, int begin) {
  Fetched fetched;
  UNROLL
  for (int e = 0; e < kFetched; ++e) {
    const SlicePlace place = SlicePlaceOf(e, factor.transposed);
    fetched.at[e] = factor.transposed ? factor.data[place.i * factor.rows + begin + place.k]
                                      : factor.data[(begin + place.k) * factor.rows + place.i];
  }
  return fetched;
}

__device__ inline void PutSlice(const Fetched& fetched, bool transposed,
                                double (&slice)[kSlice][kTile + 1]) {
  UNROLL
  for (int e = 0; e < kFetched; ++e) {
    const SlicePlace place = SlicePlaceOf(e, transposed);
    slice[place.k][place.i] = fetched.at[e];
  }
}

// sum += a bᵀ, tiles (of a transposed factor, its transpose). All threads; they may write to where
// the factors come from when it returns. A slice is fetched while the one before is multiplied.
__device__ inline void AddProduct(const Factored& a, const Factored& b, Slices& slices,
                                  Elements& sum) {
  Fetched next_a = FetchSlice(a, 0), next_b = FetchSlice(b, 0);
  for (int begin = 0; begin < kTile; begin += kSlice) {
    PutSlice(next_a, a.transposed, slices.a);
    PutSlice(next_b, b.transposed, slices.b);
    __syncthreads();
    if (begin + kSlice < kTile) {
      next_a = FetchSlice(a, begin + kSlice);
      next_b = FetchSlice(b, begin + kSlice);
    }
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
