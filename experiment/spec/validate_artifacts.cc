// The rules of spec.shirabe.artifacts. Which stores there are is known where the experiment is
// submitted and run (artifacts/store_table.h).
#include <re2/re2.h>

#include "base/names.h"
#include "base/printable.h"
#include "experiment/spec/validate_rules.h"

namespace shirabe::experiment {
namespace {

constexpr size_t kMaxPrefixBytes = 200;
const char kPrefixRule[] =
    "names of letters, digits and \"._-\", each beginning with a letter or digit and not ending "
    "with .partial, joined by '/', with 200 characters in all";

bool IsPrefix(const std::string& prefix) {
  static const RE2 form("[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*){0,15}");
  static const RE2 partial("\\.partial(/|$)");
  return prefix.size() <= kMaxPrefixBytes && RE2::FullMatch(prefix, form) &&
         !RE2::PartialMatch(prefix, partial);
}

}  // namespace

void CheckArtifacts(const v1::ExperimentSpec& spec, Findings& findings) {
  if (!spec.shirabe().has_artifacts()) return;
  const v1::ArtifactPolicy& policy = spec.shirabe().artifacts();
  const std::string path = "spec.shirabe.artifacts";
  const Status name = ValidatePoolName(policy.store());
  if (!policy.store().empty() && !name.ok()) {
    findings.Error(path + ".store", Message(name));
  }
  if (!policy.prefix().empty() && !IsPrefix(policy.prefix())) {
    findings.Error(path + ".prefix", Quoted(Printable(policy.prefix().substr(0, kMaxPrefixBytes))) +
                                         " must be " + kPrefixRule);
  }
  if (spec.shirabe().ask_and_tell()) {
    return findings.Error(path,
                          "callers that run trials themselves (askAndTell) keep their own "
                          "files: remove it");
  }
  if (!policy.checkpoints()) findings.Warn(path, "nothing is copied: set checkpoints: true");
}

}  // namespace shirabe::experiment
