// What the code of a trial does, as data: it trains step by step, reports, saves itself now and
// then, and reacts to a notice in one of the ways that programs do. Pure; times are monotonic and
// the world's own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/names.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::simulation {

// The code of one trial: the same in each of its attempts.
struct Training {
  enum class OnNotice {
    kSaves,    // saves the step that it has reached, then exits
    kLeaves,   // exits at once
    kIgnores,  // trains on until it is killed
  };
  uint64_t seed = 0;  // of the values that it reports
  int64_t steps = 10;
  absl::Duration startup;  // before the first step of every attempt
  absl::Duration step = absl::Seconds(1);
  absl::Duration save;     // what saving takes; no step is made meanwhile
  int64_t save_every = 0;  // steps; 0 = never
  OnNotice on_notice = OnNotice::kIgnores;
  int notice_exit = 75;         // after a notice that it heeds
  bool says_done = true;        // {"done": true} at its end
  bool implicit = false;        // reports without steps
  bool silent = false;          // reports nothing
  bool nan = false;             // reports NaN only
  bool repeats = false;         // reports every step twice
  bool resaves = false;         // after a notice it saves the step that it went on from, too
  absl::Duration placed_after;  // until then nobody knows where it runs, but that it does
  bool maximise = false;        // reports the negatives: the greatest value is the best
};

// What it reports at a step: whoever makes the step again reports the same.
double ValueAt(const Training& training, int64_t step);

// One checkpoint of an attempt.
struct Save {
  int64_t step = 0;
  absl::Duration at;
  bool damaged = false;  // committed, and found damaged by whoever wants to resume from it
  bool refused = false;  // cannot be committed
  bool pruned = false;
};

// One attempt's process, laid out in time when it starts and cut short by what happens to it.
struct Program {
  AttemptKey key;
  std::string token;
  Training training;
  int64_t from = 0;  // the step that it resumed at
  absl::Duration start;
  absl::Duration end;  // of its own accord, or when killed
  absl::Time wall_start;
  int exit_code = 0;
  int signal = 0;
  bool vanishes = false;                 // nobody will see how it ended
  bool done = false;                     // it says so at its end
  std::vector<absl::Duration> reported;  // when it reports step from + 1, from + 2, … (StepOf)
  std::vector<Save> saves;

  // What the platform does to it.
  v1::Placement placement;
  absl::Duration reclaim_at = absl::InfiniteDuration();
  absl::Duration notice;
  v1::Cause platform = v1::CAUSE_NONE;
  std::optional<absl::Duration> notified;  // by the platform or by us
  // From here on it is thought to be gone. It may run on: until `end`, as a zombie.
  absl::Duration lost_at = absl::InfiniteDuration();

  std::optional<v1::Checkpoint> resumed;
  std::vector<v1::Checkpoint> damaged;
  absl::Duration told_at;  // when these two are known

  absl::Duration SeenEnd() const { return std::min(end, lost_at); }
  const Save* FindSave(int64_t step) const;
  // The step of its report number `i`, counted from 0.
  int64_t StepOf(int64_t i) const { return from + 1 + (training.repeats ? i / 2 : i); }
  // The steps of its first `reports` reports.
  int64_t StepsIn(int64_t reports) const { return reports == 0 ? 0 : StepOf(reports - 1) - from; }
  // Whether it left a checkpoint, which could be committed, beyond the one that it began with.
  bool LeftNewerCheckpoint() const;
  // The wall clock that it was started under, at `at`: its machine's clock is not set.
  absl::Time WallAt(absl::Duration at) const { return wall_start + (at - start); }
};

// Lays out the whole training from step `from` on; `start` and `training` are set.
void LayOut(Program& program);
// It ends at `at`, if it has not by then: what comes later never happens.
void Cut(Program& program, absl::Duration at);
// SIGTERM at `at`, SIGKILL `notice` later. A second notice may only shorten what is left.
void Notify(Program& program, absl::Duration at, absl::Duration notice);

}  // namespace shirabe::simulation
