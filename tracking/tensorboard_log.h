// The trials of an experiment as a folder for TensorBoard:
//
//   FOLDER/events.out.tfevents.<created>.shirabe.EXPERIMENT            the experiment
//   FOLDER/EXPERIMENT-7/events.out.tfevents.<created>.shirabe          trial 7: one run
//
// All attempts of a trial are one run: of values that a later attempt has redone only the later
// ones count, as everywhere. Names of folders are made of checked names and numbers; metrics and
// parameters are texts within a file, whatever is in them. Used by one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/status.h"
#include "client/client.h"

namespace shirabe::tracking {

class TensorboardLog {
 public:
  struct Place {
    client::Client& client;  // outlives it
    ExperimentKey experiment;
    std::string folder;
  };
  // Makes the folder, and replaces what an earlier log of the same experiment left there.
  // kAlreadyExists if event files of something else lie in it; kNotFound without such an
  // experiment.
  static StatusOr<std::unique_ptr<TensorboardLog>> Open(const Place& place);

  // Writes what has changed since the last call. While trials run, values are appended to their
  // files; where others have taken their place, all of the trial is written again behind a mark,
  // which readers know. Keeps a few numbers for each trial, and no values.
  Status Update();

  int64_t trials() const { return static_cast<int64_t>(runs_.size()); }

 private:
  // How far the values of a trial are written.
  struct Run {
    bool started = false;
    bool ended = false;
    uint64_t digest = 0;  // of all that count in the file, whatever their order
    // The last attempt and step of each metric; nothing once the trial has ended.
    std::map<std::string, std::pair<int32_t, int64_t>> reached;
  };

  TensorboardLog(const Place& place, std::string created)
      : place_(place), created_(std::move(created)) {}
  std::string FileOf(int64_t trial) const;
  Status UpdateTrial(const v1::Trial& trial);
  Status AppendRows(const TrialKey& key, Run& run);

  const Place place_;
  const std::string created_;  // seconds, by which TensorBoard orders the files of a folder
  int64_t revision_ = 0;       // all changes up to it are written
  std::map<int64_t, Run> runs_;
};

}  // namespace shirabe::tracking
