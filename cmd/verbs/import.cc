// import: results of other tools as experiments that have ended, to look at and to learn from.
#include <set>

#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "base/registry.h"
#include "base/text/did_you_mean.h"
#include "client/wire_format.h"
#include "cmd/session.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "import/import_readers.h"

namespace shirabe::cmd {
namespace {

using client::Imported;

constexpr int64_t kMaxImportBytes = int64_t{256} << 20;

struct ImportRequest {
  std::vector<std::string> words;  // format, file
  std::string name;
  std::string study;
  std::string minimize, maximize;
  std::vector<std::string> parameters;
  bool dry_run = false;
};

StatusOr<std::vector<Imported>> ReadOptunaFile(const ImportRequest& request) {
  return import::ReadOptuna(request.words[1], request.study);
}

StatusOr<std::vector<Imported>> ReadKatibFile(const ImportRequest& request) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(request.words[1], kMaxImportBytes));
  return import::ReadKatib(request.words[1], text);
}

StatusOr<std::vector<Imported>> ReadCsvFile(const ImportRequest& request) {
  if (request.minimize.empty() == request.maximize.empty()) {
    return UsageError("a table needs one of --minimize COLUMN and --maximize COLUMN");
  }
  ASSIGN_OR_RETURN(const std::string text, ReadFile(request.words[1], kMaxImportBytes));
  std::string stem = request.words[1].substr(request.words[1].rfind('/') + 1);
  stem = stem.substr(0, stem.rfind('.'));
  const bool maximize = request.minimize.empty();
  ASSIGN_OR_RETURN(Imported imported,
                   import::ReadCsv(request.words[1], text,
                                   {.name = client::ExperimentNameFrom(stem),
                                    .metric = maximize ? request.maximize : request.minimize,
                                    .maximize = maximize,
                                    .parameters = request.parameters}));
  return std::vector<Imported>{std::move(imported)};
}

struct Format {
  const char* name;
  StatusOr<std::vector<Imported>> (*read)(const ImportRequest& request);
};

constexpr Format kFormats[] = {
    {"optuna", ReadOptunaFile}, {"katib", ReadKatibFile}, {"csv", ReadCsvFile}};

std::vector<std::string> ImportFormats() {
  std::vector<std::string> names;
  for (const Format& format : kFormats) names.push_back(format.name);
  return names;
}

StatusOr<std::vector<Imported>> ReadImported(const ImportRequest& request) {
  for (const Format& format : kFormats) {
    if (request.words[0] == format.name) return format.read(request);
  }
  const auto nearest = Nearest(request.words[0], ImportFormats());
  return UsageError("\"" + request.words[0] + "\" is none of optuna, katib and csv" +
                    (nearest ? "; did you mean " + *nearest + "?" : ""));
}

Status StoreOne(const Session& session, const ImportRequest& request, Imported& imported) {
  int64_t trials = 0;
  if (!request.dry_run) {
    ASSIGN_OR_RETURN(const auto reply,
                     session.client->Get<v1::ImportReply>("ImportExperiment",
                                                          client::ToWire(session.ns, imported)));
    imported.notes.insert(imported.notes.end(), reply.notes().begin(), reply.notes().end());
    const auto made = session.client->GetExperiment({session.ns, imported.name});
    trials = made.ok() ? made->status().trials() : static_cast<int64_t>(imported.trials.size());
  } else {
    ASSIGN_OR_RETURN(const db::Batch made,
                     client::MakeBatch(session.ns, imported, RealClock()->Now()));
    trials = static_cast<int64_t>(made.trials.size());
  }
  if (!imported.ns.empty() && imported.ns != session.ns) {
    imported.notes.push_back(absl::StrCat("it was in namespace ", imported.ns, " and goes to ",
                                          session.ns, "; another: --namespace NAME"));
  }
  for (const std::string& note : imported.notes) Warn(imported.source + ": " + note);
  Out(absl::StrCat("experiment/", imported.name, request.dry_run ? " would be" : "",
                   " imported: ", trials, " trials of ", imported.source, "\n"));
  return absl::OkStatus();
}

// Studies of one file may have names that give the same name of an experiment.
void MakeNamesUnique(std::vector<Imported>& all) {
  std::set<std::string> taken;
  for (Imported& imported : all) {
    const std::string name = imported.name;
    for (int n = 2; !taken.insert(imported.name).second; ++n) {
      imported.name = absl::StrCat(name, "-", n);
    }
  }
}

// One that cannot be stored keeps none of the others from it.
Status StoreAll(const Session& session, const ImportRequest& request, std::vector<Imported>& all) {
  Status first;
  int failed = 0;
  for (Imported& imported : all) {
    Status stored = AsUsage(ValidateExperimentName(imported.name));
    if (stored.ok()) stored = StoreOne(session, request, imported);
    if (all.size() == 1) return stored;
    if (stored.ok()) continue;
    Warn(absl::StrCat(imported.source, " is left out: ", Message(stored)));
    if (failed++ == 0) first = stored;
  }
  if (failed == 0) return absl::OkStatus();
  return Status(first.code(),
                absl::StrCat(failed, " of ", all.size(), " are left out, for the reasons above"));
}

std::vector<std::string> CompleteImportWords(const Arguments& words) {
  return words.size() == 2 ? ImportFormats() : std::vector<std::string>();
}

}  // namespace

StatusOr<int> Import(const Arguments& arguments) {
  Globals globals;
  ImportRequest request;
  Options options(
      "import optuna|katib|csv FILE",
      "Stores what another tool has found as experiments that have ended: an SQLite storage of "
      "Optuna, the objects of Katib (kubectl get experiments,trials -o yaml), or a table with a "
      "column a parameter. spec.shirabe.warmStart then lets a new experiment learn from them.");
  options.Arguments("FORMAT FILE", &request.words, 2, 2);
  options.Text("--name", &request.name, "NAME", "of the experiment (default: from the source)");
  options.Text("--study", &request.study, "NAME", "optuna: only this study (default: all)");
  options.Text("--minimize", &request.minimize, "COLUMN", "csv: the objective");
  options.Text("--maximize", &request.maximize, "COLUMN", "csv: the objective");
  options.Texts("--param", &request.parameters, "COLUMN",
                "csv: a parameter; may be repeated (default: every other column)");
  options.Flag("--dry-run", &request.dry_run, "only say what would be imported");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  ASSIGN_OR_RETURN(std::vector<Imported> all, ReadImported(request));
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/request.dry_run));
  if (!request.name.empty() && all.size() > 1) {
    return UsageError(absl::StrCat("--name is for one experiment, and ", request.words[1], " has ",
                                   all.size(), ": choose one with --study"));
  }
  if (!request.name.empty() && !all.empty()) all[0].name = request.name;
  MakeNamesUnique(all);
  RETURN_IF_ERROR(StoreAll(session, request, all));
  return kOk;
}

SHIRABE_REGISTER(Verb, {.name = "import",
                        .group = VerbGroup::kTools,
                        .summary = "results of other tools as ended experiments",
                        .completes = CompleteImportWords,
                        .run = Import});

}  // namespace shirabe::cmd
