// explain: when to use an algorithm or an early-stopping rule, and what its settings are; what a
// field of an experiment means.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/registry.h"
#include "base/status.h"
#include "base/text/number.h"
#include "cmd/record_printer.h"
#include "cmd/terminal.h"
#include "cmd/variant_pages.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "experiment/spec/field_rules.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "suggestion/algorithm.h"
#include "suggestion/early_stopping.h"
#include "view/record_json.h"

namespace shirabe::cmd {
namespace {

// ---- the fields of an Experiment, from the table in the .proto files ----

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

std::string TypeOf(const FieldDescriptor& field) {
  if (field.is_map()) return "map of text";
  std::string one = "object";
  if (experiment::IsValue(field)) {
    one = "value";
  } else if (experiment::IsTimestamp(field)) {
    one = "time";
  } else if (!experiment::IsNested(field) && !experiment::IsStruct(field)) {
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_BOOL: one = "boolean"; break;
      case FieldDescriptor::CPPTYPE_INT32:
      case FieldDescriptor::CPPTYPE_INT64: one = "integer"; break;
      case FieldDescriptor::CPPTYPE_DOUBLE: one = "number"; break;
      default: one = "text";
    }
  }
  return field.is_repeated() ? "list of " + one : one;
}

view::Json Described(const FieldDescriptor& field, const std::string& path) {
  const v1::FieldRule& rule = experiment::RuleOf(field);
  view::Json json = {
      {"path", path}, {"name", field.json_name()}, {"type", TypeOf(field)}, {"help", rule.help()}};
  if (rule.required()) json["required"] = true;
  if (!rule.default_().empty()) json["default"] = rule.default_();
  if (rule.has_min()) json["least"] = rule.min();
  if (const auto* words = field.enum_type()) json["words"] = experiment::WordsOf(*words);
  return json;
}

view::Json FieldsOf(const Descriptor& message, const std::string& path) {
  view::Json fields = view::Json::array();
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    if (experiment::RuleOf(field).internal()) continue;
    const std::string name(field.json_name());
    fields.push_back(Described(field, path.empty() ? name : absl::StrCat(path, ".", name)));
  }
  return fields;
}

const FieldDescriptor* FindField(const Descriptor& message, const std::string& name) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    if (field.json_name() == name && !experiment::RuleOf(field).internal()) return &field;
  }
  return nullptr;
}

// spec.parameters[0] is of the same kind as every other.
std::string WithoutIndex(const std::string& part) { return part.substr(0, part.find('[')); }

// ", required, at least 0, default 1", as much of it as there is.
std::string Notes(const view::Json& field) {
  std::string notes;
  if (field.contains("required")) absl::StrAppend(&notes, ", required");
  if (field.contains("words")) {
    const auto words = field["words"].get<std::vector<std::string>>();
    absl::StrAppend(&notes, ", one of ", absl::StrJoin(words, ", "));
  }
  if (field.contains("least")) {
    absl::StrAppend(&notes, ", at least ", FormatNumber(field["least"].get<double>()));
  }
  if (field.contains("default")) {
    absl::StrAppend(&notes, ", default ", field["default"].get<std::string>());
  }
  return notes;
}

std::string FieldText(const view::Json& field, const char* key) {
  return field[key].get<std::string>();
}

// In lines of at most 100 columns.
std::string Wrapped(const std::string& text, const std::string& indent) {
  constexpr size_t kColumns = 100;
  std::string out, line;
  for (const auto word : absl::StrSplit(text, ' ')) {
    if (!line.empty() && indent.size() + line.size() + 1 + word.size() > kColumns) {
      absl::StrAppend(&out, indent, line, "\n");
      line.clear();
    }
    absl::StrAppend(&line, line.empty() ? "" : " ", word);
  }
  return absl::StrCat(out, indent, line, "\n");
}

// A field as `spec.shirabe.stopWhen`, "experiment" in front of it or not, indices left out; of the
// Experiment itself `experiment`. An object: path, type, help, required, default, least, words (of
// an enum) and fields, which are such objects without theirs. kInvalidArgument names what is near.
StatusOr<view::Json> FieldOfExperiment(const std::string& path) {
  const Descriptor* message = v1::Experiment::descriptor();
  view::Json found = {
      {"path", ""},
      {"name", "experiment"},
      {"type", "object"},
      {"help", "one search: objective, space, algorithm, limits and the trials' template"}};
  std::vector<std::string> known;
  std::vector<std::string> parts = absl::StrSplit(path, '.');
  if (parts[0] == "experiment" || parts[0] == "experiments") parts.erase(parts.begin());
  for (const std::string& part : parts) {
    const std::string name = WithoutIndex(part);
    known.push_back(name);
    const std::string here = absl::StrJoin(known, ".");
    const FieldDescriptor* field = message == nullptr ? nullptr : FindField(*message, name);
    if (field == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat(
          "there is no field ", here,
          message == nullptr ? ": what is above it has none of ours"
                             : experiment::DidYouMean(name, experiment::NamesOf(*message))));
    }
    found = Described(*field, here);
    message = experiment::IsNested(*field) ? field->message_type() : nullptr;
  }
  if (message != nullptr) found["fields"] = FieldsOf(*message, absl::StrJoin(known, "."));
  return found;
}

