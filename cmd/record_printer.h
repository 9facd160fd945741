// Prints records of one kind as -o wants them: rows of a table, names, or trees; all at once, page
// by page, or as they change. Used by the verbs that list, in the main thread.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cmd/terminal.h"
#include "cmd/verb_flags.h"
#include "view/record_json.h"
#include "view/record_rows.h"
#include "view/text_table.h"

namespace shirabe::cmd {

// Of one call that waits for changes of what is listed.
inline constexpr absl::Duration kMaxWatchWait = absl::Minutes(1);

inline view::RowStyle StyleOf(const ListFlags& flags) {
  return {.now = RealClock()->Now(),
          .wide = flags.output == "wide",
          .with_namespace = flags.all_namespaces};
}

inline bool WantsTree(const ListFlags& flags) {
  return flags.output == "json" || flags.output == "yaml";
}
// Prints one object, or a List of them, as the flags want it: only for -o json and yaml.
inline void PrintTree(const ListFlags& flags, const view::Json& tree) {
  Out(flags.output == "json" ? view::PrintJson(tree) : view::PrintYaml(tree));
}
inline void PrintTrees(const ListFlags& flags, const std::vector<view::Json>& trees) {
  view::ListWriter writer(flags.output == "yaml");
  Out(writer.Begin());
  for (const view::Json& tree : trees) Out(writer.Item(tree));
  Out(writer.End());
}

// How a record becomes cells, a tree and a name.
template <class Record>
struct Printer {
  view::Cells header;
  std::function<view::Cells(const Record&, const view::RowStyle&)> row;
  std::function<view::Json(const Record&)> tree;
  std::function<std::string(const Record&)> name{};
};

template <class Record>
class Listing {
 public:
  Listing(const ListFlags& flags, Printer<Record> printer)
      : flags_(flags),
        printer_(std::move(printer)),
        table_(printer_.header),
        writer_(flags.output == "yaml") {}

  const ListFlags& flags() const { return flags_; }

  // A list in one go.
  void PrintAll(const std::vector<Record>& records) {
    Print(records);
    Finish();
  }

  // One that was asked for by name: a tree is then no List.
  void PrintOne(const Record& record) {
    if (WantsTree(flags_)) return PrintTree(flags_, printer_.tree(record));
    PrintRows({record});
  }

  // A part of a list; Finish() ends it.
  void Print(const std::vector<Record>& records) {
    if (!WantsTree(flags_)) return PrintRows(records);
    if (!std::exchange(begun_, true)) Out(writer_.Begin());
    for (const Record& record : records) Out(writer_.Item(printer_.tree(record)));
  }
  void Finish() {
    Print({});
    if (WantsTree(flags_)) Out(writer_.End());
  }

  // Of a list that is watched: a document each, as kubectl does it.
  void PrintChanged(const std::vector<Record>& records) {
    if (!WantsTree(flags_)) return PrintRows(records);
    for (const Record& record : records) {
      if (flags_.output == "yaml") Out("---\n");
      PrintTree(flags_, printer_.tree(record));
    }
  }

 private:
  void PrintRows(const std::vector<Record>& records) {
    if (flags_.output == "name") {
      for (const Record& record : records) Out(printer_.name(record) + "\n");
      return;
    }
    const view::RowStyle style = StyleOf(flags_);
    for (const Record& record : records) table_.Add(printer_.row(record, style));
    Out(table_.Render(!flags_.no_headers));
  }

  const ListFlags flags_;
  const Printer<Record> printer_;
  view::Table table_;
  view::ListWriter writer_;
  bool begun_ = false;
};

}  // namespace shirabe::cmd
