// The rules of an Experiment, in the order of its fields: Katib's, and ours. Called by
// parse_spec.cc on what was read from text, and on messages made otherwise. Pure functions of the
// message and of the registries.
#pragma once

#include <optional>
#include <string>

#include "experiment/spec/findings.h"
#include "google/protobuf/message.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "suggestion/space/search_space.h"

namespace shirabe::experiment {

// All of them. Expects the defaults to be set.
void CheckRules(const v1::Experiment& experiment, Findings& findings);

// What the table in the .proto says of each field: required, least value, finite. `path` is that of
// the message, "" for the whole document.
void CheckTable(const google::protobuf::Message& message, const std::string& path,
                Findings& findings);

// Its parts. The space is nullopt where the parameters are none.
std::optional<suggestion::Space> CheckParameters(const v1::ExperimentSpec& spec,
                                                 Findings& findings);
// spec.shirabe.additionalObjectives, objectiveReference and constraints.
void CheckResults(const v1::ExperimentSpec& spec, Findings& findings);
void CheckArtifacts(const v1::ExperimentSpec& spec, Findings& findings);
void CheckCode(const v1::ExperimentSpec& spec, Findings& findings);
void CheckTemplate(const v1::ExperimentSpec& spec, Findings& findings);
// Of trials of several pods, what a cluster makes of them; only where all else is right.
void CheckPods(const v1::ExperimentSpec& spec, Findings& findings);
void CheckOnSuccess(const v1::ExperimentSpec& spec, Findings& findings);
void CheckCollector(const v1::ExperimentSpec& spec, Findings& findings);
void CheckSearch(const v1::ExperimentSpec& spec, const std::optional<suggestion::Space>& space,
                 Findings& findings);
// spec.shirabe.notifications; whether its endpoints exist only where this process knows them.
void CheckNotifications(const v1::Experiment& experiment, Findings& findings);

}  // namespace shirabe::experiment
