// The readers of the formats: a tree to an Experiment, field by field. Called by formats.cc, which
// chooses one and finishes what they begin. Pure functions.
#pragma once

#include <string>

#include "convert/conversion.h"
#include "convert/fields.h"
#include "convert/report.h"

namespace shirabe::convert {

// Everything but the name is set; `report` gets a note for each field of `root`.
struct Reading {
  const YamlNode& root;
  const ConvertOptions& options;
  v1::Experiment& experiment;
  Report& report;
  std::string package_parent = {};  // of a training job: where its local package lies
};

void ReadAiPlatform(const Reading& reading);
// The part of it that says what runs; `single`: a job without a search.
void ReadTrainingProgram(const Reading& reading, Fields& input, bool single);
void ReadVertex(const Reading& reading);
void ReadWorkers(const Reading& reading, Fields& root, bool single);
void ReadOptunaSpace(const Reading& reading);
void ReadSweep(const Reading& reading);
void ReadOptimizationJob(const Reading& reading);
// Of its spec, once the parameters are known.
void ReadTrainJobTemplate(const Reading& reading, Fields& spec);

// What several formats have in common.

// Names the experiment after a text of the file.
void TakeName(Fields& fields, const std::string& key, const Reading& reading);
// Google's words for how the values of the last parameter are spread.
void TakeScale(const Place& place, const std::string& scale, v1::ExperimentSpec& spec,
               Report& report);
// packageUris, for what submits the experiment to fetch (kPackageUris of local_support.h).
void TakePackages(Fields& fields, const Reading& reading);
// Adds a parameter; its path is "spec.parameters[i]".
v1::ParameterSpec& AddParameter(const std::string& name, v1::ExperimentSpec& spec);
std::string LastParameterPath(const v1::ExperimentSpec& spec);
// Which value of the objective counts.
void SetStrategy(v1::MetricStrategyType strategy, v1::ObjectiveSpec& objective);
// The rule that stops a trial whose best is worse than the median of the others.
void SetMedianStop(v1::ExperimentSpec& spec);

}  // namespace shirabe::convert
