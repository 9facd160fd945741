#include "base/text/message_check.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/printable.h"
#include "base/text/number.h"
#include "base/timestamp.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace shirabe {

namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using Proto = google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int64_t kMinSeconds = -62'135'596'800;          // 0001-01-01T00:00:00Z
constexpr int64_t kMaxSeconds = kMaxUnixSeconds;          // 9999-12-31T23:59:59Z
constexpr int64_t kMaxDurationSeconds = 315'576'000'000;  // ten thousand years, as protobuf has it
constexpr int32_t kMaxNanos = 999'999'999;
constexpr size_t kMaxShownBytes = 100;  // bytes of a key in a path
constexpr int kMaxWords = 50;

// A step from a message to what stands in it; the steps to a value are a list on the stack, and
// become text only where something is wrong.
struct Step {
  const Step* parent = nullptr;
  const FieldDescriptor* field = nullptr;
  int index = -1;                    // of an item of a list
  const std::string* key = nullptr;  // of an entry of a mapping
};

std::string Shown(const std::string& text) {
  return Printable(text.substr(0, kMaxShownBytes)) + (text.size() > kMaxShownBytes ? "…" : "");
}

bool IsPlainWord(const std::string& key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_';
  });
}

// As experiment/spec/findings.h writes paths. The fields of Struct, Value and ListValue are not
// written in JSON: only keys and indices are.
std::string PathOf(const Step* step) {
  if (step == nullptr) return "";
  std::string path = PathOf(step->parent);
  if (step->key != nullptr && IsPlainWord(*step->key)) {
    return absl::StrCat(path, path.empty() ? "" : ".", Shown(*step->key));
  }
  if (step->key != nullptr) return absl::StrCat(path, "[\"", Shown(*step->key), "\"]");
  const bool free = step->field->file() == google::protobuf::Struct::descriptor()->file();
  if (!free) absl::StrAppend(&path, path.empty() ? "" : ".", step->field->json_name());
  if (step->index >= 0) absl::StrAppend(&path, "[", step->index, "]");
  return path;
}

// The words of the .proto file, by which the author of a message knows them.
std::string UnknownValue(const EnumDescriptor& type, int value) {
  std::string text =
      absl::StrCat(value, " is not a value of ", type.name(), " that is known here: ");
  for (int i = 0; i < std::min(type.value_count(), kMaxWords); ++i) {
    absl::StrAppend(&text, i > 0 ? ", " : "give one of ", type.value(i)->name());
  }
  return text;
}

bool IsFree(const Descriptor& type) {
  return type.file() == google::protobuf::Struct::descriptor()->file();
}

class Check {
 public:
  explicit Check(const MessageLimits& limits) : limits_(limits) {}

  // Whether it is good; if not, problem() says why not.
  bool Visit(const Proto& message, const Step* at, int levels) {
    const Descriptor& type = *message.GetDescriptor();
    const Reflection& reflection = *message.GetReflection();
    if (!VisitWellKnown(message, at, levels)) return false;
    for (int i = 0; i < type.field_count(); ++i) {
      const FieldDescriptor& field = *type.field(i);
      Step step{at, &field};
      if (field.is_repeated()) {
        if (!VisitItems(message, step, levels)) return false;
      } else if (reflection.HasField(message, &field)) {
        if (!VisitValue(message, step, levels)) return false;
      }
    }
    return true;
  }

  std::optional<MessageProblem>& problem() { return problem_; }

 private:
  bool Wrong(const Step* at, std::string message) {
    problem_ = MessageProblem{PathOf(at), std::move(message)};
    return false;
  }

  bool VisitItems(const Proto& message, Step& step, int levels) {
    const int size = message.GetReflection()->FieldSize(message, step.field);
    items_ += size;
    if (items_ > limits_.items) {
      return Wrong(&step, absl::StrCat("there are more than ", limits_.items,
                                       " items in all lists together: send fewer"));
    }
    for (step.index = 0; step.index < size; ++step.index) {
      const bool good = step.field->is_map() ? VisitEntry(message, step, levels)
                                             : VisitValue(message, step, levels);
      if (!good) return false;
    }
    step.index = -1;
    return true;
  }

  bool VisitEntry(const Proto& message, const Step& map, int levels) {
    const Proto& entry = message.GetReflection()->GetRepeatedMessage(message, map.field, map.index);
    const Descriptor& type = *entry.GetDescriptor();
    const FieldDescriptor& key_field = *type.map_key();
    const Step name{map.parent, map.field};
    std::string key;
    if (key_field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
      key = entry.GetReflection()->GetString(entry, &key_field);
    }
    const Step step{&name, map.field, -1, &key};
    if (key.size() > kMaxKeyBytes) {
      return Wrong(&step, absl::StrCat("the key has ", key.size(), " bytes, and at most ",
                                       kMaxKeyBytes, " are taken: shorten it"));
    }
    if (!VisitText(key, &step)) return false;
    const FieldDescriptor& value = *type.map_value();
    if (value.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      return VisitScalar(entry, value, &step, -1);
    }
    return Visit(entry.GetReflection()->GetMessage(entry, &value), &step, levels);
  }

