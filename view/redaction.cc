#include "view/redaction.h"

#include <re2/re2.h>

#include <algorithm>
#include <list>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/sorting.h"
#include "proto/shirabe/v1/charts.pb.h"

namespace shirabe::view {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::ListValue;
using google::protobuf::Struct;
using google::protobuf::Value;
using Proto = google::protobuf::Message;

// A shorter value would be found in texts that have nothing to do with it.
constexpr size_t kShortestValue = 6;
constexpr size_t kShortestSecret = 3;

// What the name of something secret ends in.
constexpr char kSecretWord[] =
    "(?:password|passwd|passphrase|[-_]pwd|secret|token|api[-_]?key|access[-_]?key|"
    "secret[-_]?key|private[-_]?key|auth[-_]?key|credentials?)";

bool IsSecretName(const std::string& name) {
  static const RE2 pattern(absl::StrCat("(?i).*", kSecretWord));
  return RE2::FullMatch(name, pattern);
}

// Where a list, or an object, holds the environment of a program or headers of a request.
bool IsEnvironment(const std::string& key) {
  static const std::set<std::string> keys = {"env",         "envVars",     "env_vars",
                                             "environment", "httpHeaders", "http_headers"};
  return keys.contains(key);
}

// ${trialParameters.lr}: what stands in its place is shown with the trial.
bool IsParameterReference(const std::string& value) {
  static const RE2 pattern(R"((?:\$\{trialParameters\.[^}]+\})+)");
  return value.empty() || RE2::FullMatch(value, pattern);
}

// Text or a number of the author's own.
bool IsGiven(const google::protobuf::Value& value) {
  return value.has_number_value() || !IsParameterReference(value.string_value());
}

// What a whole document of the cluster is repeated in.
bool IsCopyOfDocument(const std::string& key) {
  return absl::EndsWith(key, "last-applied-configuration");
}

struct TextRule {
  TextRule(const std::string& text, const char* by) : pattern(text), replacement(by) {}
  RE2 pattern;
  const char* replacement;
};

// Keys by which well-known services can be told.
constexpr char kWellKnown[] =
    R"(\b(?:A[KS]IA[0-9A-Z]{16}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{20,}|)"
    R"(hf_\w{20,}|sk-[\w-]{20,}|xox[abeprs]-[\w-]{10,}|AIza[\w-]{30,}|)"
    R"(eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]+))";
constexpr char kPrivateKey[] =
    R"((?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$))";

const std::list<TextRule>& TextRules() {
  static const std::list<TextRule> rules = [] {
    std::list<TextRule> made;
    made.emplace_back(kPrivateKey, kLeftOut);
    made.emplace_back(R"((?i)\b(bearer\s+|authorization:\s*basic\s+)[a-z0-9._~+/=-]{8,})",
                      R"(\1(left out))");
    made.emplace_back(R"((://[^/\s:@]*):[^/\s@]+@)", R"(\1:(left out)@)");
    made.emplace_back(kWellKnown, kLeftOut);
    // "password": "x", password='x', API_KEY=x
    const std::string named =
        absl::StrCat(R"re((?i)([\w.-]*)re", kSecretWord, R"re(["']?\s*[=:]\s*)re");
    made.emplace_back(named + R"re()"[^"\n(][^"\n]*")re", R"re(\1"(left out)")re");
    made.emplace_back(named + R"re()'[^'\n(][^'\n]*')re", R"re(\1'(left out)')re");
    made.emplace_back(named + R"re()[^\s"',;&)(](?:[^\s"',;&)(]|[,;&][^\s"',;&)(])*)re",
                      R"(\1(left out))");
    // --api-key x
    made.emplace_back(absl::StrCat(R"((?i)((?:^|\s)--?[\w-]*)", kSecretWord, R"(\s+)[^\s(-]\S*)"),
                      R"(\1(left out))");
    return made;
  }();
  return rules;
}

// Names are what everything else is found by; a point's values are its parameters'.
bool IsName(const FieldDescriptor& field) {
  static const std::set<std::string> names = {"name",
                                              "namespace",
                                              "experiment",
                                              "uid",
                                              "parameter",
                                              "metric",
                                              "node",
                                              "pool",
                                              "capacity",
                                              "digest",
                                              "version",
                                              "values",
                                              "from_value",
                                              "to_value",
                                              "algorithm_name",
                                              "objective_metric_name",
                                              "additional_metric_names"};
  return names.contains(field.name());
}

bool KeepsWhole(const Proto& record) {
  const auto* const type = record.GetDescriptor();
  if (type == v1::Column::descriptor()) {
    return static_cast<const v1::Column&>(record).name() != "reason";
  }
  return type == v1::Assignment::descriptor() || type == v1::ParameterSpec::descriptor();
}

}  // namespace

Redactor::Redactor(const v1::Experiment& experiment, const std::vector<std::string>& environment) {
  AddEnvironmentOf(experiment);
  for (const std::string& entry : environment) {
    const size_t equals = entry.find('=');
    if (equals == std::string::npos || !IsSecretName(entry.substr(0, equals))) continue;
    AddSecret(entry.substr(0, equals), entry.substr(equals + 1));
  }
  StableSort(secrets_);
  secrets_.erase(std::unique(secrets_.begin(), secrets_.end()), secrets_.end());
}

void Redactor::AddSecret(const std::string& name, const std::string& value) {
  if (value.size() < (IsSecretName(name) ? kShortestSecret : kShortestValue)) return;
  if (!IsParameterReference(value)) secrets_.emplace_back(value, kLeftOut);
}

void Redactor::AddEnvironmentOf(const Proto& record) {
  if (record.GetDescriptor() == Struct::descriptor()) {
    for (const auto& [key, value] : static_cast<const Struct&>(record).fields()) {
      AddEnvironmentIn(key, value);
    }
    return;
  }
  if (record.GetDescriptor() == Value::descriptor()) return;
  const auto& reflection = *record.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(record, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      AddEnvironmentOf(reflection.GetMessage(record, field));
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(record, field); ++i) {
      AddEnvironmentOf(reflection.GetRepeatedMessage(record, field, i));
    }
  }
}

