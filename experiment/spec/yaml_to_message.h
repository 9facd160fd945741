// One walk of a YAML tree over a message's descriptor: text becomes typed values here, and nowhere
// else. It knows names, types and words; what a value must be beside that is for validate_rules.h.
#pragma once

#include <string_view>

#include "base/text/yaml_tree.h"
#include "experiment/spec/findings.h"
#include "google/protobuf/message.h"

namespace shirabe::experiment {

// Fills `message` from a mapping. Everything that cannot be read is found, with its place, and left
// unset; lists keep their length, so that paths stay true.
void Walk(const YamlNode& mapping, google::protobuf::Message& message, Findings& findings);

// An entry of ParseExperiments (experiment/spec/parse_spec.h): what one document says.
struct ParsedExperiment;
ParsedExperiment ParseDocument(const YamlDocument& document);

// A file of the administrator's, such as that of --nodes.
struct FileKind {
  const char* name;     // in errors: "nodes file"
  const char* example;  // a mapping that is one
};
// Walks the one document of such a file. False: there is none that can be read, and rules would
// guess at what was meant.
bool WalkFile(std::string_view text, const FileKind& kind, google::protobuf::Message& message,
              Findings& findings);

}  // namespace shirabe::experiment