  bool VisitValue(const Proto& message, const Step& step, int levels) {
    const Reflection& reflection = *message.GetReflection();
    if (step.field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      return VisitScalar(message, *step.field, &step, step.index);
    }
    const Proto& nested = step.index >= 0
                              ? reflection.GetRepeatedMessage(message, step.field, step.index)
                              : reflection.GetMessage(message, step.field);
    return Visit(nested, &step, levels);
  }

  bool VisitScalar(const Proto& message, const FieldDescriptor& field, const Step* at, int index) {
    const Reflection& reflection = *message.GetReflection();
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
      const int value = index >= 0 ? reflection.GetRepeatedEnumValue(message, &field, index)
                                   : reflection.GetEnumValue(message, &field);
      if (field.enum_type()->FindValueByNumber(value) != nullptr) return true;
      return Wrong(at, UnknownValue(*field.enum_type(), value));
    }
    if (field.type() != FieldDescriptor::TYPE_STRING) return true;
    std::string scratch;
    return VisitText(index >= 0
                         ? reflection.GetRepeatedStringReference(message, &field, index, &scratch)
                         : reflection.GetStringReference(message, &field, &scratch),
                     at);
  }

  bool VisitText(const std::string& text, const Step* at) {
    if (limits_.allow_nul || text.find('\0') == std::string::npos) return true;
    return Wrong(at, "\"" + Shown(text) + "\" holds the character NUL: remove it");
  }

  // Free-form values, times and durations; everything else is good here.
  bool VisitWellKnown(const Proto& message, const Step* at, int& levels) {
    const Descriptor* type = message.GetDescriptor();
    if (type == google::protobuf::Timestamp::descriptor()) {
      return VisitTime(static_cast<const google::protobuf::Timestamp&>(message), at);
    }
    if (type == google::protobuf::Duration::descriptor()) {
      return VisitDuration(static_cast<const google::protobuf::Duration&>(message), at);
    }
    if (!IsFree(*type)) return true;
    if (type != google::protobuf::Value::descriptor()) {  // a Struct or a ListValue
      if (++levels <= kMaxFreeLevels) return true;
      return Wrong(at, absl::StrCat("has more than ", kMaxFreeLevels,
                                    " levels of lists and mappings in one another"));
    }
    const auto& value = static_cast<const google::protobuf::Value&>(message);
    if (value.kind_case() == google::protobuf::Value::KIND_NOT_SET) {
      return Wrong(at, "is a value without a kind: set one, or null_value");
    }
    if (!value.has_number_value() || std::isfinite(value.number_value())) return true;
    return Wrong(at, "must be a finite number, not " + FormatNumber(value.number_value()));
  }

  bool VisitTime(const google::protobuf::Timestamp& time, const Step* at) {
    if (time.seconds() >= kMinSeconds && time.seconds() <= kMaxSeconds && time.nanos() >= 0 &&
        time.nanos() <= kMaxNanos) {
      return true;
    }
    return Wrong(at, absl::StrCat(time.seconds(), " s and ", time.nanos(),
                                  " ns is not a time of the years 1 to 9999"));
  }

  bool VisitDuration(const google::protobuf::Duration& duration, const Step* at) {
    const bool mixed = duration.seconds() != 0 && duration.nanos() != 0 &&
                       (duration.seconds() < 0) != (duration.nanos() < 0);
    if (duration.seconds() >= -kMaxDurationSeconds && duration.seconds() <= kMaxDurationSeconds &&
        duration.nanos() >= -kMaxNanos && duration.nanos() <= kMaxNanos && !mixed) {
      return true;
    }
    return Wrong(at, absl::StrCat(duration.seconds(), " s and ", duration.nanos(),
                                  " ns is not a duration of less than 10,000 years"));
  }

  const MessageLimits limits_;
  int64_t items_ = 0;
  std::optional<MessageProblem> problem_;
};

// ---- enums alone -------------------------------------------------------------------------------

using Fields = std::vector<const FieldDescriptor*>;

// Whether an enum of ours stands in it or below it. Types do not contain themselves, but for the
// free-form ones, which are left out.
bool LeadsToEnum(const Descriptor& type) {
  if (IsFree(type)) return false;
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM) return true;
    if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && LeadsToEnum(*field.message_type()))
      return true;
  }
  return false;
}

