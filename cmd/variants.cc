#include "cmd/variants.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cmd/terminal.h"
#include "view/table.h"

namespace shirabe::cmd {
namespace {

using client::Json;
using client::kStopper;

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
  ASSIGN_OR_RETURN(const Json variant, client::FindVariant(variants, name));
  if (WantsTree(flags)) {
    PrintTree(flags, variant);
  } else {
    Out(VariantPage(variant));
  }
  return absl::OkStatus();
}

}  // namespace shirabe::cmd
