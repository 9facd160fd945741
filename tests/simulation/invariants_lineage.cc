// What trials take over from each other, and from themselves: checkpoints, rungs, recommendations.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "tests/simulation/invariants.h"

namespace shirabe::simulation {

// The newest step that an attempt could have gone on from: of the checkpoints of this trial (of it
// itself: those of earlier attempts), the newest that is intact; 0 if there is none.
int64_t Invariants::NewestGood(const TrialKey& of, const v1::Attempt& before,
                               int64_t at_most) const {
  int64_t newest = 0;
  const auto checkpoints = store_->ListCheckpoints(of);
  for (const auto& [checkpoint, revision] : *checkpoints) {
    if (of.number == before.trial() && checkpoint.attempt() >= before.number()) continue;
    if (at_most > 0 && checkpoint.step() > at_most) continue;
    // A parent that still runs may have saved it since.
    const AttemptKey itself{{key_, before.trial()}, before.number()};
    if (of.number != before.trial() && revision > first_seen_.at(itself)) continue;
    const Program* saver = world_->Find({of, checkpoint.attempt()});
    const Save* save = saver == nullptr ? nullptr : saver->FindSave(checkpoint.step());
    // It may have been pruned since, once there was a newer one.
    const bool gone = save == nullptr || save->damaged || save->pruned;
    if (!gone && checkpoint.gone() != "pruned") newest = std::max(newest, checkpoint.step());
  }
  return newest;
}

// I6: it resumed at the newest committed checkpoint of its trial that was intact; where there was
// none, at its parent's; else at 0; and it says so.
std::string Invariants::CheckResume(const v1::Attempt& attempt, const Program& program) {
  if (attempt.resumed_from_step() != program.from) {
    return absl::StrFormat("I6: it resumed at step %d and says %d", program.from,
                           attempt.resumed_from_step());
  }
  const v1::Parent parent = store_->GetTrial({key_, attempt.trial()})->record.parent();
  const int64_t own = NewestGood({key_, attempt.trial()}, attempt, 0);
  const int64_t inherited =
      parent.trial() > 0 ? NewestGood({key_, parent.trial()}, attempt, parent.step()) : 0;
  const int64_t newest = own > 0 ? own : inherited;
  if (newest > program.from) {
    return absl::StrFormat("I6: it resumed at step %d, and there was a good checkpoint of %d",
                           program.from, newest);
  }
  if (program.from == 0) return "";
  const int64_t from = attempt.resumed_from_trial();
  if (from == parent.trial() && parent.step() > 0 && program.from > parent.step()) {
    return absl::StrFormat("I6: it began at step %d, beyond step %d of its parent", program.from,
                           parent.step());
  }
  if (from != attempt.trial() && from != parent.trial()) return "I6: it resumed from a stranger";
  const AttemptKey saver_key{{key_, from}, attempt.resumed_from_attempt()};
  const Program* saver = world_->Find(saver_key);
  const Save* save = saver == nullptr ? nullptr : saver->FindSave(program.from);
  if (save == nullptr) return "I6: it resumed from what nobody saved";
  if (save->damaged) return "I6: it resumed from what was damaged";
  const auto checkpoints = store_->ListCheckpoints({key_, from});
  for (const auto& [checkpoint, revision] : *checkpoints) {
    if (checkpoint.attempt() == saver_key.number && checkpoint.step() == program.from) return "";
  }
  return "I6: the checkpoint that it resumed from is not in the store";
}

// A trial goes on from one that had ended with a result; a rung has every trial once.
std::string Invariants::CheckLineage(const v1::Trial& trial) {
  if (!trial.has_parent()) return "";
  const int64_t number = trial.parent().trial();
  if (number < 1 || number >= trial.number()) return "I6: its parent is no earlier trial";
  if (trial.parent().step() > 0) return "";  // from any trial's; see forking.cc
  const v1::Trial parent = store_->GetTrial({key_, number})->record;
  if (!parent.has_objective()) return "I6: its parent has no result";
  if (parent.phase() != v1::TRIAL_SUCCEEDED && parent.phase() != v1::TRIAL_EARLY_STOPPED) {
    return "I6: its parent did not succeed";
  }
  const auto rung = trial.labels().find("rung");
  if (rung == trial.labels().end()) return "";
  const bool fresh = promoted_.insert({number, rung->second}).second;
  return fresh ? "" : "a trial was promoted twice";
}

// What is recommended has a result, and is not what would be taken anyway.
std::string Invariants::CheckRecommended(const v1::ExperimentStatus& status) {
  if (!status.shirabe().has_recommended_trial()) return "";
  const v1::RecommendedTrial& recommended = status.shirabe().recommended_trial();
  const auto trial = store_->GetTrial({key_, recommended.number()});
  if (!trial.ok() || !trial->record.has_objective()) return "a trial without result is recommended";
  if (!std::isfinite(recommended.predicted())) return "what is recommended is not finite";
  const bool same = recommended.trial_name() == status.current_optimal_trial().best_trial_name();
  return same ? "the best trial is recommended in place of itself" : "";
}

}  // namespace shirabe::simulation
