#include "cmd/variant_pages.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cmd/record_printer.h"
#include "cmd/terminal.h"
#include "cmd/verb_flags.h"
#include "view/text_table.h"

namespace shirabe::cmd {
namespace {

using view::kStopper;

std::string Text(const view::Json& json, const char* key) { return json[key].get<std::string>(); }

std::string Aliases(const view::Json& variant, const char* separator) {
  return absl::StrJoin(variant["aliases"].get<std::vector<std::string>>(), separator);
}

std::string Title(const view::Json& variant) {
  const std::string aliases = Aliases(variant, ", ");
  return absl::StrCat(Text(variant, "name"),
                      Text(variant, "kind") == kStopper ? " (early stopping" : " (algorithm",
                      aliases.empty() ? "" : "; also called " + aliases, ")\n");
}

std::string SettingsTable(const view::Json& variant) {
  if (variant["settings"].empty()) return "It has no settings.\n";
  view::Table table({"SETTING", "TYPE", "VALUES", "DEFAULT", "HELP"});
  for (const view::Json& setting : variant["settings"]) {
    table.Add({Text(setting, "name"), Text(setting, "type"), Text(setting, "values"),
               Text(setting, "default"), Text(setting, "help")});
  }
  return table.Render();
}

// With the first setting that has a default, to show the form.
std::string Example(const view::Json& variant) {
  std::string text =
      absl::StrCat(Text(variant, "kind") == kStopper ? "  earlyStopping:\n" : "  algorithm:\n",
                   "    algorithmName: ", Text(variant, "name"), "\n");
  for (const view::Json& setting : variant["settings"]) {
    if (Text(setting, "default").empty()) continue;
    return absl::StrCat(text, "    algorithmSettings:\n      - name: ", Text(setting, "name"),
                        "\n        value: \"", Text(setting, "default"), "\"\n");
  }
  return text;
}

// Name, kind, aliases and help of each.
std::string TableOf(const std::vector<view::Json>& variants, bool with_header) {
  view::Table table({"NAME", "KIND", "ALIASES", "HELP"});
  for (const view::Json& variant : variants) {
    table.Add({Text(variant, "name"), Text(variant, "kind"), Aliases(variant, ","),
               Text(variant, "help")});
  }
  return table.Render(with_header);
}

}  // namespace

std::string VariantPage(const view::Json& variant) {
  return absl::StrCat(Title(variant), Text(variant, "help"), "\n\n", SettingsTable(variant),
                      "\nIn a file, under spec:\n\n", Example(variant));
}

Status PrintVariants(const ListFlags& flags, const std::vector<view::Json>& variants,
                     const std::string& name) {
  if (name.empty()) {
    if (WantsTree(flags)) {
      PrintTrees(flags, variants);
    } else {
      Out(TableOf(variants, !flags.no_headers));
    }
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const view::Json variant, view::FindVariant(variants, name));
  if (WantsTree(flags)) {
    PrintTree(flags, variant);
  } else {
    Out(VariantPage(variant));
  }
  return absl::OkStatus();
}

}  // namespace shirabe::cmd
