// Event files for tests, made byte by byte. What the real writers make of them is in
// tests/testdata/events.
#pragma once

#include <cstring>
#include <string>

#include "metrics/tf_event.h"

namespace shirabe::metrics {

template <class T>
std::string RawBytes(T value) {
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

inline std::string TfRecordOf(const std::string& data) {
  const std::string length = RawBytes(static_cast<uint64_t>(data.size()));
  return length + RawBytes(MaskedCrc32c(length)) + data + RawBytes(MaskedCrc32c(data));
}

inline std::string VarintBytes(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

// The field `number` of a message, holding `bytes`.
inline std::string BytesField(int number, const std::string& bytes) {
  return VarintBytes(static_cast<uint64_t>(number) << 3 | 2) + VarintBytes(bytes.size()) + bytes;
}

// An event with one scalar, at `step` seconds after 1970.
inline std::string ScalarRecord(const std::string& tag, uint64_t step, float value) {
  const std::string scalar = BytesField(1, tag) + "\x15" + RawBytes(value);
  return TfRecordOf("\x09" + RawBytes(static_cast<double>(step)) + "\x10" + VarintBytes(step) +
                    BytesField(5, BytesField(1, scalar)));
}

}  // namespace shirabe::metrics
