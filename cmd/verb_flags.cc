#include "cmd/verb_flags.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/log.h"
#include "cmd/terminal.h"
#include "trial/local/gpu_pool.h"

namespace shirabe::cmd {
namespace {

// Without a leading noun: exp/digits, trial/digits-7.
std::string WithoutNoun(const std::string& text, std::initializer_list<const char*> nouns) {
  for (const char* noun : nouns) {
    const std::string prefix = std::string(noun) + "/";
    if (absl::StartsWith(text, prefix)) return text.substr(prefix.size());
  }
  return text;
}

}  // namespace

void AddGlobals(Options& options, Globals* globals) {
  options.Text("--db", &globals->db, "ADDRESS",
               "the store: sqlite:PATH, postgres://USER@HOST/DATABASE or memory: "
               "(default $SHIRABE_DB, else in $SHIRABE_HOME)");
  options.Text(
      "--server", &globals->server, "HOST:PORT",
      "a server (shirabe serve); tls://HOST:PORT with TLS, kube://NAMESPACE/SERVICE through "
      "the cluster of the kubeconfig (default $SHIRABE_SERVER)");
  options.Text("--context", &globals->context, "NAME",
               "a server from the user's file (default $SHIRABE_CONTEXT, else the current one)");
  options.Text("--token-file", &globals->token_file, "FILE",
               "token for the server (default $SHIRABE_TOKEN_FILE, else token in $SHIRABE_HOME)");
  options.Text(
      "--ca", &globals->ca, "FILE",
      "certificate authorities of the server, PEM (default $SHIRABE_CA, else the system's)");
  options.Text("-n,--namespace", &globals->ns, "NAME",
               "namespace (default $SHIRABE_NAMESPACE, else default)");
  options.Word("--color", &globals->color, {"auto", "always", "never"}, "colours on the terminal");
  options.Flag("-q,--quiet", &globals->quiet, "say nothing but data and errors");
  options.Flag("-v,--verbose", &globals->verbose, "say what is being done");
}

void AddStores(Options& options, Globals* globals) {
  globals->knows_stores = true;
  options.Text("--stores", &globals->stores, "FILE",
               "stores that experiments may use (spec.shirabe.artifacts and code), in "
               "YAML (default stores.yaml in $SHIRABE_HOME, where there is one)");
}

void AddOutput(Options& options, ListFlags* flags) {
  options.Word("-o,--output", &flags->output, {"table", "wide", "json", "yaml", "name"},
               "how to print");
  options.Flag("--no-headers", &flags->no_headers, "a table without its first line");
}

void AddListing(Options& options, ListFlags* flags) {
  AddOutput(options, flags);
  options.Flag("-A,--all-namespaces", &flags->all_namespaces, "experiments of all namespaces");
  options.Text("--sort-by", &flags->sort_by, "FIELD", "order by a field; ~FIELD for descending");
  options.Text("--filter", &flags->filter, "CONDITIONS",
               "only what meets all of them: 'state=Failed,param.lr<1e-3'");
  options.Number("--limit", &flags->limit, 0, "at most so many");
  options.Flag("-w,--watch", &flags->watch, "go on and print what changes");
}

StatusOr<bool> ParseAll(Options& options, const Globals& globals,
                        const std::vector<std::string>& arguments) {
  if (arguments.size() == 1 && arguments[0] == kManOption) {
    Globals ignored;
    Options common("", "");
    AddGlobals(common, &ignored);
    Out(ManSection(options, common));
    return true;
  }
  if (arguments.size() == 1 && absl::StartsWith(arguments[0], kFlagNamesOption)) {
    const std::string prefix = arguments[0].substr(sizeof(kFlagNamesOption) - 1);
    for (const std::string& name : options.Names()) {
      if (absl::StartsWith(name, prefix)) Out(name + "\n");
    }
    return true;
  }
  ASSIGN_OR_RETURN(const bool done, options.Parse(arguments));
  SetColor(globals.color);
  SetQuiet(globals.quiet);
  // What a person needs to know is said by the verbs; the log is for those who ask for it.
  SetLogLevel(globals.verbose ? LogLevel::kDebug : LogLevel::kError);
  return done;
}

StatusOr<ExperimentKey> ExperimentArgument(const std::string& text, const std::string& ns) {
  const std::string name = WithoutNoun(text, {"exp", "experiment", "experiments"});
  if (const Status valid = ValidateExperimentName(name); !valid.ok()) return AsUsage(valid);
  return ExperimentKey{ns, name};
}

v1::ExperimentRef ScheduleRef(const std::string& name, const std::string& ns) {
  v1::ExperimentRef reference;
  reference.set_namespace_(ns);
  reference.set_name(name);
  return reference;
}

StatusOr<std::optional<v1::ExperimentRef>> ScheduleArgument(const std::string& text,
                                                            const std::string& ns) {
  const std::string name = WithoutNoun(text, {"schedule", "schedules", "scheduledexperiment"});
  if (name == text) return std::nullopt;
  if (const Status valid = ValidateExperimentName(name); !valid.ok()) return AsUsage(valid);
  return ScheduleRef(name, ns);
}

StatusOr<TrialKey> TrialArgument(const std::string& text, const std::string& ns) {
  const auto key = ParseTrialName(WithoutNoun(text, {"trial", "trials"}), ns);
  if (key) return *key;
  return UsageError("\"" + text + "\" names no trial: write EXPERIMENT/7 or EXPERIMENT-7");
}

std::vector<std::string> ChooseDevices(const std::string& gpus, const v1::Experiment* experiment) {
  if (!gpus.empty()) return absl::StrSplit(gpus, ',', absl::SkipWhitespace());
  if (experiment != nullptr) {
    const auto& trial_spec = experiment->spec().trial_template().trial_spec();
    if (trial::RequestedGpus(trial_spec) == 0) return {};
  }
  return trial::DetectDevices(RealClock());
}

namespace {

std::string ManOption(const OptionHelp& option) {
  return absl::StrCat(".TP\n\\fB", ManText(option.names), "\\fR",
                      option.metavar.empty() ? "" : " \\fI" + ManText(option.metavar) + "\\fR",
                      "\n", ManText(option.help), "\n");
}

// What groff would understand, or make typographic, of words that are to be copied; and where it
// may break a long usage.
std::string Escaped(char c) {
  switch (c) {
    case '\\': return "\\e";
    case '-': return "\\-";
    case '\'': return "\\(aq";
    case '`': return "\\(ga";
    case '^': return "\\(ha";
    case '~': return "\\(ti";
    case '|': return "|\\:";
    default: return std::string(1, c);
  }
}

}  // namespace

std::string ManText(const std::string& text) {
  std::string out = "\\&";  // no request, whatever it begins with
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80) {
      out += Escaped(text[i++]);
      continue;
    }
    const int length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    uint32_t code = byte & (0xff >> (length + 1));
    for (int k = 1; k < length && i + k < text.size(); ++k) {
      code = code << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3f);
    }
    out += absl::StrFormat("\\[u%04X]", code);
    i += length;
  }
  return out;
}

std::string ManOptions(const Options& options) {
  std::string text;
  for (const OptionHelp& option : options.Describe()) text += ManOption(option);
  return text;
}

std::string ManSection(const Options& options, const Options& common) {
  const std::string& usage = options.usage();
  std::string text =
      absl::StrCat(".SS shirabe ", ManText(usage.substr(0, usage.find(' '))), "\n.PP\n\\fBshirabe ",
                   ManText(usage), "\\fR\n.PP\n", ManText(options.about()), "\n");
  const std::vector<OptionHelp> known = common.Describe();
  for (const OptionHelp& option : options.Describe()) {
    const bool is_common = std::any_of(known.begin(), known.end(), [&](const OptionHelp& other) {
      return other.names == option.names && other.help == option.help;
    });
    if (!is_common) text += ManOption(option);
  }
  return text;
}

}  // namespace shirabe::cmd
