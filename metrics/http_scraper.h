// Asks running programs for their metrics over HTTP (Prometheus' text format, prometheus_text.h),
// once a second each, and appends what has changed to a file of the attempt. A page that was seen
// cannot be seen again, but that file can be read again: it is what the collector reads, from a
// cursor like any other file (ScrapeParser). Its lines are
//   {"step": 3, "timestamp": 1795249800.5, "metrics": {"loss": 0.25}}    a value that is new
//   # answered 404 Not Found                                             a note for people
//   ! loss has 2 series: …                                               a metric that is unclear
//
// The step is the sample named `step` or `global_step`, if the page has one. A value counts again
// only when it, its step or its own time stamp has changed: how often it is asked for says nothing
// about the program. What a program says in its last second may be missed.
//
// Owned by the collector; Watch and Drop are thread-safe and do not wait for any program. Each
// target is asked by a thread of its own, which ends when it is dropped.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "metrics/line_parser.h"

namespace shirabe::metrics {

struct ScrapeTarget {
  std::string address = "127.0.0.1";  // IPv4 or IPv6
  uint16_t port = 8080;
  std::string path = "/metrics";
  std::vector<std::pair<std::string, std::string>> headers;
  std::string file;                  // to append to, which also is the target's name
  std::vector<std::string> metrics;  // wanted; `loss{split="valid"}` is one with labels
};

std::string UrlOf(const ScrapeTarget& target);

class Scraper {
 public:
  virtual ~Scraper() = default;
  // From now on, until Drop, or until this was not called for ten seconds. Two targets of one
  // process that have the same address and port would hear the same program: the second one waits
  // until the first is dropped, and its file says so.
  virtual void Watch(const ScrapeTarget& target) = 0;
  // Once it has returned nothing is appended to the file any more.
  virtual void Drop(const std::string& file) = 0;
};

std::unique_ptr<Scraper> MakeScraper();

// Reads the lines above.
std::unique_ptr<LineParser> MakeScrapeParser(std::vector<std::string> metrics);

// What is new on a page, as lines of the file. Kept per target, by one thread at a time.
class ScrapeState {
 public:
  // Goes on from what the file says already: it may be that of an earlier process.
  ScrapeState(std::vector<std::string> metrics, const std::string& file);

  std::string LinesFor(std::string_view page, bool open_metrics, absl::Time now);
  // A note or a complaint, unless it is the last one again.
  std::string AddComment(const std::string& line);

 private:
  std::string PointLine(const std::string& metric, const ParsedObservation& observation);

  std::vector<std::string> metrics_;
  std::map<std::string, ParsedObservation> last_;
  std::string remark_;
};

}  // namespace shirabe::metrics
