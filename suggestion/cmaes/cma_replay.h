// From the history of an experiment to the state of CMA-ES that its next suggestions are drawn
// from: trials become generations. Used by suggestion/algorithms/cmaes.cc. One object serves one
// proposal; what it was made from must outlive it.
//
//   generation   the trials with the same label "cmaes-generation", "<run>.<number>", both from 0;
//                a trial without the label belongs to the generation of the one before it
//   λ            members of a generation; half of them must have ended before the next one begins,
//                and until then a call gets one more member, so that no slot waits
//   sources      the trials before the first label (start points, another algorithm, trials from
//                before the ranges were changed) and those of earlier experiments: where the search
//                begins, by suggestion/cmaes/cma_search.h
//
// Nothing is kept between proposals. A result that comes late counts in its own generation, as if
// it had been there in time, and what came after is computed again. The memo is the state after the
// longest beginning of the history in which nothing is still to come, so that the answer is the
// same with it and without it, only sooner. (What runs for more than kMaxPendingGenerations
// generations is no longer waited for; such a result counts only where there is no memo.)
//
// A trial's point is what was tried: clipped to the bounds, rounded to a level. What the
// distribution drew is drawn again from the stream of its index; where that leads elsewhere, since
// a late result has changed the state or the point came from outside, the point itself counts. If
// the wire carries no labels, a history that begins with the point this algorithm begins with is
// its own, and its generations are λ trials each, in order.
#pragma once

#include <Eigen/Core>
#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/rng.h"
#include "suggestion/cmaes/cma_search.h"
#include "suggestion/history.h"
#include "suggestion/space/search_space.h"

namespace shirabe::suggestion {

// Which parameter of a space is which coordinate of a search by CMA-ES, and the way between their
// points. Used by CmaReplay and suggestion/algorithms/cmaes.cc. Immutable, any thread.
//
// Numeric parameters, lists of numbers too, are coordinates in [0, 1] as the space has them, so
// that a distribution of the specification is already in them; categories are indices. A draw of
// the search may lie outside of the cube: the point tried is the nearest one inside.
struct CmaLayout {
  explicit CmaLayout(const Space& space);

  // The canonical point that a draw stands for.
  Point PointOf(const Space& space, const CmaDraw& draw) const;
  // Whether `draw` stands for the point of trial `index`, up to the rounding of the codec.
  bool Gives(const CmaDraw& draw, const History& history, int64_t index) const;
  // The two parts of a point.
  Eigen::VectorXd Numbers(const Point& point) const;
  Eigen::VectorXi Categories(const Point& point) const;
  // The edges of the level of a stepped coordinate that `mean` lies in, to a thousandth of it.
  CmaEdges EdgesOf(const Space& space, int coordinate, double mean) const;

  std::vector<int> numeric, categorical;  // parameters, by coordinate
  CmaShape shape;
};

// The name of a generation; ordered in time.
struct CmaGeneration {
  int64_t run = 0;
  int64_t number = 0;
  auto operator<=>(const CmaGeneration&) const = default;
};

class CmaReplay {
 public:
  static constexpr char kLabel[] = "cmaes-generation";
  static constexpr int kAttempts = 10;  // draws for one suggestion, until one is untried
  static constexpr int64_t kMaxPendingGenerations = 20;  // generations

  struct Input {
    const CmaLayout& layout;
    const CmaOptions& options;
    const History& history;
    const Rng& root;           // suggestion i is drawn from root.Fork(i)
    uint64_t fingerprint = 0;  // of what else a memo depends on: settings and space
  };
  explicit CmaReplay(const Input& input);

  const CmaSearch& search() const { return search_; }
  const CmaGeneration& generation() const { return generation_; }  // of the next suggestion
  std::string label() const;                                       // the same as text
  const OrthogonalSampler& sampler() const { return sampler_; }    // of the members it has so far
  const std::string& memo() const { return memo_; }

 private:
  using Indices = std::vector<int64_t>;
  using Generations = std::map<CmaGeneration, Indices>;

  int64_t CountUnlabelled() const;
  bool LabelsAreLost() const;
  void BeginFromSources();
  Generations ByLabel() const;
  void RunByLabel();
  void RunInBlocks();
  void Close(const Indices& members);
  void MoveTo(const CmaGeneration& generation);
  CmaDraw DrawnAs(int64_t index, const OrthogonalSampler& sampler) const;
  void Open(const Indices& members);
  int64_t Ended(const Indices& members) const;
  bool IsOpen(const Indices& members) const;
  bool AnyActive(const Indices& members) const;
  void Settle(int64_t next);
  bool ReadMemo();
  void WriteMemo(int64_t next);
  uint64_t Mark(int64_t next) const;
  bool Fields(CmaRecord& record);

  const Input in_;
  CmaSearch search_;
  CmaGeneration generation_;
  OrthogonalSampler sampler_;
  int64_t unlabelled_ = 0;  // trials before the first label
  int64_t next_ = 0;        // all before it are in the state already
  bool settled_ = true;     // nothing that the state is made of is still to come
  std::string memo_;
};

}  // namespace shirabe::suggestion
