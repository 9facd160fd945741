// Katib's EarlyStopping service: rules that its metrics collector applies to a running trial by
// itself. Made by the server; any number of calls at a time; stateless.
//
// A rule of this wire is one number, fixed when the trial is made: "stop once start_step values
// have come and the best of them is worse than this". So of our early-stopping rules it can carry
//   medianstop  the median of the means of the first start_step values of the trials that have
//               succeeded (Katib's own program answers with their mean)
//   percentile  the quantile of the best of those values
//   threshold   the bound on the worse side, else the only one that is set
// and the others, which decide again at each report, are UNIMPLEMENTED in GetEarlyStoppingRules;
// under Shirabe all of them work. Settings are validated for every registered rule.
//
// The values are read from the DBManager at db_manager_address, if it names one and the
// administrator allows it (suggestion/remote/remote_algorithm_table.h; PERMISSION_DENIED
// otherwise), else they are our own. Trials without any are left out; a mean of values that are not
// finite is the worst.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>

#include "service/katib/katib_db_manager.h"

namespace shirabe::service {

std::unique_ptr<grpc::Service> MakeKatibEarlyStopping(KatibAccess access);

}  // namespace shirabe::service
