// Whether a run of CMA-ES has anything left to find. Used by suggestion/cma_search.h. A value type.
//
//   b_t      best loss of generation t of the run       d    dimensions
//   R        largest spread of the losses of one generation of the run, median less best
//   λ        members of a generation
//
// The tests are those of N. Hansen, "Benchmarking a BI-Population CMA-ES on the BBOB-2009 Function
// Testbed" (2009), Table 1, but in units of the experiment, because losses come in every scale and
// coordinates in one: flat, where b_t of the last 10 + 30 d/λ generations and the losses of the
// latest lie within 1e-11 R (there 1e-12, whatever the losses); narrow, where the deviation
// of every continuous coordinate is below 1e-9 of its range; stagnant, where of the last 120 + 30
// d/λ b_t the median of the latest 30 % is no better than that of the earliest 30 %.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "suggestion/cma_record.h"

namespace shirabe::suggestion {

class CmaProgress {
 public:
  CmaProgress(int dimensions, int64_t population);

  // The finite losses of one generation, in any order.
  void Observe(std::vector<double> losses);
  // Flat or stagnant.
  bool Ended() const;
  // Narrow: of the deviations of the continuous coordinates, which may be none.
  static bool Narrow(const Eigen::VectorXd& deviations);
  void Fields(CmaRecord& record);

 private:
  bool Flat() const;
  bool Stagnant() const;

  int64_t flat_after_;  // generations
  int64_t stagnant_after_;
  std::vector<double> bests_;  // b_t, the latest stagnant_after_ of them
  double range_ = 0;           // R
  double latest_ = 0;          // spread of the latest generation, greatest less best
};

}  // namespace shirabe::suggestion
