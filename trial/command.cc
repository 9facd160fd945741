// Reading the command of a rendered trial object. Kubernetes' rules, as far as they make sense for
// a process on this machine; what only a cluster can resolve is an error that says so.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/number.h"
#include "trial/template.h"

namespace shirabe::trial {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;
using Variables = std::map<std::string, std::string>;

constexpr const char* kSpecPath = "spec.trialTemplate.trialSpec";
constexpr const char* kGpu = "nvidia.com/gpu";
constexpr int kMaxGpus = 1 << 16;

const Value* Find(const Struct& object, const std::string& name) {
  const auto found = object.fields().find(name);
  if (found == object.fields().end() || found->second.kind_case() == Value::kNullValue) {
    return nullptr;
  }
  return &found->second;
}

Status Invalid(const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

// ---- finding the container ----------------------------------------------------------------------

struct Container {
  const Struct* fields;
  std::string path;
};

std::string NameOf(const Struct& container) {
  const Value* name = Find(container, "name");
  return name == nullptr ? "" : name->string_value();
}

// Every container of every pod specification of the tree, wherever it lies: a Pod has one, a Job
// one below its template, a training operator's object one for each role.
void CollectContainers(const Value& value, const std::string& path, std::vector<Container>& found) {
  for (const auto& [key, field] : value.struct_value().fields()) {
    const std::string below = absl::StrCat(path, ".", key);
    if (key == "containers" && field.kind_case() == Value::kListValue) {
      for (int i = 0; i < field.list_value().values_size(); ++i) {
        found.push_back(
            {&field.list_value().values(i).struct_value(), absl::StrCat(below, "[", i, "]")});
      }
    } else {
      CollectContainers(field, below, found);
    }
  }
  for (int i = 0; i < value.list_value().values_size(); ++i) {
    CollectContainers(value.list_value().values(i), absl::StrCat(path, "[", i, "]"), found);
  }
}

Status NoSuchContainer(const std::string& name, const std::vector<Container>& all) {
  if (all.empty()) {
    return Invalid(kSpecPath,
                   "holds no containers; write a Job with spec.template.spec.containers");
  }
  const auto quote = [](std::string* out, const Container& container) {
    absl::StrAppend(out, "\"", NameOf(*container.fields), "\"");
  };
  return Invalid("spec.trialTemplate.primaryContainerName",
                 absl::StrCat("\"", name, "\" is no container of the trial's object, which has: ",
                              absl::StrJoin(all, ", ", quote), "; name one of them"));
}

StatusOr<Container> FindContainer(const Value& root, const std::string& name) {
  std::vector<Container> all;
  CollectContainers(root, kSpecPath, all);
  // A map's order is arbitrary; messages are not.
  std::sort(all.begin(), all.end(),
            [](const Container& a, const Container& b) { return a.path < b.path; });
  std::vector<Container> named;
  for (const Container& container : all) {
    if (NameOf(*container.fields) == name) named.push_back(container);
  }
  if (named.empty()) return NoSuchContainer(name, all);
  if (named.size() == 1) return named[0];
  return Invalid(
      named[1].path,
      absl::StrCat("a second container named \"", name, "\" (the first is ", named[0].path,
                   "); one process runs one container: a trial of several ",
                   "pods needs a cluster"));
}

// ---- $(VAR) -------------------------------------------------------------------------------------

// $(NAME) → its value, $$ → $, an unknown $(NAME) and a lone $ stay as they are.
std::string Expand(std::string_view text, const Variables& variables) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const char next = text[i] == '$' && i + 1 < text.size() ? text[i + 1] : '\0';
    const size_t close = next == '(' ? text.find(')', i) : std::string_view::npos;
    if (next == '$') {
      result += text[i++];
    } else if (close != std::string_view::npos) {
      const auto found = variables.find(std::string(text.substr(i + 2, close - i - 2)));
      result += found == variables.end() ? text.substr(i, close - i + 1)
                                         : std::string_view(found->second);
      i = close;
    } else {
      result += text[i];
    }
  }
  return result;
}

// ---- the fields of a container ------------------------------------------------------------------

const char* KindName(const Value& value) {
  switch (value.kind_case()) {
    case Value::kNumberValue: return "a number";
    case Value::kBoolValue: return "true or false";
    case Value::kStructValue: return "a map";
    case Value::kListValue: return "a list";
    default: return "nothing";
  }
}

// A pod's text fields take text only, so that a file which runs here also runs there.
StatusOr<std::string> ReadText(const Value& value, const std::string& path) {
  if (value.kind_case() != Value::kStringValue) {
    return Invalid(path,
                   absl::StrCat("is ", KindName(value), " and must be text: put it in quotes"));
  }
  if (value.string_value().find('\0') != std::string::npos) {
    return Invalid(path, "holds a NUL character, which no program can be given; remove it");
  }
  return value.string_value();
}

