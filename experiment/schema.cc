#include "experiment/schema.h"

#include "absl/strings/str_join.h"
#include "base/did_you_mean.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace shirabe::experiment {
namespace {

using google::protobuf::FieldDescriptor;

bool IsOfType(const FieldDescriptor& field, const google::protobuf::Descriptor* type) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && field.message_type() == type;
}

}  // namespace

const v1::FieldRule& RuleOf(const FieldDescriptor& field) {
  return field.options().GetExtension(v1::field);
}

std::string WordOf(const google::protobuf::EnumValueDescriptor& value) {
  return value.options().GetExtension(v1::value).yaml();
}

std::vector<std::string> WordsOf(const google::protobuf::EnumDescriptor& type) {
  std::vector<std::string> words;
  for (int i = 0; i < type.value_count(); ++i) {
    const std::string word = WordOf(*type.value(i));
    if (!word.empty()) words.push_back(word);
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

std::string DidYouMean(std::string_view word, const std::vector<std::string>& known) {
  constexpr size_t kMostWords = 100;  // beyond, the guess costs too much and the list helps nobody
  if (known.size() > kMostWords) return "";
  const auto nearest = Nearest(word, known);
  if (nearest) return "; did you mean \"" + *nearest + "\"?";
  return known.empty() ? "" : "; known: " + absl::StrJoin(known, ", ");
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
