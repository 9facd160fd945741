// What a trial on this machine finds when it starts: its environment, and small files of inputs.
//
// The environment is made layer by layer; a later one wins:
//   1. the environment of shirabe itself        2. the request's part of the contract
//   3. the paths of the contract                4. the devices    5. the container's env
//   6. SHIRABE_ATTEMPT_ID, by which a lost attempt's processes are found
// Where the contract names a folder of code, PYTHONPATH begins with it, also where others set it.
// A trial that asks for no GPU gets no CUDA_VISIBLE_DEVICES from us: it sees what the same command
// would see by hand. Pure but for the file system; any thread.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "trial/executor.h"

namespace shirabe::trial {

using Environment = std::map<std::string, std::string>;
using Variables = std::vector<std::pair<std::string, std::string>>;  // in order

// The "NAME=value" strings of environ. What has no '=' is left out.
Environment ParseEnvironment(const char* const* entries);

// The folder of the experiment's code package (spec.shirabe.code).
inline constexpr char kCodeDirVariable[] = "SHIRABE_CODE_DIR";

// Layers 2 and 3: what $(VAR) in the template can name besides the container's own variables.
Environment ContractEnvironment(const AttemptRequest& request, const AttemptPaths& paths);

struct EnvironmentLayers {
  const Environment& inherited;
  const Environment& contract;
  const Variables& container;
  const std::vector<std::string>& devices;
  const std::string& attempt_id;
};
Environment MergeEnvironment(const EnvironmentLayers& layers);

// The small files: parameters, and where it may report.

// Written in place: it is not read before the program runs, and a start that is cut short writes it
// again. Errors as by InItsWay.
Status WriteInput(const std::string& path, const std::string& text);

// What another attempt has put where this one's files are to be ends this one, and nothing else:
// kDataLoss for every error but kResourceExhausted.
Status InItsWay(const Status& status);

}  // namespace shirabe::trial
