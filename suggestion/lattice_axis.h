// An integer, or a double with a step: the values min + k·step. Immutable, any thread.
#pragma once

#include <string>

#include "suggestion/decimal.h"
#include "suggestion/shares.h"
#include "suggestion/space.h"

namespace shirabe::suggestion {

class LatticeAxis : public Axis {
 public:
  // As many shares as values.
  LatticeAxis(const std::string& name, DecimalLattice values, Shares shares, bool integer)
      : Axis(name), values_(values), shares_(shares), integer_(integer) {}

  uint64_t levels() const override { return values_.count(); }
  double Coordinate(uint64_t k) const override { return shares_.Coordinate(k); }
  uint64_t Level(double x) const override { return shares_.Level(x); }
  v1::Assignment Decode(double x) const override;
  // A value that differs from a level by at most 1e-9 of a step is that level: programs that add
  // up steps in doubles give 0.30000000000000004.
  StatusOr<double> Encode(const v1::Assignment& value) const override;

 private:
  DecimalLattice values_;
  Shares shares_;
  bool integer_;
};

}  // namespace shirabe::suggestion
