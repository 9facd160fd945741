#include "base/names.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "base/printable.h"

namespace shirabe {
namespace {

constexpr size_t kMaxExperimentName = 40;
constexpr size_t kMaxNamespace = 63;
constexpr size_t kMaxPoolName = 40;
constexpr std::string_view kFollowUpName = "on-success";
constexpr size_t kMaxShown = 100;  // bytes of a name that is refused

bool IsLowerOrDigit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

Status ValidateLabel(const std::string& what, std::string_view name, size_t max) {
  const bool good =
      !name.empty() && name.size() <= max && IsLowerOrDigit(name.front()) &&
      IsLowerOrDigit(name.back()) &&
      std::all_of(name.begin(), name.end(), [](char c) { return c == '-' || IsLowerOrDigit(c); });
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(what + " \"" + Printable(name.substr(0, kMaxShown)) +
                                    (name.size() > kMaxShown ? "…" : "") + "\" must be 1 to " +
                                    std::to_string(max) +
                                    " lower-case letters, digits and '-', beginning and ending "
                                    "with a letter or digit");
}

// No leading zero either: each name has one spelling.
template <class Int>
std::optional<Int> ParsePositive(std::string_view text) {
  Int number = 0;
  if (!text.empty() && text[0] == '0') return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1) return std::nullopt;
  return number;
}

// "exp-on-success" or "exp/on-success".
std::optional<TrialKey> ParseFollowUpName(std::string_view text, std::string_view ns) {
  if (text.size() <= kFollowUpName.size()) return std::nullopt;
  const size_t cut = text.size() - kFollowUpName.size() - 1;
  if (text.substr(cut + 1) != kFollowUpName || (text[cut] != '-' && text[cut] != '/') ||
      !ValidateExperimentName(text.substr(0, cut)).ok()) {
    return std::nullopt;
  }
  return TrialKey{{std::string(ns), std::string(text.substr(0, cut))}, kFollowUpNumber};
}

}  // namespace

std::string ToString(const ExperimentKey& key) { return key.ns + "/" + key.name; }

std::string TrialName(const TrialKey& key) {
  if (key.number == kFollowUpNumber) return key.experiment.name + "-" + std::string(kFollowUpName);
  return key.experiment.name + "-" + std::to_string(key.number);
}

std::string AttemptName(const AttemptKey& key) {
  return TrialName(key.trial) + "-a" + std::to_string(key.number);
}

Status ValidateExperimentName(std::string_view name) {
  return ValidateLabel("experiment name", name, kMaxExperimentName);
}

Status ValidateNamespace(std::string_view ns) {
  return ValidateLabel("namespace", ns, kMaxNamespace);
}

Status ValidatePoolName(std::string_view name) { return ValidateLabel("pool", name, kMaxPoolName); }

std::optional<TrialKey> ParseTrialName(std::string_view text, std::string_view ns) {
  if (const auto follow_up = ParseFollowUpName(text, ns)) return follow_up;
  size_t cut = text.rfind('/');
  if (cut == std::string_view::npos) cut = text.rfind('-');
  if (cut == std::string_view::npos) return std::nullopt;
  const auto number = ParsePositive<int64_t>(text.substr(cut + 1));
  if (!number || *number == kFollowUpNumber) return std::nullopt;
  if (!ValidateExperimentName(text.substr(0, cut)).ok()) return std::nullopt;
  return TrialKey{{std::string(ns), std::string(text.substr(0, cut))}, *number};
}

std::optional<AttemptKey> ParseAttemptName(std::string_view text, std::string_view ns) {
  const size_t cut = text.rfind("-a");
  if (cut == std::string_view::npos) return std::nullopt;
  const auto number = ParsePositive<int32_t>(text.substr(cut + 2));
  const auto trial = ParseTrialName(text.substr(0, cut), ns);
  if (!number || !trial) return std::nullopt;
  return AttemptKey{*trial, *number};
}

std::string ParameterVariable(std::string_view parameter) {
  std::string name = "SHIRABE_PARAM_";
  for (char c : parameter) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool digit = c >= '0' && c <= '9';
    name += letter ? static_cast<char>(c & ~0x20) : digit ? c : '_';
  }
  return name;
}

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
