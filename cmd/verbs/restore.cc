// restore: what a backup has, back into a store, all of it or nothing.
#include "base/registry.h"
#include "client/store_backup.h"
#include "cmd/record_printer.h"
#include "cmd/session.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "view/backup_text.h"

namespace shirabe::cmd {
namespace {

struct RestoreRequest {
  std::vector<std::string> words;  // file, experiments
  bool merge = false;
  bool replace = false;
  bool dry_run = false;
};

StatusOr<client::RestoreOptions> OptionsOf(const RestoreRequest& request,
                                           const client::StateLocation& place) {
  client::RestoreOptions options{.path = request.words[0]};
  // With another database the files may be those of the home's own.
  if (request.replace || place.db_is_default) options.home = place.home;
  if (request.merge) options.mode = client::RestoreMode::kMerge;
  if (request.replace) options.mode = client::RestoreMode::kReplace;
  for (size_t i = 1; i < request.words.size(); ++i) {
    ASSIGN_OR_RETURN(options.only.emplace_back(), ExperimentArgument(request.words[i], place.ns));
  }
  return options;
}

void PrintBackup(const ListFlags& flags, const client::BackupInfo& info) {
  if (WantsTree(flags)) {
    PrintTree(flags, view::BackupJson(info));
  } else {
    Out(view::BackupText(info));
  }
}

}  // namespace

StatusOr<int> Restore(const Arguments& arguments) {
  Globals globals;
  ListFlags flags;
  RestoreRequest request;
  Options options(
      "restore FILE [EXPERIMENT…]",
      "Puts what \"shirabe backup\" has written into this machine's store, or that of --db, which "
      "must be empty: all of it, or only the experiments named, or nothing where something is "
      "wrong. The file is read and checked whole before anything is written. Experiments that ran "
      "go on with the command that ran them, or a server; trials that ran are tried again from "
      "their "
      "last checkpoint, if its files are still there.");
  options.Arguments("FILE", &request.words, 1, 1000);
  options.Flag("--merge", &request.merge, "beside the experiments that are there");
  options.Flag("--replace", &request.replace,
               "delete all experiments that are there, in the same step; refused while a server or "
               "\"shirabe run\" runs one of them");
  options.Flag("--dry-run", &request.dry_run,
               "only check the file, and say what it has, or would bring");
  options.Word("-o,--output", &flags.output, {"table", "json", "yaml"}, "how to print what it has");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  if (request.merge && request.replace) {
    return UsageError("--merge keeps what is there and --replace deletes it: give one of them");
  }
  if (request.replace && request.words.size() > 1) {
    return UsageError("--replace is for a whole backup: name no experiments, or use --merge");
  }
  // Before the store is opened, which may make one.
  ASSIGN_OR_RETURN(const client::StateLocation place, StateLocationOf(globals));
  ASSIGN_OR_RETURN(const client::RestoreOptions what, OptionsOf(request, place));
  auto inspected = client::InspectBackup(what.path, what.only);
  if (!inspected.ok()) return AsUsage(inspected.status());
  client::BackupInfo info = *std::move(inspected);
  if (!request.dry_run) {
    ASSIGN_OR_RETURN(const LocalSession session, OpenLocal(globals, /*read_only=*/false));
    ASSIGN_OR_RETURN(client::Restored restored,
                     client::RestoreBackup(*session.client, what, RealClock()));
    info = std::move(restored.info);
    ProgressLine("restored into " + client::ShownDatabase(session.place));
    if (!restored.set_aside.empty()) {
      ProgressLine("files of trials that came after the backup lie in " + restored.set_aside +
                   " now, and may be deleted");
    }
  }
  PrintBackup(flags, info);
  return kOk;
}

SHIRABE_REGISTER(Verb, {.name = "restore",
                        .group = VerbGroup::kTools,
                        .summary = "what a backup has, back into a store, or nothing",
                        .outputs = {"table", "json", "yaml"},
                        .run = Restore});

}  // namespace shirabe::cmd
