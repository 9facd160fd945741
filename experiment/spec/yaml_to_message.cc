#include "experiment/spec/yaml_to_message.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/printable.h"
#include "base/status.h"
#include "base/text/number.h"
#include "base/timestamp.h"
#include "experiment/spec/field_rules.h"
#include "google/protobuf/struct.pb.h"

namespace shirabe::experiment {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using Proto = google::protobuf::Message;
using Kind = YamlNode::Kind;

// Where a value goes: the field itself, or one more item of it.
struct Slot {
  Proto& message;
  const FieldDescriptor& field;

  const google::protobuf::Reflection& reflection() const { return *message.GetReflection(); }

  template <class Set, class Add, class Value>
  void Put(Set set, Add add, const Value& value) const {
    if (field.is_repeated()) {
      (reflection().*add)(&message, &field, value);
    } else {
      (reflection().*set)(&message, &field, value);
    }
  }
  Proto& Nested() const {
    return field.is_repeated() ? *reflection().AddMessage(&message, &field)
                               : *reflection().MutableMessage(&message, &field);
  }
};

// What to write instead of a boolean, number or null where text belongs.
std::string SuggestQuotes(const YamlNode& node) {
  switch (node.kind) {
    case Kind::kBoolean: return node.text + " is a boolean in YAML; write " + Quoted(node.text);
    case Kind::kNumber: return node.text + " is a number in YAML; write " + Quoted(node.text);
    default: return "must be text, not " + Describe(node);
  }
}

// The number of a bare or quoted scalar. Text that YAML reads as another number than people do
// (010, 0x1F, 1_000) counts only where it is bare, as Kubernetes reads it.
std::optional<double> NumberOf(const YamlNode& node) {
  if (node.kind == Kind::kNumber) return node.number;
  if (node.kind == Kind::kString) return ParseNumber(node.text);
  return std::nullopt;
}

// An integer of more than 53 bits that a double would change: "" if it is exact.
std::string Inexact(const YamlNode& node, double value) {
  if (!node.IsScalar() || node.text.find_first_not_of("+-0123456789") != std::string::npos) {
    return "";
  }
  YamlNode integer;
  integer.text = node.text;
  ResolvePlain(integer);
  if (!integer.integer || std::abs(value) > 0x1p62) return "";
  if (static_cast<int64_t>(value) == *integer.integer) return "";
  return node.text + " cannot be kept exactly, only integers up to 2^53 can";
}

bool IsSmall(const std::optional<int64_t>& integer) {
  constexpr int64_t kLimit = int64_t{1} << 53;
  return integer && *integer >= -kLimit && *integer <= kLimit;
}

// Written as an integer, perhaps one that does not fit 64 bits.
bool IsWhole(const YamlNode& node) {
  return node.integer || node.text.find_first_of(".eE") == std::string::npos;
}

class Walker {
 public:
  explicit Walker(Findings& findings) : findings_(findings) {}

  void WalkMapping(const YamlNode& node, const std::string& path, Proto& message) {
    if (node.kind != Kind::kMapping) {
      return Wrong(node, path, "must be a mapping, not " + Describe(node));
    }
    auto item = node.items.begin();
    for (const YamlNode& key : node.keys) WalkEntry(key, *item++, path, message);
  }

 private:
  void Wrong(const YamlNode& node, const std::string& path, std::string message) {
    findings_.MarkUnreadable(path, node.mark, std::move(message));
  }

  void WalkEntry(const YamlNode& key, const YamlNode& value, const std::string& parent,
                 Proto& message) {
    const std::string path = ChildPath(parent, key.text);
    const FieldDescriptor* field = FindField(*message.GetDescriptor(), key.text);
    if (field == nullptr) return Unknown(key, parent, *message.GetDescriptor());
    findings_.SetLocation(path,
                          value.IsScalar() && value.kind != Kind::kNull ? value.mark : key.mark);
    if (RuleOf(*field).ignored() || value.kind == Kind::kNull) return;
    WalkField(value, path, {message, *field});
  }

  static const FieldDescriptor* FindField(const Descriptor& type, const std::string& name) {
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor* field = type.field(i);
      if (field->json_name() == name && !RuleOf(*field).internal()) return field;
    }
    return nullptr;
  }

  void Unknown(const YamlNode& key, const std::string& parent, const Descriptor& type) {
    const bool experiment = type.name() == "Experiment";
    const std::string whole = experiment ? "an Experiment" : "this file";
    const std::string in = parent.empty() ? whole : parent;
    const std::vector<std::string> names = NamesOf(type);
    findings_.MarkUnreadable(ChildPath(parent, key.text), key.mark,
                             "unknown field in " + in + DidYouMean(key.text, names));
    const auto meant = ClosestKnown(key.text, names);
    if (meant) findings_.MuteRules(ChildPath(parent, *meant));
  }

