#include "tests/simulation/program.h"

#include <algorithm>
#include <csignal>
#include <limits>

#include "base/rng.h"

namespace shirabe::simulation {

double ValueAt(const Training& training, int64_t step) {
  if (training.nan) return std::numeric_limits<double>::quiet_NaN();
  const double value =
      Rng(Mix(training.seed, static_cast<uint64_t>(step))).Uniform() / static_cast<double>(step);
  return training.maximise ? -value : value;
}

const Save* Program::FindSave(int64_t step) const {
  for (const Save& save : saves) {
    if (save.step == step) return &save;
  }
  return nullptr;
}

bool Program::LeftNewerCheckpoint() const {
  return std::any_of(saves.begin(), saves.end(), [this](const Save& save) {
    return !save.refused && save.at <= SeenEnd() && save.step > from;
  });
}

void LayOut(Program& program) {
  const Training& training = program.training;
  absl::Duration at = program.start + training.startup;
  for (int64_t step = program.from + 1; step <= training.steps; ++step) {
    at += training.step;
    if (!training.silent) program.reported.push_back(at);
    if (!training.silent && training.repeats) program.reported.push_back(at);
    if (training.save_every == 0 || step % training.save_every != 0) continue;
    at += training.save;
    program.saves.push_back({.step = step, .at = at});
  }
  program.end = at;
  program.done = training.says_done;
}

void Cut(Program& program, absl::Duration at) {
  if (at >= program.end) return;
  program.end = at;
  program.done = false;
  std::erase_if(program.reported, [at](absl::Duration time) { return time > at; });
  std::erase_if(program.saves, [at](const Save& save) { return save.at > at; });
}

namespace {

void Kill(Program& program, absl::Duration at) {
  if (at >= program.end) return;
  Cut(program, at);
  program.exit_code = 0;
  program.signal = SIGKILL;
  program.vanishes = false;
}

// It heeds the notice: makes no further step from `at` on, and exits at `end`.
void Exit(Program& program, absl::Duration at, absl::Duration end) {
  Cut(program, at);
  program.end = end;
  program.exit_code = program.training.notice_exit;
  program.signal = 0;
  program.vanishes = false;
}

// The step that it has made by `at`, whether or not it reports.
int64_t StepAt(const Program& program, absl::Duration at) {
  const Training& training = program.training;
  int64_t step = program.from;
  absl::Duration time = program.start + training.startup;
  while (step < training.steps && time + training.step <= at) {
    time += training.step;
    ++step;
    if (training.save_every != 0 && step % training.save_every == 0) time += training.save;
  }
  return step;
}

// Saves what it has reached, unless that is saved or being saved already, and exits.
void SaveAndExit(Program& program, absl::Duration at, absl::Duration kill) {
  const int64_t step = StepAt(program, at);
  const bool again = program.training.resaves && step > 0;
  if (step == program.from && !again) return Exit(program, at, at);
  const Save* known = program.FindSave(step);
  Save save = known != nullptr ? *known : Save{.step = step, .at = at + program.training.save};
  const absl::Duration end = std::max(at, save.at);
  if (end > kill) return Kill(program, kill);
  Exit(program, at, end);
  if (program.FindSave(step) == nullptr) program.saves.push_back(save);
}

}  // namespace

void Notify(Program& program, absl::Duration at, absl::Duration notice) {
  if (at >= program.end) return;
  const absl::Duration kill = at + notice;
  if (program.notified || notice <= absl::ZeroDuration()) {
    Kill(program, kill);
  } else if (program.training.on_notice == Training::OnNotice::kIgnores) {
    Kill(program, kill);
  } else if (program.training.on_notice == Training::OnNotice::kLeaves) {
    Exit(program, at, at);
  } else {
    SaveAndExit(program, at, kill);
  }
  program.notified = at;
}

}  // namespace shirabe::simulation
