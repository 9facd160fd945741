// What the kinds of collectors read, from the options of their values in experiment.proto, for all
// who prepare something for a collector and do not know it: specifications, pods, the sidecar.
// Functions without state.
#pragma once

#include <string>

#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::v1 {

inline const google::protobuf::EnumValueOptions& OptionsOf(CollectorKind kind) {
  const auto* known = CollectorKind_descriptor()->FindValueByNumber(kind);
  return known == nullptr ? google::protobuf::EnumValueOptions::default_instance()
                          : known->options();
}

// Of a kind that is not known, or not given: it reads nothing.
inline const CollectorTraits& TraitsOf(CollectorKind kind) {
  return OptionsOf(kind).GetExtension(collector);
}

inline const CollectorTraits& TraitsOf(const MetricsCollectorSpec& spec) {
  return TraitsOf(spec.collector().kind());
}

// Katib's word for the kind: the name of the collector. "" if it is not known.
inline const std::string& NameOf(CollectorKind kind) {
  return OptionsOf(kind).GetExtension(value).yaml();
}

// Reads a file or a folder of source.fileSystemPath.
inline bool ReadsPath(const CollectorTraits& traits) {
  return !traits.file().empty() || !traits.directory().empty();
}

// In a cluster nothing of what it reads leaves the pod by itself.
inline bool ReadsInPod(const CollectorTraits& traits) {
  return ReadsPath(traits) || traits.http() || traits.container();
}

}  // namespace shirabe::v1
