// What the stores ask of a record that they have read, beside that it is a message. Pure functions.
#pragma once

#include <type_traits>

#include "base/message_check.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::db {

// kUnimplemented where a newer version wrote values into it that this one does not know. Not of
// experiments: those of everybody are listed together, and one must not hide the others; they are
// looked at when they are loaded to be run.
template <class Record>
Status CheckRecord(const Record& record) {
  if constexpr (std::is_same_v<Record, v1::Experiment>) return absl::OkStatus();
  return CheckEnums(record);
}

}  // namespace shirabe::db
