#include "trial/kubernetes/pod_log_copy.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "base/text/json_text.h"
#include "trial/kubernetes/cluster_actions.h"
#include "trial/log_file.h"
#include "trial/pod/final_sync_log.h"

namespace shirabe::trial {
namespace {

constexpr int64_t kMaxLogBytes = 64 << 20;  // of a log that is read through the API server
constexpr int64_t kMaxSidecarWords = 64 << 10;
constexpr int64_t kMaxFinalSync = 16 << 20;  // of a sidecar's
// So much of the end of a copy tells where a log goes on from it.
constexpr int64_t kLogOverlapBytes = 4 << 10;
constexpr std::string_view kGapNotice =
    "\nshirabe: output may be missing here: the cluster has begun a new log\n";

// How much of `log` the copy has, which is `copied` bytes long and ends with `joint`; npos if the
// two do not meet. A kubelet shows only the file that it writes now, so after a rotation (by
// default at 10 MiB) the log begins later than the copy.
size_t KnownOf(const std::string& log, int64_t copied, std::string joint) {
  const bool short_one = static_cast<int64_t>(joint.size()) < kLogOverlapBytes;
  size_t before = static_cast<size_t>(copied) - joint.size();
  const size_t begun = joint.rfind(kGapNotice);
  if (begun != joint.npos) {  // then this log was, after that line
    joint.erase(0, begun + kGapNotice.size());
    before = 0;
  }
  if (log.size() >= before && log.compare(before, joint.size(), joint) == 0) {
    return before + joint.size();
  }
  const size_t at = short_one || begun != joint.npos ? log.npos : log.find(joint);
  return at == log.npos ? at : at + joint.size();
}

}  // namespace

bool IsPassing(const Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsResourceExhausted(status);
}

StatusOr<std::vector<v1::SyncRequest>> ReadFinalSync(const ClusterContext& context,
                                                     const Json& pod) {
  ASSIGN_OR_RETURN(const std::string log,
                   ReadLogOf(*context.client, pod, kSidecarContainer, kMaxFinalSync));
  return ParseFinalSync(log);
}

StatusOr<std::string> ReadSidecarError(const ClusterContext& context, const Json& pod) {
  ASSIGN_OR_RETURN(const std::string log,
                   ReadLogOf(*context.client, pod, kSidecarContainer, kMaxSidecarWords));
  std::string error;
  for (const absl::string_view text : absl::StrSplit(log, '\n')) {
    if (!absl::StrContains(text, "\"error\"")) continue;
    const Json line = ReadJsonOrDiscarded(std::string(text));
    if (line.is_object() && !Text(line, {"error"}).empty()) error = Text(line, {"error"});
  }
  return error;
}

Status CopyLog(const ClusterContext& context, const PodLog& from, FileMirror& mirror) {
  ASSIGN_OR_RETURN(std::string log, ReadLogOf(*context.client, from.pod,
                                              from.recipe.primary_container, kMaxLogBytes));
  const std::string path = context.layout->Paths(from.key).log;
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  const int64_t copied = error ? 0 : static_cast<int64_t>(size);
  std::string joint;
  if (copied > 0) {
    ASSIGN_OR_RETURN(LogPiece piece, ReadLog(path, std::max<int64_t>(0, copied - kLogOverlapBytes),
                                             kLogOverlapBytes));
    joint = std::move(piece.text);
  }
  const size_t known = KnownOf(log, copied, joint);
  if (known != log.npos) {
    log.erase(0, known);
  } else if (from.recipe.instrumented || log.empty()) {
    return absl::OkStatus();
  } else {
    log.insert(0, kGapNotice);
  }
  return log.empty() ? absl::OkStatus() : mirror.AppendLog(from.key, log);
}

}  // namespace shirabe::trial
