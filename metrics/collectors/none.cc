// Katib's None: nothing is searched. What the program writes to the metrics file still counts.
#include <memory>

#include "metrics/attempt_reader.h"
#include "metrics/collector.h"

namespace shirabe::metrics {
namespace {

StatusOr<std::unique_ptr<Collector>> CreateNone(const v1::MetricsCollectorSpec&) {
  return MakeContractCollector("");
}

}  // namespace

SHIRABE_REGISTER(CollectorInfo,
                 {.name = "None", .help = "nothing but the metrics file", .create = CreateNone});

}  // namespace shirabe::metrics
