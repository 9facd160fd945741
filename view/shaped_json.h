// Records in the shapes of proto/shirabe/v1/http.proto: the one writer of what HTTP answers and
// `-o json` prints. A shape says which fields there are, in which order, and which of them are
// always there. Pure functions, any thread.
#pragma once

#include <initializer_list>

#include <nlohmann/json.hpp>

#include "google/protobuf/message.h"

namespace shirabe::view {

using Json = nlohmann::ordered_json;

// What a record does not have under the name of the shape's field, or not in that form, by its name
// in JSON. Null for a field that is not required leaves it out.
struct GivenField {
  const char* name;
  mutable Json value;  // is moved from, which the const elements of an initializer_list forbid
};
using Given = std::initializer_list<GivenField>;

// The fields of `shape`, each from `given`, or else from the record's field of that name: numbers
// as numbers, enums as their words, times as text. Of those that are not required only what is set.
// What the record has not and the shape says of itself is that.
Json Shaped(const google::protobuf::Descriptor& shape, const google::protobuf::Message& record,
            Given given);

template <class Shape>
Json Shaped(const google::protobuf::Message& record, Given given = {}) {
  return Shaped(*Shape::descriptor(), record, given);
}

}  // namespace shirabe::view
