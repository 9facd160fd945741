#include "metrics/ordinals.h"

namespace shirabe::metrics {

Ordinals::Ordinals(const std::vector<std::string>& metrics, const v1::CollectorCursor& cursor) {
  for (const std::string& metric : metrics) {
    const auto found = cursor.counts().find(metric);
    counts_[metric] = found == cursor.counts().end() ? 0 : found->second;
  }
}

void Ordinals::Save(v1::CollectorCursor& cursor) const {
  for (const auto& [metric, count] : counts_) {
    if (count != 0) (*cursor.mutable_counts())[metric] = count;
  }
}

}  // namespace shirabe::metrics
