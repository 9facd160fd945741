// One parameter of the search space: the codec between its coordinate and its values. The kinds of
// axes are in axes.h, and search_space.h holds them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::suggestion {

// Immutable once made; any thread may use it.
class Axis {
 public:
  explicit Axis(std::string name, bool categorical = false)
      : name_(std::move(name)), categorical_(categorical) {}
  virtual ~Axis() = default;
  // Number of distinct values; 0 = continuous.
  virtual uint64_t levels() const = 0;
  // The coordinate of level `k` < levels(); ascending values have ascending coordinates.
  virtual double Coordinate(uint64_t k) const = 0;
  // The level that a coordinate decodes to; only where levels() > 0.
  virtual uint64_t Level(double x) const = 0;
  virtual v1::Assignment Decode(double x) const = 0;
  // kInvalidArgument if the value is not feasible.
  virtual StatusOr<double> Encode(const v1::Assignment& value) const = 0;
  // The coordinate of the value that a coordinate decodes to.
  virtual double Canonical(double x) const { return Coordinate(Level(x)); }

  const std::string& name() const { return name_; }
  bool categorical() const { return categorical_; }
  bool continuous() const { return levels() == 0; }

 private:
  std::string name_;
  bool categorical_;
};

// Of a space, in the order of the specification.
using Axes = std::vector<std::shared_ptr<const Axis>>;  // shared by copies of the space

// One parameter of the specification: checks it and picks the kind of axis. Called by Space::Create
// only. kInvalidArgument, with the field, its value and the fix, but without the parameter's name,
// which the caller puts in front.
StatusOr<std::unique_ptr<Axis>> MakeAxis(const v1::ParameterSpec& spec);

}  // namespace shirabe::suggestion
