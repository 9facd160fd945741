#include "metrics/journal.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "metrics/json_line.h"
#include "metrics/ordinals.h"
#include "metrics/tail.h"
#include "metrics/text.h"

namespace shirabe::metrics {
namespace {

constexpr int64_t kMaxBytes = 4 << 20;
constexpr size_t kMaxPoints = 50'000;  // what one Commit takes without keeping others waiting

// The wanted metrics, once each: the objective may be among the additional ones.
std::vector<std::string> Distinct(const std::vector<std::string>& metrics) {
  std::vector<std::string> distinct;
  for (const std::string& metric : metrics) {
    if (!metric.empty() && FindMetric(distinct, metric) < 0) distinct.push_back(metric);
  }
  return distinct;
}

// One call of ReadAttempt.
class Session {
 public:
  Session(const Source& source, const v1::CollectorCursor& cursor)
      : source_(source),
        metrics_(Distinct(source.metrics)),
        journalled_(cursor.journalled().begin(), cursor.journalled().end()),
        ordinals_(metrics_, cursor) {
    collected_.cursor = cursor;
  }

  StatusOr<Collected> Run(const Feed& feed) {
    if (!source_.metrics_file.empty()) {
      RETURN_IF_ERROR(Read(source_.metrics_file, MakeJsonParser, metrics_));
      for (const Point& point : collected_.points) MarkJournalled(point.metric);
    }
    const bool apart = !feed.path.empty() && feed.path != source_.metrics_file;
    // Only once the metrics file is read up is it known what to leave out, and a line of the
    // greatest length must fit in what is left of the limit.
    if (apart && bytes_ > kMaxBytes - 2 * kMaxLineBytes) collected_.more = true;
    if (apart && !collected_.more) {
      RETURN_IF_ERROR(Read(feed.path, feed.make_parser, NotJournalled()));
    }
    ordinals_.Save(collected_.cursor);
    return std::move(collected_);
  }

 private:
  Status Read(const std::string& path, const ParserMaker& make_parser,
              const std::vector<std::string>& metrics) {
    if (metrics.empty()) return absl::OkStatus();
    const std::unique_ptr<LineParser> parser = make_parser(metrics);
    TailRequest request;
    if (const v1::FileCursor* known = FindFile(path)) request.cursor = *known;
    request.cursor.set_path(path);
    request.ended = source_.ended;
    request.return_ends_line = parser->ReturnEndsLine();
    request.max_bytes = kMaxBytes - bytes_;
    ParsedLine parsed;
    ASSIGN_OR_RETURN(TailResult result, ReadLines(request, [&](std::string_view line) {
                       parser->Parse(line, parsed);
                       Take(parsed, metrics, path);
                       return collected_.points.size() < kMaxPoints;
                     }));
    if (result.long_lines > 0) {
      AddBad(result.long_lines, absl::StrCat("a line of more than ", kMaxLineBytes, " bytes"),
             path);
    }
    SaveFile(std::move(result.cursor));
    bytes_ += result.bytes;
    collected_.more = result.more;
    return absl::OkStatus();
  }

  v1::FileCursor* FindFile(const std::string& path) {
    for (v1::FileCursor& file : *collected_.cursor.mutable_files()) {
      if (file.path() == path) return &file;
    }
    return nullptr;
  }

  // A file that is not there yet has no place in the cursor.
  void SaveFile(v1::FileCursor file) {
    if (file.inode() == 0) return;
    v1::FileCursor* known = FindFile(file.path());
    *(known == nullptr ? collected_.cursor.add_files() : known) = std::move(file);
  }

  void Take(const ParsedLine& parsed, const std::vector<std::string>& metrics,
            const std::string& path) {
    for (const Reading& reading : parsed.readings) {
      Point& point = collected_.points.emplace_back();
      point.metric = metrics[reading.metric];
      point.value = reading.value;
      point.implicit_step = !reading.step;
      point.step = reading.step ? *reading.step : ordinals_.Next(point.metric);
      point.time = reading.time.value_or(source_.now);
    }
    if (!parsed.bad.empty()) AddBad(1, parsed.bad, path);
    if (parsed.done && path == source_.metrics_file) collected_.cursor.set_done(true);
  }

  void MarkJournalled(const std::string& metric) {
    if (FindMetric(journalled_, metric) >= 0) return;
    journalled_.push_back(metric);
    collected_.cursor.add_journalled(metric);
  }

  std::vector<std::string> NotJournalled() const {
    std::vector<std::string> left;
    for (const std::string& metric : metrics_) {
      if (FindMetric(journalled_, metric) < 0) left.push_back(metric);
    }
    return left;
  }

  void AddBad(int64_t lines, const std::string& what, const std::string& path) {
    collected_.bad_lines += lines;
    if (collected_.bad_sample.empty()) {
      collected_.bad_sample = absl::StrCat(what, " (in ", Excerpt(path, 200), ")");
    }
  }

  const Source& source_;
  const std::vector<std::string> metrics_;
  std::vector<std::string> journalled_;
  Ordinals ordinals_;
  Collected collected_;
  int64_t bytes_ = 0;
};

}  // namespace

StatusOr<Collected> ReadAttempt(const Source& source, const Feed& feed,
                                const v1::CollectorCursor& cursor) {
  return Session(source, cursor).Run(feed);
}

}  // namespace shirabe::metrics
