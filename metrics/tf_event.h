// TensorBoard's event files: their records (below), and what stands in one, an Event of TensorFlow,
// of which only the scalars are of use here. Its protocol buffer is read in place, without a
// generated class: an event may carry megabytes of images and histograms, which are stepped over.
// Any bytes are accepted.
//
// The fields that are read (number in parentheses):
//   Event         wall_time (1, double), step (2), summary (5)
//   Summary       value (1), repeated
//   Value         tag (1), simple_value (2, float), tensor (8)
//   TensorProto   dtype (1), tensor_shape (2), tensor_content (4), float_val (5), double_val (6),
//                 int_val (7), int64_val (10), half_val (13)
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shirabe::metrics {

struct SummaryValue {
  std::string_view tag;
  std::optional<float> simple;             // as PyTorch, tensorboardX and TensorFlow 1 write it
  std::optional<std::string_view> tensor;  // as TensorFlow 2 and JAX write it, not yet read
};

struct TfEvent {
  double wall_time = 0;  // seconds since 1970
  int64_t step = 0;
  std::vector<SummaryValue> values;  // views of the record
};

// More values take memory for nothing: writers give a few.
constexpr size_t kMaxEventValues = 10'000;

// False if the record is no event, or has more values than that. `event` is overwritten.
bool DecodeEvent(std::string_view record, TfEvent& event);

// The value as one number: of any floating or integer type, alone or in a tensor of one element. A
// float counts as the shortest decimal that is the same float: 0.9 is 0.9, as the program meant it
// and as Katib has it, and reaches a goal of 0.9. Nullopt, with `why` in words, for anything else.
std::optional<double> ScalarOf(const SummaryValue& value, std::string& why);

// The framing of TensorBoard's event files. A file is records without gaps:
//
//   offset    bytes
//   0         8      n, the length of the data, little-endian
//   8         4      masked CRC-32C of those 8 bytes
//   12        n      the data: an event, as above
//   12 + n    4      masked CRC-32C of the data
//
// where masked means rotated right by 15 bits, plus 0xa282ead8. Pure functions; any bytes are
// accepted, and none is read beyond those given.

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
