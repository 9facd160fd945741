// The size of a message before it is taken apart (CheckWire of message_check.h).
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>

#include "absl/strings/str_cat.h"
#include "base/text/message_check.h"

namespace shirabe {
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
