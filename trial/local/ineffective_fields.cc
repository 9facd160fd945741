#include "trial/local/ineffective_fields.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/sorting.h"
#include "trial/trial_template.h"

namespace shirabe::trial {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;
using Names = std::set<std::string>;

// What is done, and what a process has no use for: an image is fetched where there are containers.
const Names& DoneOfContainer() {
  static const Names kNames = {"name",       "image", "imagePullPolicy", "command", "args",
                               "workingDir", "env",   "resources"};
  return kNames;
}

const Names& DoneOfPod() {
  static const Names kNames = {"containers", "initContainers", "activeDeadlineSeconds",
                               "restartPolicy"};
  return kNames;
}

// The retries of a Job are attempts: see experiment/spec/parse_spec.cc.
const Names& DoneOfJob() {
  static const Names kNames = {"template",    "activeDeadlineSeconds", "backoffLimit",
                               "completions", "parallelism",           "replicas"};
  return kNames;
}

// "a", "a and b", "a, b and c"
std::string Listed(const std::vector<std::string>& names) {
  const std::vector<std::string> first(names.begin(), names.end() - 1);
  return first.empty() ? names.back()
                       : absl::StrCat(absl::StrJoin(first, ", "), " and ", names.back());
}

class Notes {
 public:
  void Add(const TemplatePart& part, const Names& done, std::vector<std::string> more = {}) {
    if (part.fields == nullptr) return;
    for (const auto& [name, value] : part.fields->fields()) {
      const bool empty = value.kind_case() == Value::kNullValue;
      if (!empty && done.count(name) == 0) more.push_back(name);
    }
    if (more.empty()) return;
    StableSort(more);
    found_.push_back({part.path, absl::StrCat(Listed(more), more.size() == 1 ? " does" : " do",
                                              " nothing on this machine, where a trial is a "
                                              "process: only a cluster can mean it")});
  }
  void Say(std::string path, std::string message) {
    found_.push_back({std::move(path), std::move(message)});
  }
  std::vector<IneffectiveField> Release() { return std::move(found_); }

 private:
  std::vector<IneffectiveField> found_;
};

// Of a container's resources only the GPUs are given out here.
std::vector<std::string> IdleResources(const Struct& container) {
  std::vector<std::string> idle;
  const Value* resources = FindField(container, "resources");
  const Value* limits =
      resources == nullptr ? nullptr : FindField(resources->struct_value(), "limits");
  if (limits == nullptr) return idle;
  for (const auto& [name, amount] : limits->struct_value().fields()) {
    if (name != "nvidia.com/gpu") idle.push_back(absl::StrCat("resources.limits[\"", name, "\"]"));
  }
  return idle;
}

void AddList(const TemplatePart& pod, const char* list, const TemplatePart& primary, Notes& notes) {
  const Value* containers = FindField(*pod.fields, list);
  if (containers == nullptr) return;
  for (int i = 0; i < containers->list_value().values_size(); ++i) {
    const TemplatePart container{&containers->list_value().values(i).struct_value(),
                                 absl::StrCat(pod.path, ".", list, "[", i, "]")};
    const bool runs = std::string(list) == "initContainers" || container.path == primary.path;
    if (runs) {
      notes.Add(container, DoneOfContainer(), IdleResources(*container.fields));
    } else {
      notes.Say(container.path,
                absl::StrCat("container \"", ContainerName(*container.fields),
                             "\" does not run on this machine, where a trial is one process: only ",
                             "a cluster runs it beside the program"));
    }
  }
}

}  // namespace

std::vector<IneffectiveField> FindIneffectiveFields(const Struct& trial_spec,
                                                    const std::string& primary_container) {
  Value root;
  *root.mutable_struct_value() = trial_spec;
  const auto pod = FindPod(root, primary_container);
  if (!pod.ok()) return {};
  Notes notes;
  notes.Add(pod->job, DoneOfJob());
  notes.Add(pod->pod, DoneOfPod());
  AddList(pod->pod, "containers", pod->container, notes);
  AddList(pod->pod, "initContainers", pod->container, notes);
  return notes.Release();
}

}  // namespace shirabe::trial
