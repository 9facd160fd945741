#include "experiment/spec/endpoints_file.h"

#include <set>
#include <string>

#include "base/names.h"
#include "experiment/spec/findings.h"
#include "experiment/spec/validate_rules.h"
#include "experiment/spec/yaml_to_message.h"
#include "notify/endpoints.h"

namespace shirabe::experiment {
namespace {

constexpr FileKind kEndpointsFile = {
    .name = "notifications file",
    .example =
        "endpoints: [{name: team, url: https://hooks.example.org/shirabe, secretFile: "
        "/etc/shirabe/team.secret, namespaces: [team]}]"};
constexpr int kMaxEndpoints = 1'000;

void SetEndpointDefaults(v1::NotificationEndpoints& file) {
  for (v1::NotificationEndpoint& endpoint : *file.mutable_endpoints()) {
    if (endpoint.format() == v1::WEBHOOK_FORMAT_UNSPECIFIED) {
      endpoint.set_format(v1::WEBHOOK_JSON);
    }
  }
}

void CheckEndpoint(const v1::NotificationEndpoint& endpoint, const std::string& path,
                   Findings& findings) {
  const Status name = notify::ValidateEndpointName(endpoint.name());
  if (!endpoint.name().empty() && !name.ok()) {
    findings.Error(ChildPath(path, "name"), shirabe::Message(name));
  }
  const bool unread = findings.IsUnreadable(ChildPath(path, "url")) ||
                      findings.IsUnreadable(ChildPath(path, "urlFile"));
  if (endpoint.url().empty() == endpoint.url_file().empty() && !unread) {
    findings.Error(ChildPath(path, "url"),
                   "give one of url and urlFile, which names a file that holds the URL");
  }
  if (endpoint.format() == v1::WEBHOOK_JSON && endpoint.secret_file().empty() &&
      !findings.IsUnreadable(ChildPath(path, "secretFile"))) {
    findings.Error(ChildPath(path, "secretFile"),
                   "is required for format json: the secret that signs what is sent, made with "
                   "`openssl rand -hex 32`");
  }
  for (int i = 0; i < endpoint.namespaces_size(); ++i) {
    const std::string& ns = endpoint.namespaces(i);
    const Status valid = ns == "*" ? absl::OkStatus() : ValidateNamespace(ns);
    if (valid.ok()) continue;
    findings.Error(ItemPath(ChildPath(path, "namespaces"), i), shirabe::Message(valid));
  }
}

void CheckEndpoints(const v1::NotificationEndpoints& file, Findings& findings) {
  CheckTable(file, "", findings);
  if (file.endpoints_size() > kMaxEndpoints) {
    return findings.Error("endpoints", "has " + std::to_string(file.endpoints_size()) +
                                           " items, and at most " + std::to_string(kMaxEndpoints) +
                                           " are taken: give fewer");
  }
  std::set<std::string> names;
  for (int i = 0; i < file.endpoints_size(); ++i) {
    const std::string path = ItemPath("endpoints", i);
    const std::string& name = file.endpoints(i).name();
    CheckEndpoint(file.endpoints(i), path, findings);
    if (name.empty() || names.insert(name).second) continue;
    findings.Error(ChildPath(path, "name"),
                   "\"" + name + "\" is the name of another endpoint: rename one");
  }
}

}  // namespace

ParsedEndpoints ParseEndpoints(std::string_view text) {
  ParsedEndpoints parsed;
  Findings findings;
  if (WalkFile(text, kEndpointsFile, parsed.endpoints, findings)) {
    SetEndpointDefaults(parsed.endpoints);
    CheckEndpoints(parsed.endpoints, findings);
  }
  parsed.findings = findings.Sorted();
  return parsed;
}

}  // namespace shirabe::experiment
