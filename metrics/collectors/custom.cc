// Katib's Custom: a container of the user's own collects, beside the program's, and pushes what it
// found (DBManager.ReportObservationLog). So there is nothing to read here but the files of the
// contract. A process of this machine has no container beside it: `run` says so before it starts.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "metrics/attempt_reader.h"
#include "metrics/collector.h"

namespace shirabe::metrics {
namespace {

StatusOr<std::unique_ptr<Collector>> CreateCustom(const v1::MetricsCollectorSpec& spec) {
  if (!spec.collector().has_custom_collector()) {
    return absl::InvalidArgumentError(
        "spec.metricsCollectorSpec.collector.customCollector: the collector Custom needs the "
        "container that collects; for a program that reports its metrics itself use kind: Push");
  }
  const auto& container = spec.collector().custom_collector().fields();
  const auto name = container.find("name");
  return MakeContractCollector(absl::StrCat(
      "among what the container ", name == container.end() ? "" : name->second.string_value(),
      " of customCollector reported (DBManager.ReportObservationLog of --katib-listen; a process "
      "of "
      "this machine has no container beside it)"));
}

}  // namespace

SHIRABE_REGISTER(CollectorInfo, {.name = "Custom",
                                 .help = "what a container of your own, beside the trial, pushes",
                                 .create = CreateCustom});

}  // namespace shirabe::metrics