  void WalkField(const YamlNode& node, const std::string& path, Slot slot) {
    if (slot.field.is_map()) return WalkMap(node, path, slot);
    if (!slot.field.is_repeated()) return WalkValue(node, path, slot);
    if (node.kind != Kind::kSequence) {
      return Wrong(node, path, "must be a list, not " + Describe(node));
    }
    int index = 0;
    for (const YamlNode& item : node.items) {
      const std::string item_path = ItemPath(path, index++);
      findings_.SetLocation(item_path, item.mark);
      WalkValue(item, item_path, slot);
    }
  }

  // map<string, string>: labels, annotations.
  void WalkMap(const YamlNode& node, const std::string& path, Slot slot) {
    if (node.kind != Kind::kMapping) {
      return Wrong(node, path, "must be a mapping, not " + Describe(node));
    }
    const Descriptor& entry_type = *slot.field.message_type();
    auto item = node.items.begin();
    for (const YamlNode& key : node.keys) {
      const YamlNode& value = *item++;
      const std::string entry_path = ChildPath(path, key.text);
      findings_.SetLocation(entry_path, value.mark);
      if (value.kind != Kind::kString) {
        Wrong(value, entry_path, SuggestQuotes(value));
        continue;
      }
      Proto& entry = slot.Nested();
      entry.GetReflection()->SetString(&entry, entry_type.map_key(), key.text);
      entry.GetReflection()->SetString(&entry, entry_type.map_value(), value.text);
    }
  }

  void WalkValue(const YamlNode& node, const std::string& path, Slot slot) {
    using R = google::protobuf::Reflection;
    switch (slot.field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_STRING:
        return slot.Put(&R::SetString, &R::AddString, ReadText(node, path, slot.field));
      case FieldDescriptor::CPPTYPE_DOUBLE: return WalkDouble(node, path, slot);
      case FieldDescriptor::CPPTYPE_INT32:
        if (const auto value = ReadInteger(node, path, std::numeric_limits<int32_t>::max())) {
          slot.Put(&R::SetInt32, &R::AddInt32, static_cast<int32_t>(*value));
        }
        return;
      case FieldDescriptor::CPPTYPE_INT64:
        if (const auto value = ReadInteger(node, path, std::numeric_limits<int64_t>::max())) {
          slot.Put(&R::SetInt64, &R::AddInt64, *value);
        }
        return;
      case FieldDescriptor::CPPTYPE_BOOL:
        if (node.kind != Kind::kBoolean) {
          return Wrong(node, path, "must be true or false, not " + Describe(node));
        }
        return slot.Put(&R::SetBool, &R::AddBool, node.boolean);
      case FieldDescriptor::CPPTYPE_ENUM: return WalkEnum(node, path, slot);
      case FieldDescriptor::CPPTYPE_MESSAGE: return WalkMessage(node, path, slot);
      default: CHECK(false);  // the specification has no field of another type
    }
  }

  void WalkMessage(const YamlNode& node, const std::string& path, Slot slot) {
    Proto& nested = slot.Nested();
    if (IsStruct(slot.field)) {
      WalkStruct(node, path, static_cast<google::protobuf::Struct&>(nested));
    } else if (IsValue(slot.field)) {
      WalkFree(node, path, static_cast<google::protobuf::Value&>(nested));
    } else if (IsTimestamp(slot.field)) {
      WalkTimestamp(node, path, static_cast<google::protobuf::Timestamp&>(nested));
    } else {
      WalkMapping(node, path, nested);
    }
  }

  // "" where it is not text, after saying so.
  std::string ReadText(const YamlNode& node, const std::string& path,
                       const FieldDescriptor& field) {
    if (node.kind == Kind::kString) return node.text;
    if (node.kind != Kind::kNumber || !RuleOf(field).loose()) {
      Wrong(node, path, SuggestQuotes(node));
      return "";
    }
    // Bare: the text as written, if YAML and people read it as the same number.
    if (ParseNumber(node.text) == node.number) return node.text;
    Wrong(node, path,
          node.text + " is " + FormatNumber(node.number) + " in YAML; write " +
              FormatNumber(node.number) + " or " + Quoted(node.text));
    return "";
  }

  void WalkDouble(const YamlNode& node, const std::string& path, Slot slot) {
    using R = google::protobuf::Reflection;
    // In Katib's API the fields of a feasibleSpace are texts, and an empty one is not set.
    const bool unset = node.kind == Kind::kString && node.text.empty() &&
                       slot.field.containing_type()->name() == "FeasibleSpace";
    if (unset && !slot.field.is_repeated()) return;
    const auto value = NumberOf(node);
    std::string problem;
    if (!value) {
      problem = "must be a number, not " + Describe(node);
    } else if (!std::isfinite(*value)) {
      problem = "must be a finite number, not " + node.text;
    } else {
      problem = Inexact(node, *value);
    }
    if (!problem.empty()) Wrong(node, path, problem);
    if (problem.empty() || slot.field.is_repeated()) {
      slot.Put(&R::SetDouble, &R::AddDouble, problem.empty() ? *value : 0);
    }
  }

