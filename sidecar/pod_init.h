// `shirabe pod init`: what is done in a pod before its program starts. It puts the supervisor in
// place, makes the directories, writes the parameters, fetches the program's code, and copies the
// newest intact checkpoint that the attempt may go on from into the attempt's own directory, from a
// store where the pod's volume does not have it. Running it again is harmless: what
// stands is used, and once the program has started nothing is touched any more.
#pragma once

#include "artifacts/retries.h"
#include "base/status.h"
#include "sidecar/pod_config.h"
#include "sidecar/store_access.h"

namespace shirabe::sidecar {

struct InitOptions {
  PodStores stores = {};
  // Of the code package as a whole: some minutes.
  artifacts::RetryPolicy fetch{.attempts = 12,
                               .backoff = {.first = absl::Seconds(1), .max = absl::Seconds(15)}};
};

// Returns once all is in place, however large the checkpoint is. kUnavailable: the volume or the
// store does not answer, or is full; the pod is to try again. kPermissionDenied: the volume is
// another user's. kDataLoss: the code package is not to be had, or is not what the experiment says.
Status Init(const Pod& pod, const InitOptions& options = {});

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
