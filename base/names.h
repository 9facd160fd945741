// Keys and the names people see, all of them built and parsed here and nowhere else.
//   trial      <experiment>-<n>          n from 1; on the command line also EXP/n
//   follow-up  <experiment>-on-success   or EXP/on-success; it has attempts as a trial has
//   attempt    <trial>-a<k>              k from 1
// A trial's name is at most 63 characters (a DNS label), hence an experiment's at most 40.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace shirabe {

struct ExperimentKey {
  std::string ns;
  std::string name;
  auto operator<=>(const ExperimentKey&) const = default;
};

struct TrialKey {
  ExperimentKey experiment;
  int64_t number = 0;
  auto operator<=>(const TrialKey&) const = default;
};

struct AttemptKey {
  TrialKey trial;
  int32_t number = 0;
  auto operator<=>(const AttemptKey&) const = default;
};

// The keys of a record: Trial, Attempt, Checkpoint, Event, Intent, Lease.
template <class Record>
ExperimentKey ExperimentKeyOf(const Record& record) {
  return {record.namespace_(), record.experiment()};
}

// ns/name
std::string ToString(const ExperimentKey& key);
std::string TrialName(const TrialKey& key);
std::string AttemptName(const AttemptKey& key);

// kInvalidArgument, with the rule, unless `name` is 1–40 characters of [a-z0-9-] that begin and
// end with a letter or digit.
Status ValidateExperimentName(std::string_view name);
// The same for a namespace, up to 63 characters.
Status ValidateNamespace(std::string_view ns);
// The same for a pool of machines, whose nodes are called after it.
Status ValidatePoolName(std::string_view name);

// "exp-7" or "exp/7" of namespace `ns`, or such a name of the follow-up; nullopt if it is none.
std::optional<TrialKey> ParseTrialName(std::string_view text, std::string_view ns);
std::optional<AttemptKey> ParseAttemptName(std::string_view text, std::string_view ns);

// The environment variable that carries a parameter: SHIRABE_PARAM_ and the name in upper case,
// every other character as '_'.
std::string ParameterVariable(std::string_view parameter);

// The check of a key that came from outside: by gRPC, HTTP, Katib's wire, a pod or the command
// line. Every endpoint calls it once for each key, before anything is looked up or named after that
// key: a name that passes has no '/', no NUL and no "..", and can be a part of a path, a label and
// a URL. Pure functions.

// Trials are also numbers in JSON, where none greater is exact.
inline constexpr int64_t kMaxTrialNumber = int64_t{1} << 53;
// In the place of a trial's number, the experiment's follow-up (spec.shirabe.onSuccess), which is
// no trial and stands in no list of them; no trial is ever counted so far.
inline constexpr int64_t kFollowUpNumber = kMaxTrialNumber;
inline constexpr int32_t kMaxAttemptNumber = 1 << 30;

// kInvalidArgument, naming the part, its value and the rule.
Status ValidateKey(const ExperimentKey& key);
Status ValidateKey(const TrialKey& key);
Status ValidateKey(const AttemptKey& key);

}  // namespace shirabe
