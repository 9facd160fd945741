// Katib's Push: the program reports its metrics itself, by Katib's SDK or over our API, and the
// service that accepts them writes the rows. So there is nothing to read but the files of the
// contract.
#include <memory>

#include "metrics/attempt_reader.h"
#include "metrics/collector.h"

namespace shirabe::metrics {
namespace {

StatusOr<std::unique_ptr<Collector>> CreatePush(const v1::MetricsCollectorSpec&) {
  return MakeContractCollector("among what was pushed (it was not there)");
}

}  // namespace

SHIRABE_REGISTER(CollectorInfo, {.name = "Push",
                                 .help = "what the program reports itself, over gRPC or HTTP",
                                 .create = CreatePush});

}  // namespace shirabe::metrics