  std::optional<int64_t> ReadInteger(const YamlNode& node, const std::string& path, int64_t max) {
    YamlNode plain = node;
    if (node.kind == Kind::kString) ResolvePlain(plain);
    if (plain.kind != Kind::kNumber || plain.number != std::floor(plain.number)) {
      Wrong(node, path, "must be an integer, not " + Describe(node));
      return std::nullopt;
    }
    if (!plain.integer && std::abs(plain.number) <= kMaxExactInteger) {
      plain.integer = static_cast<int64_t>(plain.number);  // 3.0 and 1e3
    }
    if (!plain.integer || *plain.integer > max || *plain.integer < -max - 1) {
      Wrong(node, path, node.text + " is too large; the greatest is " + std::to_string(max));
      return std::nullopt;
    }
    return plain.integer;
  }

  void WalkEnum(const YamlNode& node, const std::string& path, Slot slot) {
    using R = google::protobuf::Reflection;
    const auto& type = *slot.field.enum_type();
    for (int i = 0; node.kind == Kind::kString && i < type.value_count(); ++i) {
      const std::string word = WordOf(*type.value(i));
      if (!word.empty() && word == node.text) {
        return slot.Put(&R::SetEnumValue, &R::AddEnumValue, type.value(i)->number());
      }
    }
    if (node.kind != Kind::kString) return Wrong(node, path, SuggestQuotes(node));
    Wrong(node, path, "unknown value " + Describe(node) + DidYouMean(node.text, WordsOf(type)));
  }

  void WalkTimestamp(const YamlNode& node, const std::string& path,
                     google::protobuf::Timestamp& timestamp) {
    absl::Time time;
    std::string error;
    if (node.kind == Kind::kString &&
        absl::ParseTime(absl::RFC3339_full, node.text, &time, &error)) {
      timestamp = ToProto(time);
    } else {
      Wrong(node, path, "must be a time such as 2026-11-21T08:30:00Z, not " + Describe(node));
    }
  }

  void WalkStruct(const YamlNode& node, const std::string& path, google::protobuf::Struct& out) {
    if (node.kind != Kind::kMapping) {
      return Wrong(node, path, "must be a mapping, not " + Describe(node));
    }
    auto item = node.items.begin();
    for (const YamlNode& key : node.keys) {
      const YamlNode& value = *item++;
      const std::string child = ChildPath(path, key.text);
      findings_.SetLocation(child, value.IsScalar() ? value.mark : key.mark);
      WalkFree(value, child, (*out.mutable_fields())[key.text]);
    }
  }

  void WalkFree(const YamlNode& node, const std::string& path, google::protobuf::Value& out) {
    switch (node.kind) {
      case Kind::kNull: return out.set_null_value(google::protobuf::NULL_VALUE);
      case Kind::kBoolean: return out.set_bool_value(node.boolean);
      case Kind::kString: return out.set_string_value(node.text);
      case Kind::kMapping: return WalkStruct(node, path, *out.mutable_struct_value());
      case Kind::kNumber: return WalkFreeNumber(node, path, out);
      case Kind::kSequence: break;
    }
    auto& list = *out.mutable_list_value();
    for (const YamlNode& item : node.items) {
      const std::string item_path = ItemPath(path, list.values_size());
      findings_.SetLocation(item_path, item.mark);
      WalkFree(item, item_path, *list.add_values());
    }
  }

  void WalkFreeNumber(const YamlNode& node, const std::string& path, google::protobuf::Value& out) {
    out.set_number_value(node.number);
    if (!std::isfinite(node.number)) {
      Wrong(node, path,
            node.text + " cannot be in a Kubernetes object; write " + Quoted(node.text));
    } else if (std::abs(node.number) >= kMaxExactInteger && !IsSmall(node.integer) &&
               IsWhole(node)) {
      Wrong(node, path, "integers beyond 2^53 cannot be kept exactly; write " + Quoted(node.text));
    }
  }

  Findings& findings_;
};

}  // namespace

void Walk(const YamlNode& mapping, Proto& message, Findings& findings) {
  findings.SetLocation("", mapping.mark);
  if (mapping.kind != Kind::kMapping) {
    return findings.MarkUnreadable(
        "", mapping.mark,
        "an Experiment begins with apiVersion: and kind:, not with " + Describe(mapping));
  }
  Walker(findings).WalkMapping(mapping, "", message);
}

bool WalkFile(std::string_view text, const FileKind& kind, google::protobuf::Message& message,
              Findings& findings) {
  const std::vector<YamlDocument> documents = ParseYaml(text);
  if (documents.empty()) {
    findings.Problem({1, 1}, absl::StrCat("the file holds nothing: write ", kind.example));
    return false;
  }
  if (documents.size() > 1) {
    findings.Problem(documents[1].root.mark,
                     absl::StrCat("a ", kind.name, " is one document: remove this one"));
  }
  const YamlDocument& document = documents[0];
  for (const YamlProblem& problem : document.problems) {
    findings.Problem(problem.mark, problem.message);
  }
  if (document.broken) return false;
  if (document.root.kind != YamlNode::Kind::kMapping) {
    findings.Problem(document.root.mark, absl::StrCat("must be a mapping such as ", kind.example,
                                                      ", not ", Describe(document.root)));
    return false;
  }
  Walk(document.root, message, findings);
  return true;
}

}  // namespace shirabe::experiment
