// Which engine a Gaussian process uses (suggestion/gp/engine.h). That is decided when it is fitted
// for the first time at a size where an accelerator pays, and is part of its memo
// (suggestion/gp/surrogate.h): it changes only where that engine is gone (I10: the same seed and
// history give the same suggestion). Any thread.
#pragma once

#include <memory>

#include "suggestion/gp/engine.h"

namespace shirabe::suggestion::gp {

// What is to be learned: n points of d coordinates, by so many fits at the same time.
struct LearnSize {
  Eigen::Index points = 0;
  int coordinates = 0;
  int fits = 1;
};
// The accelerator's, or null: there is none, it does not take so many, or it does not pay.
std::unique_ptr<Engine> FindAcceleratedEngine(const LearnSize& size);
// Whether it pays, where there is one. Asks nothing of the machine.
bool AcceleratorPays(const LearnSize& size);

}  // namespace shirabe::suggestion::gp
