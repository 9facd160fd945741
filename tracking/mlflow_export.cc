#include "tracking/mlflow_export.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/file_io.h"
#include "base/open_beneath.h"
#include "base/sha256.h"
#include "base/text/number.h"
#include "base/timestamp.h"
#include "client/records/enum_words.h"
#include "trial/trial_template.h"
#include "view/record_json.h"
#include "view/wait_condition.h"

namespace shirabe::tracking {
namespace {

constexpr size_t kBufferedBytes = 1 << 20;  // of all metrics of a trial together
constexpr size_t kRunIdDigits = 32;

// MLflow's RunStatus.
constexpr int kRunning = 1;
constexpr int kFinished = 3;
constexpr int kFailed = 4;
constexpr int kKilled = 5;

int RunStatusOf(v1::TrialPhase phase) {
  switch (phase) {
    case v1::TRIAL_SUCCEEDED:
    case v1::TRIAL_EARLY_STOPPED: return kFinished;
    case v1::TRIAL_KILLED: return kKilled;
    case v1::TRIAL_FAILED:
    case v1::TRIAL_METRICS_UNAVAILABLE: return kFailed;
    default: return kRunning;
  }
}

// JSON's texts are YAML's as well.
std::string Quoted(const std::string& text) { return view::PrintJsonLine(text); }

std::string UnixMillis(const google::protobuf::Timestamp& time) {
  return absl::StrCat(absl::ToUnixMillis(FromProto(time)));
}

// 18 digits, as MLflow's own.
std::string ExperimentId(const v1::Experiment& experiment) {
  const v1::ObjectMeta& metadata = experiment.metadata();
  const std::string digest =
      HexSha256(absl::StrCat(metadata.namespace_(), "/", metadata.name(), "@", metadata.uid()));
  uint64_t number = 0;
  for (int i = 0; i < 15; ++i) {
    const char digit = digest[i];
    number = number * 16 + static_cast<uint64_t>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
  }
  constexpr uint64_t kLeast = 100'000'000'000'000'000;
  return absl::StrCat(kLeast + number % (9 * kLeast));
}

// file:///…, with what is no letter, digit or path escaped.
std::string FileUri(const std::string& path) {
  std::string uri = "file://";
  for (const char byte : path) {
    const bool plain = absl::ascii_isalnum(static_cast<unsigned char>(byte)) || byte == '/' ||
                       byte == '-' || byte == '_' || byte == '.';
    if (plain) {
      uri += byte;
    } else {
      absl::StrAppendFormat(&uri, "%%%02X", static_cast<unsigned char>(byte));
    }
  }
  return uri;
}

// The files of one run, or of the experiment, below a folder of ours.
class Files {
 public:
  Files(std::string root, std::string folder)
      : root_(std::move(root)), folder_(std::move(folder)) {}

  Status Write(const std::string& name, const std::string& text) const {
    return Append(name, text, O_TRUNC);
  }

  // Metrics come by their steps, and each has a file.
  Status AddValue(const std::string& key, const db::StoredObservation& row) {
    const std::string line = absl::StrCat(absl::ToUnixMillis(row.time), " ",
                                          FormatNumber(row.value), " ", row.step, "\n");
    pending_[key] += line;
    pending_bytes_ += line.size();
    return pending_bytes_ < kBufferedBytes ? absl::OkStatus() : FlushValues();
  }

  Status FlushValues() {
    for (const auto& [key, lines] : pending_) {
      RETURN_IF_ERROR(Append("metrics/" + key, lines, O_APPEND));
    }
    pending_.clear();
    pending_bytes_ = 0;
    return absl::OkStatus();
  }

 private:
  Status Append(const std::string& name, const std::string& text, int how) const {
    const std::string path = absl::StrCat(folder_, "/", name);
    RETURN_IF_ERROR(MakeDirs(std::filesystem::path(path).parent_path().string()));
    ASSIGN_OR_RETURN(const Fd fd, OpenBeneath(root_, path, O_RDWR | O_CREAT | how, 0644));
    return WriteAll(fd.get(), text, path);
  }

