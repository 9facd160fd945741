#include "suggestion/tpe/tpe_settings.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/text/number.h"

namespace shirabe::suggestion {
namespace {

// Katib's hyperopt service writes n_EI_candidates, its Optuna service n_ei_candidates.
constexpr char kCandidates[] = "n_EI_candidates";
constexpr char kCandidatesToo[] = "n_ei_candidates";
constexpr char kDefaultCandidates[] = "24";

double Number(const Settings& settings, const std::string& name, const std::string& otherwise) {
  const std::string* text = FindSetting(settings, name);
  return *ParseNumber(text == nullptr ? otherwise : *text);  // the table has seen to it
}

}  // namespace

std::vector<SettingInfo> TpeSettings() {
  using Type = SettingInfo::Type;
  return {
      {.name = "gamma",
       .type = Type::kDouble,
       .default_value = "0.15",
       .min = 1e-6,
       .max = 1,
       .help = "fraction of the trials that counts as good, at most 25 of them"},
      {.name = "prior_weight",
       .type = Type::kDouble,
       .default_value = "1",
       .min = 1e-6,
       .max = 1e6,
       .help = "weight of the parameters' own distributions beside one trial: more explores more"},
      {.name = kCandidates,
       .type = Type::kInt,
       .min = 1,
       .max = 10000,
       .help = absl::StrCat("points drawn from the good density, of which the best is tried; ",
                            kDefaultCandidates, " if not given")},
      {.name = kCandidatesToo,
       .type = Type::kInt,
       .min = 0,
       .max = 10000,
       .help = absl::StrCat("another spelling of ", kCandidates, "; 0 means ", kDefaultCandidates)},
      {.name = "n_startup_trials",
       .type = Type::kInt,
       .default_value = "10",
       .min = 0,
       .max = 1e9,
       .help =
           "trials, spread evenly over the space, that must have ended before the model is used"},
  };
}

StatusOr<TpeOptions> ReadTpeSettings(TpeKind kind, const Settings& settings) {
  const bool both = FindSetting(settings, kCandidates) && FindSetting(settings, kCandidatesToo);
  if (both) {
    return absl::InvalidArgumentError(absl::StrCat("settings \"", kCandidates, "\" and \"",
                                                   kCandidatesToo, "\" are the same; remove one"));
  }
  double candidates = Number(settings, kCandidatesToo, kDefaultCandidates);
  if (candidates == 0) candidates = *ParseNumber(kDefaultCandidates);
  return TpeOptions{
      .kind = kind,
      .gamma = Number(settings, "gamma", ""),
      .prior_weight = Number(settings, "prior_weight", ""),
      .candidates = static_cast<int>(Number(settings, kCandidates, FormatNumber(candidates))),
      .startup = static_cast<int64_t>(Number(settings, "n_startup_trials", ""))};
}

}  // namespace shirabe::suggestion
