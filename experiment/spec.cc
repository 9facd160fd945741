#include "experiment/spec.h"

#include <algorithm>
#include <utility>

#include "base/yaml_tree.h"
#include "experiment/findings.h"
#include "experiment/validate.h"
#include "experiment/walker.h"

namespace shirabe::experiment {
namespace {

constexpr const char* kApiVersion = "kubeflow.org/v1beta1";
constexpr const char* kKind = "Experiment";

// Whether the document says that it is something else: then nothing in it is looked at.
bool IsAnotherKind(const YamlNode& root, Findings& findings) {
  const YamlNode* kind = root.Find("kind");
  const YamlNode* version = root.Find("apiVersion");
  if (kind != nullptr && kind->kind == YamlNode::Kind::kString && kind->text != kKind) {
    findings.Misread(
        "kind", kind->mark,
        Describe(*kind) + " is not an " + kKind + ": keep other objects in files of their own");
    return true;
  }
  if (version != nullptr && version->kind == YamlNode::Kind::kString &&
      version->text != kApiVersion) {
    findings.Misread("apiVersion", version->mark,
                     Describe(*version) + " is not supported; write " + kApiVersion);
    // An older version of Katib has other fields: their errors would only confuse.
    return true;
  }
  return false;
}

ParsedExperiment Read(const YamlDocument& document) {
  ParsedExperiment parsed;
  Findings findings;
  for (const YamlProblem& problem : document.problems) {
    findings.Problem(problem.mark, problem.message);
  }
  // After a problem of the text itself the tree is not what was meant, and the rules would guess.
  if (!document.broken && !IsAnotherKind(document.root, findings)) {
    Walk(document.root, parsed.experiment, findings);
    SetDefaults(parsed.experiment);
    CheckRules(parsed.experiment, findings);
  }
  parsed.findings = findings.Take();
  return parsed;
}

}  // namespace

bool HasErrors(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return !finding.warning; });
}

std::string FormatFinding(const Finding& finding, std::string_view file) {
  std::string text(file);
  if (finding.line > 0) {
    if (!text.empty()) text += ":";
    text += std::to_string(finding.line) + ":" + std::to_string(finding.column);
  }
  if (!text.empty()) text += ": ";
  text += finding.warning ? "warning: " : "error: ";
  return text + InWords(finding);
}

std::vector<ParsedExperiment> ParseExperiments(std::string_view text) {
  std::vector<ParsedExperiment> parsed;
  for (const YamlDocument& document : ParseYaml(text)) parsed.push_back(Read(document));
  if (parsed.empty()) {
    parsed.emplace_back().findings.push_back(
        {false, "", "the text holds no document: write an Experiment", 1, 1});
  }
  return parsed;
}

std::vector<Finding> Validate(const v1::Experiment& experiment) {
  Findings findings;
  if (experiment.api_version() != kApiVersion && !experiment.api_version().empty()) {
    findings.Error("apiVersion", "must be " + std::string(kApiVersion));
  }
  if (experiment.kind() != kKind && !experiment.kind().empty()) {
    findings.Error("kind", "must be " + std::string(kKind));
  }
  CheckRules(experiment, findings);
  return findings.Take();
}

}  // namespace shirabe::experiment
