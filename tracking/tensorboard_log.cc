#include "tracking/tensorboard_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/file_io.h"
#include "base/open_beneath.h"
#include "base/timestamp.h"
#include "client/records/enum_words.h"
#include "metrics/tf_event.h"
#include "tracking/hparams_events.h"

namespace shirabe::tracking {
namespace fs = std::filesystem;
namespace {

constexpr size_t kFlushBytes = 64 << 10;

template <class Number>
void AppendBytes(std::string& out, Number number) {
  char bytes[sizeof(number)];
  std::memcpy(bytes, &number, sizeof(number));  // little-endian, as every machine that is built for
  out.append(bytes, sizeof(number));
}

// Writes a file of TensorBoard's events, whose framing metrics/tf_event.h describes. Readers may
// follow it meanwhile: events are appended, and a last one that is cut off is read once it is
// whole. Used by one thread.
class EventWriter {
 public:
  enum class Mode {
    kNew,     // what the file held goes
    kAppend,  // goes on after it
  };
  // No link below `folder` is followed; its errors are those of base/open_beneath.h.
  static StatusOr<EventWriter> Open(const std::string& folder, const std::string& path, Mode mode);

  // Written out by 64 KiB, and by Flush.
  Status Append(const tensorboard::Event& event);
  Status Flush();

