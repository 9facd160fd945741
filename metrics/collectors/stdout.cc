// Katib's StdOut: the metrics are in what the program prints, on stdout or stderr.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "metrics/attempt_reader.h"
#include "metrics/collector.h"
#include "metrics/describe_source.h"
#include "metrics/metrics_format.h"

namespace shirabe::metrics {
namespace {

class StdOutCollector : public Collector {
 public:
  explicit StdOutCollector(PatternsPtr patterns) : patterns_(std::move(patterns)) {}

  StatusOr<Collected> Collect(const Source& source, const v1::CollectorCursor& cursor) override {
    return ReadAttempt(source, LineSource(source.log, TextParserMaker(patterns_)), cursor);
  }

 private:
  const PatternsPtr patterns_;
};

StatusOr<std::unique_ptr<Collector>> Create(const v1::MetricsCollectorSpec& spec) {
  ASSIGN_OR_RETURN(auto patterns, CompilePatterns(spec.source().filter()));
  return std::make_unique<StdOutCollector>(std::move(patterns));
}

std::string Describe(const Source& source) {
  return absl::StrCat("in the output ", TextFormat(source), " (log ", source.log, ", ",
                      LineCount(source.log), OtherNames(source.log), ")");
}

// The log is the attempt's own.
std::vector<std::string> SharedFiles(const Source&) { return {}; }

}  // namespace

SHIRABE_REGISTER(CollectorInfo, {.name = "StdOut",
                                 .help = "what the program prints",
                                 .create = Create,
                                 .describe = Describe,
                                 .shared_files = SharedFiles});

}  // namespace shirabe::metrics
