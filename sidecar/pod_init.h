// `shirabe pod init`: what is done in a pod before its program starts. It puts the supervisor in
// place, makes the directories, writes the parameters, and copies the newest intact checkpoint that
// the attempt may go on from into the attempt's own directory. Running it again is harmless: what
// stands is used, and once the program has started nothing is touched any more.
#pragma once

#include "base/status.h"
#include "sidecar/pod_config.h"

namespace shirabe::sidecar {

// Returns once all is in place, however large the checkpoint is. kUnavailable: the volume does not
// answer or is full; the pod is to try again.
Status Init(const Pod& pod);

// `shirabe pod folders`: runs before everything else in a pod whose checkpoints lie on a volume
// that trials share. It alone mounts the whole volume, makes the folders there that the containers
// after it mount, and ends; it reads no file. Running it again is harmless.
//
// What programs of earlier attempts have left on the volume is not trusted: no symbolic link is
// followed, and nothing outside of the volume is touched.

// kUnavailable: the volume does not answer or is full; the pod is to try again. kInvalidArgument: a
// link or a file stands where a folder is to be.
Status MakeHomeFolders(const Pod& pod);

// So that programs of any user can make theirs beside it. What is another user's already, and open,
// is left.
Status MakeWorldWritable(int folder, const std::string& shown);

}  // namespace shirabe::sidecar
