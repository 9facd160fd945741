// Bodies of requests and replies: text to messages by the tables of the .proto files, and JSON to
// text. Used by the handlers (routes_*.cc). Pure functions, any thread.
#pragma once

#include <string>
#include <vector>

#include "client/view.h"
#include "experiment/spec.h"
#include "google/protobuf/message.h"
#include "service/routes.h"

namespace shirabe::service {

using client::Json;

// The body as one of the messages of http.proto: names, types, words and bounds are checked by its
// table. An empty body is an empty mapping.
Status ReadBody(const HttpRequest& request, google::protobuf::Message& message);

// The body as one Experiment, YAML or JSON, with defaults; without a namespace of its own it is in
// `ns`, and kInvalidArgument if it has another. What is only a warning becomes a header. "" allows
// any namespace.
struct ReadExperiment {
  v1::Experiment experiment;
  HttpHeaders warnings;
};
StatusOr<ReadExperiment> ReadExperimentBody(const HttpRequest& request, const std::string& ns);

// The findings on a text that is to be one experiment, and that experiment.
experiment::ParsedExperiment ParseOne(const std::string& text);

HttpReply JsonReply(const Json& body, int status = 200);
// With its generation as the ETag.
HttpReply ExperimentReply(const v1::Experiment& experiment, int status = 200);
// {apiVersion: v1, kind: List, items}, to which the caller may add.
Json ListJson(std::vector<Json> items);

}  // namespace shirabe::service
