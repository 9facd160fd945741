#include "metrics/hypertune.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "base/rng.h"
#include "metrics/journal.h"
#include "metrics/json_line.h"
#include "metrics/tail.h"

namespace shirabe::metrics {
namespace {

constexpr int kKept = 100;  // lines that its writer keeps

// The fingerprints of the lines that were read last, the newest at the end.
class Recent {
 public:
  explicit Recent(google::protobuf::RepeatedField<uint64_t> lines) : lines_(std::move(lines)) {}

  // False if it was there.
  bool Add(std::string_view line) {
    const uint64_t print = Fingerprint(std::string(line));
    if (std::find(lines_.begin(), lines_.end(), print) != lines_.end()) return false;
    if (lines_.size() == kKept) lines_.erase(lines_.begin());
    lines_.Add(print);
    return true;
  }

  const google::protobuf::RepeatedField<uint64_t>& lines() const { return lines_; }

 private:
  google::protobuf::RepeatedField<uint64_t> lines_;
};

void Take(const ParsedLine& parsed, const std::string& path, Intake& intake) {
  for (Reading reading : parsed.readings) {
    const std::string& metric = intake.metrics()[reading.metric];
    if (reading.step == 0 && !intake.IsFirst(metric)) reading.step.reset();
    intake.Add(metric, reading);
  }
  if (!parsed.bad.empty()) intake.AddBad(1, parsed.bad, path);
}

}  // namespace

Status ReadHypertune(const std::string& path, Intake& intake) {
  const std::unique_ptr<LineParser> parser = MakeHypertuneParser(intake.metrics());
  TailRequest request;
  request.cursor = intake.CursorOf(path);
  request.root = RootOf(intake.source(), path);
  request.ended = intake.source().ended;
  request.return_ends_line = parser->ReturnEndsLine();
  request.rewritten = true;
  request.copies = intake.source().copies;
  request.max_bytes = intake.BytesLeft();
  Recent recent(request.cursor.recent());
  ParsedLine parsed;
  ASSIGN_OR_RETURN(TailResult result, ReadLines(request, [&](std::string_view line) {
                     if (!recent.Add(line)) return true;
                     parser->Parse(line, parsed);
                     Take(parsed, path, intake);
                     return !intake.Full();
                   }));
  intake.CountTail(result, path);
  *result.cursor.mutable_recent() = recent.lines();
  intake.Save(std::move(result.cursor));
  return absl::OkStatus();
}

}  // namespace shirabe::metrics
