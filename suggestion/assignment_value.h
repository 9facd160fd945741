// What a typed assignment holds, for the axes' Encode. Strict: a category is not a number.
#pragma once

#include <string>

#include "base/status.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::suggestion {

// A number or an integer, as a double. kInvalidArgument if it holds a category, NaN or nothing.
StatusOr<double> NumberOf(const v1::Assignment& assignment);
// kInvalidArgument unless it holds a category.
StatusOr<std::string> CategoryOf(const v1::Assignment& assignment);

}  // namespace shirabe::suggestion
