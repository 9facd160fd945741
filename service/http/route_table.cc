#include "service/http/route_table.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/text/did_you_mean.h"
#include "service/common/authorization.h"
#include "service/common/suggestion_scheduler.h"
#include "service/http/http_message.h"

namespace shirabe::service {

namespace {

v1::Rights RightsOfRoute(const Route& route) {
  v1::Rights rights =
      route.rpc.empty() ? route.rights : RightsOf("shirabe.v1.Shirabe/" + route.rpc);
  const bool named = absl::StrContains(route.path, "{namespace}");
  if (rights.audience() == v1::Rights::NAMESPACE && !named)
    rights.set_audience(v1::Rights::CALLERS);
  return rights;
}

Parameter PathParameter(const std::string& name) {
  Parameter parameter{.name = name, .in = Parameter::In::kPath};
  if (name == "namespace") parameter.help = "namespace of the experiment";
  if (name == "name") parameter.help = "name of the experiment, or of the variant";
  if (name == "trial") parameter.help = "number of the trial, from 1";
  if (name == "file") parameter.help = "name of the file";
  if (name == "attempt") parameter.help = "number of the attempt, from 1";
  if (name == "step") parameter.help = "step of the checkpoint, from 1";
  if (name == "trial" || name == "attempt" || name == "step") {
    parameter.type = Parameter::Type::kInteger;
    parameter.min = 1;
    parameter.max = name == "attempt" ? 1 << 30 : int64_t{1} << 53;
  }
  return parameter;
}

}  // namespace

std::string Call::Text(const std::string& name) const {
  const auto found = parameters.find(name);
  return found == parameters.end() ? "" : found->second;
}

int64_t Call::Integer(const std::string& name, int64_t otherwise) const {
  int64_t value = otherwise;
  const auto found = parameters.find(name);
  if (found != parameters.end()) CHECK(absl::SimpleAtoi(found->second, &value));
  return value;
}

// `?verbose` alone says yes.
bool Call::Flag(const std::string& name) const {
  const auto found = parameters.find(name);
  return found != parameters.end() && found->second != "false";
}

ExperimentKey Call::Experiment() const { return {Text("namespace"), Text("name")}; }

TrialKey Call::Trial() const { return {Experiment(), Integer("trial", 0)}; }

StatusOr<Quota::Share> Call::AcquireWait() const {
  Quotas* quotas = context.quotas;
  auto share = Quota::Acquire(quotas == nullptr ? nullptr : &quotas->waits, caller);
  if (!share.ok()) return TooMany(share.status());
  return share;
}

StatusOr<Quota::Share> Call::AcquireStream() const {
  Quotas* quotas = context.quotas;
  auto share = Quota::Acquire(quotas == nullptr ? nullptr : &quotas->streams, caller);
  if (!share.ok()) return TooMany(share.status());
  return share;
}

const std::vector<Route>& Routes() {
  static const std::vector<Route> routes = [] {
    std::vector<Route> all;
    const auto& groups = Registry<RouteGroup>::Get();
    for (const std::string& name : groups.Names()) {
      for (Route& route : groups.Find(name)->routes()) {
        route.rights = RightsOfRoute(route);
        all.push_back(std::move(route));
      }
    }
    return all;
  }();
  return routes;
}

std::vector<Parameter> PathParameters(const std::string& path) {
  std::vector<Parameter> parameters;
  size_t open = path.find('{');
  while (open != std::string::npos) {
    const size_t close = path.find('}', open);
    parameters.push_back(PathParameter(path.substr(open + 1, close - open - 1)));
    open = path.find('{', close);
  }
  return parameters;
}

namespace {

// A part of a path: a word, or "{name}" with perhaps a verb behind it (":pause").
struct Segment {
  std::string word;       // "" for a parameter
  std::string parameter;  // "" for a word
  std::string verb;

