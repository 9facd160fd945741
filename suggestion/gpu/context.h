// What stands behind the handles of suggestion/gpu/shirabe_cuda.h, and the memory that they have on
// the device. As for the interface, one call at a time for a context and what was made from it.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "suggestion/gpu/runtime.h"
#include "suggestion/gpu/stages.h"

namespace shirabe::suggestion::gpu {

// Memory on the device, of doubles.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { Drop(); }

  // At least so many; what was in it is lost.
  Code Reserve(int64_t count) {
    if (count <= count_) return kOk;
    Drop();
    void* memory = nullptr;
    const Code code = Allocate(static_cast<size_t>(count) * sizeof(double), &memory);
    if (code != kOk) return code;
    data_ = static_cast<double*>(memory);
    count_ = count;
    return kOk;
  }
  void Drop() {
    if (data_ != nullptr) Free(data_);
    data_ = nullptr;
    count_ = 0;
  }
  double* data() const { return data_; }

 private:
  double* data_ = nullptr;
  int64_t count_ = 0;
};

constexpr int64_t kAligned = 32;  // doubles: where a device reads best

// Hands out parts of a buffer, one after the other: first of none, to learn the size, then of the
// buffer itself.
class Divider {
 public:
  // The parts begin at multiples of `step` doubles.
  explicit Divider(double* data, int64_t step = kAligned) : data_(data), step_(step) {}
  double* Next(int64_t count) {
    double* part = data_ == nullptr ? nullptr : data_ + used_;
    used_ += (count + step_ - 1) / step_ * step_;
    return part;
  }
  int64_t used() const { return used_; }

 private:
  double* data_;
  int64_t step_;
  int64_t used_ = 0;
};

struct Context {
  DeviceInfo info;
  bool lost = false;
  Buffer items, lengths, results, workspace;  // of a call; kept for the next one

  // Doubles that one call may use of the workspace before it works in parts.
  int64_t budget() const {
    return std::max<int64_t>(1 << 20, static_cast<int64_t>(info.free_bytes / sizeof(double) / 2));
  }
};

struct Uploaded {
  int n, p, c;
  Buffer memory;
  double *x, *u;
};

struct DeviceModel {
  Context* context;
  std::shared_ptr<Uploaded> inputs;  // shared: a posterior outlives its model
  int m;
  Buffer y;
};

struct DevicePosterior {
  Context* context;
  std::shared_ptr<Uploaded> inputs;  // shared: as above
  Item item;                         // but for K, whose place belongs to the context
  Buffer memory;
};

inline int TilesOf(int64_t count) { return static_cast<int>((count + kTile - 1) / kTile); }

// θ as the device uses it; `inverse_lengths` gets p + c numbers.
Kernel KernelOf(const Uploaded& inputs, const double* theta, double* inverse_lengths);
// An item without any memory of its own.
Item ItemOf(const Uploaded& inputs, const Kernel& kernel, int m);

// Structures that kernels read, into a buffer.
template <class Structure>
Code UploadTo(Buffer& buffer, const std::vector<Structure>& all) {
  const size_t bytes = all.size() * sizeof(Structure);
  const Code code =
      buffer.Reserve(static_cast<int64_t>((bytes + sizeof(double) - 1) / sizeof(double)));
  return code == kOk ? CopyToDevice(buffer.data(), all.data(), bytes) : code;
}

// ---- the functions of the interface, their arguments checked ------------------------------------

struct Span {
  Evaluation* begin;
  int64_t count;
};
Code Evaluate(Context& context, const Span& batch);
Code Condition(const DeviceModel& model, const Conditioning& conditioning,
               DevicePosterior& posterior, PosteriorParts* parts);
struct Scorings {
  const Scoring* begin;
  int64_t count;
};
Code ScorePoints(Context& context, const Scorings& batch);

}  // namespace shirabe::suggestion::gpu
