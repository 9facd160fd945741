#include "service/http_body.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/message_check.h"
#include "base/yaml_tree.h"
#include "experiment/findings.h"
#include "experiment/spec.h"
#include "experiment/validate.h"
#include "experiment/walker.h"
#include "service/http_errors.h"

namespace shirabe::service {
namespace {

using experiment::Finding;
using experiment::Findings;

constexpr size_t kMostWarnings = 10;

// The namespace that the text itself names; "" if it names none.
std::string NamedNamespace(const std::string& text) {
  const auto documents = ParseYaml(text);
  if (documents.empty()) return "";
  const auto* metadata = documents[0].root.Find("metadata");
  const auto* ns = metadata == nullptr ? nullptr : metadata->Find("namespace");
  return ns == nullptr ? "" : ns->text;
}

HttpHeaders WarningsOf(const std::vector<Finding>& findings) {
  HttpHeaders headers;
  for (const Finding& finding : findings) {
    if (!finding.warning || headers.size() == kMostWarnings) continue;
    const std::string text = finding.path + ": " + finding.message;
    headers.emplace_back(
        "Warning", absl::StrCat("299 - \"",
                                absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}}), "\""));
  }
  return headers;
}

}  // namespace

Status ReadBody(const HttpRequest& request, google::protobuf::Message& message) {
  Findings findings;
  const auto documents = ParseYaml(request.body);
  if (documents.size() > 1) {
    return absl::InvalidArgumentError("the body must be one object, not several documents");
  }
  if (!documents.empty()) {
    for (const auto& problem : documents[0].problems) {
      findings.Problem(problem.mark, problem.message);
    }
    if (!documents[0].broken && documents[0].root.kind != YamlNode::Kind::kMapping) {
      return absl::InvalidArgumentError("the body must be an object, not " +
                                        Describe(documents[0].root));
    }
    if (!documents[0].broken) experiment::Walk(documents[0].root, message, findings);
  }
  if (findings.errors() == 0) experiment::CheckTable(message, "", findings);
  if (const auto problem = FindProblem(message)) findings.Error(problem->path, problem->message);
  if (findings.errors() == 0) return absl::OkStatus();
  return BadSpec("the body is not as it should be", findings.Take());
}

experiment::ParsedExperiment ParseOne(const std::string& text) {
  auto parsed = experiment::ParseExperiments(text);
  if (parsed.size() > 1) {
    parsed[0].findings.push_back(
        {.message = absl::StrCat("there are ", parsed.size(),
                                 " documents; send one experiment a request")});
  }
  return std::move(parsed[0]);
}

StatusOr<ReadExperiment> ReadExperimentBody(const HttpRequest& request, const std::string& ns) {
  experiment::ParsedExperiment parsed = ParseOne(request.body);
  if (experiment::HasErrors(parsed.findings)) {
    return BadSpec("the experiment is not valid", parsed.findings);
  }
  ReadExperiment read{std::move(parsed.experiment), WarningsOf(parsed.findings)};
  const std::string named = NamedNamespace(request.body);
  if (ns.empty() || named == ns) return read;
  if (!named.empty()) {
    return BadField("metadata.namespace",
                    absl::StrCat("is ", named, ", but the URL says ", ns, ": leave it out"));
  }
  read.experiment.mutable_metadata()->set_namespace_(ns);
  return read;
}

HttpReply JsonReply(const Json& body, int status) {
  return {.status = status, .body = client::PrintJsonLine(body) + "\n"};
}

HttpReply ExperimentReply(const v1::Experiment& experiment, int status) {
  HttpReply reply = JsonReply(client::ExperimentJson(experiment), status);
  reply.headers.emplace_back("ETag", absl::StrCat("\"", experiment.metadata().generation(), "\""));
  return reply;
}

Json ListJson(std::vector<Json> items) {
  return {{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(items)}};
}

}  // namespace shirabe::service