  bool MatchesText(const std::string& text) const {
    if (parameter.empty()) return text == word;
    const std::string value = Value(text);
    return absl::EndsWith(text, verb) && !value.empty() && !absl::StrContains(value, ":");
  }
  std::string Value(const std::string& text) const {
    return text.size() < verb.size() ? "" : text.substr(0, text.size() - verb.size());
  }
};

struct Pattern {
  const Route* route;
  std::vector<Segment> segments;
};

Segment ParseSegment(const std::string& text) {
  if (text.empty() || text[0] != '{') return {.word = text};
  const size_t close = text.find('}');
  return {.parameter = text.substr(1, close - 1), .verb = text.substr(close + 1)};
}

const std::vector<Pattern>& Patterns() {
  static const std::vector<Pattern> patterns = [] {
    std::vector<Pattern> all;
    for (const Route& route : Routes()) {
      Pattern pattern{&route, {}};
      const std::vector<std::string> parts =
          absl::StrSplit(route.path.substr(1), '/', absl::SkipEmpty());
      for (const std::string& part : parts) pattern.segments.push_back(ParseSegment(part));
      all.push_back(std::move(pattern));
    }
    return all;
  }();
  return patterns;
}

// How many parts of the path do not fit; all of them if their number differs. The last that does
// not is `odd`.
size_t Misfits(const Pattern& pattern, const std::vector<std::string>& path, size_t* odd) {
  if (pattern.segments.size() != path.size()) return path.size() + 1;
  size_t misfits = 0;
  for (size_t i = 0; i < path.size(); ++i) {
    if (pattern.segments[i].MatchesText(path[i])) continue;
    ++misfits;
    *odd = i;
  }
  return misfits;
}

std::string VerbOf(const std::string& text) {
  const size_t colon = text.find(':');
  return colon == std::string::npos ? "" : text.substr(colon);
}

// Paths that differ in one part only: its word, or its verb.
Status NoSuchPath(const std::vector<std::string>& path) {
  for (size_t at = 0; at < path.size(); ++at) {
    std::vector<std::string> known;
    const std::string verb = VerbOf(path[at]);
    for (const Pattern& pattern : Patterns()) {
      size_t odd = 0;
      if (Misfits(pattern, path, &odd) != 1 || odd != at) continue;
      const Segment& segment = pattern.segments[at];
      known.push_back(segment.parameter.empty() ? segment.word : segment.verb);
    }
    const auto nearest = Nearest(verb.empty() ? path[at] : verb, known);
    if (!nearest) continue;
    return absl::NotFoundError(absl::StrCat("there is no /", absl::StrJoin(path, "/"),
                                            "; did you mean \"", *nearest, "\" for \"",
                                            verb.empty() ? path[at] : verb, "\"?"));
  }
  return absl::NotFoundError(absl::StrCat("there is no /", absl::StrJoin(path, "/"),
                                          "; GET /openapi.json lists what there is"));
}

std::string Allowed(const std::set<std::string>& methods) {
  std::set<std::string> all = methods;
  if (all.contains("GET")) all.insert("HEAD");
  all.insert("OPTIONS");
  return absl::StrJoin(all, ", ");
}

Status CheckInteger(const Parameter& parameter, const std::string& value) {
  int64_t number = 0;
  const bool in_range = absl::SimpleAtoi(value, &number) && number >= parameter.min &&
                        (parameter.max == parameter.min || number <= parameter.max);
  if (in_range) return absl::OkStatus();
  return BadField(
      parameter.name,
      absl::StrCat("must be an integer from ", parameter.min,
                   parameter.max > parameter.min ? absl::StrCat(" to ", parameter.max) : "",
                   ", not \"", value, "\""));
}

Status CheckValue(const Parameter& parameter, const std::string& value) {
  if (parameter.type == Parameter::Type::kInteger) return CheckInteger(parameter, value);
  if (parameter.type == Parameter::Type::kBoolean) {
    if (value.empty() || value == "true" || value == "false") return absl::OkStatus();
    return BadField(parameter.name, "must be true or false, not \"" + value + "\"");
  }
  const auto& words = parameter.words;
  if (words.empty() || std::find(words.begin(), words.end(), value) != words.end()) {
    return absl::OkStatus();
  }
  return BadField(parameter.name, absl::StrCat("must be one of ", absl::StrJoin(words, ", "),
                                               ", not \"", value, "\""));
}

Status UnknownParameter(const Route& route, const std::string& name) {
  std::vector<std::string> known;
  for (const Parameter& parameter : route.parameters) {
    if (parameter.in == Parameter::In::kQuery) known.push_back(parameter.name);
  }
  const auto nearest = Nearest(name, known);
  return BadField(name, nearest ? "is not a parameter here; did you mean \"" + *nearest + "\"?"
                        : known.empty()
                            ? "is not a parameter here: there are none"
                            : "is not a parameter here: there are " + absl::StrJoin(known, ", "));
}

const Parameter* FindQuery(const Route& route, const std::string& name) {
  for (const Parameter& parameter : route.parameters) {
    if (parameter.in == Parameter::In::kQuery && parameter.name == name) return &parameter;
  }
  return nullptr;
}

// Outside of namespaces {name} is that of a variant.
bool IsExperiment(const Match& match, const std::string& parameter) {
  return parameter == "name" && match.parameters.contains("namespace");
}

// The keys of all routes are checked here, their numbers by the bounds of their parameters.
Status CheckPath(const Match& match) {
  for (const Parameter& parameter : PathParameters(match.route->path)) {
    const std::string& value = match.parameters.at(parameter.name);
    RETURN_IF_ERROR(CheckValue(parameter, value));
    const Status valid = parameter.name == "namespace"         ? ValidateNamespace(value)
                         : IsExperiment(match, parameter.name) ? ValidateExperimentName(value)
                                                               : absl::OkStatus();
    if (valid.ok()) continue;
    // Which begins with what it is of, as the field does.
    const std::string reason = Message(valid);
    const size_t quote = reason.find('"');
    return BadField(parameter.name, quote == std::string::npos ? reason : reason.substr(quote));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<Match> FindRoute(const std::string& method, const HttpTarget& target, std::string* allow) {
  std::set<std::string> methods;
  for (const Pattern& pattern : Patterns()) {
    size_t odd = 0;
    if (Misfits(pattern, target.segments, &odd) != 0) continue;
    methods.insert(pattern.route->method);
    if (pattern.route->method != (method == "HEAD" ? "GET" : method)) continue;
    Match match{pattern.route, {}};
    for (size_t i = 0; i < target.segments.size(); ++i) {
      const Segment& segment = pattern.segments[i];
      if (segment.parameter.empty()) continue;
      match.parameters[segment.parameter] = segment.Value(target.segments[i]);
    }
    return match;
  }
  if (methods.empty()) return NoSuchPath(target.segments);
  *allow = Allowed(methods);
  return WithHttpStatus(
      absl::UnimplementedError(absl::StrCat(method, " is not possible here; ", *allow, " are")),
      405);
}

Status BindParameters(const HttpTarget& target, Match& match) {
  RETURN_IF_ERROR(CheckPath(match));
  for (const auto& [name, value] : target.query) {
    const Parameter* parameter = FindQuery(*match.route, name);
    if (parameter == nullptr) return UnknownParameter(*match.route, name);
    RETURN_IF_ERROR(CheckValue(*parameter, value));
    if (!match.parameters.emplace(name, value).second) {
      return BadField(name, "is given twice");
    }
  }
  return absl::OkStatus();
}

}  // namespace shirabe::service
