// What the program of a trial is not handed: parameters that do not exist in it, for conditions of
// the search space (spec.shirabe.space.conditions). Pure functions. Used where an attempt
// is asked for, and by the check of a specification.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "google/protobuf/struct.pb.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::trial {

// A reference that stands where it cannot be taken out.
struct LastingReference {
  std::string path;  // of the text
  std::string name;  // of the trialParameter
};

// Takes out of a trial's object what hands on these trialParameters: an element `--x=${…}` of a
// list, an element `${…}` together with the flag before it, and an entry of env with `${…}` as its
// whole value. Returns what stands elsewhere.
std::vector<LastingReference> RemoveReferences(google::protobuf::Struct& object,
                                               const std::set<std::string>& names);

// The same template for a trial that has no value of the `inactive` parameters: without the
// trialParameters that name them, and what hands those on. kInvalidArgument, with the path and the
// fix, for what cannot be taken out.
StatusOr<v1::TrialTemplate> WithoutInactive(const v1::TrialTemplate& from,
                                            const std::set<std::string>& inactive);

// How to write it instead, for messages about a LastingReference.
inline constexpr char kRemovableForms[] =
    "make it an argument of its own (\"--x=${…}\", or \"--x\" and then \"${…}\"), or the whole "
    "value of an entry of env, or read it from the file $SHIRABE_PARAMS_FILE";

}  // namespace shirabe::trial
