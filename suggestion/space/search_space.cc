#include "suggestion/space/search_space.h"

#include <bit>
#include <cmath>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/did_you_mean.h"
#include "suggestion/space/axes.h"

namespace shirabe::suggestion {
namespace {

Status ParameterError(const std::string& name, const Status& status) {
  return Prefix("parameter \"" + name + "\"", status);
}

Cardinality Multiply(Cardinality cardinality, uint64_t levels) {
  uint64_t count = 0;
  const bool overflow = __builtin_mul_overflow(cardinality.count, levels, &count);
  if (levels == 0 || overflow || !cardinality.finite) return {};
  return {.finite = true, .count = count};
}

}  // namespace

StatusOr<Space> Space::Create(
    const google::protobuf::RepeatedPtrField<v1::ParameterSpec>& parameters) {
  Space space;
  absl::flat_hash_set<std::string> names;
  for (const v1::ParameterSpec& spec : parameters) {
    if (spec.name().empty()) {
      return absl::InvalidArgumentError("parameter " + std::to_string(space.size() + 1) +
                                        " has no name; give it one");
    }
    if (!names.insert(spec.name()).second) {
      return absl::InvalidArgumentError("parameter \"" + spec.name() +
                                        "\" is there twice; rename or remove one");
    }
    StatusOr<std::unique_ptr<Axis>> axis = MakeAxis(spec);
    if (!axis.ok()) return ParameterError(spec.name(), axis.status());
    space.axes_.push_back(*std::move(axis));
  }
  space.Count();
  return space;
}

StatusOr<Space> Space::Create(const v1::ExperimentSpec& spec) {
  ASSIGN_OR_RETURN(const Space space, Create(spec.parameters()));
  return space.WithRules(spec.shirabe().space());
}

StatusOr<Space> Space::WithRules(const v1::SpaceRules& spec) const {
  Space space = *this;
  WrongRules wrong;
  if (spec.has_priors() && !spec.priors().fields().empty()) {
    auto priors = SpacePriors::Create(axes_, spec.priors());
    if (wrong.Check(priors.status())) {
      space.priors_ = std::make_shared<SpacePriors>(*std::move(priors));
    }
  }
  if (SpaceRules::AreIn(spec)) {
    auto rules = SpaceRules::Create(axes_, spec);
    if (wrong.Check(rules.status())) {
      space.rules_ = std::make_shared<SpaceRules>(*std::move(rules));
    }
  }
  RETURN_IF_ERROR(wrong.status());
  if (space.rules_ != nullptr) RETURN_IF_ERROR(space.CountAllowed());
  return space;
}

// Where they cannot be counted, by draws: what algorithms draw would hardly ever be allowed.
Status Space::CountAllowed() {
  constexpr int kDraws = 20'000, kEnough = 20;
  cardinality_ = {};
  if (auto patterns = SpacePatterns::Count(axes_, *rules_)) {
    if (patterns->count() == 0) {
      return absl::InvalidArgumentError(
          "spec.shirabe.space: nothing is left to try: remove some of what is forbidden or "
          "bounded");
    }
    cardinality_ = {.finite = true, .count = patterns->count()};
    patterns_ = std::make_shared<SpacePatterns>(*std::move(patterns));
    return absl::OkStatus();
  }
  Rng rng(0);
  std::vector<double> unit(axes_.size());
  for (int draws = 0, allowed = 0; allowed < kEnough; ++draws) {
    if (draws == kDraws) {
      return absl::InvalidArgumentError(absl::StrCat(
          "spec.shirabe.space: of ", kDraws, " points at random ", allowed,
          " are allowed, fewer "
          "than one in a thousand: narrow the ranges of the parameters to what is, or replace "
          "parameters that depend on each other by one"));
    }
    for (double& u : unit) u = rng.Uniform();
    allowed += Allows(Evenly(unit)) ? 1 : 0;
  }
  return absl::OkStatus();
}

Space Space::WithValues(int i, const std::vector<int64_t>& values) const {
  CHECK(i >= 0 && i < size() && !axes_[i]->categorical() && !values.empty() && !has_rules());
  Space space = *this;
  space.axes_[i] = std::make_unique<DiscreteAxis>(
      axes_[i]->name(), std::vector<double>(values.begin(), values.end()), /*integers=*/true);
  space.Count();
  return space;
}

Space Space::Without(int i) const {
  CHECK(i >= 0 && i < size() && !has_rules());
  Space space = *this;
  space.axes_.erase(space.axes_.begin() + i);
  space.Count();
  return space;
}

const Axis* Space::Find(const std::string& name) const {
  if (indices_ == nullptr) return nullptr;  // it has no parameters
  const auto found = indices_->find(name);
  return found == indices_->end() ? nullptr : axes_[found->second].get();
}

void Space::Count() {
  auto indices = std::make_shared<Indices>();
  for (int i = 0; i < size(); ++i) indices->emplace(axes_[i]->name(), i);
  indices_ = std::move(indices);
  cardinality_ = {.finite = true, .count = 1};
  for (const auto& axis : axes_) cardinality_ = Multiply(cardinality_, axis->levels());
}

std::string Space::ConditionOf(int axis) const {
  return rules_ == nullptr ? "" : rules_->ConditionOf(axis);
}

std::vector<bool> Space::Active(const Point& point) const {
  if (rules_ == nullptr) return std::vector<bool>(axes_.size(), true);
  return rules_->Active(point);
}

void Space::Neutralize(Point& point) const {
  if (rules_ != nullptr) rules_->Neutralize(point);
}

std::string Space::Forbids(const Point& point) const {
  return rules_ == nullptr ? "" : rules_->Forbids(point);
}

std::vector<v1::Assignment> Space::Decode(const Point& point) const {
  CHECK(point.size() == axes_.size());
  const std::vector<bool> active = Active(has_rules() ? Canonical(point) : point);
  std::vector<v1::Assignment> assignments;
  assignments.reserve(point.size());
  for (int i = 0; i < size(); ++i) {
    if (active[i]) assignments.push_back(axes_[i]->Decode(point[i]));
  }
  return assignments;
}

StatusOr<Point> Space::Encode(const std::vector<v1::Assignment>& assignments) const {
  absl::flat_hash_map<std::string, const v1::Assignment*> given;
  for (const v1::Assignment& assignment : assignments) {
    if (!given.emplace(assignment.name(), &assignment).second) {
      return absl::InvalidArgumentError("parameter \"" + assignment.name() +
                                        "\" is given twice; remove one");
    }
  }
  Point point;
  std::vector<std::string> names;
  std::vector<bool> known;
  for (int i = 0; i < size(); ++i) {
    const Axis& axis = *axes_[i];
    names.push_back(axis.name());
    const auto found = given.find(axis.name());
    known.push_back(found != given.end());
    point.push_back(rules_ == nullptr ? 0 : rules_->neutral(i));
    if (found == given.end()) continue;
    const StatusOr<double> x = axis.Encode(*found->second);
    if (!x.ok()) return ParameterError(axis.name(), x.status());
    point.back() = *x;
    given.erase(found);
  }
  const std::vector<bool> active = Active(point);
  for (int i = 0; i < size(); ++i) {
    if (known[i] || !active[i]) continue;
    return absl::InvalidArgumentError("parameter \"" + names[i] + "\" is missing; give it a value");
  }
  RETURN_IF_ERROR(CheckValues(point, known));
  for (const v1::Assignment& assignment : assignments) {
    if (!given.contains(assignment.name())) continue;
    const auto near = Nearest(assignment.name(), names);
    return absl::InvalidArgumentError(
        "\"" + assignment.name() + "\" is not a parameter; " +
        (near ? "did you mean \"" + *near + "\"?" : "there are " + absl::StrJoin(names, ", ")));
  }
  return point;
}

Status Space::CheckValues(const Point& point, const std::vector<bool>& given) const {
  const std::vector<bool> active = Active(point);
  for (int i = 0; i < size(); ++i) {
    if (active[i] || !given[i]) continue;
    return absl::InvalidArgumentError("parameter \"" + axes_[i]->name() + "\" exists only where " +
                                      rules_->ConditionOf(i) + "; leave it out");
  }
  const std::string forbidden = Forbids(point);
  if (forbidden.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(forbidden + "; change one of them");
}

Point Space::Canonical(const Point& point) const {
  CHECK(point.size() == axes_.size());
  Point canonical;
  canonical.reserve(point.size());
  for (int i = 0; i < size(); ++i) canonical.push_back(axes_[i]->Canonical(point[i]));
  Neutralize(canonical);
  return canonical;
}

uint64_t Space::Key(const Point& given) const {
  CHECK(given.size() == axes_.size());
  // Of the axes alone it is found without the work of making the point canonical.
  const Point canonical = rules_ == nullptr ? Point() : Canonical(given);
  const Point& point = rules_ == nullptr ? given : canonical;
  uint64_t key = point.size();
  for (int i = 0; i < size(); ++i) {
    const Axis& axis = *axes_[i];
    key = Mix(key, axis.continuous() ? std::bit_cast<uint64_t>(axis.Canonical(point[i]))
                                     : axis.Level(point[i]));
  }
  return key;
}

Point Space::At(uint64_t index) const {
  CHECK(cardinality_.finite && index < cardinality_.count);
  if (patterns_ != nullptr) return patterns_->At(index);
  Point point(axes_.size());
  for (int i = size() - 1; i >= 0; --i) {
    const uint64_t levels = axes_[i]->levels();
    point[i] = axes_[i]->Coordinate(index % levels);
    index /= levels;
  }
  return point;
}

uint64_t Space::IndexOf(const Point& point) const {
  CHECK(cardinality_.finite && point.size() == axes_.size());
  if (patterns_ != nullptr) return patterns_->IndexOf(Canonical(point));
  uint64_t index = 0;
  for (int i = 0; i < size(); ++i) {
    index = index * axes_[i]->levels() + axes_[i]->Level(point[i]);
  }
  return index;
}

Point Space::Evenly(const std::vector<double>& unit) const {
  Point point(axes_.size());
  for (int i = 0; i < size(); ++i) {
    const Axis& axis = *axes_[i];
    point[i] = axis.Canonical(
        axis.categorical() ? std::floor(unit[i] * static_cast<double>(axis.levels())) : unit[i]);
  }
  Neutralize(point);
  return point;
}

Point Space::FromUnit(const std::vector<double>& unit) const {
  CHECK(unit.size() == axes_.size());
  if (priors_ == nullptr) return Evenly(unit);
  std::vector<double> drawn = unit;
  for (int i = 0; i < size(); ++i) {
    if (!priors_->Has(i)) continue;
    const double x = priors_->Quantile(i, unit[i]);
    const Axis& axis = *axes_[i];
    drawn[i] = axis.categorical() ? (x + 0.5) / static_cast<double>(axis.levels()) : x;
  }
  return Evenly(drawn);
}

double Space::LogPrior(const Point& point) const {
  if (priors_ == nullptr) return 0;
  const std::vector<bool> active = Active(point);
  double sum = 0;
  for (int i = 0; i < size(); ++i) {
    if (active[i] && priors_->Has(i)) sum += priors_->LogDensity(i, point[i]);
  }
  return sum;
}

Point Space::Sample(Rng& rng) const {
  std::vector<double> unit(axes_.size());
  for (double& u : unit) u = rng.Uniform();
  return FromUnit(unit);
}

}  // namespace shirabe::suggestion
