#include "metrics/tf_record.h"

#include <boost/crc.hpp>
#include <cstring>

namespace shirabe::metrics {
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
