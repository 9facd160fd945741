// backup: all records of a store in one file, while others use it.
#include "base/file_io.h"
#include "base/registry.h"
#include "client/store_backup.h"
#include "cmd/record_printer.h"
#include "cmd/session.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "view/backup_text.h"

namespace shirabe::cmd {

StatusOr<int> Backup(const Arguments& arguments) {
  Globals globals;
  ListFlags flags;
  std::vector<std::string> files;
  bool force = false;
  Options options(
      "backup FILE",
      "Writes all records of this machine's store, or of that of --db, to a file, as they are at "
      "one moment, while servers and trials go on. The file can be restored into a store of any "
      "kind. It is for its owner alone (mode 0600): it has the tokens of attempts, as the store "
      "has. Logs, outputs and checkpoints of trials are not in it, nor is the token file of a "
      "server. With - for FILE it goes to standard output.");
  options.Arguments("FILE", &files, 1, 1);
  options.Flag("--force", &force, "replace a file that is there");
  options.Word("-o,--output", &flags.output, {"table", "json", "yaml"}, "how to print what it has");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  const bool to_stdout = files[0] == "-";
  if (to_stdout && StdoutIsTerminal()) {
    return UsageError("a backup is not for a terminal: name a file, or pipe it to a program");
  }
  ASSIGN_OR_RETURN(const LocalSession session, OpenLocal(globals, /*read_only=*/true));
  if (client::IsDefaultStoreMissing(session.place)) {
    return absl::NotFoundError("there is no " + client::ShownDatabase(session.place) +
                               " to be backed up: name another database with --db");
  }
  ASSIGN_OR_RETURN(
      const client::BackupInfo info,
      client::WriteBackup(*session.client, {.path = to_stdout ? "" : files[0], .replace = force},
                          RealClock()));
  if (to_stdout) {
    ProgressLine("backed up: " + view::BackupLine(info));
  } else if (WantsTree(flags)) {
    PrintTree(flags, view::BackupJson(info));
  } else {
    Out(files[0] + ": " + view::BackupLine(info) + "\n");
  }
  return kOk;
}

SHIRABE_REGISTER(Verb, {.name = "backup",
                        .group = VerbGroup::kTools,
                        .summary = "all records of the store in one file, while it is in use",
                        .outputs = {"table", "json", "yaml"},
                        .run = Backup});

}  // namespace shirabe::cmd
