// The table in the .proto files (field.proto) as the walker, the rules and the printer ask it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "google/protobuf/descriptor.h"
#include "proto/shirabe/v1/field.pb.h"

namespace shirabe::experiment {

// All defaults where the .proto says nothing about the field.
const v1::FieldRule& RuleOf(const google::protobuf::FieldDescriptor& field);

// The word for an enum's value in YAML; "" for one that cannot be written.
std::string WordOf(const google::protobuf::EnumValueDescriptor& value);
// The same for a number, which is shown as it is where the enum has no such value.
std::string WordOf(const google::protobuf::EnumDescriptor& type, int number);
// The words of an enum that are a choice: not the one for "unset".
std::vector<std::string> WordsOf(const google::protobuf::EnumDescriptor& type);

// The names that may be written in a message's mapping.
std::vector<std::string> NamesOf(const google::protobuf::Descriptor& message);

// The known word that was probably meant: the nearest, or one that begins alike (maxTrials for
// maxTrialCount, integer for int).
std::optional<std::string> ClosestKnown(std::string_view word,
                                        const std::vector<std::string>& known);
// `; did you mean "x"?`, or the known words where none is near.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& known);

// Types that are not a mapping of our own fields.
bool IsStruct(const google::protobuf::FieldDescriptor& field);
bool IsValue(const google::protobuf::FieldDescriptor& field);
bool IsTimestamp(const google::protobuf::FieldDescriptor& field);

// Whether it is a message of ours, to be walked field by field.
bool IsNested(const google::protobuf::FieldDescriptor& field);

}  // namespace shirabe::experiment
