// Which engine a Gaussian process uses (suggestion/gp/engine.h). That is decided when it is fitted
// for the first time at a size where an accelerator pays, and is part of its memo
// (suggestion/gp/surrogate.h): it changes only where that engine is gone (I10: the same seed and
// history give the same suggestion). Any thread.
#pragma once

#include <memory>

#include "suggestion/accelerator.h"
#include "suggestion/gp/engine.h"

namespace shirabe::suggestion::gp {

// What is to be learned: n points of d coordinates, by so many fits at the same time.
struct LearnSize {
  Eigen::Index points = 0;
  int coordinates = 0;
  int fits = 1;
};
// What fitted it last, and to how many points; 0: it was not fitted yet.
struct PastEngine {
  EngineKind kind = EngineKind::kProcessor;
  int64_t fitted_at = 0;
};
// What fits it now; null: the processor. What was once decided at a size where an accelerator pays
// stays so.
std::unique_ptr<Engine> DecidedEngine(const PastEngine& past, const LearnSize& size);
// How many of a history's trials, at most, a process of them should have: more where an accelerator
// has been or would be decided on.
int64_t MostResults(const PastEngine& past, int64_t trials, int coordinates);

// The accelerator's, or null: there is none, it does not take so many, or it does not pay.
std::unique_ptr<Engine> FindAcceleratedEngine(const LearnSize& size);
// As Engine::Extend, by an engine of this kind, which a process was conditioned by; by the
// processor where that is gone or fails.
void Extend(EngineKind kind, Posterior& posterior, const Inputs& points, const Eigen::MatrixXd& y);
// Has it scored by that engine, as it is now, if it is not.
void ScoreBy(EngineKind kind, Posterior& posterior);

// Whether it pays, where there is one. Asks nothing of the machine.
bool AcceleratorPays(const LearnSize& size);

// A Gaussian process on an accelerator, in the terms of this folder: L-BFGS here, one evaluation of
// all fits there; L⁻¹ is copied back, so that whatever the accelerator does not do, or can no
// longer do, goes on here. Any thread.
std::unique_ptr<Engine> MakeAcceleratedEngine(
    std::shared_ptr<Accelerator> accelerator);  // shared: by what is on it

}  // namespace shirabe::suggestion::gp
