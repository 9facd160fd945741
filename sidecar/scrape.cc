#include "sidecar/scrape.h"

namespace shirabe::sidecar {

Scrape::Scrape(const Pod& pod) {
  source_.spec = pod.config.collector();
  source_.metrics = {pod.config.metrics().begin(), pod.config.metrics().end()};
  source_.scrapes_file = pod.paths.scrapes_file;
  if (source_.spec.collector().kind() != v1::PROMETHEUS_METRIC) return;
  auto collector = metrics::CreateCollector(source_.spec);
  if (!collector.ok()) trouble_ = Message(collector.status());
  if (collector.ok()) collector_ = *std::move(collector);
}

void Scrape::Tick(bool ended) {
  if (collector_ == nullptr) return;
  source_.ended = ended;
  // What it reads is of no interest here: the server reads its copy. Asking is a part of it.
  const auto collected = collector_->Collect(source_, v1::CollectorCursor());
  trouble_ = Message(collected.status());
  if (ended) collector_ = nullptr;
}

}  // namespace shirabe::sidecar
