#include "metrics/tf_event.h"

#include <array>
#include <boost/crc.hpp>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/text/number.h"

namespace shirabe::metrics {
namespace {

// The fields of one message, one after the other. A group ends it: no message here has one.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : rest_(bytes) {}

  // False at the end, or where the bytes are no message: then ok() is false.
  bool Next() {
    uint64_t key = 0;
    if (rest_.empty() || !ok_) return false;
    ok_ = Varint(key) && key >> 3 != 0 && key >> 3 < 1u << 29;
    number_ = key >> 3;
    type_ = static_cast<int>(key & 7);
    if (ok_) ok_ = Value();
    return ok_;
  }

  bool ok() const { return ok_; }
  bool Is(uint64_t number, int type) const { return number_ == number && type_ == type; }
  uint64_t number() const { return number_; }
  uint64_t varint() const { return value_; }
  // The content of a length-delimited field; the four or eight bytes of a fixed one.
  std::string_view bytes() const { return bytes_; }

  static constexpr int kVarint = 0;
  static constexpr int kFixed64 = 1;
  static constexpr int kBytes = 2;
  static constexpr int kFixed32 = 5;

 private:
  bool Value() {
    switch (type_) {
      case kVarint: return Varint(value_);
      case kFixed64: return Consume(8);
      case kFixed32: return Consume(4);
      case kBytes: {
        uint64_t length = 0;
        return Varint(length) && Consume(length);
      }
      default: return false;
    }
  }

  bool Consume(uint64_t length) {
    if (length > rest_.size()) return false;
    bytes_ = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return true;
  }

