#include "metrics/attempt_reader.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/open_beneath.h"
#include "base/rng.h"
#include "metrics/file_tail.h"
#include "metrics/json_line.h"

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

void AddParsed(const ParsedLine& parsed, const std::string& path, CollectionBuilder& intake) {
  for (ParsedObservation observation : parsed.observations) {
    const std::string& metric = intake.metrics()[observation.metric];
    if (observation.step == 0 && !intake.IsFirst(metric)) observation.step.reset();
    intake.Add(metric, observation);
  }
  if (!parsed.bad.empty()) intake.AddBad(1, parsed.bad, path);
}

}  // namespace

Status ReadHypertune(const std::string& path, CollectionBuilder& intake) {
  const std::unique_ptr<LineParser> parser = MakeHypertuneParser(intake.metrics());
  TailRequest request;
  request.cursor = intake.CursorOf(path);
  request.root = RootOf(intake.source(), path);
  request.ended = intake.source().ended;
  request.return_ends_line = parser->ReturnEndsLine();
  request.rewritten = true;
  request.copies = intake.source().files.copies;
  request.max_bytes = intake.BytesLeft();
  Recent recent(request.cursor.recent());
  ParsedLine parsed;
  ASSIGN_OR_RETURN(TailResult result, ReadLines(request, [&](std::string_view line) {
                     if (!recent.Add(line)) return true;
                     parser->Parse(line, parsed);
                     AddParsed(parsed, path, intake);
                     return !intake.Full();
                   }));
  intake.CountTail(result, path);
  *result.cursor.mutable_recent() = recent.lines();
  intake.Save(std::move(result.cursor));
  return absl::OkStatus();
}

namespace {

// Takes the lines of the file at `path` as `make_parser` understands them.
Status ReadMetricLines(const std::string& path, const ParserMaker& make_parser,
                       const std::vector<std::string>& metrics, CollectionBuilder& intake) {
  const std::unique_ptr<LineParser> parser = make_parser(metrics);
  const bool is_metrics_file = path == intake.source().files.metrics;
  TailRequest request;
  request.cursor = intake.CursorOf(path);
  request.root = RootOf(intake.source(), path);
  request.ended = intake.source().ended;
  request.copies = intake.source().files.copies;
  request.return_ends_line = parser->ReturnEndsLine();
  request.max_bytes = intake.BytesLeft();
  ParsedLine parsed;
  ASSIGN_OR_RETURN(TailResult result, ReadLines(request, [&](std::string_view line) {
                     parser->Parse(line, parsed);
                     for (const ParsedObservation& observation : parsed.observations) {
                       intake.Add(metrics[observation.metric], observation);
                     }
                     if (!parsed.bad.empty()) intake.AddBad(1, parsed.bad, path);
                     if (parsed.done && is_metrics_file) intake.SetDone();
                     return !intake.Full();
                   }));
  intake.CountTail(result, path);
  intake.Save(std::move(result.cursor));
  return absl::OkStatus();
}

// Room for a line of the greatest length, or the next call is to read on.
bool HasRoom(CollectionBuilder& intake) {
  if (intake.BytesLeft() < 2 * kMaxLineBytes || intake.Full()) intake.RequestMore();
  return !intake.stopped();
}

}  // namespace

ObservationSource LineSource(std::string path, ParserMaker make_parser) {
  return [path = std::move(path), make_parser = std::move(make_parser)](CollectionBuilder& intake) {
    if (path == intake.source().files.metrics) return absl::OkStatus();
    return ReadMetricLines(path, make_parser, intake.UnclaimedMetrics(), intake);
  };
}

StatusOr<Collected> ReadAttempt(const Source& source, const ObservationSource& feed,
                                const v1::CollectorCursor& cursor) {
  CollectionBuilder intake(source, cursor);
  if (intake.metrics().empty()) return intake.Finish();
  if (!source.files.metrics.empty()) {
    RETURN_IF_ERROR(
        ReadMetricLines(source.files.metrics, MakeJsonParser, intake.metrics(), intake));
  }
  if (!source.files.hypertune.empty() && HasRoom(intake)) {
    RETURN_IF_ERROR(ReadHypertune(source.files.hypertune, intake));
  }
  // Only once those are read up is it known what to leave out.
  intake.ClaimAll();
  if (feed != nullptr && HasRoom(intake) && !intake.UnclaimedMetrics().empty()) {
    RETURN_IF_ERROR(feed(intake));
  }
  return intake.Finish();
}

std::string RootOf(const Source& source, const std::string& path) {
  // EXPERIMENT/TRIAL/ATTEMPT/log
  const std::string root = FolderAbove(source.files.log, 3);
  return root != "/" && path.compare(0, root.size() + 1, root + "/") == 0 ? root : "";
}

namespace {

class ContractCollector : public Collector {
 public:
  explicit ContractCollector(std::string elsewhere) : elsewhere_(std::move(elsewhere)) {}

  StatusOr<Collected> Collect(const Source& source, const v1::CollectorCursor& cursor) override {
    return ReadAttempt(source, nullptr, cursor);
  }

  std::string Describe(const Source&) const override { return elsewhere_; }

 private:
  const std::string elsewhere_;
};

}  // namespace

std::unique_ptr<Collector> MakeContractCollector(std::string elsewhere) {
  return std::make_unique<ContractCollector>(std::move(elsewhere));
}

}  // namespace shirabe::metrics
