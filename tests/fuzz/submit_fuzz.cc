// Any bytes as a message with an Experiment: what the door and the rules accept is one that prints,
// and reads back, as the same message.
#include <cstdint>

#include "base/status.h"
#include "base/text/json_text.h"
#include "base/text/message_check.h"
#include "experiment/spec/parse_spec.h"
#include "proto/shirabe/v1/api.pb.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace shirabe;
  v1::SubmitRequest request;
  if (!request.ParseFromArray(data, static_cast<int>(size))) return 0;
  const bool believed = CheckMessage(request).ok();
  v1::Experiment& experiment = *request.mutable_experiment();
  experiment::SetDefaults(experiment);
  const auto findings = experiment::Validate(experiment);
  if (!believed) return 0;
  CHECK(CheckEnums(request).ok());
  CHECK(MessageToJson(request).ok());
  if (experiment::HasErrors(findings)) return 0;
  v1::Experiment again;
  CHECK(again.ParseFromString(experiment.SerializeAsString()));
  const auto parsed = experiment::ParseExperiments(experiment::ToYaml(experiment));
  CHECK(parsed.size() == 1);
  return 0;
}
