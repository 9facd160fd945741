// Gathers what becomes of the fields of one file, and what is wrong with them. Used by the readers
// of formats; one file, one object, one thread.
#pragma once

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

}  // namespace shirabe::convert
