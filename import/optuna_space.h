// The parameters of an Optuna study, which each trial defines for itself, as one space: their
// joined ranges, and conditions for those that not every trial has. Used by import_optuna.cc.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "client/import_batch.h"

namespace shirabe::import {

class OptunaSpace {
 public:
  using Json = nlohmann::ordered_json;
  using Values = std::map<std::string, std::string>;  // of one trial, by parameter

  // A value with its distribution, in the order of the suggestions; the text that a program would
  // be given. kDataLoss for a choice that is not in its list.
  StatusOr<std::string> Add(const std::string& name, const Json& distribution, double value);

  // Sets the parameters and conditions, and notes what is left out. `trials`: those that did not
  // fail, which may have ended before a parameter was suggested.
  void Describe(const std::vector<Values>& trials, client::Imported& imported) const;

 private:
  // A parameter over all trials of a study; ranges that changed meanwhile are joined.
  struct Dimension {
    std::string kind;  // double, int, categorical
    double low = 0, high = 0;
    bool log = false;
    std::optional<double> step;
    std::vector<std::string> choices;
    size_t trials = 0;
    size_t order = 0;  // in which they were suggested first
  };

  static StatusOr<std::string> Join(const Json& distribution, double value, Dimension& dimension);
  Json ConditionOf(const std::string& name, const std::vector<Values>& trials,
                   const std::set<std::string>& known) const;
  std::vector<Json> FindConditions(const std::vector<Values>& trials,
                                   std::set<std::string>& known) const;

  std::map<std::string, Dimension> dimensions_;
};

}  // namespace shirabe::import
