#include "experiment/spec/field_rules.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "base/text/did_you_mean.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace shirabe::experiment {
namespace {

using google::protobuf::FieldDescriptor;

constexpr size_t kMaxWords = 100;  // beyond, guessing costs too much and a list is no help

size_t CommonPrefix(std::string_view a, std::string_view b) {
  const auto alike = [](char x, char y) {
    return absl::ascii_tolower(x) == absl::ascii_tolower(y);
  };
  const size_t shorter = std::min(a.size(), b.size());
  return std::mismatch(a.begin(), a.begin() + shorter, b.begin(), alike).first - a.begin();
}

bool IsOfType(const FieldDescriptor& field, const google::protobuf::Descriptor* type) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && field.message_type() == type;
}

// Whether it stands for "nothing was chosen", as protobuf's style names such values. It may have a
// word all the same (Katib's parameterType "unknown"), which is read and never offered.
bool MeansUnset(const google::protobuf::EnumValueDescriptor& value) {
  return value.number() == 0 &&
         (value.name().ends_with("_UNKNOWN") || value.name().ends_with("_UNSPECIFIED"));
}

}  // namespace

const v1::FieldRule& RuleOf(const FieldDescriptor& field) {
  return field.options().GetExtension(v1::field);
}

std::string WordOf(const google::protobuf::EnumValueDescriptor& value) {
  return value.options().GetExtension(v1::value).yaml();
}

std::string WordOf(const google::protobuf::EnumDescriptor& type, int number) {
  const auto* value = type.FindValueByNumber(number);
  return value == nullptr ? std::to_string(number) : WordOf(*value);
}

std::vector<std::string> WordsOf(const google::protobuf::EnumDescriptor& type) {
  std::vector<std::string> words;
  for (int i = 0; i < type.value_count(); ++i) {
    const std::string word = WordOf(*type.value(i));
    if (!word.empty() && !MeansUnset(*type.value(i))) words.push_back(word);
  }
  return words;
}

std::vector<std::string> NamesOf(const google::protobuf::Descriptor& message) {
  std::vector<std::string> names;
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    if (!RuleOf(field).internal()) names.push_back(field.json_name());
  }
  return names;
}

std::optional<std::string> ClosestKnown(std::string_view word,
                                        const std::vector<std::string>& known) {
  if (known.size() > kMaxWords) return std::nullopt;
  if (const auto nearest = Nearest(word, known)) return nearest;
  std::optional<std::string> meant;
  size_t longest = 2;
  for (const std::string& candidate : known) {
    const size_t common = CommonPrefix(word, candidate);
    if (common <= longest || common * 3 < std::min(word.size(), candidate.size()) * 2) continue;
    longest = common;
    meant = candidate;
  }
  return meant;
}

std::string DidYouMean(std::string_view word, const std::vector<std::string>& known) {
  if (const auto meant = ClosestKnown(word, known)) return "; did you mean \"" + *meant + "\"?";
  if (known.empty() || known.size() > kMaxWords) return "";
  return "; known: " + absl::StrJoin(known, ", ");
}

bool IsStruct(const FieldDescriptor& field) {
  return IsOfType(field, google::protobuf::Struct::descriptor());
}

bool IsValue(const FieldDescriptor& field) {
  return IsOfType(field, google::protobuf::Value::descriptor());
}

bool IsTimestamp(const FieldDescriptor& field) {
  return IsOfType(field, google::protobuf::Timestamp::descriptor());
}

bool IsNested(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && !field.is_map() &&
         !IsStruct(field) && !IsValue(field) && !IsTimestamp(field);
}

}  // namespace shirabe::experiment