// As `kubectl explain` has it.
std::string FieldPage(const view::Json& field) {
  const std::string path = FieldText(field, "path");
  std::string page =
      absl::StrCat("FIELD: ", path.empty() ? "experiment" : path, " (", FieldText(field, "type"),
                   Notes(field), ")\n", Wrapped(FieldText(field, "help"), "  "));
  if (!field.contains("fields")) return page;
  absl::StrAppend(&page, "\nFIELDS:\n");
  for (const view::Json& child : field["fields"]) {
    absl::StrAppend(&page, "  ", FieldText(child, "name"), " (", FieldText(child, "type"),
                    Notes(child), ")\n", Wrapped(FieldText(child, "help"), "    "));
  }
  return page;
}

// What is asked about, as people may call it; "" if it is neither.
std::string KindNamed(const std::string& word) {
  if (word == kAlgorithm || word == "algorithms") return kAlgorithm;
  if (word == kStopper || word == "stoppers" || word == "earlyStopping") return kStopper;
  return "";
}

// What this is the name of; "" if it is neither.
std::string KindOfVariant(const std::string& name) {
  if (Registry<suggestion::AlgorithmInfo>::Get().Find(name) != nullptr) return kAlgorithm;
  return Registry<suggestion::StopperInfo>::Get().Find(name) != nullptr ? kStopper : "";
}

// A field, right or mistaken.
bool IsField(const std::string& word) {
  return word == "experiment" || word == "experiments" || word == "spec" || word == "metadata" ||
         word.find('.') != std::string::npos;
}

std::vector<std::string> CompleteExplainWords(const Arguments& words) {
  if (words.size() == 2) return {"algorithm", "experiment", "stopper"};
  if (words[1] == "algorithm") return Registry<suggestion::AlgorithmInfo>::Get().Names();
  if (words[1] == "stopper") return Registry<suggestion::StopperInfo>::Get().Names();
  return {};
}

Status ExplainField(const ListFlags& flags, const std::string& path) {
  ASSIGN_OR_RETURN(const view::Json field, FieldOfExperiment(path));
  if (WantsTree(flags)) {
    PrintTree(flags, field);
  } else {
    Out(FieldPage(field));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<int> Explain(const Arguments& arguments) {
  Globals globals;
  ListFlags flags;
  std::vector<std::string> words;
  Options options("explain algorithm|stopper [NAME] | FIELD",
                  "Says when to use an algorithm or an early-stopping rule, and what its settings "
                  "are; without a name, lists them. Of a field of an experiment, such as "
                  "spec.shirabe.space or experiment, what it means and what stands below it.");
  options.Arguments("KIND NAME", &words, 1, 2);
  options.Word("-o,--output", &flags.output, {"table", "json", "yaml"}, "how to print");
  options.Flag("--no-headers", &flags.no_headers, "a table without its first line");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  if (const std::string alone = KindOfVariant(words[0]); words.size() == 1 && !alone.empty()) {
    words.insert(words.begin(), alone);
  }
  const std::string kind = KindNamed(words[0]);
  if (kind.empty() && words.size() == 1 && IsField(words[0])) {
    RETURN_IF_ERROR(ExplainField(flags, words[0]));
    return 0;
  }
  if (kind.empty()) {
    return UsageError("\"" + words[0] +
                      "\" cannot be explained: ask for algorithm, stopper, or a field such as "
                      "spec.parameters");
  }
  RETURN_IF_ERROR(PrintVariants(flags, Variants(kind), words.size() == 1 ? "" : words[1]));
  return 0;
}

SHIRABE_REGISTER(Verb, {.name = "explain",
                        .group = VerbGroup::kTools,
                        .summary = "when to use an algorithm or a stopper; what a field means",
                        .completes = CompleteExplainWords,
                        .run = Explain});

}  // namespace shirabe::cmd
