// The kinds of axes, one for each kind of parameter, and how they read typed values. The first is a
// double without a step (ContinuousAxis): unit ↔ value through the logarithm where the distribution
// says so, and then through the distribution function. Immutable, any thread.
//
// Rounding makes value → unit many to one in some ranges and unit → value in others, so the codec
// is defined by the first alone: the unit coordinate of v is Unit(v), and a coordinate decodes to
// the shortest decimal v with that coordinate. A coordinate that no double has moves to the nearest
// one that some double has. Hence Encode(Decode(x)) is stable, and what people type comes back.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "base/status.h"
#include "proto/shirabe/v1/records.pb.h"
#include "suggestion/space/axis.h"
#include "suggestion/space/exact_decimal.h"
#include "suggestion/space/interval_distribution.h"

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
  double scale_ = 1;             // halves everything where max - min would overflow
  double log_span_ = 0;          // log(max / min)
  bool log_wide_ = false;        // max / min overflows
  IntervalDistribution spread_;  // over the position in the range, 0 … 1
};

// An integer, or a double with a step: the values min + k·step. Immutable, any thread.
class LatticeAxis : public Axis {
 public:
  // As many shares as values.
  LatticeAxis(const std::string& name, DecimalLattice values, LevelPartition shares, bool integer)
      : Axis(name), values_(values), partition_(shares), integer_(integer) {}

  uint64_t levels() const override { return values_.count(); }
  double Coordinate(uint64_t k) const override { return partition_.Coordinate(k); }
  uint64_t Level(double x) const override { return partition_.Level(x); }
  v1::Assignment Decode(double x) const override;
  // A value that differs from a level by at most 1e-9 of a step is that level: programs that add
  // up steps in doubles give 0.30000000000000004.
  StatusOr<double> Encode(const v1::Assignment& value) const override;

 private:
  DecimalLattice values_;
  LevelPartition partition_;
  bool integer_;
};

// A parameter with a list of values: numbers (discrete), which are ordered, or texts (categorical),
// which are not. Every value has the same share. Immutable, any thread.
class DiscreteAxis : public Axis {
 public:
  // Not empty, ascending, no two the same. With `integers`, all of them whole and at most 2^53, it
  // decodes to integers: a batch size of 32.0 breaks programs that a 32 does not.
  DiscreteAxis(const std::string& name, std::vector<double> numbers, bool integers);

  uint64_t levels() const override { return numbers_.size(); }
  double Coordinate(uint64_t k) const override { return partition_.Coordinate(k); }
  uint64_t Level(double x) const override { return partition_.Level(x); }
  v1::Assignment Decode(double x) const override;
  StatusOr<double> Encode(const v1::Assignment& value) const override;

 private:
  std::vector<double> numbers_;
  bool integers_;
  LevelPartition partition_;
};

// A coordinate is the index of the category, not a part of the unit interval.
class CategoricalAxis : public Axis {
 public:
  // Not empty, no two the same.
  CategoricalAxis(const std::string& name, std::vector<std::string> categories);

  uint64_t levels() const override { return categories_.size(); }
  double Coordinate(uint64_t k) const override { return static_cast<double>(k); }
  uint64_t Level(double x) const override;
  v1::Assignment Decode(double x) const override;
  StatusOr<double> Encode(const v1::Assignment& value) const override;

 private:
  const std::vector<std::string> categories_;
  absl::flat_hash_map<absl::string_view, size_t> indices_;  // of the categories
};

// What a typed assignment holds, for the axes' Encode. Strict: a category is not a number.

// A number or an integer, as a double. kInvalidArgument if it holds a category, NaN or nothing.
StatusOr<double> NumberOf(const v1::Assignment& assignment);
// The value at a coordinate of an axis of numbers; 0 where it is none.
double ValueAt(const Axis& axis, double x);
// kInvalidArgument unless it holds a category.
StatusOr<std::string> CategoryOf(const v1::Assignment& assignment);

}  // namespace shirabe::suggestion
