// Chooses between the algorithms of this part of the program and their copy for newer processors.
#include "suggestion/processor_level.h"

// The copy's registrations, as the linker collects them, and its one function.
using Initialiser = void (*)();
extern const Initialiser initialisers[] asm("__start_shirabe_v3_init");
extern const Initialiser initialisers_end[] asm("__stop_shirabe_v3_init");
extern "C" const shirabe::suggestion::ProcessorCopy* shirabe_v3();

namespace shirabe::suggestion {
namespace {

// Null on an older processor, which must not run any of it.
const ProcessorCopy* FillCopy() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("x86-64-v3")) return nullptr;
  for (const Initialiser* run = initialisers; run != initialisers_end; ++run) (*run)();
  return shirabe_v3();
}

const ProcessorCopy* Copy() {
  static const ProcessorCopy* const copy = FillCopy();
  return copy;
}

}  // namespace

const AlgorithmInfo& ForThisProcessor(const AlgorithmInfo& info) {
  const AlgorithmInfo* found = Copy() == nullptr ? nullptr : Copy()->algorithms.Find(info.name);
  return found == nullptr ? info : *found;
}

const Analyses& AnalysesForThisProcessor() {
  return Copy() == nullptr ? kAnalyses : Copy()->analyses;
}

const char* ProcessorLevel() { return Copy() == nullptr ? "baseline" : "x86-64-v3"; }

}  // namespace shirabe::suggestion
