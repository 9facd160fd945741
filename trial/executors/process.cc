#include "trial/local/process_executor.h"

namespace shirabe::trial {
namespace {

SHIRABE_REGISTER(ExecutorInfo, {.name = "process",
                                .help = "processes of this machine",
                                .create = ProcessExecutor::Create});

}  // namespace
}  // namespace shirabe::trial
