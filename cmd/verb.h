// The verbs of the command line, one file each; verbs.cc lists them. A verb gets the arguments
// after its name and answers with an exit code, or with the status that main turns into a message
// and a code. It runs once, in the main thread.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace shirabe::cmd {

using Arguments = std::vector<std::string>;

struct Verb {
  const char* name;
  const char* arguments;  // for the list of verbs
  const char* summary;
  StatusOr<int> (*run)(const Arguments& arguments);
};

const std::vector<Verb>& Verbs();
// Null if there is none of that name.
const Verb* FindVerb(const std::string& name);
std::vector<std::string> VerbNames();
// What `config` can do, and what `import` reads.
std::vector<std::string> ConfigNouns();
std::vector<std::string> ImportFormats();

StatusOr<int> RunExperiment(const Arguments& arguments);
StatusOr<int> Serve(const Arguments& arguments);
StatusOr<int> Controller(const Arguments& arguments);
StatusOr<int> Crds(const Arguments& arguments);
StatusOr<int> Apply(const Arguments& arguments);
StatusOr<int> Create(const Arguments& arguments);
StatusOr<int> Diff(const Arguments& arguments);
StatusOr<int> Edit(const Arguments& arguments);
StatusOr<int> Rehearse(const Arguments& arguments);
StatusOr<int> Validate(const Arguments& arguments);
StatusOr<int> Get(const Arguments& arguments);
StatusOr<int> Describe(const Arguments& arguments);
StatusOr<int> Best(const Arguments& arguments);
StatusOr<int> Logs(const Arguments& arguments);
StatusOr<int> Events(const Arguments& arguments);
StatusOr<int> Export(const Arguments& arguments);
StatusOr<int> Suggest(const Arguments& arguments);
StatusOr<int> Compare(const Arguments& arguments);
StatusOr<int> Wait(const Arguments& arguments);
StatusOr<int> Ask(const Arguments& arguments);
StatusOr<int> ReportMetrics(const Arguments& arguments);
StatusOr<int> Tell(const Arguments& arguments);
StatusOr<int> Scale(const Arguments& arguments);
StatusOr<int> Pause(const Arguments& arguments);
StatusOr<int> Resume(const Arguments& arguments);
StatusOr<int> Stop(const Arguments& arguments);
StatusOr<int> Cancel(const Arguments& arguments);
StatusOr<int> Retry(const Arguments& arguments);
StatusOr<int> Delete(const Arguments& arguments);
StatusOr<int> Top(const Arguments& arguments);
StatusOr<int> Doctor(const Arguments& arguments);
StatusOr<int> Config(const Arguments& arguments);
StatusOr<int> Import(const Arguments& arguments);
StatusOr<int> Algorithms(const Arguments& arguments);
StatusOr<int> Explain(const Arguments& arguments);
StatusOr<int> Completion(const Arguments& arguments);
StatusOr<int> Complete(const Arguments& arguments);
StatusOr<int> Pod(const Arguments& arguments);
StatusOr<int> Version(const Arguments& arguments);

}  // namespace shirabe::cmd
