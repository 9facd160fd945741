// Asks the program for the metrics that it serves (Katib's PrometheusMetric), here in its pod,
// where its address is 127.0.0.1; what was heard goes to the scrapes file, which is sent like the
// others. Nothing for other collectors. Used by the sidecar's thread.
#pragma once

#include <memory>
#include <string>

#include "metrics/collector.h"
#include "sidecar/pod.h"

namespace shirabe::sidecar {

class Scrape {
 public:
  explicit Scrape(const Pod& pod);
  // To be called at least once in a few seconds; with `ended`, nothing is written any more.
  void Tick(bool ended);
  const std::string& trouble() const { return trouble_; }

 private:
  std::unique_ptr<metrics::Collector> collector_;  // null = nothing to ask for
  metrics::Source source_;
  std::string trouble_;
};

}  // namespace shirabe::sidecar
