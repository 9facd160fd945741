// Katib's gRPC messages (package api.v1.beta1) and our values: the search space, the objective, the
// settings, and points as text. Text becomes a number here, exactly (base/text/number), and a
// number text, in both directions: for the services that answer Katib's clients, and for the client
// of a remote algorithm. Pure functions.
//
// A listed value keeps the text of its list ("0.10" stays "0.10"), because Katib's programs look
// it up there; every other number is written in the shortest form that reads back as the same.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "proto/katib/v1beta1/api.pb.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "suggestion/space/search_space.h"

namespace shirabe::suggestion {

namespace katib = ::api::v1::beta1;

using KatibAssignments = google::protobuf::RepeatedPtrField<katib::ParameterAssignment>;

// As the wire has it: name, parameters, objective, algorithm, early stopping, counts, nasConfig.
katib::Experiment ToKatib(const v1::Experiment& experiment);

// The reverse, in namespace "default". kInvalidArgument, naming the field as the YAML calls it, the
// value and the fix, for text that is no number; what the numbers mean is not checked, nor that
// anything but the types of the parameters is there.
StatusOr<v1::Experiment> FromKatib(const katib::Experiment& experiment);

// The values of a point, in the order of the parameters.
KatibAssignments FormatPoint(const v1::ExperimentSpec& spec, const Space& space,
                             const Point& point);

// The reverse. kInvalidArgument, naming the parameter, the value and what is allowed, for one that
// is missing, twice there, unknown, no number, not finite or outside of the space.
StatusOr<Point> ParsePoint(const Space& space, const KatibAssignments& assignments);

}  // namespace shirabe::suggestion
