// The check of a key that came from outside: by gRPC, HTTP, Katib's wire, a pod or the command
// line. Every door calls it once for each key, before anything is looked up or named after that
// key: a name that passes has no '/', no NUL and no "..", and can be a part of a path, a label and
// a URL. Pure functions.
#pragma once

#include <cstdint>

#include "base/names.h"
#include "base/status.h"

namespace shirabe {

// Trials are also numbers in JSON, where none greater is exact.
inline constexpr int64_t kMaxTrialNumber = int64_t{1} << 53;
inline constexpr int32_t kMaxAttemptNumber = 1 << 30;

// kInvalidArgument, naming the part, its value and the rule.
Status ValidateKey(const ExperimentKey& key);
Status ValidateKey(const TrialKey& key);
Status ValidateKey(const AttemptKey& key);

}  // namespace shirabe
