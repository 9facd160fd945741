// What a sidecar could not send before its end, as lines of its own log, where the executor finds
// them by the API: the last resort when the server is away for as long as a pod has left. A line is
//   shirabe-last-words: <base64 of a v1.SyncRequest, without the token>
// The first has the state, the others bring pieces of files in the order in which they are to be
// taken. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "proto/shirabe/v1/pod.pb.h"

namespace shirabe::trial {

// One line, with its newline.
std::string FinalSyncLine(v1::SyncRequest request);

// All that can be read of a log; lines that are cut off or are none of these are passed over.
std::vector<v1::SyncRequest> ParseFinalSync(std::string_view log);

}  // namespace shirabe::trial
