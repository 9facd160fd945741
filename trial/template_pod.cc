#include "trial/template_pod.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace shirabe::trial {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

// Every container of every pod specification of the tree, wherever it lies: a Pod has one, a Job
// one below its template, a training operator's object one for each role.
class Collector {
 public:
  void Visit(const Value& value, const std::string& path) {
    above_.push_back({&value.struct_value(), path});
    for (const auto& [key, field] : value.struct_value().fields()) {
      const std::string below = absl::StrCat(path, ".", key);
      if (key == "containers" && field.kind_case() == Value::kListValue) {
        for (int i = 0; i < field.list_value().values_size(); ++i) {
          Add(field.list_value().values(i).struct_value(), absl::StrCat(below, "[", i, "]"));
        }
      } else {
        Visit(field, below);
      }
    }
    for (int i = 0; i < value.list_value().values_size(); ++i) {
      Visit(value.list_value().values(i), absl::StrCat(path, "[", i, "]"));
    }
    above_.pop_back();
  }

  // A map's order is arbitrary; messages are not.
  std::vector<TemplatePod> Release() {
    std::sort(found_.begin(), found_.end(), [](const TemplatePod& a, const TemplatePod& b) {
      return a.container.path < b.container.path;
    });
    return std::move(found_);
  }

 private:
  void Add(const Struct& container, const std::string& path) {
    TemplatePod pod{{&container, path}, above_.back(), {}};
    const size_t depth = above_.size();
    // …spec → template → spec, which is the pod's.
    const bool templated = depth >= 3 &&
                           IsField(above_[depth - 3], "template", above_[depth - 2]) &&
                           IsField(above_[depth - 2], "spec", above_[depth - 1]);
    if (templated) pod.job = above_[depth - 3];
    found_.push_back(std::move(pod));
  }

  static bool IsField(const TemplatePart& part, const std::string& name, const TemplatePart& of) {
    const Value* field = FindField(*part.fields, name);
    return field != nullptr && &field->struct_value() == of.fields;
  }

  std::vector<TemplatePart> above_;
  std::vector<TemplatePod> found_;
};

Status NoSuchContainer(const std::string& name, const std::vector<TemplatePod>& all) {
  if (all.empty()) {
    return InvalidField(kTrialSpecPath,
                        "holds no containers; write a Job with spec.template.spec.containers");
  }
  const auto quote = [](std::string* out, const TemplatePod& pod) {
    absl::StrAppend(out, "\"", ContainerName(*pod.container.fields), "\"");
  };
  return InvalidField(
      "spec.trialTemplate.primaryContainerName",
      absl::StrCat("\"", name, "\" is not a container of the trial's object, which has: ",
                   absl::StrJoin(all, ", ", quote), "; name one of them"));
}

}  // namespace

StatusOr<TemplatePod> FindPod(const Value& object, const std::string& primary_container) {
  Collector collector;
  collector.Visit(object, kTrialSpecPath);
  const std::vector<TemplatePod> all = collector.Release();
  std::vector<TemplatePod> named;
  for (const TemplatePod& pod : all) {
    if (ContainerName(*pod.container.fields) == primary_container) named.push_back(pod);
  }
  if (named.empty()) return NoSuchContainer(primary_container, all);
  if (named.size() == 1) return named[0];
  return InvalidField(named[1].container.path,
                      absl::StrCat("a second container named \"", primary_container,
                                   "\" (the first is ", named[0].container.path,
                                   "); one process runs one container: a trial of several pods ",
                                   "needs a cluster"));
}

const Value* FindField(const Struct& object, const std::string& name) {
  const auto found = object.fields().find(name);
  if (found == object.fields().end() || found->second.kind_case() == Value::kNullValue) {
    return nullptr;
  }
  return &found->second;
}

std::string ContainerName(const Struct& container) {
  const Value* name = FindField(container, "name");
  return name == nullptr ? "" : name->string_value();
}

Status InvalidField(const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

}  // namespace shirabe::trial
