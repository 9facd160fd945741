#include "cmd/variants.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/did_you_mean.h"
#include "base/number.h"
#include "client/table.h"
#include "cmd/terminal.h"
#include "suggestion/settings.h"

namespace shirabe::cmd {
namespace {

using client::Json;
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
std::string Range(const SettingInfo& setting) {
  if (setting.type == SettingInfo::Type::kBool) return "true or false";
  if (!setting.words.empty()) return absl::StrJoin(setting.words, "|");
  if (!HasBounds(setting)) return "any";
  if (std::isinf(setting.max)) return "at least " + FormatNumber(setting.min);
  return FormatNumber(setting.min) + " to " + FormatNumber(setting.max);
}

Json SettingJson(const SettingInfo& setting) {
  Json json = {{"name", setting.name},
               {"type", TypeWord(setting)},
               {"values", Range(setting)},
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

std::string Text(const Json& json, const char* key) { return json[key].get<std::string>(); }

std::string Aliases(const Json& variant, const char* separator) {
  return absl::StrJoin(variant["aliases"].get<std::vector<std::string>>(), separator);
}

std::string Title(const Json& variant) {
  const std::string aliases = Aliases(variant, ", ");
  return absl::StrCat(Text(variant, "name"),
                      Text(variant, "kind") == kStopper ? " (early stopping" : " (algorithm",
                      aliases.empty() ? "" : "; also called " + aliases, ")\n");
}

std::string SettingsTable(const Json& variant) {
  if (variant["settings"].empty()) return "It has no settings.\n";
  client::Table table({"SETTING", "TYPE", "VALUES", "DEFAULT", "HELP"});
  for (const Json& setting : variant["settings"]) {
    table.Add({Text(setting, "name"), Text(setting, "type"), Text(setting, "values"),
               Text(setting, "default"), Text(setting, "help")});
  }
  return table.Take();
}

// With the first setting that has a default, to show the form.
std::string Example(const Json& variant) {
  std::string text =
      absl::StrCat(Text(variant, "kind") == kStopper ? "  earlyStopping:\n" : "  algorithm:\n",
                   "    algorithmName: ", Text(variant, "name"), "\n");
  for (const Json& setting : variant["settings"]) {
    if (Text(setting, "default").empty()) continue;
    return absl::StrCat(text, "    algorithmSettings:\n      - name: ", Text(setting, "name"),
                        "\n        value: \"", Text(setting, "default"), "\"\n");
  }
  return text;
}

// Name, kind, aliases and help of each.
std::string TableOf(const std::vector<Json>& variants, bool with_header) {
  client::Table table({"NAME", "KIND", "ALIASES", "HELP"});
  for (const Json& variant : variants) {
    table.Add({Text(variant, "name"), Text(variant, "kind"), Aliases(variant, ","),
               Text(variant, "help")});
  }
  return table.Take(with_header);
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

std::string VariantPage(const Json& variant) {
  return absl::StrCat(Title(variant), Text(variant, "help"), "\n\n", SettingsTable(variant),
                      "\nIn a file, under spec:\n\n", Example(variant));
}

Status PrintVariants(const ListFlags& flags, const std::vector<Json>& variants,
                     const std::string& name) {
  if (name.empty()) {
    if (WantsTree(flags)) {
      PrintTrees(flags, variants);
    } else {
      Out(TableOf(variants, !flags.no_headers));
    }
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const Json variant, FindVariant(variants, name));
  if (WantsTree(flags)) {
    PrintTree(flags, variant);
  } else {
    Out(VariantPage(variant));
  }
  return absl::OkStatus();
}

}  // namespace shirabe::cmd
