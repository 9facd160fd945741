// Katib's TensorFlowEvent: the metrics are scalars in TensorBoard's event files.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "metrics/attempt_reader.h"
#include "metrics/collector.h"
#include "metrics/describe_source.h"
#include "metrics/tf_events.h"

namespace shirabe::metrics {
namespace {

constexpr size_t kShownTags = 5;

class TensorFlowEventCollector : public Collector {
 public:
  explicit TensorFlowEventCollector(std::string path) : path_(std::move(path)) {}

  StatusOr<Collected> Collect(const Source& source, const v1::CollectorCursor& cursor) override {
    const std::string& root = source.files.path;
    return ReadAttempt(
        source, [&root](CollectionBuilder& intake) { return ReadEvents(root, intake); }, cursor);
  }

  std::string Describe(const Source& source) const override {
    const std::string& root = source.files.path;
    const size_t files = FindEventFiles(root).size();
    const std::vector<std::string> tags = TagsIn(root, kShownTags);
    return absl::StrCat("as the tag of a scalar in the event files of ",
                        source.files.copies ? path_ : root, " (", files,
                        files == 1 ? " file" : " files",
                        tags.empty() ? "" : "; they have the tags ", QuotedList(tags), ")");
  }

  std::vector<std::string> Files(const AttemptFiles& files) const override {
    return FindEventFiles(files.path);
  }

 private:
  const std::string path_;  // as it is written
};

StatusOr<std::unique_ptr<Collector>> CreateTensorflowEvent(const v1::MetricsCollectorSpec& spec) {
  if (!spec.source().file_system_path().path().empty()) {
    return std::make_unique<TensorFlowEventCollector>(spec.source().file_system_path().path());
  }
  return absl::InvalidArgumentError(
      "spec.metricsCollectorSpec.source.fileSystemPath.path: the TensorFlowEvent collector needs "
      "the folder of the event files");
}

}  // namespace

SHIRABE_REGISTER(CollectorInfo, {.name = "TensorFlowEvent",
                                 .help = "scalars in TensorBoard's event files",
                                 .create = CreateTensorflowEvent});

}  // namespace shirabe::metrics
