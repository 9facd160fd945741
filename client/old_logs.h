// What the programs of attempts that have ended printed and reported: logs, and the contract's
// files or, in the server for a cluster, the copies of all that a collector read. Kept for people
// alone, since every value in them is in the store; a server that runs for months would fill its
// disk. Thread-safe: no state.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "client/client.h"
#include "trial/file_layout.h"

namespace shirabe::client {

// Deletes them, those that were written to the longest ago first, until all together take at most
// `bytes` of the disk. In the place of a log that is gone stands a line that says so. Left are
// attempts that are open, experiments that the client does not know, what programs have saved
// (checkpoints and outputs), and whatever is small.
Status RemoveOldLogs(Client& client, const trial::Layout& layout, int64_t bytes);

}  // namespace shirabe::client