  bool Varint(uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  std::string_view rest_;
  std::string_view bytes_;
  uint64_t number_ = 0;
  uint64_t value_ = 0;
  int type_ = 0;
  bool ok_ = true;
};

template <class Number>
Number As(std::string_view bytes) {
  Number number{};
  std::memcpy(&number, bytes.data(), sizeof(number));
  return number;
}

bool DecodeValue(std::string_view bytes, SummaryValue& value) {
  Fields fields(bytes);
  while (fields.Next()) {
    if (fields.Is(1, Fields::kBytes)) value.tag = fields.bytes();
    if (fields.Is(2, Fields::kFixed32)) value.simple = As<float>(fields.bytes());
    if (fields.Is(8, Fields::kBytes)) value.tensor = fields.bytes();
  }
  return fields.ok();
}

bool DecodeSummary(std::string_view bytes, std::vector<SummaryValue>& values) {
  Fields fields(bytes);
  while (fields.Next()) {
    if (!fields.Is(1, Fields::kBytes)) continue;
    if (values.size() == kMaxEventValues) return false;
    if (!DecodeValue(fields.bytes(), values.emplace_back())) return false;
  }
  return fields.ok();
}

// ---- tensors ------------------------------------------------------------------------------------

constexpr uint64_t kFloat = 1;
constexpr uint64_t kDouble = 2;
constexpr uint64_t kInt32 = 3;
constexpr uint64_t kInt64 = 9;
constexpr uint64_t kBfloat16 = 14;
constexpr uint64_t kHalf = 19;

double Widen(float value) {
  if (!std::isfinite(value)) return value;
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  const std::string_view digits(text.data(), static_cast<size_t>(end - text.data()));
  return ParseNumber(digits).value_or(value);
}

float FromBfloat16(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

// IEEE binary16. It has so few digits that each is exact as a float.
float FromHalf(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f;
  const int fraction = bits & 0x3ff;
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  if (exponent == 0x1f) return fraction == 0 ? sign * HUGE_VALF : std::nanf("");
  return sign * std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
}

// What is known of a tensor, of which one element is wanted.
struct Tensor {
  uint64_t type = 0;
  int64_t elements = 1;               // by its shape
  std::string_view content;           // as in memory
  std::optional<std::string_view> f;  // the typed list that it has: packed, or the last element
  std::optional<uint64_t> n;          // the same for one that is not packed
};

int64_t ElementsOf(std::string_view shape) {
  int64_t elements = 1;
  Fields dims(shape);
  while (dims.Next()) {
    if (!dims.Is(2, Fields::kBytes)) continue;
    Fields dim(dims.bytes());
    while (dim.Next()) {
      const auto size = static_cast<int64_t>(dim.varint());
      if (dim.Is(1, Fields::kVarint)) elements = size == 1 ? elements : -1;
    }
  }
  return elements;
}

bool DecodeTensor(std::string_view bytes, Tensor& tensor) {
  Fields fields(bytes);
  while (fields.Next()) {
    if (fields.Is(1, Fields::kVarint)) tensor.type = fields.varint();
    if (fields.Is(2, Fields::kBytes)) tensor.elements = ElementsOf(fields.bytes());
    if (fields.Is(4, Fields::kBytes)) tensor.content = fields.bytes();
    const uint64_t number = fields.number();
    const bool list = number == 5 || number == 6 || number == 7 || number == 10 || number == 13;
    if (!list) continue;
    if (fields.Is(number, Fields::kVarint)) {
      tensor.n = fields.varint();
    } else {
      tensor.f = fields.bytes();
    }
  }
  return fields.ok();
}

// The one integer of a list: alone, or packed.
uint64_t IntegerOf(const Tensor& tensor) {
  if (tensor.n) return *tensor.n;
  uint64_t value = 0;
  int shift = 0;
  for (const char c : tensor.f.value_or("")) {
    value |= static_cast<uint64_t>(c & 0x7f) << shift;
    if ((c & 0x80) == 0 || (shift += 7) > 63) break;
  }
  return value;
}

template <class Number>
std::optional<Number> ElementOf(std::string_view bytes) {
  if (bytes.size() != sizeof(Number)) return std::nullopt;
  return As<Number>(bytes);
}

// A tensor without any element given is all zeros, as TensorFlow has it.
template <class Number>
std::optional<Number> FixedOf(const Tensor& tensor) {
  if (tensor.f) return ElementOf<Number>(*tensor.f);
  return tensor.content.empty() ? Number{} : ElementOf<Number>(tensor.content);
}

template <class Number>
std::optional<Number> VaryingOf(const Tensor& tensor) {
  if (!tensor.content.empty()) return ElementOf<Number>(tensor.content);
  return static_cast<Number>(IntegerOf(tensor));
}

std::optional<double> NumberOf(const Tensor& tensor) {
  switch (tensor.type) {
    case kFloat: {
      const auto value = FixedOf<float>(tensor);
      return value ? std::optional(Widen(*value)) : std::nullopt;
    }
    case kDouble: return FixedOf<double>(tensor);
    case kInt32: return VaryingOf<int32_t>(tensor);
    case kInt64: {
      const auto value = VaryingOf<int64_t>(tensor);
      return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
    }
    case kHalf: {
      const auto bits = VaryingOf<uint16_t>(tensor);
      return bits ? std::optional<double>(FromHalf(*bits)) : std::nullopt;
    }
    case kBfloat16: {
      const auto bits = VaryingOf<uint16_t>(tensor);
      return bits ? std::optional<double>(FromBfloat16(*bits)) : std::nullopt;
    }
    default: return std::nullopt;
  }
}

}  // namespace

bool DecodeEvent(std::string_view record, TfEvent& event) {
  event.wall_time = 0;
  event.step = 0;
  event.values.clear();
  Fields fields(record);
  while (fields.Next()) {
    if (fields.Is(1, Fields::kFixed64)) event.wall_time = As<double>(fields.bytes());
    if (fields.Is(2, Fields::kVarint)) event.step = static_cast<int64_t>(fields.varint());
    if (fields.Is(5, Fields::kBytes) && !DecodeSummary(fields.bytes(), event.values)) return false;
  }
  return fields.ok();
}

std::optional<double> ScalarOf(const SummaryValue& value, std::string& why) {
  if (value.simple) return Widen(*value.simple);
  if (!value.tensor) {
    why = "is not a scalar (a histogram, an image, …)";
    return std::nullopt;
  }
  Tensor tensor;
  if (!DecodeTensor(*value.tensor, tensor)) {
    why = "is a tensor that cannot be read";
  } else if (tensor.elements != 1) {
    why = "is a tensor of more than one number";
  } else if (const auto number = NumberOf(tensor)) {
    return number;
  } else {
    why = absl::StrCat("is a tensor of the type ", tensor.type, ", not one number");
  }
  return std::nullopt;
}

namespace {

// CRC-32C: Castagnoli's polynomial, bits reflected.
using Crc32c = boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true>;

// Little-endian, as the machines are that this is built for.
template <class Number>
Number ReadNumber(std::string_view bytes, size_t at) {
  Number number;
  std::memcpy(&number, bytes.data() + at, sizeof(number));
  return number;
}

// Whether the 12 bytes at `at` are a header.
bool IsHeader(std::string_view bytes, size_t at) {
  return ReadNumber<uint32_t>(bytes, at + 8) == MaskedCrc32c(bytes.substr(at, 8)) &&
         ReadNumber<uint64_t>(bytes, at) <= kMaxRecordBytes;
}

}  // namespace

uint32_t MaskedCrc32c(std::string_view bytes) {
  Crc32c crc;
  crc.process_bytes(bytes.data(), bytes.size());
  const uint32_t sum = crc.checksum();
  return (sum >> 15 | sum << 17) + 0xa282ead8u;
}

Record RecordAt(std::string_view bytes) {
  Record record;
  if (bytes.size() < kRecordHeaderBytes) return record;
  if (!IsHeader(bytes, 0)) {
    record.state = Record::State::kBadLength;
    return record;
  }
  const uint64_t length = ReadNumber<uint64_t>(bytes, 0);
  record.bytes = length + kRecordOverheadBytes;
  if (bytes.size() < record.bytes) return record;
  const std::string_view data = bytes.substr(kRecordHeaderBytes, length);
  const uint32_t sum = ReadNumber<uint32_t>(bytes, kRecordHeaderBytes + length);
  record.state = sum == MaskedCrc32c(data) ? Record::State::kWhole : Record::State::kBadData;
  if (record.state == Record::State::kWhole) record.data = data;
  return record;
}

size_t FindRecord(std::string_view bytes) {
  for (size_t at = 0; at + kRecordHeaderBytes <= bytes.size(); ++at) {
    // Nearly every place fails here, long before its checksum is worked out.
    if (ReadNumber<uint64_t>(bytes, at) > kMaxRecordBytes) continue;
    if (IsHeader(bytes, at)) return at;
  }
  return std::string_view::npos;
}

}  // namespace shirabe::metrics
