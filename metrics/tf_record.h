// The framing of TensorBoard's event files. A file is records without gaps:
//
//   offset    bytes
//   0         8      n, the length of the data, little-endian
//   8         4      masked CRC-32C of those 8 bytes
//   12        n      the data: an event, see tf_event.h
//   12 + n    4      masked CRC-32C of the data
//
// where masked means rotated right by 15 bits, plus 0xa282ead8. Pure functions; any bytes are
// accepted, and none is read beyond those given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace shirabe::metrics {

// Longer ones are taken for damage: the largest event that makes sense holds some images.
constexpr uint64_t kMaxRecordBytes = 64 << 20;
constexpr uint64_t kRecordHeaderBytes = 12;
constexpr uint64_t kRecordOverheadBytes = 16;

struct Record {
  enum class State {
    kWhole,
    kPartial,    // there is more of it to come
    kBadLength,  // where the next one begins is not known either
    kBadData,    // damaged within
  };
  State state = State::kPartial;
  std::string_view data;                // of a whole one
  uint64_t bytes = kRecordHeaderBytes;  // that it takes in all; of a partial one, as far as known
};

// The record that `bytes` begin with.
Record RecordAt(std::string_view bytes);

// The first offset at which a header with a right checksum stands; npos if there is none.
size_t FindRecord(std::string_view bytes);

uint32_t MaskedCrc32c(std::string_view bytes);

}  // namespace shirabe::metrics
