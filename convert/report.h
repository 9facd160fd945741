// What becomes of the fields of one file, and what is wrong with them: gathered by the readers of
// formats, and said to people and programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convert/conversion.h"

namespace shirabe::convert {

// A field of the file.
struct Place {
  std::string path;
  Mark mark;
};

// A field of the Experiment, and what it holds.
struct Target {
  std::string path;
  std::string value = {};
};

// One file, one object, one thread.
class Report {
 public:
  void Taken(const Place& place, Target target);
  void Changed(const Place& place, Target target, std::string remark);
  void LeftOut(const Place& place, std::string remark);
  void Error(const Place& place, std::string message);
  void Warn(const Place& place, std::string message);

  // Whether there are so many findings that more would not be read.
  bool full() const { return findings_.size() >= experiment::Findings::kMaxFindings; }

  // Moves all of it into `conversion`, in the order of the file. What the rules of a specification
  // find is said of the field of the file that it came from.
  void Finish(Conversion& conversion);
  // The same of what becomes no Experiment.
  void Sort(Conversion& conversion);

 private:
  void CheckExperiment(const v1::Experiment& experiment);
  const Note* OriginOf(const std::string& path) const;

  std::vector<Note> notes_;
  std::vector<experiment::Finding> findings_;
};

// ---- what became of each field of a file, for people and for programs; pure
// ----------------------

std::string OutcomeWord(Outcome outcome);

// "14 fields taken, 2 changed, 3 left out"
std::string Summary(const Conversion& conversion);

// A line for each field:
//   config.yaml:4:11: left out: trainingInput.region: trials run where the cluster stands
std::string ReportLines(const Conversion& conversion, const std::string& file);

// {file, format, taken, changed, leftOut, fields: [{field, line, column, outcome, became, value,
// remark}]}; what a field does not have is left out.
nlohmann::ordered_json ReportJson(const Conversion& conversion, const std::string& file);

}  // namespace shirabe::convert
