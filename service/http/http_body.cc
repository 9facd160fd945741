#include "service/http/http_body.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/clock.h"
#include "base/text/json_text.h"
#include "base/text/message_check.h"
#include "base/text/number.h"
#include "base/text/yaml_tree.h"
#include "experiment/spec/findings.h"
#include "experiment/spec/parse_spec.h"
#include "experiment/spec/validate_rules.h"
#include "experiment/spec/yaml_to_message.h"
#include "service/http/http_message.h"

namespace shirabe::service {
namespace {

using experiment::Finding;
using experiment::Findings;

constexpr size_t kMaxWarnings = 10;

HttpHeaders WarningsOf(const std::vector<Finding>& findings) {
  HttpHeaders headers;
  for (const Finding& finding : findings) {
    if (!finding.warning || headers.size() == kMaxWarnings) continue;
    const std::string text = finding.path + ": " + finding.message;
    headers.emplace_back(
        "Warning", absl::StrCat("299 - \"",
                                absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}}), "\""));
  }
  return headers;
}

}  // namespace

// The namespace that the text itself names; "" if it names none.
std::string NamedNamespace(const std::string& text) {
  const auto documents = ParseYaml(text);
  if (documents.empty()) return "";
  const auto* metadata = documents[0].root.Find("metadata");
  const auto* ns = metadata == nullptr ? nullptr : metadata->Find("namespace");
  return ns == nullptr ? "" : ns->text;
}

Status ReadBody(const HttpRequest& request, google::protobuf::Message& message) {
  Findings findings;
  // Its size was limited when it was read; the other limits of YAML hold.
  const auto documents = ParseYaml(request.body, request.body.size());
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
  return BadSpec("the body is not as it should be", findings.Sorted());
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

namespace {

Json FindingJson(const experiment::Finding& finding) {
  Json json = {{"level", finding.warning ? "warning" : "error"},
               {"field", finding.path},
               {"message", finding.message}};
  if (finding.line > 0) json["line"] = finding.line;
  if (finding.column > 0) json["column"] = finding.column;
  return json;
}

}  // namespace

Json FindingsJson(const std::vector<experiment::Finding>& findings) {
  Json json = Json::array();
  for (const auto& finding : findings) json.push_back(FindingJson(finding));
  return json;
}

HttpReply JsonReply(const Json& body, int status) {
  return {.status = status, .body = view::PrintJsonLine(body) + "\n"};
}

HttpReply ExperimentReply(const v1::Experiment& experiment, int status) {
  HttpReply reply = JsonReply(view::ExperimentJson(experiment), status);
  reply.headers.emplace_back("ETag", absl::StrCat("\"", experiment.metadata().generation(), "\""));
  return reply;
}

Json ListJson(std::vector<Json> items) {
  return {{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(items)}};
}

namespace {

constexpr char kTokenPrefix[] = "p";
constexpr char kPositionPrefix[] = "k";

Status NotOurs() {
  return BadField("pageToken", "is none of ours: take nextPageToken of the page before");
}

// A number as text, for a token in JSON must hold infinities, too.
Json OrderJson(const view::FieldValue& order) {
  if (const double* number = std::get_if<double>(&order))
    return Json::array({FormatNumber(*number)});
  if (const std::string* text = std::get_if<std::string>(&order)) return *text;
  return nullptr;
}

std::optional<view::FieldValue> ReadOrder(const Json& json) {
  if (json.is_null()) return view::FieldValue();
  if (json.is_string()) return json.get<std::string>();
  if (!json.is_array() || json.size() != 1 || !json[0].is_string()) return std::nullopt;
  const auto number = ParseNumber(json[0].get<std::string>());
  if (!number) return std::nullopt;
  return *number;
}

}  // namespace

std::vector<Parameter> PageParameters(bool selecting) {
  std::vector<Parameter> parameters = {
      {.name = "pageSize",
       .help = "most items of one reply",
       .type = Parameter::Type::kInteger,
       .min = 1,
       .max = kMaxPageSize,
       .default_value = std::to_string(kDefaultPageSize)},
      {.name = "pageToken", .help = "nextPageToken of the page before"}};
  if (!selecting) return parameters;
  parameters.push_back({.name = "filter",
                        .help = "conditions parted by commas, as of --filter: "
                                "state=Failed,param.lr<1e-3"});
  parameters.push_back(
      {.name = "sort", .help = "a field to order by, as of --sort-by; ~ before it turns it round"});
  return parameters;
}

std::string PageToken(int64_t after) { return absl::StrCat(kTokenPrefix, after); }

StatusOr<int64_t> ReadPageToken(const Call& call) {
  const std::string token = call.Text("pageToken");
  if (token.empty()) return 0;
  int64_t after = 0;
  const bool read = token.rfind(kTokenPrefix, 0) == 0 &&
                    absl::SimpleAtoi(token.substr(1), &after) && after >= 0 &&
                    PageToken(after) == token;
  if (read) return after;
  return NotOurs();
}

StatusOr<PagePosition> ReadPosition(const Call& call) {
  const std::string sort = call.Text("sort");
  PagePosition position{.last = std::nullopt,
                        .time = absl::FromUnixMicros(absl::ToUnixMicros(call.context.clock->Now())),
                        .descending = sort.rfind('~', 0) == 0};
  const std::string token = call.Text("pageToken");
  if (token.empty()) return position;
  if (token.rfind(kTokenPrefix, 0) == 0) {
    return BadField("pageToken",
                    "is of another list, or of an older server, which counted places: begin again "
                    "without it");
  }
  std::string text;
  if (token.rfind(kPositionPrefix, 0) != 0 ||
      !absl::WebSafeBase64Unescape(token.substr(1), &text)) {
    return NotOurs();
  }
  const Json json = ReadJsonOrDiscarded<Json>(text, kRequestJson);
  const bool shaped = json.is_array() && json.size() == 4 && json[0].is_string() &&
                      json[1].is_number_integer() && json[3].is_array();
  const auto order = shaped ? ReadOrder(json[2]) : std::nullopt;
  if (!order) return NotOurs();
  if (json[0].get<std::string>() != sort) {
    return BadField("pageToken",
                    "is of the list in another order (sort=" + json[0].get<std::string>() +
                        "): ask for all pages in the same one");
  }
  position.time = absl::FromUnixMicros(json[1].get<int64_t>());
  position.last = PageKey{*order, json[3]};
  return position;
}

std::string PositionToken(const Call& call, const PagePosition& position, const PageKey& last) {
  const Json json = Json::array(
      {call.Text("sort"), absl::ToUnixMicros(position.time), OrderJson(last.order), last.key});
  return absl::StrCat(kPositionPrefix, absl::WebSafeBase64Escape(view::PrintJsonLine(json)));
}

bool IsAfter(const PagePosition& position, const PageKey& place) {
  if (!position.last) return true;
  const PageKey& last = *position.last;
  if (view::Before(last.order, place.order, position.descending)) return true;
  if (view::Before(place.order, last.order, position.descending)) return false;
  return last.key < place.key;
}

HttpReply PageReply(Page page, int64_t revision) {
  Json list = ListJson(std::move(page.items));
  if (!page.next.empty()) list["nextPageToken"] = page.next;
  list["revision"] = revision;
  return JsonReply(list);
}

}  // namespace shirabe::service
