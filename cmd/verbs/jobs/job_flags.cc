#include "cmd/verbs/jobs/job_flags.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/printable.h"
#include "client/import_batch.h"

namespace shirabe::cmd {
namespace {

constexpr size_t kMaxJobName = 40;

struct FieldFlag {
  const char* flag;
  const char* path;
  const char* metavar;
  const char* help;
};

constexpr FieldFlag kFieldFlags[] = {
    {"--module-name", "pythonModule", "MODULE", "the module that python3 -m runs"},
    {"--job-dir", "jobDir", "PATH", "handed to the program as --job-dir, with the trial's number"},
    {"--region", "region", "REGION", "accepted; trials run where the cluster stands"},
    {"--master-machine-type", "masterType", "TYPE", "machine whose size a trial asks for"},
    {"--master-image-uri", "masterConfig.imageUri", "IMAGE", "image that has the program"},
    {"--worker-machine-type", "workerType", "TYPE", "accepted; a trial is one pod"},
    {"--worker-count", "workerCount", "N", "accepted; a trial is one pod"},
    {"--worker-image-uri", "workerConfig.imageUri", "IMAGE", "used where the master has none"},
    {"--runtime-version", "runtimeVersion", "VERSION", "accepted; the image decides"},
    {"--python-version", "pythonVersion", "VERSION", "accepted; the image decides"},
    {"--service-account", "serviceAccount", "NAME", "accepted; means nothing here"},
    {"--network", "network", "NAME", "accepted; means nothing here"}};

// Flags of gcloud's that change nothing here.
constexpr const char* kIgnoredFlags[] = {"--project", "--account", "--staging-bucket",
                                         "--verbosity", "--task-name"};

// basic-gpu as a file has it.
std::string TierWord(const std::string& tier) {
  return absl::AsciiStrToUpper(absl::StrReplaceAll(tier, {{"-", "_"}}));
}

// As gcloud has them, and as its configuration files do: scripts have either.
std::vector<std::string> TierWords() {
  std::vector<std::string> words = {"basic",  "basic-gpu", "basic-tpu",
                                    "custom", "premium-1", "standard-1"};
  const size_t count = words.size();
  for (size_t i = 0; i < count; ++i) words.push_back(TierWord(words[i]));
  return words;
}

// count=2,type=nvidia-tesla-v100
Status AddAccelerator(JobFlags& flags) {
  if (flags.master_accelerator.empty()) return absl::OkStatus();
  for (const auto& part : absl::StrSplit(flags.master_accelerator, ',')) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    if ((pair.first != "count" && pair.first != "type") || pair.second.empty()) {
      return UsageError("--master-accelerator " + Quoted(flags.master_accelerator) +
                        ": write count=N,type=TYPE");
    }
    const bool type = pair.first == "type";
    flags.fields.emplace_back("masterConfig.acceleratorConfig." + pair.first,
                              type ? TierWord(pair.second) : pair.second);
  }
  return absl::OkStatus();
}

struct ParsedTexts {
  std::vector<std::string> fields = std::vector<std::string>(std::size(kFieldFlags));
  std::vector<std::string> ignored = std::vector<std::string>(std::size(kIgnoredFlags));
  bool multiline = false;
};

void AddJobFlags(Options& options, JobFlags* flags, ParsedTexts* texts) {
  options.Text("--config", &flags->config, "FILE", "submit: a job of AI Platform in YAML");
  options.Text("--package-path", &flags->package_path, "DIR",
               "submit: a Python package of this machine that has the module");
  options.Texts("--packages", &flags->packages, "PATH,…",
                "submit: archives of Python (tar.gz) beside it, of this machine or gs://BUCKET/"
                "OBJECT of a store");
  for (size_t i = 0; i < std::size(kFieldFlags); ++i) {
    options.Text(kFieldFlags[i].flag, &texts->fields[i], kFieldFlags[i].metavar,
                 std::string("submit: ") + kFieldFlags[i].help);
  }
  options.Word("--scale-tier", &flags->scale_tier, TierWords(), "submit: the machines");
  options.Text("--master-accelerator", &flags->master_accelerator, "count=N,type=TYPE",
               "submit: GPUs of a trial");
  options.Texts("--labels", &flags->labels, "KEY=VALUE,…", "submit: labels of the job");
  options.Word("--metrics-collector", &flags->collector,
               {"StdOut", "File", "TensorFlowEvent", "PrometheusMetric"},
               "submit: where metrics are read");
  options.Text("--gpus", &flags->gpus, "LIST",
               "submit --stream-logs on this machine: GPUs that trials may have, as for run");
  options.Flag("--stream-logs", &flags->stream_logs,
               "submit: go on until the job has ended; on a store of this machine it runs here");
  options.Flag("--async", &flags->async, "submit: return at once, which is the default");
  options.Word("--format", &flags->format, {"text", "json", "yaml"}, "how to print");
  options.Number("--limit", &flags->limit, 1, "list: at most so many");
  options.Flag("--summarize", &flags->summarize, "describe: without the trials");
  options.Number("--polling-interval", &flags->polling_seconds, 1,
                 "stream-logs: seconds between two looks (default 1)");
  options.Flag("--allow-multiline-logs", &texts->multiline, "accepted; lines stay lines");
  for (size_t i = 0; i < std::size(kIgnoredFlags); ++i) {
    options.Text(kIgnoredFlags[i], &texts->ignored[i], "VALUE", "accepted; changes nothing here");
  }
}

}  // namespace

