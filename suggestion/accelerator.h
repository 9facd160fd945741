// A device beside the processor that computes Gaussian processes: many fits and scorings in the
// time of one. The algorithms ask for it when a history is large enough (suggestion/gp/engine.h),
// suggestion/gpu/ has it, and most machines have none. Only plain data pass, by column and without
// gaps as Eigen has them, because the algorithms are compiled twice (suggestion/processor_level.h).
//
// Every call waits in the calling thread, together with those of other threads, and ends early with
// kCancelled where IsCancelled() says so. kResourceExhausted: this one does not fit into the
// device's memory. kUnavailable: the device is gone, and is not asked again by this process. After
// any error the caller computes by itself. Thread-safe, as is what it returns.
//
//   n, p, c   points, their numeric and categorical coordinates      m   columns of values
//   θ         p + c + 3 numbers, as gp::Theta has them               x   n × p    u   n × c
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"

namespace shirabe::suggestion {

class Accelerator {
 public:
  // What it takes.
  struct Limits {
    int64_t most_points = 4000;    // of a process
    int64_t most_fitted = 2000;    // of those, its parameters are fitted to
    int most_coordinates = 1024;   // p + c
    int64_t most_scored = 262144;  // points in one call
  };
  // Something on the device, which goes with it. It may outlive a call that it was given to.
  class Resident {
   public:
    virtual ~Resident() = default;
  };
  using Handle = std::unique_ptr<const Resident>;

  struct Data {
    int64_t n = 0;
    int p = 0, c = 0, m = 0;
    const double *x = nullptr, *u = nullptr, *y = nullptr;  // y: n × m
  };
  // -log p(y | θ) of one column of a model's values, without the prior of θ.
  struct Question {
    const Resident* model = nullptr;
    int column = 0;
    std::vector<double> theta;
  };
  struct Answer {
    double value = 0;              // ∞ where K cannot be factored
    std::vector<double> gradient;  // by θ
  };
  // A process on a model's points. y: n × m, in place of the model's values; β: of the first
  // column, by generalised least squares, where it is null.
  struct Conditioning {
    std::vector<double> theta, y;
    int m = 0;
    const double* mean = nullptr;
    bool wants_inverse = true;
  };
  struct Conditioned {
    Handle posterior;
    std::vector<double> inverse;  // L⁻¹, n × n, if wanted
  };
  struct Points {
    int64_t count = 0;
    int p = 0, c = 0, m = 0;  // m: of the posterior
    const double *x = nullptr, *u = nullptr;
    bool slopes = false;
  };
  struct Scores {
    std::vector<double> mean, variance;  // count × m, count
    std::vector<double> mean_slopes;     // count × (m p), ∂mean_k/∂x_j in column k p + j
    std::vector<double> variance_slope;  // count × p
  };

  virtual ~Accelerator() = default;
  virtual Limits limits() const = 0;
  // For people: which device, and by what.
  virtual std::string name() const = 0;
  // Whether it is gone.
  virtual bool lost() const = 0;

  virtual StatusOr<Handle> Upload(const Data& data) = 0;
  virtual StatusOr<std::vector<Answer>> Evaluate(std::vector<Question> questions) = 0;
  virtual StatusOr<Conditioned> Condition(const Resident& model, Conditioning conditioning) = 0;
  virtual StatusOr<Scores> Score(const Resident& posterior, const Points& points) = 0;
};

using AcceleratorPointer = std::shared_ptr<Accelerator>;  // shared: by what is on the device

// A kind of device, registered by a folder beside this one.
struct AcceleratorInfo {
  std::string name;
  // Null where there is none, or it is gone. The first call looks for it, which may take seconds.
  AcceleratorPointer (*find)();
};

// From how many points of a process on a device pays: below, none is looked for.
struct AcceleratorThresholds {
  int64_t points = 500;
  int64_t alone = 1000;  // where there is one fit to do, and not several at the same time
};
AcceleratorThresholds CurrentThresholds();

// The one of this program that takes processes of so many coordinates and points, or null.
AcceleratorPointer FindAccelerator(int64_t points, int coordinates);

// For tests and measurements: another one, or none, in place of what is registered, while this
// object lives and nothing else computes.
class AcceleratorOverride {
 public:
  AcceleratorOverride(AcceleratorPointer used, AcceleratorThresholds thresholds);
  ~AcceleratorOverride();
  AcceleratorOverride(const AcceleratorOverride&) = delete;
  AcceleratorOverride& operator=(const AcceleratorOverride&) = delete;

 private:
  friend AcceleratorPointer FindAccelerator(int64_t points, int coordinates);
  friend AcceleratorThresholds CurrentThresholds();
  const AcceleratorPointer used_;
  const AcceleratorThresholds thresholds_;
};

}  // namespace shirabe::suggestion
