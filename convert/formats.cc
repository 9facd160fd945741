// Which format a text has, and the reading of it: by keys that no other format has at its top.
#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "convert/conversion.h"
#include "convert/optimization_job.h"
#include "convert/readers.h"
#include "proto/shirabe/v1/collector_traits.h"

namespace shirabe::convert {
namespace {

struct KnownFormat {
  const char* name;
  const char* title;
  std::vector<std::string> keys;  // one of them at the top, and it is this format
  void (*read)(const Reading& reading);
  const char* kind = nullptr;  // of an object of Kubernetes, which is known by that instead
  const char* group = nullptr;
};

const std::vector<KnownFormat>& KnownFormats() {
  static const std::vector<KnownFormat> formats = {
      {"ai-platform", "AI Platform", {"trainingInput", "predictionInput"}, ReadAiPlatform},
      {"vertex",
       "Vertex AI",
       {"studySpec", "trialJobSpec", "jobSpec", "workerPoolSpecs"},
       ReadVertex},
      {"optuna", "Optuna", {"distributions", "search_space"}, ReadOptunaSpace},
      {"wandb", "Weights & Biases", {"method", "early_terminate", "run_cap"}, ReadSweep},
      {kJobFormat,
       "Kubeflow's OptimizationJob",
       {"kind: OptimizationJob"},
       ReadOptimizationJob,
       kOptimizationJob,
       kTrainerGroup},
  };
  return formats;
}

const KnownFormat* FindFormat(const std::string& name) {
  for (const KnownFormat& format : KnownFormats()) {
    if (name == format.name) return &format;
  }
  return nullptr;
}

// {"lr": {"name": "FloatDistribution", …}, …}: all of it, or some.
bool IsDistribution(const YamlNode& value) {
  if (value.kind == YamlNode::Kind::kString) {
    return absl::StartsWith(value.text, "{") && absl::StrContains(value.text, "Distribution");
  }
  const YamlNode* name = value.Find("name");
  return name != nullptr && absl::EndsWith(name->text, "Distribution");
}

// A format and the key that told it.
struct Seen {
  const KnownFormat* format;
  std::string key;
  Mark mark;
};

// An object of Kubernetes is of the format of its kind, whatever else it has.
std::vector<Seen> LookAtKind(const YamlNode& kind, const YamlNode& version) {
  for (const KnownFormat& format : KnownFormats()) {
    if (format.kind == nullptr || kind.text != format.kind) continue;
    if (!absl::StartsWith(version.text, absl::StrCat(format.group, "/"))) continue;
    return {{&format, "kind", kind.mark}};
  }
  return {};
}

std::vector<Seen> Look(const YamlNode& root) {
  std::vector<Seen> seen;
  if (root.kind != YamlNode::Kind::kMapping) return seen;
  const YamlNode *kind = root.Find("kind"), *version = root.Find("apiVersion");
  if (kind != nullptr && version != nullptr) return LookAtKind(*kind, *version);
  if (kind != nullptr || version != nullptr) return seen;
  auto value = root.items.begin();
  for (const YamlNode& key : root.keys) {
    if (value == root.items.end()) break;  // of a text that ends in the middle
    for (const KnownFormat& format : KnownFormats()) {
      const auto& keys = format.keys;
      bool told = std::find(keys.begin(), keys.end(), key.text) != keys.end();
      told = told || (format.read == ReadOptunaSpace && IsDistribution(*value));
      const bool before = std::any_of(seen.begin(), seen.end(),
                                      [&](const Seen& one) { return one.format == &format; });
      if (told && !before) seen.push_back({&format, key.text, key.mark});
    }
    ++value;
  }
  return seen;
}

void AddError(Mark mark, const std::string& message, Conversion& conversion) {
  conversion.findings.push_back({false, "", message, mark.line, mark.column});
}

std::string InLine(const Seen& seen) {
  return absl::StrCat(seen.format->title, " (\"", seen.key, "\" in line ", seen.mark.line, ")");
}

// Null after an error.
const KnownFormat* Choose(const YamlNode& root, const std::string& from, Conversion& conversion) {
  const std::vector<Seen> seen = Look(root);
  if (seen.size() > 1) {
    std::vector<std::string> lines;
    for (const Seen& one : seen) lines.push_back(InLine(one));
    AddError(seen[1].mark,
             absl::StrCat("has fields of ", absl::StrJoin(lines, " and of "),
                          ": keep those of one of them"),
             conversion);
    return nullptr;
  }
  if (seen.size() == 1 && (from.empty() || from == seen[0].format->name)) return seen[0].format;
  const KnownFormat* named = FindFormat(from);
  if (seen.size() == 1) {
    AddError(seen[0].mark,
             absl::StrCat("is a file of ", InLine(seen[0]), ", not of ",
                          named == nullptr ? from : named->title, ": leave --from out"),
             conversion);
    return nullptr;
  }
  const YamlNode* kind = root.Find("kind");
  if (kind != nullptr && kind->IsScalar() && kind->text == "Experiment") {
    AddError(kind->mark, "is an Experiment: there is nothing to convert; run, apply or validate it",
             conversion);
    return nullptr;
  }
  std::vector<std::string> shapes;
  for (const KnownFormat& format : KnownFormats()) {
    shapes.push_back(absl::StrCat(format.title, " (", absl::StrJoin(format.keys, ", "), ")"));
  }
  AddError(root.mark.line == 0 ? Mark{1, 1} : root.mark,
           absl::StrCat("has none of the fields by which a file is known: ",
                        absl::StrJoin(shapes, "; ")),
           conversion);
  return nullptr;
}

void ReadAs(const KnownFormat& format, Reading reading, Conversion& conversion) {
  v1::Experiment& experiment = reading.experiment;
  experiment.set_api_version("kubeflow.org/v1beta1");
  experiment.set_kind("Experiment");
  experiment.mutable_metadata()->set_name(reading.options.name);
  (*experiment.mutable_metadata()->mutable_annotations())[kConvertedFrom] = format.name;
  conversion.format = format.name;
  format.read(reading);
  reading.report.Finish(conversion);
}

Conversion ConvertDocuments(const std::vector<YamlDocument>& documents,
                            const ConvertOptions& options) {
  Conversion conversion;
  if (documents.empty()) {
    AddError({1, 1}, "the text holds no document", conversion);
    return conversion;
  }
  for (const YamlDocument& document : documents) {
    for (const YamlProblem& problem : document.problems) {
      AddError(problem.mark, problem.message, conversion);
    }
  }
  if (!conversion.findings.empty()) return conversion;
  if (documents.size() > 1) {
    AddError(documents[1].root.mark,
             "a second document: give each file of another system a file of its own", conversion);
    return conversion;
  }
  const YamlNode& root = documents[0].root;
  const KnownFormat* format = Choose(root, options.from, conversion);
  if (format == nullptr) return conversion;
  Report report;
  ReadAs(*format, {root, options, conversion.experiment, report}, conversion);
  return conversion;
}

}  // namespace

std::vector<std::string> FormatNames() {
  std::vector<std::string> names;
  for (const KnownFormat& format : KnownFormats()) names.emplace_back(format.name);
  return names;
}

std::string FormatTitle(const std::string& format) {
  const KnownFormat* known = FindFormat(format);
  return known == nullptr ? "" : known->title;
}

std::optional<Conversion> ConvertIfForeign(std::string_view text, const ConvertOptions& options) {
  const std::vector<YamlDocument> documents = ParseYaml(text);
  const bool foreign = std::any_of(documents.begin(), documents.end(), [](const auto& document) {
    return !Look(document.root).empty();
  });
  if (!foreign) return std::nullopt;
  return ConvertDocuments(documents, options);
}

Conversion Convert(std::string_view text, const ConvertOptions& options) {
  return ConvertDocuments(ParseYaml(text), options);
}

// ---- a job of the command line ------------------------------------------------------------------

namespace {

// The value of a key, which is made where it is missing.
YamlNode& ValueAt(YamlNode& mapping, const std::string& key) {
  mapping.kind = YamlNode::Kind::kMapping;
  auto value = mapping.items.begin();
  for (const YamlNode& known : mapping.keys) {
    if (known.text == key) return *value;
    ++value;
  }
  YamlNode& name = mapping.keys.emplace_back();
  name.kind = YamlNode::Kind::kString;
  name.text = key;
  return mapping.items.emplace_back();
}

YamlNode TextNode(const std::string& text) {
  YamlNode node;
  node.kind = YamlNode::Kind::kString;
  node.text = text;
  return node;
}

// Flags win over the file.
void Merge(const TrainingJob& job, YamlNode& root) {
  ValueAt(root, "jobId") = TextNode(job.name);
  YamlNode& input = ValueAt(root, "trainingInput");
  for (const auto& [path, text] : job.fields) {
    YamlNode* value = &input;
    size_t begin = 0;
    for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', begin)) {
      value = &ValueAt(*value, path.substr(begin, dot - begin));
      begin = dot + 1;
    }
    ValueAt(*value, path.substr(begin)) = TextNode(text);
  }
  for (const auto& [name, text] : job.labels) {
    ValueAt(ValueAt(root, "labels"), name) = TextNode(text);
  }
  if (job.args.empty()) {
    input.kind = YamlNode::Kind::kMapping;
    return;
  }
  YamlNode args;
  args.kind = YamlNode::Kind::kSequence;
  for (const std::string& arg : job.args) args.items.push_back(TextNode(arg));
  ValueAt(input, "args") = std::move(args);
}

void SetCollector(const std::string& word, v1::ExperimentSpec& spec) {
  if (word.empty()) return;
  const auto* kinds = v1::CollectorKind_descriptor();
  for (int i = 0; i < kinds->value_count(); ++i) {
    const auto kind = static_cast<v1::CollectorKind>(kinds->value(i)->number());
    if (v1::NameOf(kind) == word) {
      spec.mutable_metrics_collector_spec()->mutable_collector()->set_kind(kind);
    }
  }
}

}  // namespace

