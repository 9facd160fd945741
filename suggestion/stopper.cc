#include "suggestion/stopper.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_format.h"
#include "base/number.h"

namespace shirabe::suggestion {

std::optional<double> NumberSetting(const Settings& settings, const std::string& name) {
  const std::string* text = FindSetting(settings, name);
  return text == nullptr ? std::nullopt : ParseNumber(*text);
}

int64_t IntSetting(const Settings& settings, const std::string& name) {
  const auto number = NumberSetting(settings, name);
  CHECK(number.has_value());
  // What nobody reaches stands for more than an int64 can count.
  return static_cast<int64_t>(std::min(*number, 0x1p62));
}

std::string Sense::Show(double loss) const {
  if (!std::isfinite(loss)) return "no finite value";
  return absl::StrFormat("%.4g", maximize ? -loss : loss);
}

SettingInfo MinTrialsRequired(const std::string& trials) {
  return {.name = "min_trials_required",
          .type = SettingInfo::Type::kInt,
          .default_value = trials,
          .min = 1,
          .max = std::numeric_limits<double>::infinity(),
          .help = "nothing is stopped before this many other trials have got as far"};
}

SettingInfo StartStep(const std::string& reports) {
  return {.name = "start_step",
          .type = SettingInfo::Type::kInt,
          .default_value = reports,
          .min = 1,
          .max = std::numeric_limits<double>::infinity(),
          .help = "reports that a trial makes before it can be stopped"};
}

}  // namespace shirabe::suggestion
