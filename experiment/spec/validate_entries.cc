// Rules of what names entries of an administrator: spec.shirabe.artifacts, code and notifications.
// Which stores there are is known where the experiment is submitted and run
// (artifacts/store_table.h).
#include <re2/re2.h>

#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "artifacts/package/code_package.h"
#include "base/names.h"
#include "base/printable.h"
#include "experiment/spec/field_rules.h"
#include "experiment/spec/validate_rules.h"
#include "notify/endpoints.h"

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

// The store and the prefix that the message at `path` names.
void CheckPlace(const std::string& store, const std::string& prefix, const std::string& path,
                Findings& findings) {
  const Status name = ValidatePoolName(store);
  if (!store.empty() && !name.ok()) findings.Error(path + ".store", Message(name));
  if (!prefix.empty() && !IsPrefix(prefix)) {
    findings.Error(path + ".prefix", Quoted(Printable(prefix.substr(0, kMaxPrefixBytes))) +
                                         " must be " + kPrefixRule);
  }
}

}  // namespace

void CheckCode(const v1::ExperimentSpec& spec, Findings& findings) {
  if (!spec.shirabe().has_code()) return;
  const v1::CodePackage& code = spec.shirabe().code();
  const std::string path = "spec.shirabe.code";
  CheckPlace(code.store(), code.prefix(), path, findings);
  if (!code.package().empty()) {
    const auto digest = artifacts::DigestOfPackage(code.package());
    if (!digest.ok()) findings.Error(path + ".package", Message(digest.status()));
  }
  if (spec.shirabe().ask_and_tell()) {
    return findings.Error(path,
                          "callers that run trials themselves (askAndTell) have their own code: "
                          "remove it");
  }
  const std::string& file = spec.metrics_collector_spec().source().file_system_path().path();
  if (file.empty() || file.front() == '/' || absl::StartsWith(file, "$(")) return;
  findings.Warn("spec.metricsCollectorSpec.source.fileSystemPath.path",
                Quoted(Printable(file)) +
                    " is relative, and where the template names no workingDir the program stands "
                    "in its code package, which it cannot write to: $(SHIRABE_OUTPUT_DIR)/… is the "
                    "trial's own folder");
}

void CheckArtifacts(const v1::ExperimentSpec& spec, Findings& findings) {
  if (!spec.shirabe().has_artifacts()) return;
  const v1::ArtifactPolicy& policy = spec.shirabe().artifacts();
  const std::string path = "spec.shirabe.artifacts";
  CheckPlace(policy.store(), policy.prefix(), path, findings);
  if (spec.shirabe().ask_and_tell()) {
    return findings.Error(path,
                          "callers that run trials themselves (askAndTell) keep their own "
                          "files: remove it");
  }
  if (!policy.checkpoints() && !policy.outputs()) {
    findings.Warn(path, "nothing is copied: set checkpoints: true, or outputs: true");
  }
}

namespace {

void CheckCauses(const v1::Notification& notification, const v1::Budget& budget,
                 const std::string& path, Findings& findings) {
  std::set<int> seen;
  for (int i = 0; i < notification.events_size(); ++i) {
    const std::string item = ItemPath(ChildPath(path, "events"), i);
    if (!seen.insert(notification.events(i)).second) {
      findings.Error(item, "is given twice: remove one");
    } else if (notification.events(i) == v1::ON_BUDGET_THRESHOLD && !budget.has_max_cost()) {
      findings.Warn(item, "nothing is ever told: there is no spec.shirabe.budget.maxCost");
    }
  }
}

}  // namespace

void CheckNotifications(const v1::Experiment& experiment, Findings& findings) {
  const v1::ShirabeSpec& spec = experiment.spec().shirabe();
  std::set<std::string> endpoints;
  for (int i = 0; i < spec.notifications_size(); ++i) {
    const v1::Notification& notification = spec.notifications(i);
    const std::string item = ItemPath("spec.shirabe.notifications", i);
    CheckCauses(notification, spec.budget(), item, findings);
    const std::string& name = notification.webhook().endpoint();
    const std::string path = ChildPath(ChildPath(item, "webhook"), "endpoint");
    if (name.empty() || findings.IsUnreadable(path)) continue;
    const Status valid = notify::ValidateEndpointName(name);
    if (!valid.ok()) {
      findings.Error(path, Message(valid));
    } else if (!endpoints.insert(name).second) {
      findings.Error(path, "\"" + name + "\" is told already: put both lists into one entry");
    } else if (notify::EndpointsAreKnown()) {
      const auto found = notify::FindEndpoint(name, experiment.metadata().namespace_());
      if (!found.ok()) findings.Error(path, Message(found.status()));
    }
  }
}

}  // namespace shirabe::experiment
