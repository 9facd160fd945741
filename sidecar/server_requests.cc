#include "sidecar/server_requests.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/open_beneath.h"
#include "base/text/json_text.h"
#include "base/timestamp.h"
#include "trial/control_file.h"

namespace shirabe::sidecar {
namespace {

constexpr int64_t kMaxControlBytes = 1 << 16;

bool Stands(const v1::PodRequest& request, const std::string& control_file) {
  const auto text = ReadBeneath("", control_file, kMaxControlBytes);
  if (!text.ok()) return false;
  const auto json = ReadJsonOrDiscarded(*text);
  if (!json.is_object() || !json.contains("reason") || !json.contains("deadline")) return false;
  return json["reason"] == request.reason() &&
         json["deadline"] == absl::ToUnixSeconds(FromProto(request.deadline()));
}

bool Same(const v1::Checkpoint& a, const v1::Checkpoint& b) {
  return a.namespace_() == b.namespace_() && a.experiment() == b.experiment() &&
         a.trial() == b.trial() && a.attempt() == b.attempt() && a.step() == b.step();
}

}  // namespace

Status ForwardRequest(const v1::PodRequest& request, const std::string& control_file) {
  if (Stands(request, control_file)) return absl::OkStatus();
  return trial::WriteControl(
      control_file, {.reason = request.reason(), .deadline = FromProto(request.deadline())});
}

void PruneWorker::Prune(const v1::Checkpoint& checkpoint) {
  {
    std::lock_guard lock(mutex_);
    for (const Task& task : tasks_) {
      if (Same(task.checkpoint, checkpoint)) return;
    }
    tasks_.push_back({checkpoint});
  }
  task_pool_.Run([this, checkpoint] {
    const Status status = store_->Prune(checkpoint);
    const bool gone = status.ok() || absl::IsNotFound(status);
    if (!gone) {
      Log(LogLevel::kWarning, "failed to delete an unneeded checkpoint",
          {{"checkpoint", checkpoint.location()}, {"error", Message(status)}});
    }
    Finish(checkpoint, gone);
  });
}

// One that failed is forgotten: the server asks again.
void PruneWorker::Finish(const v1::Checkpoint& checkpoint, bool done) {
  std::lock_guard lock(mutex_);
  const auto task = std::find_if(tasks_.begin(), tasks_.end(),
                                 [&](const Task& one) { return Same(one.checkpoint, checkpoint); });
  if (task == tasks_.end()) return;
  task->done = done;
  if (!done) tasks_.erase(task);
}

std::vector<v1::Checkpoint> PruneWorker::Done() const {
  std::vector<v1::Checkpoint> done;
  std::lock_guard lock(mutex_);
  for (const Task& task : tasks_) {
    if (task.done) done.push_back(task.checkpoint);
  }
  return done;
}

void PruneWorker::Acknowledged(const v1::PodState& state) {
  std::lock_guard lock(mutex_);
  for (const v1::Checkpoint& told : state.pruned()) {
    std::erase_if(tasks_, [&](const Task& task) { return Same(task.checkpoint, told); });
  }
}

}  // namespace shirabe::sidecar
