// Reading the command of a rendered trial object. Kubernetes' rules, as far as they make sense for
// a process on this machine; what only a cluster can resolve is an error that says so.
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text/number.h"
#include "trial/trial_template.h"

namespace shirabe::trial {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;
using Known = std::map<std::string, std::string>;  // what $(NAME) may name

constexpr const char* kGpu = "nvidia.com/gpu";
constexpr int kMaxGpus = 1 << 16;
constexpr double kMaxTimeLimitSeconds = 1e9;  // seconds

// ---- $(VAR) -------------------------------------------------------------------------------------

// $(NAME) → its value, $$ → $, an unknown $(NAME) and a lone $ stay as they are.
std::string Expand(std::string_view text, const Known& variables) {
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
    return InvalidField(
        path, absl::StrCat("is ", KindName(value), " and must be text: put it in quotes"));
  }
  if (value.string_value().find('\0') != std::string::npos) {
    return InvalidField(path, "holds a NUL character, which no program can be given; remove it");
  }
  return value.string_value();
}

StatusOr<std::vector<std::string>> ReadTexts(const TemplatePart& container,
                                             const std::string& field) {
  std::vector<std::string> texts;
  const Value* value = FindField(*container.fields, field);
  if (value == nullptr) return texts;
  const std::string path = absl::StrCat(container.path, ".", field);
  if (value->kind_case() != Value::kListValue) {
    return InvalidField(path, absl::StrCat("must be a list of texts, such as [python3, train.py]"));
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
  return InvalidField(
      absl::StrCat(path, ".name"),
      absl::StrCat("\"", name, "\" is not a name of a variable; it must not be empty or ",
                   "hold '='"));
}

// One entry of env; its value may use those before it.
Status ReadVariable(const Value& entry, const std::string& path, Known& variables,
                    ContainerCommand& command) {
  const Struct& fields = entry.struct_value();
  if (FindField(fields, "valueFrom") != nullptr) {
    return InvalidField(
        absl::StrCat(path, ".valueFrom"),
        "can be resolved only in a cluster; give a value, or leave it out and set the "
        "variable in the environment of shirabe");
  }
  const std::string name = ContainerName(fields);
  RETURN_IF_ERROR(CheckVariableName(name, path));
  std::string text;
  if (const Value* value = FindField(fields, "value")) {
    ASSIGN_OR_RETURN(text, ReadText(*value, absl::StrCat(path, ".value")));
  }
  text = Expand(text, variables);
  variables[name] = text;
  command.env.emplace_back(name, std::move(text));
  return absl::OkStatus();
}

Status ReadEnvironment(const TemplatePart& container, Known& variables, ContainerCommand& command) {
  if (FindField(*container.fields, "envFrom") != nullptr) {
    return InvalidField(absl::StrCat(container.path, ".envFrom"),
                        "can be resolved only in a cluster; write the variables out under env");
  }
  const Value* env = FindField(*container.fields, "env");
  if (env == nullptr) return absl::OkStatus();
  const std::string path = absl::StrCat(container.path, ".env");
  if (env->kind_case() != Value::kListValue) {
    return InvalidField(path, "must be a list of {name: …, value: …}");
  }
  for (int i = 0; i < env->list_value().values_size(); ++i) {
    RETURN_IF_ERROR(ReadVariable(env->list_value().values(i), absl::StrCat(path, "[", i, "]"),
                                 variables, command));
  }
  return absl::OkStatus();
}

StatusOr<int> ReadGpus(const TemplatePart& container) {
  const Value* resources = FindField(*container.fields, "resources");
  if (resources == nullptr) return 0;
  for (const char* kind : {"limits", "requests"}) {
    const Value* amounts = FindField(resources->struct_value(), kind);
    const Value* amount = amounts == nullptr ? nullptr : FindField(amounts->struct_value(), kGpu);
    if (amount == nullptr) continue;
    std::optional<double> number = ParseNumber(amount->string_value());
    if (amount->kind_case() == Value::kNumberValue) number = amount->number_value();
    if (!number || !(*number >= 0 && *number <= kMaxGpus) || *number != std::floor(*number)) {
      return InvalidField(absl::StrCat(container.path, ".resources.", kind, "[\"", kGpu, "\"]"),
                          "must be a whole number of devices, such as 1");
    }
    return static_cast<int>(*number);
  }
  return 0;
}

// The program and its arguments: `command`, then `args`.
StatusOr<std::vector<std::string>> ReadArgv(const TemplatePart& container) {
  ASSIGN_OR_RETURN(std::vector<std::string> argv, ReadTexts(container, "command"));
  if (argv.empty()) {
    return InvalidField(
        absl::StrCat(container.path, ".command"),
        "is missing; the entrypoint of an image exists only in a cluster, so write the "
        "program to run, such as [python3, train.py]");
  }
  if (argv[0].empty()) {
    return InvalidField(absl::StrCat(container.path, ".command[0]"),
                        "is empty; name the program to run");
  }
  ASSIGN_OR_RETURN(std::vector<std::string> args, ReadTexts(container, "args"));
  argv.insert(argv.end(), std::make_move_iterator(args.begin()),
              std::make_move_iterator(args.end()));
  return argv;
}

StatusOr<ContainerCommand> ReadContainer(const TemplatePart& container, const Known& environment) {
  ContainerCommand command;
  Known variables = environment;
  RETURN_IF_ERROR(ReadEnvironment(container, variables, command));
  ASSIGN_OR_RETURN(command.argv, ReadArgv(container));
  for (std::string& text : command.argv) text = Expand(text, variables);
  if (const Value* dir = FindField(*container.fields, "workingDir")) {
    ASSIGN_OR_RETURN(command.working_dir,
                     ReadText(*dir, absl::StrCat(container.path, ".workingDir")));
  }
  return command;
}

// ---- the pod and its Job ------------------------------------------------------------------------

StatusOr<std::vector<InitCommand>> ReadInit(const TemplatePart& pod, const Known& environment) {
  std::vector<InitCommand> all;
  const Value* list = FindField(*pod.fields, "initContainers");
  if (list == nullptr) return all;
  for (int i = 0; i < list->list_value().values_size(); ++i) {
    const TemplatePart container{&list->list_value().values(i).struct_value(),
                                 absl::StrCat(pod.path, ".initContainers[", i, "]")};
    const Value* policy = FindField(*container.fields, "restartPolicy");
    if (policy != nullptr && policy->string_value() == "Always") {
      return InvalidField(absl::StrCat(container.path, ".restartPolicy"),
                          "Always makes it a sidecar, which runs beside the program: that needs a "
                          "cluster; remove it, or start it from the program itself");
    }
    InitCommand init;
    init.name = ContainerName(*container.fields);
    if (init.name.empty()) init.name = absl::StrCat("initContainers[", i, "]");
    ASSIGN_OR_RETURN(init.command, ReadContainer(container, environment));
    all.push_back(std::move(init));
  }
  return all;
}

// A process is one pod of a Job, run once.
Status CheckOnePod(const TemplatePart& job) {
  if (job.fields == nullptr) return absl::OkStatus();
  for (const char* field : {"completions", "parallelism", "replicas"}) {
    const Value* count = FindField(*job.fields, field);
    if (count == nullptr) continue;
    if (count->has_number_value() && count->number_value() == 1) continue;
    return InvalidField(absl::StrCat(job.path, ".", field),
                        "is not 1: one process runs one pod, and a trial of several needs a "
                        "cluster; set it to 1, or remove it");
  }
  return absl::OkStatus();
}

StatusOr<std::optional<absl::Duration>> ReadDeadline(const TemplatePart& part) {
  if (part.fields == nullptr) return std::nullopt;
  const Value* value = FindField(*part.fields, "activeDeadlineSeconds");
  if (value == nullptr) return std::nullopt;
  const double seconds = value->has_number_value() ? value->number_value() : 0;
  if (!(seconds >= 1 && seconds <= kMaxTimeLimitSeconds) || seconds != std::floor(seconds)) {
    return InvalidField(absl::StrCat(part.path, ".activeDeadlineSeconds"),
                        "must be a whole number of seconds of at least 1, such as 3600");
  }
  return absl::Seconds(seconds);
}

// The least that is given; the Job's of two that are the same.
StatusOr<std::optional<TimeLimit>> ReadLimit(const TemplatePod& pod) {
  ASSIGN_OR_RETURN(const auto of_job, ReadDeadline(pod.job));
  ASSIGN_OR_RETURN(const auto of_pod, ReadDeadline(pod.pod));
  if (!of_job && !of_pod) return std::nullopt;
  const bool job = of_job && (!of_pod || *of_job <= *of_pod);
  return TimeLimit{.time = job ? *of_job : *of_pod, .of_job = job};
}

}  // namespace

StatusOr<Command> ReadCommand(const Struct& trial_spec, const std::string& primary_container,
                              const std::map<std::string, std::string>& environment) {
  Value root;
  *root.mutable_struct_value() = trial_spec;
  ASSIGN_OR_RETURN(const TemplatePod pod, FindPod(root, primary_container));
  RETURN_IF_ERROR(CheckOnePod(pod.job));
  Command command;
  ASSIGN_OR_RETURN(static_cast<ContainerCommand&>(command),
                   ReadContainer(pod.container, environment));
  ASSIGN_OR_RETURN(command.gpus, ReadGpus(pod.container));
  ASSIGN_OR_RETURN(command.init, ReadInit(pod.pod, environment));
  ASSIGN_OR_RETURN(command.limit, ReadLimit(pod));
  return command;
}

}  // namespace shirabe::trial
