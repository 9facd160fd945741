// From one parameter of the specification to its part of the codec: checks it and picks the kind of
// axis. Called by Space::Create only.
#pragma once

#include <memory>

#include "base/status.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "suggestion/space/axis.h"

namespace shirabe::suggestion {

// kInvalidArgument, with the field, its value and the fix, but without the parameter's name, which
// the caller puts in front.
StatusOr<std::unique_ptr<Axis>> MakeAxis(const v1::ParameterSpec& spec);

}  // namespace shirabe::suggestion
