#include "trial/checkpoint/checkpoint_resumer.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/file_io.h"
#include "base/open_beneath.h"
#include "base/text/json_text.h"
#include "nlohmann/json.hpp"

namespace shirabe::trial {
namespace {

using Json = nlohmann::json;

constexpr const char* kFileName = "/resumed.json";
constexpr int64_t kMaxResumeBytes = 16 << 20;
// Verified and copied in about a tenth of a second, while the caller waits.
constexpr int64_t kSmallBytes = 64 << 20;

StatusOr<Json> ToJson(const v1::Checkpoint& checkpoint) {
  ASSIGN_OR_RETURN(const std::string text, MessageToJson(checkpoint));
  return ParseJson(text);
}

std::optional<v1::Checkpoint> FromJson(const Json& json) {
  v1::Checkpoint checkpoint;
  return MessageFromJson(JsonText(json), checkpoint).ok() ? std::optional(std::move(checkpoint))
                                                          : std::nullopt;
}

Status WriteResume(const std::string& attempt_dir, const Resume& resume) {
  Json json = {{"resumed", nullptr}, {"damaged", Json::array()}};
  if (resume.from) {
    ASSIGN_OR_RETURN(json["resumed"], ToJson(*resume.from));
  }
  for (const v1::Checkpoint& checkpoint : resume.damaged) {
    ASSIGN_OR_RETURN(Json one, ToJson(checkpoint));
    json["damaged"].push_back(std::move(one));
  }
  return WriteFileAtomic(attempt_dir + kFileName, JsonText(json, 2) + "\n");
}

Status RemoveResume(const std::string& attempt_dir) {
  const std::string path = attempt_dir + kFileName;
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return ErrnoStatus("cannot remove " + path, errno);
}

// 3.2 GiB
std::string Size(int64_t bytes) {
  const double mib = static_cast<double>(bytes) / (1 << 20);
  return mib < 1024 ? absl::StrFormat("%.0f MiB", mib) : absl::StrFormat("%.1f GiB", mib / 1024);
}

Status NotYet(const v1::Checkpoint& checkpoint) {
  return absl::UnavailableError(absl::StrFormat("verifying the checkpoint at step %d (%s)",
                                                checkpoint.step(), Size(checkpoint.bytes())));
}

bool IsUseless(const Status& status) {
  return absl::IsNotFound(status) || absl::IsDataLoss(status);
}

bool SameOnes(const std::vector<v1::Checkpoint>& a, const std::vector<v1::Checkpoint>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const v1::Checkpoint& x, const v1::Checkpoint& y) {
                      return x.digest() == y.digest() && x.step() == y.step();
                    });
}

}  // namespace

Resume ReadResume(const std::string& attempt_dir) {
  Resume resume;
  const auto text = ReadBeneath("", attempt_dir + kFileName, kMaxResumeBytes);
  if (!text.ok()) return resume;
  const Json json = ReadJsonOrDiscarded(*text);
  if (!json.is_object()) return resume;
  if (const auto from = json.find("resumed"); from != json.end() && from->is_object()) {
    resume.from = FromJson(*from);
  }
  const auto damaged = json.find("damaged");
  if (damaged == json.end() || !damaged->is_array()) return resume;
  for (const Json& one : *damaged) {
    if (auto checkpoint = FromJson(one)) resume.damaged.push_back(*std::move(checkpoint));
  }
  return resume;
}

Resumer::Resumer(const Parts& parts, OnReady on_ready)
    : parts_(parts), on_ready_(std::move(on_ready)) {}

StatusOr<std::string> Resumer::Prepare(const AttemptRequest& request) {
  if (request.resume.empty()) {
    // An earlier start that was cut short may have had some.
    RETURN_IF_ERROR(RemoveResume(parts_.layout->Paths(request.key).dir));
    return std::string();
  }
  Task task;
  task.key = request.key;
  task.candidates = request.resume;
  task.busy = true;
  if (const auto answer = FindAnswer(task)) return *answer;
  if (!Advance(task, /*patient=*/false)) return VerifyInBackground(std::move(task));
  const auto answer = task.answer;
  Finish(std::move(task));
  if (!answer.ok()) Forget(request.key);
  return answer;
}

