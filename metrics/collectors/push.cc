// Katib's Push: the program reports its metrics itself, by Katib's SDK or over our API, and the
// service that takes them in writes the rows. So there is nothing to read but the files of the
// contract.
#include <memory>
#include <string>
#include <vector>

#include "metrics/attempt_reader.h"
#include "metrics/collector.h"

namespace shirabe::metrics {
namespace {

class PushCollector : public Collector {
 public:
  StatusOr<Collected> Collect(const Source& source, const v1::CollectorCursor& cursor) override {
    return ReadAttempt(source, nullptr, cursor);
  }
};

StatusOr<std::unique_ptr<Collector>> Create(const v1::MetricsCollectorSpec&) {
  return std::make_unique<PushCollector>();
}

std::string Describe(const Source&) { return "among what was pushed (it was not there)"; }

std::vector<std::string> SharedFiles(const Source&) { return {}; }

}  // namespace

SHIRABE_REGISTER(CollectorInfo, {.name = "Push",
                                 .help = "what the program reports itself, over gRPC or HTTP",
                                 .create = Create,
                                 .describe = Describe,
                                 .shared_files = SharedFiles});

}  // namespace shirabe::metrics
