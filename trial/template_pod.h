// Where in the object of a trial its program stands: the container, its pod, and the Job (or what
// else has the pod's template) around that. Used by what runs a trial as a process
// (trial/container_command.cc) and what says which fields do nothing there
// (trial/local/ineffective_fields.cc). Pure functions; what they return points into the tree that
// was given.
#pragma once

#include <string>

#include "base/status.h"
#include "google/protobuf/struct.pb.h"

namespace shirabe::trial {

inline constexpr char kTrialSpecPath[] = "spec.trialTemplate.trialSpec";

// A part of the tree, and how messages name it.
struct TemplatePart {
  const google::protobuf::Struct* fields = nullptr;
  std::string path;
};

struct TemplatePod {
  TemplatePart container;
  TemplatePart pod;  // that has the list of containers
  TemplatePart job;  // that has the template; `fields` null: the object is the pod itself
};

// kInvalidArgument, with the path and the fix, unless exactly one container has this name.
StatusOr<TemplatePod> FindPod(const google::protobuf::Value& object,
                              const std::string& primary_container);

// Null where it is not there, or null.
const google::protobuf::Value* FindField(const google::protobuf::Struct& object,
                                         const std::string& name);
// The field `name` of a container; "" where it has none.
std::string ContainerName(const google::protobuf::Struct& container);

// kInvalidArgument about the field at `path`.
Status InvalidField(const std::string& path, const std::string& what);

}  // namespace shirabe::trial
