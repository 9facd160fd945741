// What is computed on the device, stage by stage, for a batch of items at the same time. Each
// function launches kernels and returns; what one block computes follows from its item alone, so
// that an item's numbers do not depend on the batch. Matrices consist of tiles of 64 × 64; they are
// padded to whole tiles by an identity, which changes nothing and needs no special cases.
//
//   n, p, c, m     as in suggestion/gpu/shirabe_cuda.h
//   tiles          ⌈n / 64⌉                         padded   64 tiles
//   K, L, β, α     as in suggestion/gp/gaussian_process.h
//   W              L⁻¹
#pragma once

#include <cstdint>

namespace shirabe::suggestion::gpu {

constexpr int kTile = 64;

// Points as they were uploaded: by column, `count` rows.
struct Points {
  const double* x;
  const double* u;
  int count;
};

// θ, ready to use. k = numeric k_x + categorical k_u + product k_x k_u.
struct Kernel {
  const double* inverse_lengths;  // on the device: exp(-θ_j), numeric, then categorical
  int p, c;
  double numeric, categorical, product;
  double scale;      // s²
  double noise;      // σ²
  double mix_slope;  // s² w (1 - w), or 0 without both parts
  double diagonal;   // what is added to the diagonal of K: σ², what rounding needs, jitter
};

enum Scalar { kFailed, kLogDeterminant, kMean, kValue, kScalars };

// One matrix and what is made of it. All pointers are to the device's memory.
struct Item {
  Points points;
  Kernel kernel;
  int tiles, padded;
  int m;             // columns of y, whitened and alpha
  const double* y;   // n × m
  double* k;         // padded × padded: K, then L; the lower half
  double* w;         // padded × padded: W, 0 above the diagonal
  double* ones;      // padded: W 1
  double* whitened;  // padded × m: W y, then W (y - β)
  double* alpha;     // padded × m
  double* partials;  // a row of p + c + 3 for each tile of the lower half
  double* scalars;   // kScalars of them; kMean is given, or made by Average
  double* gradient;  // p + c + 3
};

struct Batch {
  const Item* items;  // on the device
  int count;
  int tiles, m, slots;  // of the largest: tiles, columns, p + c + 3
};

// K, and kFailed = 0.
void MakeGram(const Batch& batch);
// L in place of K, W, and kLogDeterminant; or kFailed = 1, and what follows leaves the item alone.
void Factor(const Batch& batch);
// ones and whitened, before β is subtracted.
void Whiten(const Batch& batch);
// kMean by generalised least squares from the first column.
void Average(const Batch& batch);
// whitened and alpha.
void Centre(const Batch& batch);
// kValue and gradient.
void Differentiate(const Batch& batch);
// The diagonal of K⁻¹ into `gradient`, which has `padded` places here.
void SquareColumns(const Batch& batch);

// A scoring of some points by an item; null pointers are left out. Matrices have `padded` rows and
// a column for each point, in whole tiles.
struct ScoreStage {
  Points points;       // those to be scored
  int tiles;           // ⌈points / 64⌉
  double* k;           // k(X, x)
  double* slope;       // ∂k/∂r²
  double* solved;      // W k, where slopes of the variance are wanted
  double* pull;        // -2 Wᵀ W k
  double* explained;   // a row for each tile of the model: parts of |W k|²
  double* mean;        // points × m
  double* variance;    // points
  double* slopes;      // points × p (m or 0, and 1 or 0 for the variance)
  int mean_functions;  // of them: m or 0
  int functions;       // those, and the variance
  double least_variance;
};
struct Scored {
  Item item;
  ScoreStage stage;
};
struct ScoreBatch {
  const Scored* items;  // on the device
  int count;
  int tiles, points;     // of the largest: what is scored
  int model_tiles;       // of the largest: its process
  int means, functions;  // of the one that has most; 0: none
  int sloped_points;     // of the largest that has functions
  bool explained, pull;  // some have
};
void Score(const ScoreBatch& batch);

}  // namespace shirabe::suggestion::gpu