  const std::string root_;
  const std::string folder_;
  std::map<std::string, std::string> pending_;
  size_t pending_bytes_ = 0;
};

std::vector<std::string> ParameterNames(const v1::Experiment& experiment) {
  std::vector<std::string> names;
  for (const v1::ParameterSpec& parameter : experiment.spec().parameters()) {
    names.push_back(parameter.name());
  }
  return names;
}

class Export {
 public:
  Export(const MlflowExport& wanted, const v1::Experiment& experiment)
      : wanted_(wanted),
        experiment_(experiment),
        id_(ExperimentId(experiment)),
        target_(absl::StrCat(wanted.folder, "/", id_)),
        partial_(absl::StrCat(wanted.folder, "/.", id_, ".partial")),
        metrics_(client::MetricNames(experiment)),
        parameters_(ParameterNames(experiment)) {}

  StatusOr<MlflowExported> Write() {
    RETURN_IF_ERROR(MakeDirs(wanted_.folder));
    if (std::error_code error; std::filesystem::exists(target_, error)) {
      return absl::AlreadyExistsError(
          absl::StrCat(target_, " is this experiment, exported before: remove it, or export to ",
                       "another folder (--to)"));
    }
    RETURN_IF_ERROR(RemoveAll(partial_));
    const Status written = WriteAllRuns();
    if (written.ok() && rename(partial_.c_str(), target_.c_str()) == 0) {
      return MlflowExported{.experiment_id = id_, .runs = runs_};
    }
    const int error = errno;
    RemoveAll(partial_).IgnoreError();
    return written.ok() ? ErrnoStatus("cannot rename to " + target_, error) : written;
  }

 private:
  Status WriteAllRuns() {
    RETURN_IF_ERROR(WriteExperiment());
    Status status;
    const auto page = [&](const std::vector<v1::Trial>& trials) {
      for (const v1::Trial& trial : trials) {
        const bool ran = trial.has_start_time() || client::IsTerminal(trial.phase());
        if (ran && status.ok()) status = WriteRun(trial);
      }
      return status.ok();
    };
    RETURN_IF_ERROR(view::EachTrialPage(wanted_.client, wanted_.experiment, page));
    return status;
  }

  Status WriteExperiment() {
    RETURN_IF_ERROR(MakeDirs(partial_));
    std::string meta;
    absl::StrAppend(&meta, "artifact_location: ", Quoted(FileUri(Absolute())), "\n");
    absl::StrAppend(
        &meta, "creation_time: ", UnixMillis(experiment_.metadata().creation_timestamp()), "\n");
    absl::StrAppend(&meta, "experiment_id: ", Quoted(id_), "\n");
    absl::StrAppend(
        &meta, "last_update_time: ", UnixMillis(experiment_.metadata().creation_timestamp()), "\n");
    absl::StrAppend(&meta, "lifecycle_stage: active\n");
    absl::StrAppend(&meta, "name: ", Quoted(experiment_.metadata().name()), "\n");
    return Files(partial_, partial_).Write("meta.yaml", meta);
  }

  std::string Absolute() const {
    std::error_code error;
    return std::filesystem::absolute(target_, error).lexically_normal().string();
  }

  std::string RunId(int64_t trial) const {
    return HexSha256(absl::StrCat(id_, "/", trial)).substr(0, kRunIdDigits);
  }

  Status WriteRun(const v1::Trial& trial) {
    const TrialKey key{wanted_.experiment, trial.number()};
    RETURN_IF_ERROR(ValidateKey(key));
    const std::string folder = absl::StrCat(partial_, "/", RunId(trial.number()));
    // MLflow takes a folder without these for no run.
    for (const char* part : {"/artifacts", "/metrics", "/params", "/tags"}) {
      RETURN_IF_ERROR(MakeDirs(folder + part));
    }
    Files files(partial_, folder);
    RETURN_IF_ERROR(files.Write("meta.yaml", RunMeta(key, trial)));
    for (const v1::Assignment& assignment : trial.assignments()) {
      RETURN_IF_ERROR(files.Write("params/" + parameters_.KeyOf(assignment.name()),
                                  trial::FormatAssignment(assignment)));
    }
    for (const auto& [name, text] : TagsOf(key, trial)) {
      if (!text.empty()) RETURN_IF_ERROR(files.Write("tags/" + name, text));
    }
    const auto row = [&](const db::StoredObservation& value) {
      return files.AddValue(metrics_.KeyOf(value.metric), value);
    };
    RETURN_IF_ERROR(wanted_.client.EachObservation({.trial = key}, row));
    RETURN_IF_ERROR(files.FlushValues());
    ++runs_;
    return absl::OkStatus();
  }

