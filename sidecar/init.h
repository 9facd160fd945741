// `shirabe pod init`: what is done in a pod before its program starts. It puts the supervisor in
// place, makes the directories, writes the parameters, and copies the newest intact checkpoint that
// the attempt may go on from into the attempt's own directory. Running it again is harmless: what
// stands is used, and once the program has started nothing is touched any more.
#pragma once

#include "base/status.h"
#include "sidecar/pod.h"

namespace shirabe::sidecar {

// Returns once all is in place, however large the checkpoint is. kUnavailable: the volume does not
// answer or is full; the pod is to try again.
Status Init(const Pod& pod);

}  // namespace shirabe::sidecar