StatusOr<bool> ParseJobFlags(const Arguments& given, JobFlags* flags) {
  Arguments arguments = given;
  const auto cut = std::find(arguments.begin(), arguments.end(), "--");
  if (cut != arguments.end()) flags->user_args.assign(cut + 1, arguments.end());
  arguments.erase(cut, arguments.end());
  Options options(
      "ai-platform jobs submit training NAME [--config FILE] [-- ARGS…] | "
      "jobs list | jobs describe NAME | jobs stream-logs NAME | jobs cancel NAME",
      "Jobs in the way of gcloud ai-platform: a file or flags of AI Platform become an "
      "experiment, on this machine's store or a server's. As kubectl-ai_platform in the PATH it "
      "is a plugin of kubectl. Exit codes are gcloud's: 0, 1, and 2 for a wrong call.");
  ParsedTexts texts;
  AddJobFlags(options, flags, &texts);
  options.Arguments("jobs VERB", &flags->words, 0, 20);
  options.Text(
      "--stores", &flags->globals.stores, "FILE",
      "submit to a server elsewhere, or with packages in buckets: the administrator's stores, in "
      "YAML, that they come from and may go to (default stores.yaml in $SHIRABE_HOME)");
  AddGlobals(options, &flags->globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, flags->globals, arguments));
  if (done) return true;
  for (size_t i = 0; i < std::size(kFieldFlags); ++i) {
    if (!texts.fields[i].empty()) flags->fields.emplace_back(kFieldFlags[i].path, texts.fields[i]);
  }
  for (size_t i = 0; i < std::size(kIgnoredFlags); ++i) {
    if (!texts.ignored[i].empty()) flags->ignored.emplace_back(kIgnoredFlags[i], texts.ignored[i]);
  }
  if (!flags->scale_tier.empty()) {
    flags->fields.emplace_back("scaleTier", TierWord(flags->scale_tier));
  }
  RETURN_IF_ERROR(AddAccelerator(*flags));
  if (flags->async && flags->stream_logs) {
    return UsageError("give --async or --stream-logs, not both");
  }
  return false;
}

StatusOr<ExperimentKey> JobKey(const std::string& name, const std::string& ns) {
  if (name.size() > kMaxJobName) {
    return UsageError(absl::StrCat("the name of a job has at most ", kMaxJobName, " characters, ",
                                   Quoted(name), " has ", name.size()));
  }
  const bool any =
      std::any_of(name.begin(), name.end(), [](char c) { return absl::ascii_isalnum(c); });
  if (!any) return UsageError(Quoted(name) + " has no letter or digit: name the job");
  return ExperimentKey{ns, client::ExperimentNameFrom(name)};
}

}  // namespace shirabe::cmd
