// Takes out of records, before they are shown to people who were not given them, what may be
// secret: the values of environment variables and of HTTP headers, what stands in a Secret, and
// values that are named as secrets are (password, token, …) or look like one (keys of well-known
// services), in whatever text they appear. What it takes out it replaces by "(left out)", so that
// its absence is seen. Names, parameters and numbers stay: a value of a parameter is no secret.
// Immutable once made, any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "google/protobuf/struct.pb.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::view {

inline constexpr char kLeftOut[] = "(left out)";

class Redactor {
 public:
  // `experiment` as it is stored: the values of its trials' environment are left out wherever they
  // appear. `environment`: NAME=value, of a process that may have started trials: of these, what is
  // named as a secret.
  Redactor(const v1::Experiment& experiment, const std::vector<std::string>& environment);

  void Redact(google::protobuf::Message& record) const;
  std::string Redact(absl::string_view text) const;

 private:
  using Value = google::protobuf::Value;

  void AddSecret(const std::string& name, const std::string& value);
  void AddEnvironmentOf(const google::protobuf::Message& record);
  void AddEnvironmentIn(const std::string& key, const Value& value);
  void RedactField(google::protobuf::Message& record,
                   const google::protobuf::FieldDescriptor& field) const;
  void RedactValue(const std::string& key, Value& value) const;
  void RedactList(const std::string& key, google::protobuf::ListValue& list) const;
  void RedactStruct(google::protobuf::Struct& object) const;

  // Each with what stands in its place; where two begin at one place, the longer one counts.
  std::vector<std::pair<std::string, std::string>> secrets_;
};

}  // namespace shirabe::view
