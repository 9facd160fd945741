// The form of `shirabe report` that writes a file; the other one, which tells values of a trial, is
// in cmd/verbs/tell.cc, where the two are told apart. Called once, by the main thread.
#pragma once

#include "base/status.h"
#include "cmd/verb.h"

namespace shirabe::cmd {

StatusOr<int> ReportExperiment(const Arguments& arguments);

}  // namespace shirabe::cmd
