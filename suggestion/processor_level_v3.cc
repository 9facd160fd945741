// The one function by which the rest of the program reaches the copy of the algorithms for
// x86-64-v3; compiled into that copy only. See suggestion/processor_level.h.
#include "suggestion/processor_level.h"

extern "C" const shirabe::suggestion::ProcessorCopy* shirabe_v3() {
  static const shirabe::suggestion::ProcessorCopy copy = {
      shirabe::Registry<shirabe::suggestion::AlgorithmInfo>::Get(), shirabe::suggestion::kAnalyses};
  return &copy;
}
