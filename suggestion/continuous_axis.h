// A double without a step. Unit ↔ value through the logarithm where the distribution says so, and
// then through the distribution function. Immutable, any thread.
//
// Rounding makes value → unit many to one in some ranges and unit → value in others, so the codec
// is defined by the first alone: the unit coordinate of v is Unit(v), and a coordinate decodes to
// the shortest decimal v with that coordinate. A coordinate that no double has moves to the nearest
// one that some double has. Hence Encode(Decode(x)) is stable, and what people type comes back.
#pragma once

#include <string>

#include "suggestion/space.h"
#include "suggestion/spread.h"

namespace shirabe::suggestion {

class ContinuousAxis : public Axis {
 public:
  struct Range {
    double min = 0;
    double max = 1;    // > min
    bool log = false;  // then min > 0
    bool normal = false;
  };
  ContinuousAxis(const std::string& name, Range range);

  uint64_t levels() const override { return 0; }
  double Coordinate(uint64_t k) const override;
  uint64_t Level(double x) const override;
  v1::Assignment Decode(double x) const override;
  StatusOr<double> Encode(const v1::Assignment& value) const override;
  double Canonical(double x) const override;

 private:
  double Unit(double value) const;
  double Value(double x) const;
  double RoughValue(double x) const;
  double Preimage(double x) const;

  Range range_;
  double scale_ = 1;       // halves everything where max - min would overflow
  double log_span_ = 0;    // log(max / min)
  bool log_wide_ = false;  // max / min overflows
  Spread spread_;          // over the position in the range, 0 … 1
};

}  // namespace shirabe::suggestion