void Redactor::AddEnvironmentIn(const std::string& key, const Value& value) {
  for (const auto& [name, one] : value.struct_value().fields()) {
    if (IsEnvironment(key)) AddSecret(name, one.string_value());
    AddEnvironmentIn(name, one);
  }
  for (const Value& one : value.list_value().values()) {
    const auto& fields = one.struct_value().fields();
    const auto name = fields.find("name"), text = fields.find("value");
    if (IsEnvironment(key) && name != fields.end() && text != fields.end()) {
      AddSecret(name->second.string_value(), text->second.string_value());
    }
    AddEnvironmentIn("", one);
  }
}

std::string Redactor::Redact(absl::string_view text) const {
  std::string out = absl::StrReplaceAll(text, secrets_);
  for (const TextRule& rule : TextRules()) RE2::GlobalReplace(&out, rule.pattern, rule.replacement);
  return out;
}

// ---- messages ----------------------------------------------------------------------------------

void Redactor::Redact(Proto& record) const {
  if (KeepsWhole(record)) return;
  if (record.GetDescriptor() == Struct::descriptor()) {
    return RedactStruct(static_cast<Struct&>(record));
  }
  if (record.GetDescriptor() == Value::descriptor()) {
    return RedactValue("", static_cast<Value&>(record));
  }
  const auto& reflection = *record.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(record, &fields);
  for (const FieldDescriptor* field : fields) RedactField(record, *field);
}

