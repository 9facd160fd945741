// Katib's None: nothing is searched. What the program writes to the metrics file still counts.
#include <memory>
#include <string>
#include <vector>

#include "metrics/attempt_reader.h"
#include "metrics/collector.h"

namespace shirabe::metrics {
namespace {

class NoneCollector : public Collector {
 public:
  StatusOr<Collected> Collect(const Source& source, const v1::CollectorCursor& cursor) override {
    return ReadAttempt(source, nullptr, cursor);
  }
};

StatusOr<std::unique_ptr<Collector>> Create(const v1::MetricsCollectorSpec&) {
  return std::make_unique<NoneCollector>();
}

std::string Nowhere(const Source&) { return ""; }

std::vector<std::string> SharedFiles(const Source&) { return {}; }

}  // namespace

SHIRABE_REGISTER(CollectorInfo, {.name = "None",
                                 .help = "nothing but the metrics file",
                                 .create = Create,
                                 .describe = Nowhere,
                                 .shared_files = SharedFiles});

}  // namespace shirabe::metrics
