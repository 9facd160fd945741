// Files of other systems as an Experiment, with an account of every field: what it became, what has
// changed on the way, and what has no counterpart. Formats:
//   ai-platform  a job of Google's AI Platform Training (trainingInput), also without a search
//   vertex       a HyperparameterTuningJob or CustomJob of Vertex AI, and gcloud's config of one
//   optuna       the distributions of a study, as Optuna writes them to JSON
//   wandb        a sweep of Weights & Biases
//   optimization-job  an OptimizationJob of Kubeflow's Trainer
// The last is written, too: convert/optimization_job.h.
// Called by the verbs that read files. Files are hostile: base/text/yaml_tree.h bounds their size
// and depth, the rules of the specification all that comes of them. Pure functions, any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/yaml_tree.h"
#include "experiment/spec/findings.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::convert {

enum class Outcome {
  kTaken,    // it means the same here
  kChanged,  // the nearest there is; the remark says what differs
  kLeftOut,  // it has no counterpart; the remark says why, or what to do instead
};

// What became of one field of the file.
struct Note {
  std::string field;  // trainingInput.hyperparameters.params[0].minValue
  Mark mark = {};     // 0 where it comes from a flag
  Outcome outcome = Outcome::kTaken;
  std::string became = {};  // spec.parameters[0].feasibleSpace.min; "" if left out
  std::string value = {};   // there, as text; "" where the field says it all
  std::string remark = {};
};

struct Conversion {
  std::string format = {};         // one of FormatNames(); "experiment" of what has an object
  v1::Experiment experiment = {};  // without defaults; complete only if no finding is an error
  std::vector<Note> notes = {};    // in the order of the file
  std::vector<experiment::Finding> findings = {};
  nlohmann::ordered_json object = {};  // what an Experiment became (convert/optimization_job.h)
};

// What the file does not say.
struct ConvertOptions {
  std::string from = {};   // a format; "" = as the file looks
  std::string name = {};   // of the experiment, where the file has none
  std::string image = {};  // that has the program, where the file names none
};

std::vector<std::string> FormatNames();
// "AI Platform", for people.
std::string FormatTitle(const std::string& format);

// nullopt: the text has none of their shapes, and is read as an Experiment. A text that has several
// shapes, or is one of several documents, is a conversion with an error.
std::optional<Conversion> ConvertIfForeign(std::string_view text, const ConvertOptions& options);

// The same of a text that is to be one: else an error says which shapes are known.
Conversion Convert(std::string_view text, const ConvertOptions& options);

// A training job of AI Platform as its command line gives it: a file (may be empty), what replaces
// or adds to its fields, and where the code is.
struct TrainingJob {
  std::string name;
  std::string config = {};  // YAML; "" = none
  // Of trainingInput, by path: {"masterConfig.imageUri", "…"}; texts, as if written in the file.
  std::vector<std::pair<std::string, std::string>> fields = {};
  std::vector<std::pair<std::string, std::string>> labels = {};
  std::vector<std::string> args = {};  // instead of the file's, if there are some
  std::string package_parent = {};     // the folder that a local package lies in; "" = none
  std::string collector = {};          // a word of spec.metricsCollectorSpec.collector.kind
};
Conversion ConvertTrainingJob(const TrainingJob& job);

// The annotation that says from which format an experiment came, and its value for a training job
// that has no search: one trial, of which no metric is asked.
inline constexpr char kConvertedFrom[] = "shirabe.dev/converted-from";
inline constexpr char kSingleJob[] = "ai-platform-job";
// The format of what convert/optimization_job.h is about.
inline constexpr char kJobFormat[] = "optimization-job";

}  // namespace shirabe::convert