// The fields of a type to look at; worked out once.
const Fields& FieldsWithEnums(const Descriptor& type) {
  static Mutex mutex;
  static std::map<const Descriptor*, Fields> known ABSL_GUARDED_BY(mutex);
  const MutexLock lock(mutex);
  const auto [found, fresh] = known.try_emplace(&type);
  for (int i = 0; fresh && i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const bool nested =
        field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && LeadsToEnum(*field.message_type());
    if (nested || field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
      found->second.push_back(&field);
    }
  }
  return found->second;
}

Status CheckEnumsAt(const Proto& message, const Step* at) {
  const Reflection& reflection = *message.GetReflection();
  for (const FieldDescriptor* field : FieldsWithEnums(*message.GetDescriptor())) {
    const bool repeated = field->is_repeated();
    const int size = repeated ? reflection.FieldSize(message, field)
                              : static_cast<int>(reflection.HasField(message, field));
    for (int i = 0; i < size; ++i) {
      const Step step{at, field, repeated ? i : -1};
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        RETURN_IF_ERROR(CheckEnumsAt(repeated ? reflection.GetRepeatedMessage(message, field, i)
                                              : reflection.GetMessage(message, field),
                                     &step));
        continue;
      }
      const int value = repeated ? reflection.GetRepeatedEnumValue(message, field, i)
                                 : reflection.GetEnumValue(message, field);
      if (field->enum_type()->FindValueByNumber(value) != nullptr) continue;
      return absl::UnimplementedError(
          absl::StrCat(PathOf(&step), ": ", UnknownValue(*field->enum_type(), value)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<MessageProblem> FindProblem(const Proto& message, const MessageLimits& limits) {
  Check check(limits);
  check.Visit(message, nullptr, 0);
  return check.problem();
}

Status CheckMessage(const Proto& message, const MessageLimits& limits) {
  const auto problem = FindProblem(message, limits);
  if (!problem) return absl::OkStatus();
  return absl::InvalidArgumentError(
      problem->path.empty() ? problem->message : problem->path + ": " + problem->message);
}

Status CheckEnums(const Proto& message) { return CheckEnumsAt(message, nullptr); }

// The size of a message before it is taken apart (CheckWire of message_check.h).

namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::io::CodedInputStream;

constexpr int kMaxLevels = 100;  // what protobuf takes

enum WireType : uint32_t { kVarint, kFixed64, kLengthDelimited, kStartGroup, kEndGroup, kFixed32 };

class Counter {
 public:
  explicit Counter(CodedInputStream* in) : in_(in) {}

  // Whether it can be read on. A null type: nothing of it is known.
  bool Count(const Descriptor* type, int levels) {
    if (levels > kMaxLevels) return false;
    while (const uint32_t tag = in_->ReadTag()) {
      const FieldDescriptor* field =
          type == nullptr ? nullptr : type->FindFieldByNumber(static_cast<int>(tag >> 3));
      if (field == nullptr) ++objects_;
      if (objects_ > kMaxWireObjects) return false;
      if (!Skip(field, static_cast<WireType>(tag & 7), levels)) return false;
      if ((tag & 7) == kEndGroup) return true;
    }
    return true;
  }

  int64_t objects() const { return objects_; }

 private:
  bool Skip(const FieldDescriptor* field, WireType wire, int levels) {
    uint64_t number = 0;
    switch (wire) {
      case kVarint: return in_->ReadVarint64(&number);
      case kFixed64: return in_->Skip(8);
      case kFixed32: return in_->Skip(4);
      case kStartGroup: return Count(nullptr, levels + 1);
      case kEndGroup: return true;
      case kLengthDelimited: return SkipBytes(field, levels);
    }
    return false;
  }

  bool SkipBytes(const FieldDescriptor* field, int levels) {
    uint32_t size = 0;
    if (!in_->ReadVarint32(&size)) return false;
    const bool message = field != nullptr && field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (!message) {
      const bool text = field != nullptr && field->is_repeated() &&
                        field->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
      objects_ += text ? 1 : 0;
      return in_->Skip(static_cast<int>(size));
    }
    ++objects_;
    const auto limit = in_->PushLimit(static_cast<int>(size));
    const bool good = Count(field->message_type(), levels + 1);
    in_->PopLimit(limit);
    return good;
  }

  CodedInputStream* const in_;
  int64_t objects_ = 0;
};

}  // namespace

Status CheckWire(const Descriptor& type, std::string_view bytes) {
  CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                      static_cast<int>(bytes.size()));
  Counter counter(&in);
  counter.Count(&type, 0);
  if (counter.objects() <= kMaxWireObjects) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the message has more than ", kMaxWireObjects,
                   " messages and texts in it: send them in several calls"));
}

}  // namespace shirabe
