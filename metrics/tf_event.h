// What stands in a record of an event file: an Event of TensorFlow, of which only the scalars are
// of use here. Its protocol buffer is read in place, without a generated class: an event may carry
// megabytes of images and histograms, which are stepped over. Any bytes are accepted.
//
// The fields that are read (number in parentheses):
//   Event         wall_time (1, double), step (2), summary (5)
//   Summary       value (1), repeated
//   Value         tag (1), simple_value (2, float), tensor (8)
//   TensorProto   dtype (1), tensor_shape (2), tensor_content (4), float_val (5), double_val (6),
//                 int_val (7), int64_val (10), half_val (13)
#pragma once

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

// False if the record is no event. `event` is overwritten.
bool DecodeEvent(std::string_view record, TfEvent& event);

// The value as one number: of any floating or integer type, alone or in a tensor of one element. A
// float counts as the shortest decimal that is the same float: 0.9 is 0.9, as the program meant it
// and as Katib has it, and reaches a goal of 0.9. Nullopt, with `why` in words, for anything else.
std::optional<double> ScalarOf(const SummaryValue& value, std::string& why);

}  // namespace shirabe::metrics
