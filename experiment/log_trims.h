// Keeps the logs of running attempts from filling the disk. They are shortened by whoever reads
// them, because nobody else knows what may go: what a collector has read, once its cursor is in the
// store, is never looked at again but by people. Made for one pass (pass.h), and used by it alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiment/live.h"
#include "metrics/collector.h"

namespace shirabe::experiment {

class LogTrims {
 public:
  // After each look at what an attempt wrote: if its log is long, it will be shortened.
  void Note(Live& live, const metrics::Source& source);
  // Once the pass has committed.
  void Run() const;

 private:
  struct LongLog {
    std::string path, root;
    int64_t read = 0;  // how far
  };
  std::vector<LongLog> logs_;
};

}  // namespace shirabe::experiment
