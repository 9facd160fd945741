// Gathers the findings of one document, knows where each field stands in its text, and keeps one
// mistake from being reported twice: what hangs on a field that could not be read is left out.
// Used by the walker and by the rules; one document, one object, one thread.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/text/yaml_tree.h"

namespace shirabe::experiment {

// A problem of a specification. Where it was read from text, line and column are set (from 1).
struct Finding {
  bool warning = false;
  std::string path;     // spec.parameters[1].feasibleSpace.min
  std::string message;  // what is wrong, the value, and the fix
  int line = 0;
  int column = 0;
};

bool HasErrors(const std::vector<Finding>& findings);

// file:line:col: error: spec.x: message   (without the place where there is none)
std::string FormatFinding(const Finding& finding, std::string_view file);

// Paths: spec.parameters[1].name; a key that is no plain word is written metadata.labels["a.b/c"].
std::string ChildPath(const std::string& path, std::string_view key);
std::string ItemPath(const std::string& path, int index);

// The field, if one is to blame, and what is wrong; without the place in the text.
std::string InWords(const Finding& finding);

// A line for each, of many the first `most` and how many more there are.
std::string JoinProblems(const std::vector<std::string>& problems, size_t most);
// kInvalidArgument with a line for each error, of many the first 20 and how many more there are; OK
// where all are warnings.
Status JoinErrors(const std::vector<Finding>& findings);

class Findings {
 public:
  // Of errors and warnings together; one more says that there are others.
  static constexpr size_t kMaxFindings = 500;

  // Where the field at `path` stands. Fields without a place are reported at their parent's.
  void SetLocation(const std::string& path, Mark mark);

  // The text at `path` could not be read; rules about it, or about fields below it, will be silent.
  void MarkUnreadable(const std::string& path, Mark mark, std::string message);
  // The text itself has a problem there; no field is to blame.
  void Problem(Mark mark, std::string message) { Add({false, "", std::move(message)}, mark); }
  // The silence of MarkUnreadable without a message: this field is what the user misspelled.
  void MuteRules(const std::string& path) { unread_.insert(path); }
  // Whether something at, below or above `path` could not be read: a rule that looks at the whole
  // of it would be guessing.
  bool IsUnreadable(const std::string& path) const;

  // A broken rule.
  void Error(const std::string& path, std::string message);
  void Warn(const std::string& path, std::string message);

  // Errors so far.
  int errors() const { return errors_; }
  // Whether there are so many that a user would not read more: further ones are not kept, and
  // looking for them is a waste.
  bool full() const { return findings_.size() >= kMaxFindings; }

  // In the order of the text; those without a place in the order of their making.
  std::vector<Finding> Sorted();

 private:
  void Add(Finding finding, Mark mark);
  Mark LocationOf(std::string path) const;
  bool IsUnreadableAbove(std::string path) const;  // at or above it

  // By a hash of the path: paths are long where keys are, and there is one for each value.
  std::unordered_map<uint64_t, Mark> places_;
  std::set<std::string> unread_;
  std::vector<Finding> findings_;
  int errors_ = 0;
  bool more_ = false;
};

}  // namespace shirabe::experiment
