#include "experiment/inbox.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace shirabe::experiment {
namespace {

constexpr size_t kMostWaiting = 4096;    // letters
constexpr size_t kMostPoints = 100'000;  // in one commit

}  // namespace

Status Inbox::Put(const LetterPtr& letter) {
  const size_t points = letter->report.points.size();
  if (points > kMostPoints) {
    return absl::InvalidArgumentError(absl::StrCat("points has ", points, " values, and at most ",
                                                   kMostPoints, " are taken at a time"));
  }
  std::lock_guard lock(mutex_);
  if (waiting_.size() >= kMostWaiting) {
    return absl::ResourceExhaustedError(
        absl::StrCat(kMostWaiting, " reports of this experiment are waiting: try again later"));
  }
  waiting_.push_back(letter);
  return absl::OkStatus();
}

StatusOr<Reported> Inbox::Await(const LetterPtr& letter, absl::Duration timeout) {
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, absl::ToChronoMilliseconds(timeout),
                        [&] { return letter->answered; })) {
    return letter->answer;
  }
  return absl::UnavailableError(
      "the report was not stored in time: send it again (twice counts once)");
}

std::vector<LetterPtr> Inbox::Take() {
  std::lock_guard lock(mutex_);
  size_t count = 0, points = 0;
  while (count < waiting_.size() && (count == 0 || points < kMostPoints)) {
    points += waiting_[count++]->report.points.size();
  }
  std::vector<LetterPtr> taken(waiting_.begin(), waiting_.begin() + count);
  waiting_.erase(waiting_.begin(), waiting_.begin() + count);
  return taken;
}

bool Inbox::empty() const {
  std::lock_guard lock(mutex_);
  return waiting_.empty();
}

void Inbox::Answer(const std::vector<LetterPtr>& letters, const Status& committed) {
  if (letters.empty()) return;
  std::lock_guard lock(mutex_);
  for (const LetterPtr& letter : letters) {
    if (!committed.ok()) {
      letter->answer = absl::UnavailableError("the report was not stored (" + Message(committed) +
                                              "): send it again (twice counts once)");
    }
    letter->answered = true;
  }
  changed_.notify_all();
}

}  // namespace shirabe::experiment
