#include "base/keys.h"

#include <string>

namespace shirabe {
namespace {

Status ValidateNumber(const std::string& what, int64_t number, int64_t max) {
  if (number >= 1 && number <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(what + " " + std::to_string(number) + " must be from 1 to " +
                                    std::to_string(max) + ": " + what + "s are numbered from 1");
}

}  // namespace

Status ValidateKey(const ExperimentKey& key) {
  RETURN_IF_ERROR(ValidateNamespace(key.ns));
  return ValidateExperimentName(key.name);
}

Status ValidateKey(const TrialKey& key) {
  RETURN_IF_ERROR(ValidateKey(key.experiment));
  return ValidateNumber("trial", key.number, kMaxTrialNumber);
}

Status ValidateKey(const AttemptKey& key) {
  RETURN_IF_ERROR(ValidateKey(key.trial));
  return ValidateNumber("attempt", key.number, kMaxAttemptNumber);
}

}  // namespace shirabe
