// Steps for points that have none: a metric's first such point in the trial is step 1, its next one
// step 2, and so on, going on from the counts in the cursor. One object serves one call of Collect.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::metrics {

class Ordinals {
 public:
  Ordinals(const std::vector<std::string>& metrics, const v1::CollectorCursor& cursor);

  // The step of the next point of this metric, one of those above, that has none.
  int64_t Next(const std::string& metric) { return ++counts_.find(metric)->second; }
  // Its last one; 0 if there was none.
  int64_t Last(const std::string& metric) const { return counts_.find(metric)->second; }
  // Writes the counts that are not zero.
  void Save(v1::CollectorCursor& cursor) const;

 private:
  std::map<std::string, int64_t> counts_;
};

}  // namespace shirabe::metrics