 private:
  EventWriter(Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Fd fd_;
  std::string path_;
  std::string pending_;
};

StatusOr<EventWriter> EventWriter::Open(const std::string& folder, const std::string& path,
                                        Mode mode) {
  const int access = O_RDWR | O_CREAT | (mode == Mode::kNew ? O_TRUNC : O_APPEND);
  ASSIGN_OR_RETURN(Fd fd, OpenBeneath(folder, path, access, 0644));
  EventWriter writer(std::move(fd), path);
  if (mode == Mode::kNew) {
    tensorboard::Event first;
    first.set_file_version("brain.Event:2");
    RETURN_IF_ERROR(writer.Append(first));
  }
  return writer;
}

Status EventWriter::Append(const tensorboard::Event& event) {
  const std::string data = event.SerializeAsString();
  std::string length;
  AppendBytes(length, static_cast<uint64_t>(data.size()));
  pending_ += length;
  AppendBytes(pending_, metrics::MaskedCrc32c(length));
  pending_ += data;
  AppendBytes(pending_, metrics::MaskedCrc32c(data));
  return pending_.size() < kFlushBytes ? absl::OkStatus() : Flush();
}

Status EventWriter::Flush() {
  RETURN_IF_ERROR(WriteAll(fd_.get(), pending_, path_));
  pending_.clear();
  return absl::OkStatus();
}

constexpr int64_t kTrialPage = 256;
constexpr char kStem[] = "events.out.tfevents.";
constexpr char kOurs[] = ".shirabe";

// A sum of these does not depend on the order of the rows, and what is not in a file any more can
// be told from what is.
uint64_t DigestOf(const db::StoredObservation& row) {
  return absl::HashOf(row.attempt, row.step, row.metric, row.value, absl::ToUnixNanos(row.time));
}

std::string RootFile(const std::string& created, const ExperimentKey& key) {
  return absl::StrCat(kStem, created, kOurs, ".", key.name);
}

// Entries of a folder by name; none if it cannot be read.
std::vector<fs::directory_entry> EntriesOf(const std::string& folder) {
  std::vector<fs::directory_entry> entries;
  std::error_code error;
  for (fs::directory_iterator at(folder, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    entries.push_back(*at);
  }
  return entries;
}

// Removes the event files that Shirabe wrote into the folder of a trial, and no others.
void RemoveRun(const fs::directory_entry& folder) {
  std::error_code error;
  if (folder.is_symlink(error) || !folder.is_directory(error)) return;
  for (const fs::directory_entry& file : EntriesOf(folder.path().string())) {
    const std::string name = file.path().filename().string();
    if (absl::StartsWith(name, kStem) && absl::EndsWith(name, kOurs)) {
      fs::remove(file.path(), error);
    }
  }
}

// What an earlier log of this experiment left, possibly of one of the same name that was deleted.
Status RemoveEarlier(const std::string& folder, const ExperimentKey& key) {
  const std::string ours = absl::StrCat(kOurs, ".", key.name);
  const std::vector<fs::directory_entry> entries = EntriesOf(folder);
  for (const fs::directory_entry& entry : entries) {
    const std::string name = entry.path().filename().string();
    if (absl::StrContains(name, "tfevents") && !absl::EndsWith(name, ours)) {
      return absl::AlreadyExistsError(absl::StrCat(folder, " holds ", name, ", which is not of ",
                                                   key.name, ": choose another folder"));
    }
  }
  std::error_code error;
  for (const fs::directory_entry& entry : entries) {
    const std::string name = entry.path().filename().string();
    const auto trial = ParseTrialName(name, key.ns);
    if (trial && trial->experiment == key && TrialName(*trial) == name) RemoveRun(entry);
    if (absl::StartsWith(name, kStem) && absl::EndsWith(name, ours)) {
      fs::remove(entry.path(), error);
    }
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<TensorboardLog>> TensorboardLog::Open(const Place& place) {
  ASSIGN_OR_RETURN(const v1::Experiment experiment, place.client.GetExperiment(place.experiment));
  RETURN_IF_ERROR(MakeDirs(place.folder));
  RETURN_IF_ERROR(RemoveEarlier(place.folder, place.experiment));
  const std::string created =
      absl::StrFormat("%010d", experiment.metadata().creation_timestamp().seconds());
  const std::string path = absl::StrCat(place.folder, "/", RootFile(created, place.experiment));
  ASSIGN_OR_RETURN(EventWriter writer,
                   EventWriter::Open(place.folder, path, EventWriter::Mode::kNew));
  RETURN_IF_ERROR(writer.Append(ExperimentEvent(experiment)));
  RETURN_IF_ERROR(writer.Flush());
  return std::unique_ptr<TensorboardLog>(new TensorboardLog(place, created));  // private
}

Status TensorboardLog::Update() {
  ASSIGN_OR_RETURN(const int64_t now, place_.client.Revision());
  if (now == revision_) return absl::OkStatus();
  db::TrialQuery query{
      .experiment = place_.experiment, .changed_after = revision_, .limit = kTrialPage};
  for (;;) {
    ASSIGN_OR_RETURN(const std::vector<v1::Trial> trials, place_.client.ListTrials(query));
    for (const v1::Trial& trial : trials) RETURN_IF_ERROR(UpdateTrial(trial));
    if (static_cast<int64_t>(trials.size()) < kTrialPage) break;
    query.after_number = trials.back().number();
  }
  revision_ = now;
  return absl::OkStatus();
}

std::string TensorboardLog::FileOf(int64_t trial) const {
  return absl::StrCat(place_.folder, "/", TrialName({place_.experiment, trial}), "/", kStem,
                      created_, kOurs);
}

Status TensorboardLog::UpdateTrial(const v1::Trial& trial) {
  if (!trial.has_start_time() && !client::IsTerminal(trial.phase())) return absl::OkStatus();
  const TrialKey key{place_.experiment, trial.number()};
  RETURN_IF_ERROR(ValidateKey(key));  // it may come from a server
  Run& run = runs_[trial.number()];
  if (!run.started) {
    RETURN_IF_ERROR(MakeDirs(absl::StrCat(place_.folder, "/", TrialName(key))));
    ASSIGN_OR_RETURN(EventWriter writer, EventWriter::Open(place_.folder, FileOf(trial.number()),
                                                           EventWriter::Mode::kNew));
    RETURN_IF_ERROR(writer.Append(SessionStartEvent(key, trial)));
    RETURN_IF_ERROR(writer.Flush());
    run.started = true;
  }
  RETURN_IF_ERROR(AppendRows(key, run));
  if (!client::IsTerminal(trial.phase())) return absl::OkStatus();
  run.reached.clear();
  if (std::exchange(run.ended, true)) return absl::OkStatus();
  ASSIGN_OR_RETURN(EventWriter writer, EventWriter::Open(place_.folder, FileOf(trial.number()),
                                                         EventWriter::Mode::kAppend));
  RETURN_IF_ERROR(writer.Append(SessionEndEvent(trial)));
  return writer.Flush();
}

// Reads the values once or twice. At first those past what is written are told from those before;
// if the latter are not the ones that were written, or the trial had ended, all are written again.
Status TensorboardLog::AppendRows(const TrialKey& key, Run& run) {
  uint64_t known = 0, all = 0;
  const auto is_new = [&run](const db::StoredObservation& row) {
    const auto found = run.reached.find(row.metric);
    return found == run.reached.end() || std::pair(row.attempt, row.step) > found->second;
  };
  const auto count = [&](const db::StoredObservation& row) {
    all += DigestOf(row);
    if (!is_new(row)) known += DigestOf(row);
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(place_.client.EachObservation({.trial = key}, count));
  if (all == run.digest) return absl::OkStatus();
  ASSIGN_OR_RETURN(EventWriter writer, EventWriter::Open(place_.folder, FileOf(key.number),
                                                         EventWriter::Mode::kAppend));
  if (known != run.digest) {
    RETURN_IF_ERROR(writer.Append(AgainFromTheStartEvent()));
    run.digest = 0;
    run.reached.clear();
  }
  // More may have come since they were counted.
  const auto append = [&](const db::StoredObservation& row) -> Status {
    if (!is_new(row)) return absl::OkStatus();
    RETURN_IF_ERROR(writer.Append(ScalarEvent(row)));
    run.digest += DigestOf(row);
    return absl::OkStatus();
  };
  std::map<std::string, std::pair<int32_t, int64_t>> reached;
  RETURN_IF_ERROR(
      place_.client.EachObservation({.trial = key}, [&](const db::StoredObservation& row) {
        auto& last = reached.emplace(row.metric, std::pair(row.attempt, row.step)).first->second;
        last = std::max(last, std::pair(row.attempt, row.step));
        return append(row);
      }));
  run.reached = std::move(reached);
  return writer.Flush();
}

}  // namespace shirabe::tracking
