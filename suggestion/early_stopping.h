// An early-stopping rule (Stopper): whether a running trial should end now; and the learning curves
// that it reads (Curves). Rules are one file each under stoppers/, registered by its last line,
// built once per experiment from validated settings. Asked by the reconciler after new reports of a
// trial, away from its own thread.
//
// Pure: no clock, no I/O, no state that changes an answer. The same history and curves give the
// same answer, after a restart and on another machine, whenever it is asked. One call at a time per
// object, from any thread.
//
// Settings that mean the same have the same name in every rule, Katib's where Katib has it:
// start_step (reports, not steps: what a trial may report before it can be stopped) and
// min_trials_required (others to compare with).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/registry.h"
#include "suggestion/algorithm.h"
#include "suggestion/history.h"

namespace shirabe::suggestion {

// Learning curves: what running trials have reported so far, as the early-stopping rules read it.
// The reconciler appends a point when a trial reports its objective; the rules compare curves at
// equal steps. Value types without locks: one writer, and readers only of copies.
//
// Losses are minimised. A loss that is not finite is the worst there is, never the best: a curve
// that has diverged must look bad to every rule, and must not make a median unusable.

// The losses of one trial by step, ascending; only rows that count. Memory is bounded: a curve that
// has become long keeps every second, fourth, … of its reports and the newest, each with what is
// exact for all reports so far.
class Curve {
 public:
  static constexpr int64_t kMaxCurvePoints = 2048;  // points kept

  struct Point {
    int64_t step = 0;
    double loss = 0;      // as reported; may be NaN
    double best = 0;      // least finite loss of the reports so far, +infinity if there is none
    double mean = 0;      // of the reports so far, +infinity if one was not finite
    int64_t reports = 0;  // so far, this one included
  };

  // `step` is greater than the last one's.
  void Append(int64_t step, double loss);

  bool empty() const { return points_.empty(); }
  const std::vector<Point>& points() const { return points_; }
  // The newest report; not of an empty curve.
  const Point& last() const { return points_.back(); }
  int64_t last_step() const { return empty() ? 0 : last().step; }
  // The newest report at or before `step`; null if there is none.
  const Point* At(int64_t step) const;
  // The mean of the reports from number `first` (from 1) to `end`, a point of it; of all up to
  // `end` where those are fewer. +infinity if one of these is not finite. Of a long curve some
  // reports before `first` count, too.
  double MeanFrom(int64_t first, const Point& end) const;

 private:
  void Thin();

  std::vector<Point> points_;
  int64_t every_ = 1;  // reports of whose number this is a divisor are kept, and the newest
};

// From losses by step.
Curve CurveOf(const std::map<int64_t, double>& losses);

// By trial index (number - 1); empty where nothing was observed, and shorter than the history where
// the newest trials have reported nothing. Of the first objective, which is all that most rules
// read; `further` are those of the others, by objective, then by trial in the same way.
struct Curves : std::vector<Curve> {
  std::vector<std::vector<Curve>> further = {};
};

// Null where the trial has reported nothing.
const Curve* FindCurve(const Curves& curves, int64_t index);

// The other trials that trial `index` can be compared with at `step`: what they had reported by
// then. They have reached the step, since a curve is never compared with one that ended before it;
// `ended` have ended with a result, or were stopped early, and `all` may run.
struct CurvePeers {
  std::vector<int64_t> ended;
  std::vector<int64_t> all;
};
CurvePeers PeersAt(int64_t index, int64_t step, const History& history, const Curves& curves);

class Stopper {
 public:
  virtual ~Stopper() = default;
  // A reason for people ("at step 40 best 0.61 > median 0.48 of 12 trials") if trial `index`,
  // which is active, should stop. Trials may have no curve, `index` too: then nothing is known.
  virtual StatusOr<std::optional<std::string>> ShouldStop(int64_t index, const History& history,
                                                          const Curves& curves) = 0;
};

// What a rule is built from.
struct StopProblem {
  Settings settings = {};
  bool maximize = false;  // the metric is -loss: for thresholds, and for the words of a reason
  std::vector<bool> further_maximize = {};  // the same of the other objectives
};

// What the value of a trial counts for that a rule has stopped.
enum class StoppedValue {
  kResult,   // what that of any other does: it may be the best, and reach the goal
  kPartial,  // of a part of what others are measured on: algorithms learn from it, no more
  kNone      // nothing: it makes no sense
};

struct StopperInfo {
  std::string name;  // Katib's, where Katib has it
  std::vector<std::string> aliases = {};
  std::string help;  // one sentence: what it is, when to use it
  std::vector<SettingInfo> settings = {};
  // kInvalidArgument, naming the setting and the fix; the settings have passed the table, and
  // those not given have their defaults.
  StatusOr<std::unique_ptr<Stopper>> (*create)(const StopProblem& problem);
  // Whether it compares trials by all objectives, or by none. Creating one that does not, where
  // there are several, is kInvalidArgument with those that do.
  bool several_objectives = false;
  // For a value of the metric; null where all are results.
  StoppedValue (*value_of_stopped)(const StopProblem& problem, double value) = nullptr;
};

// As ValidateSettings of algorithm.h, without random_state: rules draw nothing.
Status ValidateStopperSettings(const std::vector<SettingInfo>& known, const Settings& settings);

// By name or alias, after ValidateStopperSettings; settings that are not given get their defaults.
// kNotFound, with the known names, if there is none.
StatusOr<std::unique_ptr<Stopper>> CreateStopper(const std::string& name,
                                                 const StopProblem& problem);

// Losses in the words of a reason: the metric's own values.
struct MetricDirection {
  bool maximize = false;
  std::string Show(double loss) const;
  const char* Worse() const { return maximize ? "<" : ">"; }
};

}  // namespace shirabe::suggestion
