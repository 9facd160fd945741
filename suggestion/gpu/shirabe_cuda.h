// The binary interface of libshirabe-cuda.so: a Gaussian process of suggestion/gp on a GPU. It is
// opened while the program runs and never linked. The caller asks for the version first, and calls
// nothing else if that is another one.
//
// Functions with C's names and calling convention: plain structures, no exceptions, a Code from
// each that can fail. What is wrong with an argument is refused before it reaches the device, and
// an output is complete or, where the code is not kOk, undefined.
//
// Threads: one call at a time for a Context and for all that was made from it; different contexts
// do not know of each other. A call returns when its results are there.
//
//   n     points of a model               p, c   their numeric and categorical coordinates
//   m     columns of targets              θ      p + c + 3 numbers, as gp::Theta has them
//   x     n × p, u   n × c, y   n × m     matrices: doubles by column, without gaps; null where
//                                         they have no column
// Accepted are θ within ±50, x and u within ±1e6, y within ±1e100: what follows stays finite.
// K, L, β, α are those of suggestion/gp/gaussian_process.h: K has σ² + 1e-9 on its diagonal. The
// results are those of the Eigen code but for rounding, and do not depend on what else is computed
// at the same time: the same bits for an item alone and in any batch, on the same device.
#pragma once

#include <cstdint>

namespace shirabe::suggestion::gpu {

enum : int32_t { kAbiVersion = 2 };

enum Code : int {
  kOk = 0,
  kBadArgument = 1,  // null, a size out of bounds, a number that is not finite, another context's
  kNoDevice = 2,     // no driver, one that is too old, no such device, none that can run this
  kNoMemory = 3,     // of the device or of the host; the context is as before
  kDeviceLost = 4,   // the context and all of its handles are of no more use; close them
  kNotPositive = 5,  // condition: K could not be factored after any multiple of I was added
  kInternal = 6,
};

enum : int64_t {
  kMaxModelPoints = 16384,    // n
  kMaxCoordinates = 1024,     // p + c, at least 1
  kMaxColumns = 1024,         // m, at least 1
  kMaxBatch = 4096,           // of one evaluation or scoring
  kMaxScoredPoints = 1 << 22  // of one scoring of a batch
};

struct Context;          // a device in use
struct DeviceModel;      // inputs and targets on it
struct DevicePosterior;  // a process conditioned on them

// Texts end with a 0; what is not known is 0.
struct DeviceInfo {
  char name[128];
  char reason[256];          // in words, why open failed
  int32_t ordinal, devices;  // of those that the driver shows
  int32_t major, minor;      // compute capability
  int32_t single_to_double;  // how many times as fast floats are as doubles: 2, or 32 and 64
  int32_t driver_version;    // the newest CUDA that the driver knows: 13000 for 13.0
  uint64_t free_bytes, total_bytes;
};

struct ModelData {
  int64_t n;
  int32_t p, c, m;
  const double *x, *u, *y;  // u: whole numbers
};

// -log p(y | θ) of one column of a model's targets, and its gradient: gp::NegativeLogPosterior
// without the prior of θ. Where K cannot be factored, ∞ and zeros.
struct Evaluation {
  const DeviceModel* model;
  int32_t column;
  const double* theta;
  double value;      // out
  double* gradient;  // out, p + c + 3; of the mix 0 where there is one kind of coordinates only
};

struct Conditioning {
  const double* theta;
  const double* y;     // n × m; null: the model's targets
  int32_t m;           // columns of y; ignored without one
  const double* mean;  // β; null: by generalised least squares from the first column
};
// What gp::Posterior holds, copied to the host; each may be null.
struct PosteriorParts {
  double* inverse;    // L⁻¹, n × n, zeros above its diagonal
  double* whitened;   // L⁻¹ (y - β), n × m
  double* alpha;      // n × m
  double* precision;  // the diagonal of K⁻¹, n: for LeaveOneOut
  double mean;        // β
};

// Points: count × p and count × c. The rest is written; each may be null, and what only it needs is
// then left out (without variances a point costs n and not n²).
struct Scoring {
  const DevicePosterior* posterior;
  int64_t count;
  const double *x, *u;
  double* mean;             // count × m
  double* variance;         // count, as gp::Posterior::Predict bounds it
  double* mean_slopes;      // count × (m p): ∂mean_k/∂x_j in column k p + j
  double* variance_slopes;  // count × p; Pullback: Σ mean_bar mean_slopes + variance_bar these
};

extern "C" {
int32_t shirabe_cuda_version();
// In words, for a log; never null.
const char* shirabe_cuda_text(int code);

// `ordinal`: of the driver's list; -1: the one with the best double precision, then the most free
// memory. `info` is filled in either case.
int shirabe_cuda_open(int32_t ordinal, Context** context, DeviceInfo* info);
// After all that was made from it has been released. Null is fine.
void shirabe_cuda_close(Context* context);

int shirabe_cuda_upload(Context* context, const ModelData* data, DeviceModel** model);
int shirabe_cuda_evaluate(Context* context, Evaluation* batch, int64_t count);
// `parts` may be null. The posterior goes on without the model.
int shirabe_cuda_condition(const DeviceModel* model, const Conditioning* conditioning,
                           DevicePosterior** posterior, PosteriorParts* parts);
int shirabe_cuda_score(Context* context, const Scoring* batch, int64_t count);
// One of them, or both; null is fine.
void shirabe_cuda_release(DeviceModel* model, DevicePosterior* posterior);
}  // extern "C"

}  // namespace shirabe::suggestion::gpu
