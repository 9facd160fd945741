// Backups of the store behind a client of this machine: written to a file while others use the
// store, looked at, and restored, into this store or another of any kind. Used by the verbs backup
// and restore. The file is described in db/backup_file.h, what a restore does in db/maintenance.h.
//
// A backup has all records: experiments, trials, attempts with their tokens, checkpoints' records,
// observations, events, and intents that wait. It has no files of trials (logs, outputs, what
// programs saved), and nothing of the server itself: neither its token file nor its keys.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "client/local_client.h"
#include "proto/shirabe/v1/backup.pb.h"

namespace shirabe::client {

struct StoredExperiment {
  ExperimentKey key;
  v1::Condition condition;  // as in experiment/conditions.h
  int64_t trials = 0;
  int64_t observations = 0;
};

// What a backup has.
struct BackupInfo {
  v1::BackupHeader header;
  v1::BackupCounts counts;
  int64_t bytes = 0;  // of the file
  int64_t of = 0;     // experiments in the file, where this is of some of them only; else 0
  std::vector<StoredExperiment> experiments;
};

struct BackupTarget {
  std::string path;      // "" = standard output
  bool replace = false;  // a file that is there
};

// All or nothing: a file appears once it is complete. The errors of db/store.h and of files.
StatusOr<BackupInfo> WriteBackup(LocalClient& client, const BackupTarget& target, Clock* clock);

// Reads all of a file and says what is in it, or what belongs to these experiments (none = all).
// kInvalidArgument if it is no backup, kUnimplemented if it is newer than this program, kDataLoss
// if it was cut or changed; kNotFound, naming it, for an experiment that it lacks.
StatusOr<BackupInfo> InspectBackup(const std::string& path, const std::vector<ExperimentKey>& only);

enum class RestoreMode { kIntoEmpty, kMerge, kReplace };

struct RestoreOptions {
  std::string path;
  RestoreMode mode = RestoreMode::kIntoEmpty;
  std::vector<ExperimentKey> only;  // none = all
  // Of the trials' files, if they are of this store's experiments and of no other's; "" = nothing
  // is done with files. What belongs to attempts that the backup does not have is moved from there
  // into a folder replaced/TIME (client/leftover_files.h).
  std::string home;
};

struct Restored {
  BackupInfo info;
  std::string set_aside;  // the folder of files that were moved; "" = none were
};

// The file is read whole before anything is written. kAlreadyExists, naming what is in the way and
// what to do, if the store is not as the mode wants it, or in use; kNotFound, naming it, for an
// experiment that the backup lacks. What was restored.
StatusOr<Restored> RestoreBackup(LocalClient& client, const RestoreOptions& options, Clock* clock);

// What opening its store has changed that its user should be told, in a sentence; "" = nothing.
std::string OpeningNotice(LocalClient& client);

}  // namespace shirabe::client
