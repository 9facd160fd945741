#include "suggestion/space/space_priors.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/statistics.h"
#include "base/text/did_you_mean.h"
#include "suggestion/space/rule_reader.h"

namespace shirabe::suggestion {
namespace {

constexpr double kEven = 0.1;  // of the density, whatever is expected
constexpr double kCategoryDistance = 0.5;

StatusOr<double> DeviationOf(const std::string& confidence) {
  if (confidence == "low") return 0.5;
  if (confidence == "medium" || confidence.empty()) return 0.25;
  if (confidence == "high") return 0.125;
  return absl::InvalidArgumentError(
      absl::StrCat("confidence is \"", confidence, "\": give low, medium or high"));
}

double NormalDensity(double z) { return std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi); }

}  // namespace

StatusOr<SpacePriors> SpacePriors::Create(const Axes& axes, const google::protobuf::Struct& spec) {
  constexpr char kPriors[] = "spec.shirabe.space.priors";
  SpacePriors priors;
  WrongRules wrong;
  std::vector<std::string> names;
  for (const auto& axis : axes) {
    names.push_back(axis->name());
    auto& belief = priors.beliefs_.emplace_back();
    const auto found = spec.fields().find(axis->name());
    if (found == spec.fields().end()) continue;
    auto read = Read(*axis, found->second);
    if (read.ok()) {
      belief = *read;
    } else {
      wrong.Check(WrongRule(absl::StrCat(kPriors, ".", axis->name()), Message(read.status())));
    }
  }
  for (const auto& [name, value] : spec.fields()) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    wrong.Check(WrongRule(kPriors, NoSuchParameter(name, names)));
  }
  RETURN_IF_ERROR(wrong.status());
  return priors;
}

StatusOr<SpacePriors::Belief> SpacePriors::Read(const Axis& axis,
                                                const google::protobuf::Value& spec) {
  const std::string expected = axis.categorical() ? "value" : "center";
  const auto& fields = spec.struct_value().fields();
  for (const auto& [name, value] : fields) {
    if (name == expected || name == "confidence") continue;
    return absl::InvalidArgumentError(
        absl::StrCat("\"", name, "\" is not a field: it has ", expected, " and confidence"));
  }
  const auto center = fields.find(expected);
  if (center == fields.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("give {", expected, ": …, confidence: low, medium or high}"));
  }
  Belief belief;
  const auto encoded = axis.Encode(TypedValue(axis, center->second));
  if (!encoded.ok()) return Prefix(expected, encoded.status());
  belief.center = *encoded;
  const auto confidence = fields.find("confidence");
  ASSIGN_OR_RETURN(
      belief.deviation,
      DeviationOf(confidence == fields.end() ? std::string() : RuleText(confidence->second)));
  if (axis.categorical()) {
    belief.categories = axis.levels();
    const double z = kCategoryDistance / belief.deviation;
    const double weight = std::exp(-0.5 * z * z);
    const auto categories = static_cast<double>(belief.categories);
    belief.other = (1 - kEven) * weight * categories / (1 + weight * (categories - 1)) + kEven;
  } else {
    belief.mass = NormalCdf((1 - belief.center) / belief.deviation) -
                  NormalCdf(-belief.center / belief.deviation);
  }
  return belief;
}

double SpacePriors::Density(const Belief& belief, double x) {
  if (belief.categories > 0) {
    if (x != belief.center) return belief.other;
    const auto categories = static_cast<double>(belief.categories);
    return categories - belief.other * (categories - 1);
  }
  const double z = (x - belief.center) / belief.deviation;
  return (1 - kEven) * NormalDensity(z) / (belief.deviation * belief.mass) + kEven;
}

double SpacePriors::LogDensity(int axis, double x) const {
  return std::log(Density(*beliefs_[axis], x));
}

double SpacePriors::Slope(int axis, double x) const {
  const Belief& belief = *beliefs_[axis];
  const double z = (x - belief.center) / belief.deviation;
  const double density = Density(belief, x);
  return -z / belief.deviation * (density - kEven) / density;
}

double SpacePriors::Share(const Belief& belief, double x) {
  const double below = NormalCdf((x - belief.center) / belief.deviation) -
                       NormalCdf(-belief.center / belief.deviation);
  return (1 - kEven) * below / belief.mass + kEven * x;
}

double SpacePriors::Quantile(int axis, double u) const {
  const Belief& belief = *beliefs_[axis];
  if (belief.categories > 0) {
    double left = u * static_cast<double>(belief.categories);
    for (uint64_t k = 0; k + 1 < belief.categories; ++k) {
      left -= Density(belief, static_cast<double>(k));
      if (left < 0) return static_cast<double>(k);
    }
    return static_cast<double>(belief.categories - 1);
  }
  double low = 0, high = 1;
  for (int i = 0; i < std::numeric_limits<double>::digits; ++i) {
    const double middle = 0.5 * (low + high);
    (Share(belief, middle) <= u ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

}  // namespace shirabe::suggestion