StatusOr<std::vector<std::string>> ReadTexts(const Container& container, const std::string& field) {
  std::vector<std::string> texts;
  const Value* value = Find(*container.fields, field);
  if (value == nullptr) return texts;
  const std::string path = absl::StrCat(container.path, ".", field);
  if (value->kind_case() != Value::kListValue) {
    return Invalid(path, absl::StrCat("must be a list of texts, such as [python3, train.py]"));
  }
  for (int i = 0; i < value->list_value().values_size(); ++i) {
    ASSIGN_OR_RETURN(std::string text,
                     ReadText(value->list_value().values(i), absl::StrCat(path, "[", i, "]")));
    texts.push_back(std::move(text));
  }
  return texts;
}

Status CheckVariableName(const std::string& name, const std::string& path) {
  if (!name.empty() && name.find_first_of(std::string_view("=\0", 2)) == std::string::npos) {
    return absl::OkStatus();
  }
  return Invalid(absl::StrCat(path, ".name"),
                 absl::StrCat("\"", name, "\" is no name of a variable; it must not be empty or ",
                              "hold '='"));
}

// One entry of env; its value may use those before it.
Status ReadVariable(const Value& entry, const std::string& path, Variables& variables,
                    Command& command) {
  const Struct& fields = entry.struct_value();
  if (Find(fields, "valueFrom") != nullptr) {
    return Invalid(absl::StrCat(path, ".valueFrom"),
                   "can be resolved only in a cluster; give a value, or leave it out and set the "
                   "variable in the environment of shirabe");
  }
  const std::string name = NameOf(fields);
  RETURN_IF_ERROR(CheckVariableName(name, path));
  std::string text;
  if (const Value* value = Find(fields, "value")) {
    ASSIGN_OR_RETURN(text, ReadText(*value, absl::StrCat(path, ".value")));
  }
  text = Expand(text, variables);
  variables[name] = text;
  command.env.emplace_back(name, std::move(text));
  return absl::OkStatus();
}

Status ReadEnvironment(const Container& container, Variables& variables, Command& command) {
  if (Find(*container.fields, "envFrom") != nullptr) {
    return Invalid(absl::StrCat(container.path, ".envFrom"),
                   "can be resolved only in a cluster; write the variables out under env");
  }
  const Value* env = Find(*container.fields, "env");
  if (env == nullptr) return absl::OkStatus();
  const std::string path = absl::StrCat(container.path, ".env");
  if (env->kind_case() != Value::kListValue) {
    return Invalid(path, "must be a list of {name: …, value: …}");
  }
  for (int i = 0; i < env->list_value().values_size(); ++i) {
    RETURN_IF_ERROR(ReadVariable(env->list_value().values(i), absl::StrCat(path, "[", i, "]"),
                                 variables, command));
  }
  return absl::OkStatus();
}

StatusOr<int> ReadGpus(const Container& container) {
  const Value* resources = Find(*container.fields, "resources");
  if (resources == nullptr) return 0;
  for (const char* kind : {"limits", "requests"}) {
    const Value* amounts = Find(resources->struct_value(), kind);
    const Value* amount = amounts == nullptr ? nullptr : Find(amounts->struct_value(), kGpu);
    if (amount == nullptr) continue;
    std::optional<double> number = ParseNumber(amount->string_value());
    if (amount->kind_case() == Value::kNumberValue) number = amount->number_value();
    if (!number || !(*number >= 0 && *number <= kMaxGpus) || *number != std::floor(*number)) {
      return Invalid(absl::StrCat(container.path, ".resources.", kind, "[\"", kGpu, "\"]"),
                     "must be a whole number of devices, such as 1");
    }
    return static_cast<int>(*number);
  }
  return 0;
}

// The program and its arguments: `command`, then `args`.
StatusOr<std::vector<std::string>> ReadArgv(const Container& container) {
  ASSIGN_OR_RETURN(std::vector<std::string> argv, ReadTexts(container, "command"));
  if (argv.empty()) {
    return Invalid(absl::StrCat(container.path, ".command"),
                   "is missing; the entrypoint of an image exists only in a cluster, so write the "
                   "program to run, such as [python3, train.py]");
  }
  if (argv[0].empty()) {
    return Invalid(absl::StrCat(container.path, ".command[0]"),
                   "is empty; name the program to run");
  }
  ASSIGN_OR_RETURN(std::vector<std::string> args, ReadTexts(container, "args"));
  argv.insert(argv.end(), std::make_move_iterator(args.begin()),
              std::make_move_iterator(args.end()));
  return argv;
}

}  // namespace

StatusOr<Command> ReadCommand(const Struct& trial_spec, const std::string& primary_container,
                              const std::map<std::string, std::string>& environment) {
  Value root;
  *root.mutable_struct_value() = trial_spec;
  ASSIGN_OR_RETURN(const Container container, FindContainer(root, primary_container));
  Command command;
  Variables variables = environment;
  RETURN_IF_ERROR(ReadEnvironment(container, variables, command));
  ASSIGN_OR_RETURN(command.argv, ReadArgv(container));
  for (std::string& text : command.argv) text = Expand(text, variables);
  if (const Value* dir = Find(*container.fields, "workingDir")) {
    ASSIGN_OR_RETURN(command.working_dir,
                     ReadText(*dir, absl::StrCat(container.path, ".workingDir")));
  }
  ASSIGN_OR_RETURN(command.gpus, ReadGpus(container));
  return command;
}

}  // namespace shirabe::trial
