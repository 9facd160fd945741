// Any template, any values: Render and ReadCommand answer, and no value shows up where the template
// had no reference.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "google/protobuf/util/json_util.h"
#include "trial/trial_template.h"

namespace shirabe::trial {
namespace {

// One reference to x is replaced by the value, byte for byte, whatever the value holds.
void CheckSubstitution(const std::string& value) {
  v1::TrialTemplate simple;
  (*simple.mutable_trial_spec()->mutable_fields())["a"].set_string_value("<${trialParameters.x}>");
  auto* parameter = simple.add_trial_parameters();
  parameter->set_name("x");
  parameter->set_reference("x");
  std::vector<v1::Assignment> assignments(1);
  assignments[0].set_name("x");
  assignments[0].set_category(value);
  const auto rendered = Render(simple, {{"ns", "exp"}, 1}, assignments);
  CHECK(rendered.ok());
  CHECK(rendered->fields().at("a").string_value() == "<" + value + ">");
}

// Text is the template's JSON, a newline, and a value.
void RunOne(std::string_view text) {
  const size_t cut = text.find('\n');
  const std::string json(text.substr(0, cut));
  const std::string value(cut == std::string_view::npos ? "" : text.substr(cut + 1));
  CheckSubstitution(value);
  IsMetadataReference(value);
  v1::TrialTemplate from;
  if (!google::protobuf::util::JsonStringToMessage(json, &from).ok()) return;
  std::vector<v1::Assignment> assignments;
  for (const auto& parameter : from.trial_parameters()) {
    assignments.emplace_back().set_name(parameter.reference());
    assignments.back().set_category(value);
  }
  const auto rendered = Render(from, {{"ns", "exp"}, 1}, assignments);
  if (!rendered.ok()) return;
  const auto command = ReadCommand(*rendered, from.primary_container_name(), {{"A", value}});
  CHECK(!command.ok() || !command->argv.empty());
}

}  // namespace
}  // namespace shirabe::trial

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  shirabe::trial::RunOne(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
