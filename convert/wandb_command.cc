#include "convert/wandb_command.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/printable.h"
#include "base/text/json_text.h"
#include "base/text/number.h"
#include "convert/trial_program.h"

namespace shirabe::convert {
namespace {

// Of a command, with ${args} taken apart: a short text must not become a long one again and again.
constexpr size_t kMaxCommandWords = 5'000;
constexpr std::string_view kVariable = "${envvar:";

class CommandReader {
 public:
  CommandReader(const Reading& reading, const SweepValues& values)
      : spec_(*reading.experiment.mutable_spec()),
        reading_(reading),
        report_(reading.report),
        values_(values) {}

  void Run(Fields& root) {
    const auto program = root.Text("program");
    std::vector<std::string> command = root.Texts("command");
    if (command.empty()) command = {"${env}", "${interpreter}", "${program}", "${args}"};
    program_name_ = program.value_or("");
    const Place place = root.At(root.Has("command") ? "command" : "program");
    for (const std::string& word : command) {
      if (!AddWord(word, place)) return;
    }
    if (program) {
      report_.Changed(root.At("program"), {absl::StrCat(kContainerPath, ".command"), *program},
                      "it gets its parameters as arguments; wandb.config has none of them");
    }
    if (root.Has("command")) {
      report_.Taken(root.At("command"),
                    {absl::StrCat(kContainerPath, ".command"), absl::StrJoin(made_.command, " ")});
    }
    if (!reading_.options.image.empty()) made_.image = reading_.options.image;
    for (const auto& [key, variable] :
         {std::pair{"project", "WANDB_PROJECT"}, std::pair{"entity", "WANDB_ENTITY"}}) {
      const auto value = root.Text(key);
      if (!value) continue;
      made_.env.emplace_back(variable, Literal(*value));
      report_.Taken(root.At(key), {absl::StrCat(kContainerPath, ".env"), variable});
    }
    SetTemplate(made_, spec_);
  }

 private:
  // False after an error.
  bool AddWord(const std::string& word, const Place& place) {
    if (!AddKnown(word, place)) return false;
    if (made_.command.size() <= kMaxCommandWords) return true;
    report_.Error(place, absl::StrCat("comes to more than ", kMaxCommandWords, " words"));
    return false;
  }

  bool AddKnown(const std::string& word, const Place& place) {
    std::vector<std::string>& command = made_.command;
    if (word == "${env}") {
      command.push_back("/usr/bin/env");
    } else if (word == "${interpreter}") {
      command.push_back("python3");
    } else if (word == "${program}") {
      if (program_name_.empty()) report_.Error(place, "program is missing: which script to run");
      command.push_back(Literal(program_name_));
    } else if (word == "${args}") {
      AddArgs("--");
    } else if (word == "${args_no_hyphens}") {
      AddArgs("");
    } else if (word == "${args_no_boolean_flags}") {
      AddFlags();
      WarnOf(values_.booleans, "as --NAME=True or --NAME=False, not as a flag or nothing", place);
    } else if (word == "${args_json}") {
      command.push_back(ArgsJson());
      WarnOf(values_.untexts, "as a text in JSON, \"True\" for true and \"1\" for 1", place);
    } else if (word == "${args_json_file}" && values_.constants.empty()) {
      command.push_back("$(SHIRABE_PARAMS_FILE)");
    } else if (const auto filled = WithVariables(word, place)) {
      command.push_back(*filled);
    } else if (absl::StartsWith(word, "${") || word.find(kVariable) != word.npos) {
      report_.Error(place,
                    Quoted(word) +
                        " cannot be taken over: known are ${env}, "
                        "${interpreter}, ${program}, ${args}, ${args_no_hyphens}, "
                        "${args_no_boolean_flags}, ${args_json}, ${envvar:NAME} and, without "
                        "parameters of one value, ${args_json_file}");
      return false;
    } else {
      command.push_back(Literal(word));
    }
    return true;
  }