void Redactor::RedactField(Proto& record, const FieldDescriptor& field) const {
  const auto& reflection = *record.GetReflection();
  const int size = field.is_repeated() ? reflection.FieldSize(record, &field) : 1;
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    for (int i = 0; i < size; ++i) {
      Proto& part = field.is_repeated() ? *reflection.MutableRepeatedMessage(&record, &field, i)
                                        : *reflection.MutableMessage(&record, &field);
      if (part.GetDescriptor() == Value::descriptor()) {
        RedactValue(field.name(), static_cast<Value&>(part));
      } else {
        Redact(part);
      }
    }
    return;
  }
  if (field.type() != FieldDescriptor::TYPE_STRING || IsName(field)) return;
  // What a value is of says whether it is a secret: a setting, an annotation.
  const FieldDescriptor* of = record.GetDescriptor()->FindFieldByName(
      field.containing_type()->options().map_entry() ? "key" : "name");
  const bool named = of != nullptr && field.name() == "value" && !of->is_repeated() &&
                     of->type() == FieldDescriptor::TYPE_STRING;
  const std::string name = named ? reflection.GetString(record, of) : "";
  if (field.containing_type()->options().map_entry() && field.name() == "key") return;
  for (int i = 0; i < size; ++i) {
    const std::string text = field.is_repeated() ? reflection.GetRepeatedString(record, &field, i)
                                                 : reflection.GetString(record, &field);
    std::string out = IsSecretName(name) || IsCopyOfDocument(name) ? kLeftOut : Redact(text);
    if (out == text) continue;
    if (field.is_repeated()) {
      reflection.SetRepeatedString(&record, &field, i, std::move(out));
    } else {
      reflection.SetString(&record, &field, std::move(out));
    }
  }
}

// ---- free-form objects -------------------------------------------------------------------------

void Redactor::RedactValue(const std::string& key, Value& value) const {
  switch (value.kind_case()) {
    case Value::kStringValue:
      value.set_string_value(
          IsSecretName(key) || IsCopyOfDocument(key) ? kLeftOut : Redact(value.string_value()));
      return;
    case Value::kNumberValue:
      if (IsSecretName(key)) value.set_string_value(kLeftOut);
      return;
    case Value::kListValue: return RedactList(key, *value.mutable_list_value());
    case Value::kStructValue:
      RedactStruct(*value.mutable_struct_value());
      if (!IsEnvironment(key)) return;
      for (auto& [name, one] : *value.mutable_struct_value()->mutable_fields()) {
        if (IsGiven(one)) one.set_string_value(kLeftOut);
      }
      return;
    default: return;
  }
}

void Redactor::RedactList(const std::string& key, ListValue& list) const {
  bool of_secret = false;  // --api-key stands before it
  for (Value& one : *list.mutable_values()) {
    const bool secret =
        of_secret && one.has_string_value() && !IsParameterReference(one.string_value());
    of_secret = absl::StartsWith(one.string_value(), "-") && IsSecretName(one.string_value());
    RedactValue("", one);
    if (secret) one.set_string_value(kLeftOut);
    if (!IsEnvironment(key) || !one.has_struct_value()) continue;
    auto& fields = *one.mutable_struct_value()->mutable_fields();
    const auto text = fields.find("value");
    if (text == fields.end() || !IsGiven(text->second)) continue;
    text->second.set_string_value(kLeftOut);
  }
}

void Redactor::RedactStruct(Struct& object) const {
  auto& fields = *object.mutable_fields();
  const auto text = [&](const char* name) {
    const auto found = fields.find(name);
    return found == fields.end() ? "" : found->second.string_value();
  };
  const bool secret = text("kind") == "Secret";
  const std::string name = text("name");
  for (auto& [key, value] : fields) {
    if (key == "name" || key == "namespace") continue;
    const bool plain = value.has_string_value() || value.has_number_value();
    RedactValue(key == "value" && plain ? name : key, value);
    const bool content = secret && (key == "data" || key == "stringData");
    if (!content || !value.has_struct_value()) continue;
    for (auto& [of, one] : *value.mutable_struct_value()->mutable_fields()) {
      one.set_string_value(kLeftOut);
    }
  }
}

}  // namespace shirabe::view