Conversion ConvertTrainingJob(const TrainingJob& job) {
  std::vector<YamlDocument> documents = ParseYaml(job.config);
  if (documents.empty()) documents.emplace_back();
  Conversion conversion;
  for (const YamlProblem& problem : documents[0].problems) {
    AddError(problem.mark, problem.message, conversion);
  }
  if (documents.size() > 1) {
    AddError(documents[1].root.mark, "a second document: give one job", conversion);
  }
  YamlNode& root = documents[0].root;
  const bool mapping = root.kind == YamlNode::Kind::kMapping || root.kind == YamlNode::Kind::kNull;
  if (!mapping) AddError(root.mark, "must be a mapping with trainingInput", conversion);
  if (!conversion.findings.empty()) return conversion;
  for (const Seen& seen : Look(root)) {
    if (seen.format->read == ReadAiPlatform) continue;
    AddError(seen.mark, "is a file of " + InLine(seen) + ", not of AI Platform", conversion);
    return conversion;
  }
  const YamlNode* input = root.Find("trainingInput");
  if (input != nullptr && input->kind != YamlNode::Kind::kMapping &&
      input->kind != YamlNode::Kind::kNull) {
    AddError(input->mark, "trainingInput must be a mapping, not " + Describe(*input), conversion);
    return conversion;
  }
  Merge(job, root);
  const ConvertOptions options{.name = job.name};
  Report report;
  Reading reading{root, options, conversion.experiment, report};
  reading.package_parent = job.package_parent;
  SetCollector(job.collector, *conversion.experiment.mutable_spec());
  ReadAs(*FindFormat("ai-platform"), reading, conversion);
  return conversion;
}

}  // namespace shirabe::convert
