// importance and ablation: which parameters matter, and what brought the gain.
#include "base/registry.h"
#include "cmd/record_printer.h"
#include "cmd/session.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "view/analysis_text.h"
#include "view/shaped_json.h"

namespace shirabe::cmd {
namespace {

// What both of them take.
struct AnalysisFlags {
  Globals globals;
  ListFlags list;
  std::vector<std::string> names;
};

void AddAnalysisFlags(Options& options, AnalysisFlags* flags) {
  options.Arguments("EXPERIMENT", &flags->names, 1, 1);
  options.Word("-o,--output", &flags->list.output, {"table", "json", "yaml"}, "how to print");
  options.Flag("--no-headers", &flags->list.no_headers, "a table without its first line");
  AddGlobals(options, &flags->globals);
}

// Of the experiment that is named, in a session that is opened for it.
template <class Reply, class Request>
StatusOr<Reply> AskFor(const AnalysisFlags& flags, const char* method, Request request) {
  ASSIGN_OR_RETURN(const Session session, OpenSession(flags.globals, /*read_only=*/true));
  ASSIGN_OR_RETURN(const ExperimentKey key, ExperimentArgument(flags.names[0], session.ns));
  request.set_namespace_(key.ns);
  request.set_experiment(key.name);
  return session.client->Get<Reply>(method, request);
}

// Why a table is empty is said in any case.
void PrintBasis(const v1::ModelBasis& basis) {
  (basis.too_few().empty() ? Hint : ProgressLine)(view::BasisLine(basis));
}

StatusOr<int> Importance(const Arguments& arguments) {
  AnalysisFlags flags;
  std::string method = "gp";
  Options options("importance EXPERIMENT [--method gp|ped] [-o table|json|yaml]",
                  "Shows how much each parameter matters: its share of the variance of the "
                  "objective over the space, with all that it does together with others (TOTAL) "
                  "and by itself (ALONE), each with the band in which it lies with 90 % "
                  "probability, and whether that is enough to say that it matters.");
  options.Word("--method", &method, {"gp", "ped"},
               "gp: Sobol indices of a Gaussian process; ped: PED-ANOVA, what separates the best "
               "tenth of the trials");
  AddAnalysisFlags(options, &flags);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, flags.globals, arguments));
  if (done) return 0;
  v1::ImportanceRequest request;
  request.set_method(method == "ped" ? v1::IMPORTANCE_PED : v1::IMPORTANCE_GP);
  ASSIGN_OR_RETURN(const auto reply, AskFor<v1::Importance>(flags, "GetImportance", request));
  if (WantsTree(flags.list)) {
    PrintTree(flags.list, view::Shaped<v1::Importance>(reply));
    return 0;
  }
  Out(view::ImportanceTable(reply, !flags.list.no_headers));
  PrintBasis(reply.basis());
  return 0;
}

StatusOr<int> Ablation(const Arguments& arguments) {
  AnalysisFlags flags;
  std::optional<int64_t> from, to;
  Options options("ablation EXPERIMENT [--from N] [--to N] [-o table|json|yaml]",
                  "Shows what brought the gain: the way from one trial to a better one, one "
                  "parameter at a time, always the one with the largest gain that is left, as a "
                  "model of all trials predicts it, with bands of 90 %.");
  options.Number("--from", &from, 1, "number of a trial (default: the median one)");
  options.Number("--to", &to, 1, "number of a trial (default: the best one)");
  AddAnalysisFlags(options, &flags);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, flags.globals, arguments));
  if (done) return 0;
  v1::AblationRequest request;
  request.set_from(from.value_or(0));
  request.set_to(to.value_or(0));
  ASSIGN_OR_RETURN(const auto reply, AskFor<v1::Ablation>(flags, "GetAblation", request));
  if (WantsTree(flags.list)) {
    PrintTree(flags.list, view::Shaped<v1::Ablation>(reply));
    return 0;
  }
  Out(view::AblationTable(reply, !flags.list.no_headers));
  if (reply.has_from()) Hint(view::AblationEndsLine(reply));
  PrintBasis(reply.basis());
  return 0;
}

SHIRABE_REGISTER(Verb, {.name = "importance",
                        .group = VerbGroup::kRead,
                        .summary = "how much each parameter matters, and how sure that is",
                        .completes = CompleteExperiments,
                        .outputs = {"table", "json", "yaml"},
                        .run = Importance});
SHIRABE_REGISTER(Verb, {.name = "ablation",
                        .group = VerbGroup::kRead,
                        .summary = "what brought the gain, parameter by parameter",
                        .completes = CompleteExperiments,
                        .outputs = {"table", "json", "yaml"},
                        .run = Ablation});

}  // namespace
}  // namespace shirabe::cmd
