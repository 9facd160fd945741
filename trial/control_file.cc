#include "trial/control_file.h"

#include "base/file_io.h"
#include "base/open_beneath.h"
#include "base/text/json_text.h"
#include "nlohmann/json.hpp"

namespace shirabe::trial {
namespace {

int64_t LastId(const std::string& path) {
  const auto text = ReadBeneath("", path, 1 << 16);
  if (!text.ok()) return 0;
  const auto json = ReadJsonOrDiscarded(*text);
  const bool usable = json.is_object() && json.contains("id") && json["id"].is_number_integer();
  return usable ? json["id"].get<int64_t>() : 0;
}

}  // namespace

std::string ControlReason(v1::Cause why) {
  switch (why) {
    case v1::PREEMPTED_SCHEDULER:
    case v1::PREEMPTED_EVICTION:
    case v1::PREEMPTED_NODE:
    case v1::PREEMPTED_SPOT:
    case v1::SUSPENDED:
    case v1::YIELDED:
    case v1::INFRASTRUCTURE: return "preempt";
    case v1::EARLY_STOPPED: return "early-stop";
    default: return "cancel";
  }
}

Status WriteControl(const std::string& path, const ControlRequest& request) {
  const nlohmann::json json = {{"id", LastId(path) + 1},
                               {"reason", request.reason},
                               {"deadline", absl::ToUnixSeconds(request.deadline)}};
  return WriteFileAtomic(path, JsonText(json) + "\n");
}

}  // namespace shirabe::trial
