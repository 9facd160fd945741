// The pod that our containers stand in: what they are to do, and where things lie. Read once at the
// start of each of them; a value.
#pragma once

#include <optional>
#include <string>

#include "base/names.h"
#include "base/status.h"
#include "proto/shirabe/v1/pod.pb.h"
#include "trial/attempt_status.h"
#include "trial/pod/pod_names.h"

namespace shirabe::sidecar {

struct Pod {
  v1::PodConfig config;
  AttemptKey key;
  trial::AttemptPaths paths;  // in the pod
  std::string root;           // /shirabe; another one in tests
  bool checkpoints = true;    // they are committed
  bool katib_folder = false;  // the program knows one: trial/checkpoint/katib_folder.h

  std::string home() const;  // of checkpoints and outputs
  std::string run(const std::string& name) const { return paths.dir + "/" + name; }
};

// `json` is the value of SHIRABE_POD. kInvalidArgument, naming the field, if it cannot be used.
StatusOr<Pod> ReadPod(const std::string& json, const std::string& root);

// A message as a JSON file, and back.
Status WriteMessage(const std::string& path, const google::protobuf::Message& message);
Status ReadMessage(const std::string& path, google::protobuf::Message& message);

// The program beside us, seen through what its supervisor leaves in the pod's run folder: it is in
// another container, so that no process of it can be seen. Stateless.
struct ProgramState {
  bool started = false;                 // its supervisor has published itself
  bool ended = false;                   // nothing more will come of it
  std::optional<v1::ProgramExit> exit;  // how, unless its supervisor was killed as well
};

ProgramState ReadProgramState(const Pod& pod);

}  // namespace shirabe::sidecar
