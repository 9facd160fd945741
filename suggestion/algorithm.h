// A suggestion algorithm: which points to try next. One file each under algorithms/, registered by
// its last line, built once per experiment from validated settings.
//
// Propose is a pure function of its arguments: no clock, no I/O, no threads of its own, no state
// that changes an answer. The same history and root give the same proposal, after a restart and on
// another machine of its level (suggestion/processor_level.h). Randomness for an experiment's i-th
// suggestion is root.Fork(i), i = history.next_ordinal() + its place in this proposal. It may be
// called from any thread, one call at a time per object. Only one in another process
// (suggestion/remote/remote_algorithm.h) is less pure.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/registry.h"
#include "base/rng.h"
#include "suggestion/history.h"
#include "suggestion/space/search_space.h"

namespace shirabe::suggestion {

// The trial to use in the end, where the best result is not the best trial: of many noisy results
// the best one is also the luckiest. Plain data.
struct Recommendation {
  int64_t trial = 0;     // index in the history; a completed one
  double loss = 0;       // predicted there, without the noise of a single result
  double deviation = 0;  // of that prediction, in the same unit
  std::string reason;    // one line for people
};

inline constexpr size_t kMaxMemo = 64 << 10;

struct Suggestion {
  Point point;
  // Go on from this trial's checkpoint at this step; from its newest one where step is 0.
  std::optional<v1::Parent> parent = {};
  std::vector<std::pair<std::string, std::string>> labels = {};
  std::string explanation = {};  // one line for people: why this point
};

struct Proposal {
  enum class Outcome {
    kOk,         // at least one suggestion, perhaps fewer than asked for
    kWait,       // none now: `reason`; ask again when a trial has ended
    kExhausted,  // none, ever: `reason`; the experiment ends when its trials have
  };
  std::vector<Suggestion> suggestions;
  Outcome outcome = Outcome::kOk;
  std::string reason;
  std::string memo;       // opaque, versioned, at most kMaxMemo bytes; part of the next History
  std::string algorithm;  // which one made it and why, where that was chosen for the user
  std::string notice;     // one line for people, where something has changed: becomes an event
};

class Algorithm {
 public:
  virtual ~Algorithm() = default;
  // At most `count` ≥ 1 suggestions, none of which history has visited while an unvisited point
  // exists, and no two the same; only one with a parent may repeat a point, since it goes on with
  // other work. kExhausted before every point is visited only where a resource or a population
  // says what a trial continues: then every configuration, the point without its resource, has
  // been tried. kInvalidArgument for what the settings' check could not see.
  virtual StatusOr<Proposal> Propose(const History& history, int count, const Rng& root) = 0;
  // Which trial to use, asked once all have ended; pure as Propose, which it may run beside.
  // nullopt: the one with the least loss.
  virtual StatusOr<std::optional<Recommendation>> Recommend(const History&) const {
    return std::nullopt;
  }
  // How far the least loss may be from the least that there is, in its units: an upper bound, by
  // the model of an algorithm that has one. Pure as Propose, beside which it may run; of `root` it
  // uses another stream. nullopt: not known yet.
  virtual StatusOr<std::optional<double>> BoundRegret(const History&, const Rng& /*root*/) const {
    return std::nullopt;
  }
  // Asks a call under way, and later ones, to return soon with kCancelled. From any thread.
  virtual void Cancel() {}
};

using Settings = std::vector<std::pair<std::string, std::string>>;  // as in the YAML

// A setting that an algorithm or stopper knows. The table validates and documents it.
struct SettingInfo {
  enum class Type { kInt, kDouble, kBool, kWord };
  std::string name;
  Type type = Type::kWord;
  std::string default_value = {};
  double min = 0, max = 0;              // kInt, kDouble; no bounds where equal; max may be infinite
  std::vector<std::string> words = {};  // kWord: the ones allowed, any where empty
  // Words that are accepted for the sake of other tools' files and answered by another one, as
  // `help` says: `validate` warns of them.
  std::vector<std::string> replaced = {};
  std::string help = {};
};

// What an algorithm is built from.
struct Problem {
  Space space;
  Settings settings = {};
  int64_t max_trials = 0;  // 0 = no limit given
  int parallel = 1;
  bool maximize = false;  // for words only: losses are the objective's negatives
  int objectives = 1;     // losses of each result
  int constraints = 0;    // margins of each result
};

struct AlgorithmInfo {
  std::string name;  // Katib's, where Katib has it
  std::vector<std::string> aliases = {};
  std::string help;  // one sentence: what it is, when to use it
  std::vector<SettingInfo> settings = {};
  // kInvalidArgument, naming the parameter or setting and the fix, if the problem does not suit;
  // the settings have passed the table.
  StatusOr<std::unique_ptr<Algorithm>> (*create)(const Problem& problem);
  // Null, or the space to search in place of the specified one: the resource that trials are given
  // has the values of the rungs, whatever its feasibleSpace says. Reshaping twice changes nothing.
  StatusOr<Space> (*reshape)(const Problem& problem) = nullptr;
  // Null, or whether BoundRegret has a model of this problem.
  bool (*bounds_regret)(const Problem& problem) = nullptr;
  // Whether it searches for a front where there are several objectives, and keeps constraints.
  // Creating one that does not, for such a problem, is kInvalidArgument with those that do.
  bool several_objectives = false;
  bool constraints = false;
  // The same of conditions, forbidden combinations and sums in its space, and of priors.
  bool space_rules = false;
  bool space_priors = false;
};

// Unknown names (with the list of known ones and the nearest) and values out of range are
// kInvalidArgument. Every algorithm also knows random_state, the seed.
Status ValidateSettings(const std::vector<SettingInfo>& known, const Settings& settings);

// The space in which the points of this algorithm's trials and its History lie. Errors as below.
StatusOr<Space> SearchSpace(const std::string& name, const Problem& problem);

// By name or alias, after ValidateSettings; settings that are not given get their defaults, and
// `space` may be the specified one or SearchSpace. kNotFound, with the known names, if there is
// none.
StatusOr<std::unique_ptr<Algorithm>> CreateAlgorithm(const std::string& name,
                                                     const Problem& problem);

// The value of a setting; null if it is not there. Inside `create` the defaults are there.
const std::string* FindSetting(const Settings& settings, const std::string& name);

}  // namespace shirabe::suggestion
