// Turns a trial template into the object that one attempt runs: ${trialParameters.x} becomes the
// assigned value as text (typed → text, here and nowhere else), ${trialSpec.…} metadata. Pure
// functions; substitution happens inside string values of the tree, never in YAML text, so no value
// can change the structure. A string that is only one reference stays a string.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/names.h"
#include "base/status.h"
#include "google/protobuf/struct.pb.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::trial {

// "0.001", "32", "adam": the shortest text that reads back as the same value.
std::string FormatAssignment(const v1::Assignment& assignment);

// The names used as ${trialParameters.NAME} anywhere in the tree, sorted, once each.
std::vector<std::string> ReferencedParameters(const google::protobuf::Struct& trial_spec);

// The same of one text.
std::set<std::string> ReferencedIn(const std::string& text);

// Whether a trialParameter's reference is metadata (${trialSpec.Name}, Namespace, Kind,
// APIVersion, Annotations[key], Labels[key]) instead of a parameter of the search space.
bool IsMetadataReference(const std::string& reference);

// kInvalidArgument, naming it, for a label or annotation that the object does not have; OK for
// whatever else a reference is.
Status CheckMetadataReference(const std::string& reference,
                              const google::protobuf::Struct& trial_spec);

// kInvalidArgument, naming it, for a reference that nothing binds.
StatusOr<google::protobuf::Struct> Render(const v1::TrialTemplate& trial_template,
                                          const TrialKey& trial,
                                          const std::vector<v1::Assignment>& assignments);

// What a container runs.
struct ContainerCommand {
  std::vector<std::string> argv;                         // command, then args
  std::vector<std::pair<std::string, std::string>> env;  // in order
  std::string working_dir;                               // "" = not given
};

struct InitCommand {
  std::string name;
  ContainerCommand command;
};

// How long an attempt may run: the least activeDeadlineSeconds of its Job and its pod.
struct TimeLimit {
  absl::Duration time;
  bool of_job = false;  // else of the pod
};

// What the primary container of a rendered object runs, and what comes before it.
struct Command : ContainerCommand {
  int gpus = 0;                   // nvidia.com/gpu of limits or requests
  std::vector<InitCommand> init;  // the pod's init containers, in order
  std::optional<TimeLimit> limit;
};

// Finds the primary container in a Job, a Pod, or any object with exactly one pod template that
// holds a container of that name, and reads its command. $(VAR) in command, args and env is
// expanded as in a pod ($$(VAR) is literal, an unknown $(VAR) stays) from its own env and from
// `environment`. kInvalidArgument, with the path of the field and the fix: no such container,
// no `command` (an image's entrypoint exists only in a cluster), env with valueFrom, several pods,
// an init container that stays beside the program.
StatusOr<Command> ReadCommand(const google::protobuf::Struct& trial_spec,
                              const std::string& primary_container,
                              const std::map<std::string, std::string>& environment);

// Where in the object of a trial its program stands: the container, its pod, and the Job (or what
// else has the pod's template) around that. Used by what runs a trial as a process
// (trial/container_command.cc) and what says which fields do nothing there
// (trial/local/ineffective_fields.cc). Pure functions; what they return points into the tree that
// was given.

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
