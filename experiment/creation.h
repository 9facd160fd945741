// What stores a new experiment: made here for all who do, who look at what is there themselves. A
// pure function but for the clock and the uid, which is drawn.
#pragma once

#include "base/clock.h"
#include "db/store.h"

namespace shirabe::experiment {

// With uid, times and the condition Created. Of the given status only shirabe.createdBy and
// namespaceUid count; who asks for it an event records as well.
db::Batch CreationOf(Clock& clock, v1::Experiment experiment);

}  // namespace shirabe::experiment