  // A word with ${envvar:NAME} in it, and nothing else of that form; nullopt for any other.
  std::optional<std::string> WithVariables(const std::string& word, const Place& place) {
    std::string made;
    std::vector<std::string> names;
    size_t from = 0;
    for (size_t at = word.find("${"); at != word.npos; at = word.find("${", from)) {
      const size_t name = at + kVariable.size(), close = word.find('}', at);
      const bool variable = word.compare(at, kVariable.size(), kVariable) == 0;
      if (!variable || close == word.npos || close == name) return std::nullopt;
      names.push_back(word.substr(name, close - name));
      absl::StrAppend(&made, Literal(word.substr(from, at - from)), "$(", names.back(), ")");
      from = close + 1;
    }
    if (names.empty()) return std::nullopt;
    for (const std::string& name : names) {
      report_.Warn(place, absl::StrCat("${envvar:", name, "} becomes $(", name,
                                       "), which a variable of the container's own env alone "
                                       "fills in: add ",
                                       name, " to it"));
    }
    return made + Literal(word.substr(from));
  }

  void WarnOf(const std::vector<std::string>& names, const std::string& how, const Place& place) {
    if (names.empty()) return;
    report_.Warn(place, absl::StrCat("the program gets ", absl::StrJoin(names, ", "), " ", how));
  }

  void AddArgs(const std::string& dashes) {
    for (const auto& [name, value, json] : values_.constants) {
      made_.command.push_back(absl::StrCat(dashes, Literal(name), "=", Literal(value)));
    }
    for (const v1::ParameterSpec& parameter : spec_.parameters()) {
      made_.command.push_back(
          absl::StrCat(dashes, Literal(parameter.name()), "=", ValueOf(parameter.name())));
    }
  }

  // Of one value: --name where it is true, nothing where it is false.
  void AddFlags() {
    for (const auto& [name, value, json] : values_.constants) {
      if (value == "False") continue;
      made_.command.push_back(value == "True"
                                  ? absl::StrCat("--", Literal(name))
                                  : absl::StrCat("--", Literal(name), "=", Literal(value)));
    }
    for (const v1::ParameterSpec& parameter : spec_.parameters()) {
      made_.command.push_back(
          absl::StrCat("--", Literal(parameter.name()), "=", ValueOf(parameter.name())));
    }
  }

  std::string ArgsJson() const {
    std::vector<std::string> pairs;
    for (const auto& [name, value, json] : values_.constants) {
      pairs.push_back(absl::StrCat(Literal(JsonQuoted(name)), ": ", Literal(json)));
    }
    for (const v1::ParameterSpec& parameter : spec_.parameters()) {
      const bool text = parameter.parameter_type() == v1::CATEGORICAL;
      const std::string value = ValueOf(parameter.name());
      pairs.push_back(absl::StrCat(Literal(JsonQuoted(parameter.name())), ": ",
                                   text ? absl::StrCat("\"", value, "\"") : value));
    }
    return absl::StrCat("{", absl::StrJoin(pairs, ", "), "}");
  }

  v1::ExperimentSpec& spec_;
  const Reading& reading_;
  Report& report_;
  const SweepValues& values_;
  TrialProgram made_;
  std::string program_name_;
};

}  // namespace

bool IsSweepBoolean(const YamlNode& scalar) {
  return scalar.kind == YamlNode::Kind::kBoolean && scalar.text.size() > 1;
}

std::string SweepText(const YamlNode& scalar) {
  if (IsSweepBoolean(scalar)) return scalar.boolean ? "True" : "False";
  if (scalar.kind == YamlNode::Kind::kNull) return "None";
  return scalar.text;
}

std::string SweepJson(const YamlNode& scalar) {
  if (IsSweepBoolean(scalar)) return scalar.boolean ? "true" : "false";
  if (scalar.kind == YamlNode::Kind::kNull) return "null";
  if (scalar.kind != YamlNode::Kind::kNumber) return JsonQuoted(scalar.text);
  if (scalar.integer) return absl::StrCat(*scalar.integer);
  const std::string number = FormatNumber(scalar.number);
  return number.find_first_of(".enI") == number.npos ? number + ".0" : number;
}

void ReadSweepCommand(const Reading& reading, Fields& root, const SweepValues& values) {
  CommandReader(reading, values).Run(root);
}

}  // namespace shirabe::convert
