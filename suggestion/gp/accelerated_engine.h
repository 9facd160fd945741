// A Gaussian process on an accelerator, in the terms of this folder: L-BFGS here, one evaluation of
// all fits there; L⁻¹ is copied back, so that whatever the accelerator does not do, or can no
// longer do, goes on here. Made by suggestion/gp/engine_choice.cc. Any thread.
#pragma once

#include <memory>

#include "suggestion/accelerator.h"
#include "suggestion/gp/engine.h"

namespace shirabe::suggestion::gp {

std::unique_ptr<Engine> MakeAcceleratedEngine(
    std::shared_ptr<Accelerator> accelerator);  // shared: by what is on it

}  // namespace shirabe::suggestion::gp
