// L. Li et al., "Hyperband: A Novel Bandit-Based Approach to Hyperparameter Optimization", JMLR 18
// (2018), algorithm 1: n = ⌈(S+1)·η^s / (s+1)⌉ and n_i = ⌊n·η^-i⌋.
#include "suggestion/multifidelity/rungs.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/text/did_you_mean.h"
#include "base/text/number.h"
#include "suggestion/space/axes.h"

namespace shirabe::suggestion {
namespace {

constexpr double kMaxResource = 0x1p53;  // beyond it neighbouring integers are the same double
constexpr char kDefaultEta[] = "3";

// The number of the setting `name`, else that of `other`, which means the same.
StatusOr<std::optional<int64_t>> Whole(const Settings& settings, const std::string& name,
                                       const std::string& other) {
  const std::string* first = FindSetting(settings, name);
  const std::string* second = FindSetting(settings, other);
  const bool by_default = name == "eta" && first != nullptr && *first == kDefaultEta;
  if (first != nullptr && second != nullptr && *first != *second && !by_default) {
    return absl::InvalidArgumentError(absl::StrCat(name, " ", *first, " and ", other, " ", *second,
                                                   " are two names for one setting; remove one"));
  }
  const std::string* text = second != nullptr ? second : first;
  if (text == nullptr) return std::optional<int64_t>();
  const auto number = ParseNumber(*text);
  if (!number || !std::isfinite(*number))
    return absl::InvalidArgumentError(absl::StrCat(name, " is not a number"));
  return std::optional<int64_t>(static_cast<int64_t>(std::floor(*number)));
}

StatusOr<int> ResourceAxis(const Problem& problem, const std::string* name) {
  const Space& space = problem.space;
  if (name == nullptr || name->empty()) {
    return absl::InvalidArgumentError(
        "resource_name is missing; give the name of the parameter that says for how long a trial "
        "trains, such as epochs; to stop trials that have no such parameter while they run, use "
        "earlyStopping asha-stop with any algorithm");
  }
  std::vector<std::string> names;
  for (int i = 0; i < space.size(); ++i) {
    names.push_back(space.axis(i).name());
    if (space.axis(i).name() != *name) continue;
    if (space.axis(i).categorical()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "resource_name \"", *name, "\" is categorical; give an int parameter, such as epochs"));
    }
    if (space.size() == 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "resource_name \"", *name, "\" is the only parameter; give another one to tune"));
    }
    return i;
  }
  const auto near = Nearest(*name, names);
  return absl::InvalidArgumentError(absl::StrCat(
      "resource_name \"", *name, "\" is not a parameter; ",
      near ? "did you mean \"" + *near + "\"?" : "give one of spec.parameters, of type int"));
}

// The end of the feasible space, where r_l is not given.
int64_t GreatestOf(const Axis& axis) {
  const StatusOr<double> greatest = NumberOf(axis.Decode(1));
  return greatest.ok() && *greatest >= 1
             ? static_cast<int64_t>(std::floor(std::min(*greatest, kMaxResource)))
             : 0;
}

Status CheckRungs(int64_t max, int64_t min, int64_t eta) {
  if (max < 1) {
    return absl::InvalidArgumentError(
        "r_l is missing, and the resource has no value of 1 or more; give r_l, the "
        "resource of a trial that is trained to its end");
  }
  if (max / eta >= min) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("r_l ", max, " with eta ", eta, " and min_resource ", min,
                   " leaves one rung, from which nothing is promoted; raise r_l to at "
                   "least ",
                   min * eta));
}

}  // namespace

std::vector<int64_t> RungTable(int64_t max, int64_t min, int64_t eta) {
  CHECK(min >= 1 && max >= min && eta >= 2);
  std::vector<int64_t> resources;
  for (int64_t r = max; r >= min; r /= eta) resources.push_back(r);
  std::reverse(resources.begin(), resources.end());
  return resources;
}

std::vector<SettingInfo> RungSettings(const std::vector<SettingInfo>& more) {
  using Type = SettingInfo::Type;
  std::vector<SettingInfo> all = {
      {.name = "resource_name",
       .help = "required: the parameter that says for how long a trial trains, in all; its values "
               "are those of the rungs, whatever its feasibleSpace says"},
      {.name = "r_l",
       .type = Type::kDouble,
       .min = 1,
       .max = kMaxResource,
       .help = "resource of a trial that is trained to its end; by default the max of the "
               "resource's feasibleSpace"},
      {.name = "eta",
       .type = Type::kInt,
       .default_value = kDefaultEta,
       .min = 2,
       .max = 1e6,
       .help = "one of eta trials goes on, with eta times the resource"},
      {.name = "min_resource",
       .type = Type::kInt,
       .default_value = "1",
       .min = 1,
       .max = kMaxResource,
       .help = "no trial gets less: the rungs are r_l divided by eta again and again, down to it"},
  };
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

StatusOr<Rungs> Rungs::Create(const Problem& problem) {
  Rungs rungs;
  const std::string* name = FindSetting(problem.settings, "resource_name");
  ASSIGN_OR_RETURN(rungs.axis_, ResourceAxis(problem, name));
  rungs.name_ = *name;
  ASSIGN_OR_RETURN(const auto eta, Whole(problem.settings, "eta", "reduction_factor"));
  ASSIGN_OR_RETURN(const auto max, Whole(problem.settings, "r_l", "max_resource"));
  ASSIGN_OR_RETURN(const auto min, Whole(problem.settings, "min_resource", "min_resource"));
  rungs.eta_ = eta.value_or(3);
  const int64_t greatest = max.value_or(GreatestOf(problem.space.axis(rungs.axis_)));
  RETURN_IF_ERROR(CheckRungs(greatest, min.value_or(1), rungs.eta_));
  rungs.resources_ = RungTable(greatest, min.value_or(1), rungs.eta_);
  return rungs;
}

std::string Rungs::Describe(int rung) const { return absl::StrCat(name_, "=", resources_[rung]); }

int64_t Rungs::BracketSize(int s) const {
  int64_t power = 1;  // η^s ≤ η^S ≤ R
  for (int i = 0; i < s; ++i) power *= eta_;
  const auto numerator = static_cast<__int128>(top() + 1) * power;
  return static_cast<int64_t>((numerator + s) / (s + 1));
}

int64_t Rungs::BracketTrials(int64_t n, int s) const {
  int64_t trials = 0;
  for (int i = 0; i <= s; ++i, n /= eta_) trials += n;
  return trials;
}

StatusOr<Space> ReshapeToRungs(const Problem& problem) {
  ASSIGN_OR_RETURN(const Rungs rungs, Rungs::Create(problem));
  return problem.space.WithValues(rungs.axis(), rungs.resources());
}

}  // namespace shirabe::suggestion
