#include "view/variants_json.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/did_you_mean.h"
#include "base/text/number.h"
#include "suggestion/known_settings.h"

namespace shirabe::view {
namespace {

using suggestion::SettingInfo;

const char* TypeWord(const SettingInfo& setting) {
  switch (setting.type) {
    case SettingInfo::Type::kInt: return "int";
    case SettingInfo::Type::kDouble: return "double";
    case SettingInfo::Type::kBool: return "bool";
    case SettingInfo::Type::kWord: return "text";
  }
  return "";
}

bool HasBounds(const SettingInfo& setting) { return setting.min != setting.max; }

// "1 to 100", "at least 1", "true or false", "a|b|c", or "any".
std::string RangeText(const SettingInfo& setting) {
  if (setting.type == SettingInfo::Type::kBool) return "true or false";
  if (!setting.words.empty()) return absl::StrJoin(setting.words, "|");
  if (!HasBounds(setting)) return "any";
  if (std::isinf(setting.max)) return "at least " + FormatNumber(setting.min);
  return FormatNumber(setting.min) + " to " + FormatNumber(setting.max);
}

Json SettingJson(const SettingInfo& setting) {
  Json json = {{"name", setting.name},
               {"type", TypeWord(setting)},
               {"values", RangeText(setting)},
               {"default", setting.default_value},
               {"help", setting.help}};
  if (HasBounds(setting)) json["min"] = setting.min;
  if (HasBounds(setting) && std::isfinite(setting.max)) json["max"] = setting.max;
  if (!setting.words.empty()) json["words"] = setting.words;
  return json;
}

template <class Info>
std::vector<Json> VariantsOf(const std::string& kind) {
  std::vector<Json> variants;
  for (const std::string& name : Registry<Info>::Get().Names()) {
    const Info& info = *Registry<Info>::Get().Find(name);
    Json settings = Json::array();
    for (const SettingInfo& setting : suggestion::KnownSettings(info)) {
      settings.push_back(SettingJson(setting));
    }
    variants.push_back({{"kind", kind},
                        {"name", info.name},
                        {"aliases", info.aliases},
                        {"help", info.help},
                        {"settings", settings}});
  }
  return variants;
}

}  // namespace

std::vector<Json> Variants(const std::string& kind) {
  return kind == kStopper ? VariantsOf<suggestion::StopperInfo>(kind)
                          : VariantsOf<suggestion::AlgorithmInfo>(kind);
}

StatusOr<Json> FindVariant(const std::vector<Json>& variants, const std::string& name) {
  std::vector<std::string> names;
  for (const Json& variant : variants) {
    if (variant["name"] == name) return variant;
    names.push_back(variant["name"]);
  }
  for (const Json& variant : variants) {
    for (const Json& alias : variant["aliases"]) {
      if (alias == name) return variant;
    }
  }
  const auto nearest = Nearest(name, names);
  return absl::NotFoundError(absl::StrCat("this build has no \"", name, "\"",
                                          nearest ? "; did you mean \"" + *nearest + "\"?" : "",
                                          "; it has: ", absl::StrJoin(names, ", ")));
}

}  // namespace shirabe::view