// What an earlier call has found out, or nullopt once the task has its place.
std::optional<StatusOr<std::string>> Resumer::FindAnswer(const Task& task) {
  const MutexLock lock(mutex_);
  const auto [place, is_new] = tasks_.emplace(task.key, task);
  Task& known = place->second;
  if (is_new) return std::nullopt;
  if (known.busy) return NotYet(known.candidates[known.resume.damaged.size()]);
  if (!SameOnes(known.candidates, task.candidates)) {
    known = task;
    return std::nullopt;
  }
  const auto answer = known.answer;
  // A failure is told once: a caller that asks again wants another try.
  if (!answer.ok()) tasks_.erase(place);
  return answer;
}

Status Resumer::VerifyInBackground(Task task) {
  const Status answer = NotYet(task.candidates[task.resume.damaged.size()]);
  parts_.background->Run([this, task = std::move(task)]() mutable {
    const AttemptKey key = task.key;
    Advance(task, /*patient=*/true);
    Finish(std::move(task));
    on_ready_(key);
  });
  return answer;
}

bool Resumer::Advance(Task& task, bool patient) const {
  const std::string dir = parts_.layout->Paths(task.key).dir;
  while (task.resume.damaged.size() < task.candidates.size()) {
    v1::Checkpoint next = task.candidates[task.resume.damaged.size()];
    if (!patient && next.bytes() > kSmallBytes) return false;
    task.answer = parts_.store->Fork(next, task.key);
    if (IsUseless(task.answer.status()) && parts_.copier != nullptr &&
        parts_.copier->MayHave(next)) {
      if (!patient) return false;
      FetchCopy(next, task);
    }
    if (task.answer.ok()) task.resume.from = next;
    if (!IsUseless(task.answer.status())) break;
    next.set_gone(Message(task.answer.status()));
    task.resume.damaged.push_back(std::move(next));
    task.answer = std::string();
  }
  if (task.answer.ok()) {
    const Status written = WriteResume(dir, task.resume);
    if (!written.ok()) task.answer = written;
  }
  if (!task.answer.ok()) {
    const v1::Checkpoint& one =
        task.candidates[std::min(task.resume.damaged.size(), task.candidates.size() - 1)];
    task.answer = absl::UnavailableError(
        absl::StrFormat("cannot go on from the checkpoint at step %d, %s: %s", one.step(),
                        one.location(), Message(task.answer.status())));
  }
  return true;
}

// The machine's own copy is gone or damaged. If the other one is too, that is said as well; if it
// cannot be had now, it is waited for.
void Resumer::FetchCopy(const v1::Checkpoint& checkpoint, Task& task) const {
  const Status fetched =
      parts_.copier->Fetch(checkpoint, parts_.layout->Paths(task.key).checkpoint_dir);
  if (fetched.ok()) {
    task.answer = parts_.store->Fork(checkpoint, task.key);
  } else if (absl::IsNotFound(fetched)) {
    task.answer = absl::NotFoundError(Message(task.answer.status()) + ", nor in its store");
  } else if (absl::IsDataLoss(fetched)) {
    task.answer = absl::DataLossError(Message(task.answer.status()) + "; " + Message(fetched));
  } else {
    task.answer = fetched;
  }
}

void Resumer::Finish(Task task) {
  task.busy = false;
  const MutexLock lock(mutex_);
  tasks_[task.key] = std::move(task);
}

void Resumer::Forget(const AttemptKey& key) {
  const MutexLock lock(mutex_);
  const auto found = tasks_.find(key);
  if (found != tasks_.end() && !found->second.busy) tasks_.erase(found);
}

bool Resumer::Busy(const ExperimentKey& experiment, int64_t trial) const {
  const MutexLock lock(mutex_);
  return std::any_of(tasks_.begin(), tasks_.end(), [&](const auto& entry) {
    return entry.second.busy && entry.first.trial.experiment == experiment &&
           (trial == 0 || entry.first.trial.number == trial);
  });
}

}  // namespace shirabe::trial
