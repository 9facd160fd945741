// Katib's StdOut: the metrics are in what the program prints, on stdout or stderr.
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "metrics/attempt_reader.h"
#include "metrics/collector.h"
#include "metrics/describe_source.h"
#include "metrics/metrics_format.h"

namespace shirabe::metrics {
namespace {

class StdOutCollector : public Collector {
 public:
  StdOutCollector(const v1::FilterSpec& filter, PatternsPtr patterns)
      : filter_(filter), patterns_(std::move(patterns)) {}

  StatusOr<Collected> Collect(const Source& source, const v1::CollectorCursor& cursor) override {
    return ReadAttempt(source, LineSource(source.files.log, TextParserMaker(patterns_)), cursor);
  }

  std::string Describe(const Source& source) const override {
    const std::string& log = source.files.log;
    // Of a pod there is a copy, whose path says nothing to the user.
    const std::string place = source.files.copies ? "" : absl::StrCat("log ", log, ", ");
    return absl::StrCat("in the output ", TextFormat(filter_, source), " (", place, LineCount(log),
                        OtherNames(log), ")");
  }

 private:
  const v1::FilterSpec filter_;
  const PatternsPtr patterns_;
};

StatusOr<std::unique_ptr<Collector>> CreateStdOut(const v1::MetricsCollectorSpec& spec) {
  ASSIGN_OR_RETURN(auto patterns, CompilePatterns(spec.source().filter()));
  return std::make_unique<StdOutCollector>(spec.source().filter(), std::move(patterns));
}

}  // namespace

SHIRABE_REGISTER(CollectorInfo,
                 {.name = "StdOut", .help = "what the program prints", .create = CreateStdOut});

}  // namespace shirabe::metrics
