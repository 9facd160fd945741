// A parameter with a list of values: numbers (discrete), which are ordered, or texts (categorical),
// which are not. Every value has the same share. Immutable, any thread.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "suggestion/shares.h"
#include "suggestion/space.h"

namespace shirabe::suggestion {

class DiscreteAxis : public Axis {
 public:
  // Not empty, ascending, no two the same. With `integers`, all of them whole and at most 2^53, it
  // decodes to integers: a batch size of 32.0 breaks programs that a 32 does not.
  DiscreteAxis(const std::string& name, std::vector<double> numbers, bool integers);

  uint64_t levels() const override { return numbers_.size(); }
  double Coordinate(uint64_t k) const override { return shares_.Coordinate(k); }
  uint64_t Level(double x) const override { return shares_.Level(x); }
  v1::Assignment Decode(double x) const override;
  StatusOr<double> Encode(const v1::Assignment& value) const override;

 private:
  std::vector<double> numbers_;
  bool integers_;
  Shares shares_;
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

}  // namespace shirabe::suggestion
