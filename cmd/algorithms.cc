// algorithms: what the registries hold, with the settings of each.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/did_you_mean.h"
#include "base/number.h"
#include "client/table.h"
#include "cmd/context.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "suggestion/algorithm.h"
#include "suggestion/stopper.h"

namespace shirabe::cmd {
namespace {

using suggestion::SettingInfo;

std::string Allowed(const SettingInfo& setting) {
  if (!setting.words.empty()) return absl::StrJoin(setting.words, "|");
  const char* type = setting.type == SettingInfo::Type::kInt      ? "int"
                     : setting.type == SettingInfo::Type::kDouble ? "double"
                     : setting.type == SettingInfo::Type::kBool   ? "true|false"
                                                                  : "text";
  if (setting.min == setting.max) return type;
  return absl::StrCat(type, " ", FormatNumber(setting.min), "..", FormatNumber(setting.max));
}

template <class Info>
client::Json InfoJson(const Info& info, const std::string& kind) {
  client::Json settings = client::Json::array();
  for (const SettingInfo& setting : info.settings) {
    settings.push_back({{"name", setting.name},
                        {"values", Allowed(setting)},
                        {"default", setting.default_value},
                        {"help", setting.help}});
  }
  return {{"kind", kind},
          {"name", info.name},
          {"aliases", info.aliases},
          {"help", info.help},
          {"settings", settings}};
}

std::vector<client::Json> AllInfos() {
  std::vector<client::Json> infos;
  const auto& algorithms = Registry<suggestion::AlgorithmInfo>::Get();
  for (const std::string& name : algorithms.Names()) {
    infos.push_back(InfoJson(*algorithms.Find(name), "algorithm"));
  }
  const auto& stoppers = Registry<suggestion::StopperInfo>::Get();
  for (const std::string& name : stoppers.Names()) {
    infos.push_back(InfoJson(*stoppers.Find(name), "earlyStopping"));
  }
  return infos;
}

void PrintTable(const std::vector<client::Json>& infos, bool with_header) {
  client::Table table({"NAME", "KIND", "ALIASES", "HELP"});
  for (const client::Json& info : infos) {
    table.Add({info["name"], info["kind"],
               absl::StrJoin(info["aliases"].get<std::vector<std::string>>(), ","), info["help"]});
  }
  Out(table.Take(with_header));
}

void PrintOne(const client::Json& info) {
  Out(absl::StrCat(info["name"].get<std::string>(), ": ", info["help"].get<std::string>(), "\n"));
  if (info["settings"].empty()) return;
  Out("\n");
  client::Table table({"SETTING", "VALUES", "DEFAULT", "HELP"});
  for (const client::Json& setting : info["settings"]) {
    table.Add({setting["name"], setting["values"], setting["default"], setting["help"]});
  }
  Out(table.Take());
}

bool Answers(const client::Json& info, const std::string& name) {
  if (info["name"] == name) return true;
  for (const client::Json& alias : info["aliases"]) {
    if (alias == name) return true;
  }
  return false;
}

Status NoSuchAlgorithm(const std::vector<client::Json>& infos, const std::string& name) {
  std::vector<std::string> names;
  for (const client::Json& info : infos) names.push_back(info["name"]);
  const auto nearest = Nearest(name, names);
  return absl::NotFoundError(absl::StrCat("this build has no algorithm \"", name, "\"",
                                          nearest ? "; did you mean \"" + *nearest + "\"?" : "",
                                          "; it has: ", absl::StrJoin(names, ", ")));
}

}  // namespace

StatusOr<int> Algorithms(const Arguments& arguments) {
  Globals globals;
  ListFlags flags;
  std::vector<std::string> names;
  Options options("algorithms [NAME]",
                  "Lists the suggestion algorithms and early-stopping rules, or the settings of "
                  "one.");
  options.Arguments("NAME", &names, 0, 1);
  options.Word("-o,--output", &flags.output, {"table", "json", "yaml"}, "how to print");
  options.Flag("--no-headers", &flags.no_headers, "a table without its first line");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  const std::vector<client::Json> infos = AllInfos();
  if (names.empty()) {
    if (WantsTree(flags)) {
      PrintTrees(flags, infos);
    } else {
      PrintTable(infos, !flags.no_headers);
    }
    return 0;
  }
  for (const client::Json& info : infos) {
    if (!Answers(info, names[0])) continue;
    if (WantsTree(flags)) {
      PrintTree(flags, info);
    } else {
      PrintOne(info);
    }
    return 0;
  }
  return NoSuchAlgorithm(infos, names[0]);
}

}  // namespace shirabe::cmd
