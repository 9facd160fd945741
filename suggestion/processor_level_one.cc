// Where all is compiled for one kind of processor.
#include "suggestion/processor_level.h"

namespace shirabe::suggestion {

const AlgorithmInfo& ForThisProcessor(const AlgorithmInfo& info) { return info; }

const Analyses& AnalysesForThisProcessor() { return kAnalyses; }

const char* ProcessorLevel() { return "baseline"; }

}  // namespace shirabe::suggestion
