// All about one record as text for people: what it is, how it is, and why. Called by the command
// line; reads through the client.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "base/status.h"
#include "client/client.h"

namespace shirabe::view {

// kNotFound if there is no such record.
StatusOr<std::string> DescribeExperiment(client::Client& client, const ExperimentKey& key,
                                         absl::Time now);
StatusOr<std::string> DescribeTrial(client::Client& client, const TrialKey& key, absl::Time now);

// How spec.shirabe.onSuccess stands, in a line; "" without one.
std::string OnSuccessLine(const v1::Experiment& experiment);

// A page about one record: labelled lines, and tables under headings. Used by describe*.cc; not
// thread-safe.
class Page {
 public:
  // "Label:   text". Nothing is said about what is empty.
  void Line(const std::string& label, const std::string& text);
  // The heading, then each of the lines, indented; nothing for none.
  void Block(const std::string& heading, const std::string& lines);

  std::string Release() { return std::move(text_); }

 private:
  std::string text_;
};

// 2026-11-21T08:30:00Z (5m ago); "" for an unset time.
std::string When(const google::protobuf::Timestamp& time, absl::Time now);
// " (Reason: message)" after a state, where they say something.
std::string Because(const std::string& reason, const std::string& message);

// The newest events as a table: of one trial or, with number 0, of the experiment and all trials.
StatusOr<std::string> EventsTable(client::Client& client, const TrialKey& key, absl::Time now);

}  // namespace shirabe::view
