// Whether a valid specification can run here. Asked before it is stored, by the command line and by
// the server. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "experiment/spec/parse_spec.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::experiment {

// Whether this build has its algorithm, stopping rule and collector, wherever its trials run.
// kInvalidArgument, with what is at hand.
Status CheckVariants(const v1::Experiment& experiment);

// "" unless it searches architectures by an algorithm that only another process has (Katib's enas
// and darts): why it cannot run without that process, and how to name it.
std::string WhyNoArchitectures(const v1::ExperimentSpec& spec);

// Whether, besides, its trials can be processes of this machine: the template says what to execute.
// kInvalidArgument, with the field and the fix.
Status CheckRunnable(const v1::Experiment& experiment);

// The annotation that names packages of its program elsewhere, gs://BUCKET/OBJECT,…, as a file of
// AI Platform does. Once they have been fetched and are its spec.shirabe.code, each has the digest
// of its bytes behind it: …@sha256:DIGEST.
inline constexpr char kPackageUris[] = "shirabe.dev/package-uris";
struct PackageUri {
  std::string bucket;
  std::string object;
};
// kInvalidArgument, with the form, for what is no such URI.
StatusOr<PackageUri> ParsePackageUri(const std::string& uri);
std::vector<std::string> PackageUrisOf(const v1::Experiment& experiment);
// kInvalidArgument, with what does so, if they have not been fetched.
Status CheckPackagesFetched(const v1::Experiment& experiment);

// What of it does nothing, or not what it does in a cluster, where its trials are processes of this
// machine, as warnings.
std::vector<Finding> FindIneffectiveLocally(const v1::Experiment& experiment);

}  // namespace shirabe::experiment
