// What a backup has, for people and for programs. Called by the verbs backup and restore. Pure.
#pragma once

#include <string>

#include "client/store_backup.h"
#include "view/record_json.h"

namespace shirabe::view {

// Where it is from, and a table of its experiments.
std::string BackupText(const client::BackupInfo& info);
// "2 experiments, 40 trials, 4000 observations, 1.2 MiB".
std::string BackupLine(const client::BackupInfo& info);
Json BackupJson(const client::BackupInfo& info);

}  // namespace shirabe::view
