#include "view/backup_text.h"

#include "absl/strings/str_cat.h"
#include "base/text/number.h"
#include "base/timestamp.h"
#include "db/backup_file.h"
#include "view/text_table.h"

namespace shirabe::view {
namespace {

std::string Counted(int64_t count, const char* what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

}  // namespace

std::string BackupLine(const client::BackupInfo& info) {
  const v1::BackupCounts& counts = info.counts;
  const std::string schedules =
      counts.schedules() == 0 ? "" : Counted(counts.schedules(), "schedule") + ", ";
  const std::string of =
      info.of == 0 ? "" : absl::StrCat("of a file with ", Counted(info.of, "experiment"), " and ");
  return absl::StrCat(Counted(counts.experiments(), "experiment"), ", ", schedules,
                      Counted(counts.trials(), "trial"), ", ",
                      Counted(counts.observations(), "observation"), ", ", of,
                      FormatBytes(info.bytes));
}

std::string BackupText(const client::BackupInfo& info) {
  // A file can claim anything.
  const v1::BackupHeader& header = info.header;
  std::string text =
      absl::StrCat("Taken:     ", FormatTime(header.time()), " on ", Printable(header.host()),
                   "\nFrom:      ", Printable(header.source()), ", revision ", header.revision(),
                   "\nWritten:   by shirabe ", Printable(header.program()), ", format ",
                   db::kBackupFormat, "\nContents:  ", BackupLine(info), "\n");
  if (info.experiments.empty()) return text;
  Table table({"NAMESPACE", "NAME", "STATE", "TRIALS", "OBSERVATIONS"});
  for (const client::StoredExperiment& one : info.experiments) {
    table.Add({one.key.ns, one.key.name, one.condition.type(), absl::StrCat(one.trials),
               absl::StrCat(one.observations)});
  }
  return text + "\n" + table.Render();
}

Json BackupJson(const client::BackupInfo& info) {
  const v1::BackupHeader& header = info.header;
  const v1::BackupCounts& counts = info.counts;
  Json tree;
  tree["kind"] = "Backup";
  tree["format"] = db::kBackupFormat;
  tree["time"] = FormatTime(header.time());
  tree["host"] = header.host();
  tree["source"] = header.source();
  tree["revision"] = header.revision();
  tree["program"] = header.program();
  tree["bytes"] = info.bytes;
  Json& counted = tree["counts"];
  counted["experiments"] = counts.experiments();
  counted["trials"] = counts.trials();
  counted["attempts"] = counts.attempts();
  counted["checkpoints"] = counts.checkpoints();
  counted["observations"] = counts.observations();
  counted["events"] = counts.events();
  counted["intents"] = counts.intents();
  if (counts.schedules() > 0) counted["schedules"] = counts.schedules();
  tree["experiments"] = Json::array();
  for (const client::StoredExperiment& one : info.experiments) {
    Json item;
    item["namespace"] = one.key.ns;
    item["name"] = one.key.name;
    item["state"] = one.condition.type();
    item["trials"] = one.trials;
    item["observations"] = one.observations;
    tree["experiments"].push_back(std::move(item));
  }
  return tree;
}

}  // namespace shirabe::view
