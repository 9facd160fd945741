// From observations to a fitted process: which warp of the objective, which parameters, and what is
// kept of that for the next time (SurrogateMemo); a cache of such processes (SurrogateCache); and
// which observed point to use in the end (Recommend). Pure but for the cache; any thread.
//
// Every warp has its own parameters, fitted from those of the last time. The one whose process
// orders the better half of the points best, each predicted by all others, is used; the last one
// keeps its place unless another is better by more than chance. Of more points than an engine fits
// to (Engine::most_fitted), those alone are compared.
#pragma once

#include <Eigen/Dense>
#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "suggestion/gp/engine.h"
#include "suggestion/gp/engine_choice.h"
#include "suggestion/gp/gaussian_process.h"
#include "suggestion/gp/scored_results.h"

namespace shirabe::suggestion::gp {

// What one suggestion leaves for the next (the algorithm's memo). Without it the answer is as good,
// and slower.
struct SurrogateMemo {
  int64_t fitted_at = 0;  // points at the last fit; 0 = never
  WarpKind warp = WarpKind::kNone;
  std::array<Theta, 3> thetas;                 // by WarpKind; empty = not known
  EngineKind engine = EngineKind::kProcessor;  // of the last fit

  PastEngine past() const { return {engine, fitted_at}; }
  // Binary, with a checksum; of the processor's fits as version 0.1 wrote it. Parse gives an empty
  // memo for what is not its own, or of another space.
  std::string Serialize() const;
  static SurrogateMemo Parse(const std::string& text, int theta_size);
};

struct Surrogate {
  Warp warp;
  Posterior posterior;
  bool moved = false;  // from an accelerator that is gone or failed
};

// `scores` as for Warp. Fits again if enough points have come since the last fit, or if the engine
// of the last fit is gone.
Surrogate Learn(const Inputs& inputs, const Eigen::VectorXd& scores, SurrogateMemo& memory);
// Fits again in any case.
Surrogate Refit(const Inputs& inputs, const Eigen::VectorXd& scores, SurrogateMemo& memory);
// For what it leaves in the memory alone: of many points it conditions no process on all of them.
void RefitMemory(const Inputs& inputs, const Eigen::VectorXd& scores, SurrogateMemo& memory);

// The same without warps, of values whose sign matters, such as the margins of a constraint.
Posterior LearnUnwarped(const Inputs& inputs, const Eigen::VectorXd& y, SurrogateMemo& memory);

// Of the counts of points at which Learn fits, where there is one point more each time: the last
// one up to `points`, from 2.
int64_t LastFitCount(int64_t points);

// Of labels that are 1 where a trial gave a result and -1 where it did not. Its parameters are not
// fitted: labels are a step, and the steeper the step, the more would lengths collapse to fit it,
// until every failure speaks for itself alone. Where the objective's process is.
Posterior LearnFeasibility(const Inputs& inputs, const Eigen::VectorXd& labels,
                           EngineKind engine = EngineKind::kProcessor);

// Fitted processes of the whole program, so that a caller that asks again with the same results
// does not fit again: the next of several workers, a request that is repeated, an experiment whose
// trials are all still running. What it returns is what Learn returns: it can be emptied at any
// time without changing an answer. Thread-safe.
class SurrogateCache {
 public:
  struct Learned {
    Surrogate surrogate;
    SurrogateMemo memo;  // as Learn leaves it
  };

  // Holds at most `bytes` of matrices, the last used ones.
  explicit SurrogateCache(int64_t bytes) : capacity_(bytes) {}
  static SurrogateCache& Shared();

  using Answer = std::shared_ptr<const Learned>;  // shared: it may be dropped while it is read
  Answer Learn(const Inputs& inputs, const Eigen::VectorXd& scores, const SurrogateMemo& memory);

  int64_t bytes() const;

 private:
  // What was asked, whole: a digest alone could answer for another question.
  struct Question {
    Inputs inputs;
    Eigen::VectorXd scores;
    std::string memory;
    bool operator==(const Question& other) const;
  };
  struct Entry {
    uint64_t digest;
    Question question;
    Answer answer;
    int64_t bytes;
  };
  using Entries = std::list<Entry>;  // the last used one first

  static uint64_t DigestOf(const Question& question);
  void Insert(Entry entry);

  const int64_t capacity_;
  mutable Mutex mutex_;
  Entries entries_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<uint64_t, Entries::iterator> by_digest_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Which of the observed points to use in the end: the best observed one, unless a Gaussian process
// is sure that it was lucky. Pure; any thread.
//
//   y_i   warped score of point i        μ_i, K⁺  posterior mean and covariance of the function
//   there b     the best observed, argmax y    r        the best in the mean, argmax μ s deviation
//   of f(r) - f(b), √(K⁺_rr + K⁺_bb - 2 K⁺_rb)
//
// Of many noisy results the best one is also the luckiest: the winner's curse. r is recommended in
// place of b if μ_r - μ_b > 2 s, so that f(r) is better with a probability of 98 %. Less would not
// do: where results are exact, y_b is the truth, and a process that fits badly takes what it cannot
// explain for noise; bench/RESULTS.md has the figures.
struct Recommended {
  Eigen::Index best = 0;   // b
  Eigen::Index point = 0;  // r
  double score = 0;        // predicted at r
  double deviation = 0;    // of that prediction, in units of scores
  double at_best = 0;      // the score predicted at b
};

// `scores`: those that `surrogate` was learned from. nullopt: the best observed one.
std::optional<Recommended> Recommend(const Surrogate& surrogate, const Eigen::VectorXd& scores);

}  // namespace shirabe::suggestion::gp
