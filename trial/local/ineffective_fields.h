// Which fields of a trial's object do nothing where its trials are processes of this machine: those
// that only a cluster can mean. Nothing is ignored in silence. Pure.
#pragma once

#include <string>
#include <vector>

#include "google/protobuf/struct.pb.h"

namespace shirabe::trial {

struct IneffectiveField {
  std::string path;     // of the container, pod or Job
  std::string message;  // "volumeMounts and securityContext do nothing on this machine …"
};

// In the order of their paths; none if the object cannot be read as one (ReadCommand says why).
std::vector<IneffectiveField> FindIneffectiveFields(const google::protobuf::Struct& trial_spec,
                                                    const std::string& primary_container);

}  // namespace shirabe::trial
