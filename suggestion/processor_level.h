// The algorithms and the analyses are compiled for every processor of an architecture and, in
// release builds for x86-64, once more for processors with AVX2, FMA and BMI2 (level x86-64-v3,
// from about 2013), where matrices take two thirds of the time. CreateAlgorithm takes those that
// suit the processor it runs on.
//
// The copy is the sources V3_SOURCES of CMakeLists.txt as a whole, registrations and all, so that
// an algorithm is nowhere named for it. It shares code with nothing: everything in it but
// shirabe_v3 is local to it, inline functions too, or an older processor could be led into it. Only
// Problem, History, Proposal and the plain data of suggestion/analyses.h pass between the two,
// whose layout is the same; a matrix of Eigen's must not, since its alignment differs.
//
// The levels round differently: the same seed gives the same points on all machines of a level.
//
// Three files, of which CMakeLists.txt chooses: _one.cc where there is one level, else _two.cc and,
// in the copy, _v3.cc. Pure; any thread.
#pragma once

#include "base/registry.h"
#include "suggestion/algorithm.h"
#include "suggestion/analyses.h"

namespace shirabe::suggestion {

// What the copy has.
struct ProcessorCopy {
  const Registry<AlgorithmInfo>& algorithms;
  const Analyses& analyses;
};

// The same variant as this processor can run it best; perhaps `info` itself.
const AlgorithmInfo& ForThisProcessor(const AlgorithmInfo& info);

// Likewise.
const Analyses& AnalysesForThisProcessor();

// For which processors the algorithms are compiled that are used: "x86-64-v3", or "baseline".
const char* ProcessorLevel();

}  // namespace shirabe::suggestion
