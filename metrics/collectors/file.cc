// Katib's File: the metrics are in a file that the program writes, as text or as JSON lines.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "metrics/attempt_reader.h"
#include "metrics/collector.h"
#include "metrics/describe_source.h"
#include "metrics/json_line.h"
#include "metrics/metrics_format.h"

namespace shirabe::metrics {
namespace {

constexpr char kField[] = "spec.metricsCollectorSpec.source.";

class FileCollector : public Collector {
 public:
  FileCollector(const v1::SourceSpec& spec, PatternsPtr patterns)
      : path_(spec.file_system_path().path()),
        json_(spec.file_system_path().format() == v1::JSON),
        filter_(spec.filter()),
        patterns_(std::move(patterns)) {}

  StatusOr<Collected> Collect(const Source& source, const v1::CollectorCursor& cursor) override {
    const ParserMaker maker = json_ ? MakeJsonParser : TextParserMaker(patterns_);
    return ReadAttempt(source, LineSource(source.files.path, maker), cursor);
  }

  std::string Describe(const Source& source) const override {
    const std::string& path = source.files.path;
    const std::string format = json_ ? "as a key of JSON lines" : TextFormat(filter_, source);
    return absl::StrCat("in the file ", source.files.copies ? path_ : path, " ", format, " (",
                        LineCount(path), OtherNames(path), ")");
  }

  std::vector<std::string> Files(const AttemptFiles& files) const override { return {files.path}; }

 private:
  const std::string path_;
  const bool json_;
  const v1::FilterSpec filter_;
  const PatternsPtr patterns_;
};

Status Check(const v1::SourceSpec& source) {
  const v1::FileSystemPath& path = source.file_system_path();
  if (path.path().empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        kField, "fileSystemPath.path: the File collector needs the path of the file to read"));
  }
  if (path.kind() == v1::DIRECTORY) {
    return absl::InvalidArgumentError(absl::StrCat(
        kField, "fileSystemPath.kind: Directory, but the File collector reads one file; use File"));
  }
  if (path.format() == v1::JSON && source.filter().metrics_format_size() > 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        kField, "filter.metricsFormat: has no meaning for JSON; remove it, or use format: TEXT"));
  }
  return absl::OkStatus();
}

StatusOr<std::unique_ptr<Collector>> CreateFile(const v1::MetricsCollectorSpec& spec) {
  RETURN_IF_ERROR(Check(spec.source()));
  ASSIGN_OR_RETURN(auto patterns, CompilePatterns(spec.source().filter()));
  return std::make_unique<FileCollector>(spec.source(), std::move(patterns));
}

}  // namespace

SHIRABE_REGISTER(CollectorInfo, {.name = "File",
                                 .help = "a file that the program writes, text or JSON lines",
                                 .create = CreateFile});

}  // namespace shirabe::metrics
