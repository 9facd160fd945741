// The program beside us, seen through what its supervisor leaves in the pod's run folder: it is in
// another container, so that no process of it can be seen. Stateless.
#pragma once

#include <optional>

#include "proto/shirabe/v1/pod.pb.h"
#include "sidecar/pod.h"

namespace shirabe::sidecar {

struct Program {
  bool started = false;                 // its supervisor has published itself
  bool ended = false;                   // nothing more will come of it
  std::optional<v1::ProgramExit> exit;  // how, unless its supervisor was killed as well
};

Program LookAtProgram(const Pod& pod);

}  // namespace shirabe::sidecar
