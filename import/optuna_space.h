// The parameters of an Optuna study, which each trial defines for itself, as one space: their
// joined ranges, and conditions for those that not every trial has. Used by the importers.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "client/import_batch.h"

namespace shirabe::import {

// What decides whether a parameter can tell where another exists.
struct ParameterKind {
  std::string kind;  // double, int, categorical, as Katib's parameterType
  size_t order = 0;  // it may tell of those of the same order and of later ones
};
using TrialValues = std::map<std::string, std::string>;  // of one trial, by parameter

// The parameters that every trial has, or that exist where another has certain values; and those
// conditions, as spec.shirabe.space.conditions has them.
struct ToldParameters {
  std::set<std::string> names;
  std::vector<nlohmann::ordered_json> conditions;
};
ToldParameters FindConditions(const std::map<std::string, ParameterKind>& parameters,
                              const std::vector<TrialValues>& trials);

class OptunaSpace {
 public:
  using Json = nlohmann::ordered_json;
  using Values = TrialValues;

  // A value with its distribution, in the order of the suggestions; the text that a program would
  // be given. kDataLoss for a choice that is not in its list.
  StatusOr<std::string> Add(const std::string& name, const Json& distribution, double value);

  // Sets the parameters and conditions, and notes what is left out. `trials`: those that did not
  // fail, which may have ended before a parameter was suggested.
  void Describe(const std::vector<Values>& trials, client::Imported& imported) const;

 private:
  // A parameter over all trials of a study; ranges that changed meanwhile are joined.
  struct Dimension : ParameterKind {  // `order`: in which they were suggested first
    double low = 0, high = 0;
    bool log = false;
    std::optional<double> step;
    std::vector<std::string> choices;
    size_t trials = 0;
  };

  static StatusOr<std::string> Join(const Json& distribution, double value, Dimension& dimension);

  std::map<std::string, Dimension> dimensions_;
};

// What a pruned trial said last can be better than any result, as where it reports something else
// than it returns. To Optuna it never is the best: such trials are left out, with a note.
void DropBetterPruned(client::Imported& imported);

}  // namespace shirabe::import
