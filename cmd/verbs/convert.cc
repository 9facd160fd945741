// convert: a file of another system as an Experiment, or an Experiment as an OptimizationJob, with
// an account of every field.
#include "convert/conversion.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file_io.h"
#include "base/registry.h"
#include "base/text/json_text.h"
#include "cmd/spec_file.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "convert/optimization_job.h"
#include "convert/report.h"
#include "experiment/spec/message_tree.h"

namespace shirabe::cmd {
namespace {

struct ConvertFlags {
  std::string file;
  convert::ConvertOptions source;
  std::string to = "experiment";
  std::string output = "yaml";
  std::string report;
};

// Prints them; how many are errors.
int PrintConversionFindings(const convert::Conversion& conversion, const std::string& file) {
  int errors = 0;
  for (const experiment::Finding& finding : conversion.findings) {
    errors += finding.warning ? 0 : 1;
    if (!finding.warning || !IsQuiet()) {
      PrintFinding(experiment::FormatFinding(finding, file), finding.warning);
    }
  }
  return errors;
}

Status WriteTo(const std::string& path, const std::string& text) {
  if (path == "-") {
    Out(text);
    return absl::OkStatus();
  }
  return WriteFileAtomic(path, text);
}

// On stderr, or in a file: as JSON where its name says so.
Status WriteConversion(const ConvertFlags& flags, const convert::Conversion& conversion,
                       const std::string& file) {
  const std::string lines = convert::ReportLines(conversion, file);
  if (flags.report.empty()) {
    if (flags.output == "json" || IsQuiet()) return absl::OkStatus();
    const std::string what = !conversion.object.is_null()
                                 ? "to an OptimizationJob"
                                 : "from " + convert::FormatTitle(conversion.format);
    ProgressLine(lines + what + ": " + convert::Summary(conversion));
    return absl::OkStatus();
  }
  const bool json = flags.report.size() > 5 && flags.report.ends_with(".json");
  return WriteTo(flags.report,
                 json ? JsonText(convert::ReportJson(conversion, file), 2) + "\n" : lines);
}

Status WriteConverted(const ConvertFlags& flags, const convert::Conversion& conversion,
                      const std::string& file) {
  const bool job = !conversion.object.is_null();
  nlohmann::ordered_json object = conversion.object;
  if (!job) {
    ASSIGN_OR_RETURN(object,
                     ParseJson<nlohmann::ordered_json>(experiment::ToJson(conversion.experiment)));
  }
  if (flags.output == "json") {
    const nlohmann::ordered_json both = {
        {job ? "optimizationJob" : "experiment", std::move(object)},
        {"report", convert::ReportJson(conversion, file)}};
    Out(JsonText(both, 2) + "\n");
    return absl::OkStatus();
  }
  const std::string yaml =
      job ? experiment::YamlOf(object) : experiment::ToYaml(conversion.experiment);
  return WriteTo(flags.output == "yaml" ? "-" : flags.output, yaml);
}

}  // namespace

StatusOr<int> ConvertFile(const Arguments& arguments) {
  Globals globals;
  ConvertFlags flags;
  Options options("convert -f FILE",
                  "Prints a file of AI Platform, Vertex AI, Optuna or Weights & Biases, or an "
                  "OptimizationJob of Kubeflow's Trainer, as an Experiment, and says of each field "
                  "what it became, what has changed, and what has no counterpart. run, apply and "
                  "validate take such files, too. With --to, an Experiment whose trials are "
                  "TrainJobs as an OptimizationJob.");
  options.Text("-f,--file", &flags.file, "FILE", "a file, or - for stdin");
  options.Word("--from", &flags.source.from, convert::FormatNames(),
               "what it is (default: as it looks)");
  options.Word("--to", &flags.to, {"experiment", convert::kJobFormat},
               "what it is to be (default experiment)");
  options.Text("--name", &flags.source.name, "NAME",
               "of the experiment, where the file has none (default: from its name)");
  options.Text("--image", &flags.source.image, "IMAGE",
               "that has the program, where the file names none");
  options.Text("-o,--output", &flags.output, "yaml|json|FILE",
               "yaml, json with the report, or a file for the YAML (default yaml)");
  options.Text("--report", &flags.report, "FILE",
               "the report goes there, not to stderr; as JSON if its name ends in .json");
  options.Arguments("nothing", nullptr, 0, 0);
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  if (flags.file.empty()) return UsageError("give -f FILE");
  if (flags.output.empty()) return UsageError("-o: write yaml, json or the name of a file");
  ASSIGN_OR_RETURN(const TextFile file, ReadTextFile(flags.file));
  const bool job = flags.to == convert::kJobFormat;
  const convert::ConvertOptions& given = flags.source;
  if (job && !(given.from.empty() && given.name.empty() && given.image.empty())) {
    return UsageError("--from, --name and --image are for files of other systems: not with --to");
  }
  if (flags.source.name.empty()) flags.source.name = file.experiment_name;
  RETURN_IF_ERROR(AsUsage(ValidateExperimentName(flags.source.name)));
  const convert::Conversion conversion =
      job ? convert::WriteOptimizationJob(file.text) : convert::Convert(file.text, flags.source);
  const int errors = PrintConversionFindings(conversion, file.shown_name);
  if (errors > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.shown_name, " has ", errors, errors == 1 ? " error" : " errors"));
  }
  RETURN_IF_ERROR(WriteConversion(flags, conversion, file.shown_name));
  RETURN_IF_ERROR(WriteConverted(flags, conversion, file.shown_name));
  return kOk;
}

SHIRABE_REGISTER(Verb, {.name = "convert",
                        .group = VerbGroup::kTools,
                        .summary = "a file of another system as an Experiment, with a report",
                        .outputs = {"yaml", "json"},
                        .run = ConvertFile});

}  // namespace shirabe::cmd