  std::string RunMeta(const TrialKey& key, const v1::Trial& trial) const {
    const std::string id = RunId(trial.number());
    const auto& began = trial.has_start_time() ? trial.start_time() : trial.creation_time();
    std::string meta;
    absl::StrAppend(
        &meta, "artifact_uri: ", Quoted(FileUri(Absolute() + "/" + id + "/artifacts")),
        "\nend_time: ", trial.has_completion_time() ? UnixMillis(trial.completion_time()) : "null",
        "\nentry_point_name: ''\nexperiment_id: ", Quoted(id_),
        "\nlifecycle_stage: active\nrun_id: ", Quoted(id), "\nrun_name: ", Quoted(TrialName(key)));
    absl::StrAppend(&meta, "\nsource_name: ''\nsource_type: 4\nsource_version: ''\nstart_time: ",
                    UnixMillis(began), "\nstatus: ", RunStatusOf(trial.phase()),
                    "\ntags: []\nuser_id: ''\n");
    return meta;
  }

  // MLflow's own, and what it has no place for.
  std::map<std::string, std::string> TagsOf(const TrialKey& key, const v1::Trial& trial) const {
    const v1::Parent& parent = trial.parent();
    return {
        {"mlflow.runName", TrialName(key)},
        {"mlflow.note.content", trial.note()},
        {"shirabe.state", client::PhaseWord(trial.phase())},
        {"shirabe.attempts", absl::StrCat(trial.attempts())},
        {"shirabe.explanation", trial.explanation()},
        {"shirabe.parent", parent.trial() == 0 ? "" : TrialName({key.experiment, parent.trial()})}};
  }

  const MlflowExport wanted_;
  const v1::Experiment& experiment_;
  const std::string id_;
  const std::string target_;
  const std::string partial_;
  const MlflowKeys metrics_;
  const MlflowKeys parameters_;
  int64_t runs_ = 0;
};

}  // namespace

StatusOr<MlflowExported> ExportToMlflow(const MlflowExport& wanted) {
  ASSIGN_OR_RETURN(const v1::Experiment experiment, wanted.client.GetExperiment(wanted.experiment));
  return Export(wanted, experiment).Write();
}

namespace {

constexpr size_t kMaxKeyBytes = 200;  // MLflow allows 250, file systems 255 for each part
constexpr size_t kDigestDigits = 16;

std::string Escaped(char byte) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  const auto value = static_cast<unsigned char>(byte);
  return {':', kDigits[value >> 4], kDigits[value & 15]};
}

// Whether each part of a path is a name, and no other one.
bool IsPlainPath(const std::string& name) {
  if (name.size() > kMaxKeyBytes) return false;
  for (const auto& part : absl::StrSplit(name, '/')) {
    if (part.empty() || absl::StartsWith(part, ".")) return false;
  }
  return true;
}

// Whether one of the names is a folder of another, as "loss" is of "loss/train".
bool AreNested(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const std::string folder = name + "/";
    const auto within = [&](const std::string& other) { return absl::StartsWith(other, folder); };
    if (std::any_of(names.begin(), names.end(), within)) return true;
  }
  return false;
}

}  // namespace

MlflowKeys::MlflowKeys(const std::vector<std::string>& names) {
  if (AreNested(names)) return;
  for (const std::string& name : names) {
    if (IsPlainPath(name)) folders_.insert(name);
  }
}

std::string MlflowKeys::KeyOf(const std::string& name) const {
  constexpr std::string_view kFit = "_.- ";
  const bool keeps_folders = folders_.contains(name);
  std::string key;
  for (const char byte : name) {
    const bool fit = absl::ascii_isalnum(static_cast<unsigned char>(byte)) ||
                     kFit.find(byte) != std::string_view::npos || (byte == '/' && keeps_folders);
    // A leading dot may be "..", or a hidden file.
    key += fit && !(byte == '.' && key.empty()) ? std::string(1, byte) : Escaped(byte);
  }
  if (key.empty()) return ":";
  if (key.size() <= kMaxKeyBytes) return key;
  return absl::StrCat(key.substr(0, kMaxKeyBytes - kDigestDigits - 1), ":",
                      HexSha256(name).substr(0, kDigestDigits));
}

}  // namespace shirabe::tracking
