// The covariance of suggestion/gp/kernel.h on the device, at tiles of pairs of points. Include in
// .cu files only.
#pragma once

#include <cmath>

#include "suggestion/gpu/tile.h"

namespace shirabe::suggestion::gpu {

// Of a thread's pairs: r², and h; of padding, those of the last point.
struct Distances {
  Elements r2, hamming;
};

__device__ inline int WithinCount(int index, int count) {
  return index < count ? index : count - 1;
}

// The points that belong to a thread's rows or columns of a tile.
struct Places {
  int at[kEach];
};
__device__ inline Places RowPlaces(int tile, int count) {
  Places places;
  UNROLL
  for (int e = 0; e < kEach; ++e) places.at[e] = WithinCount(tile * kTile + RowOf(e), count);
  return places;
}
__device__ inline Places ColumnPlaces(int tile, int count) {
  Places places;
  UNROLL
  for (int e = 0; e < kEach; ++e) places.at[e] = WithinCount(tile * kTile + ColumnOf(e), count);
  return places;
}

// Tile (i, j): rows of `a`, columns of `b`.
struct Side {
  const Points& points;
  int tile;
};
__device__ inline Distances DistancesOf(const Kernel& kernel, const Side& a, const Side& b) {
  Distances distances{Zeros(), Zeros()};
  const Places rows = RowPlaces(a.tile, a.points.count);
  const Places columns = ColumnPlaces(b.tile, b.points.count);
  for (int d = 0; d < kernel.p; ++d) {
    const double* left = a.points.x + static_cast<int64_t>(d) * a.points.count;
    const double* right = b.points.x + static_cast<int64_t>(d) * b.points.count;
    UNROLL
    for (int r = 0; r < kEach; ++r) {
      UNROLL
      for (int c = 0; c < kEach; ++c) {
        const double z = (left[rows.at[r]] - right[columns.at[c]]) * kernel.inverse_lengths[d];
        distances.r2.at[r][c] += z * z;
      }
    }
  }
  for (int d = 0; d < kernel.c; ++d) {
    const double* left = a.points.u + static_cast<int64_t>(d) * a.points.count;
    const double* right = b.points.u + static_cast<int64_t>(d) * b.points.count;
    const double weight = kernel.inverse_lengths[kernel.p + d];
    UNROLL
    for (int r = 0; r < kEach; ++r) {
      UNROLL
      for (int c = 0; c < kEach; ++c) {
        distances.hamming.at[r][c] += left[rows.at[r]] != right[columns.at[c]] ? weight : 0;
      }
    }
  }
  return distances;
}

// k of a pair without noise, ∂k/∂r², ∂k/∂k_u k_u and ∂k/∂(logit w).
struct Covaried {
  double k, slope, k_u_slope, mix_slope;
};
__device__ inline Covaried Covary(const Kernel& kernel, double r2, double hamming) {
  double k_x = 0, k_x_slope = 0, k_u = 0;
  if (kernel.p > 0) {
    const double root = sqrt(5 * r2), decay = exp(-root);
    k_x = (1 + root + root * root / 3) * decay;
    k_x_slope = -5.0 / 6 * (1 + root) * decay;
  }
  if (kernel.c > 0) k_u = exp(-hamming);
  return {kernel.numeric * k_x + kernel.categorical * k_u + kernel.product * k_x * k_u,
          k_x_slope * (kernel.numeric + kernel.product * k_u),
          k_u * (kernel.categorical + kernel.product * k_x),
          kernel.mix_slope * (k_x * k_u - 0.5 * (k_x + k_u))};
}

}  // namespace shirabe::suggestion::gpu
