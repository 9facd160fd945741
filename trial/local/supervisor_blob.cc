// The bytes of the supervisor, taken in by the assembler: no generated source, no cost at start.
#include "trial/local/spawn_supervisor.h"

asm(".pushsection .rodata\n"
    ".balign 16\n"
    "shirabe_supervisor_begin:\n"
    ".incbin \"" SUPERVISOR_PATH
    "\"\n"
    "shirabe_supervisor_end:\n"
    ".popsection\n"
    ".globl shirabe_supervisor_begin\n"
    ".globl shirabe_supervisor_end\n"
    ".hidden shirabe_supervisor_begin\n"
    ".hidden shirabe_supervisor_end\n");

extern "C" {
extern const char shirabe_supervisor_begin[];
extern const char shirabe_supervisor_end[];
}

namespace shirabe::trial {

std::string_view SupervisorProgram() {
  return {shirabe_supervisor_begin,
          static_cast<size_t>(shirabe_supervisor_end - shirabe_supervisor_begin)};
}

}  // namespace shirabe::trial
