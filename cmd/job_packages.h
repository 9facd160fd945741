// The packages that a job of AI Platform names (trainingInput.packageUris, --packages): fetched
// from their buckets, put together as the Python that imports them wants them, and uploaded as one
// code package. Used by the verbs that submit experiments, on the main thread.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "client/state_location.h"
#include "cmd/verb_flags.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::cmd {

// What is packed with those that the experiment names.
struct MorePackages {
  std::vector<std::string> archives;  // tar.gz of this machine, or gs://BUCKET/OBJECT
  std::string folder;                 // of a Python package of this machine; "" = none
};

// Of an experiment that names none, and of no more, nothing is done. Else spec.shirabe.code has
// them afterwards, and the annotation kPackageUris the digest of each. An archive is read as a
// source distribution of Python, else as it is; nothing in it is run. kInvalidArgument, with field
// and fix, for a bucket of no store, and for what is no archive; else the errors of stores.
Status FetchPackages(v1::Experiment& experiment, const MorePackages& more, const Globals& globals,
                     const client::StateLocation& place);

}  // namespace shirabe::cmd
