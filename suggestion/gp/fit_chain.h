// The parameters of a Gaussian process for a caller that brings results and no memo (Katib's wire):
// a function of the results alone, which costs little where they are those of an earlier question
// and a few more. Pure but for the cache; any thread.
//
//   n     results, in the order in which they became known
//   θ(m)  what a fit to the first m of them leaves (SurrogateMemo)
//   F     the counts after which there is a fit (LastFitCount)
//   S     counts from which other fits start: 16, and an eighth more each time
//   E(s)  128 of the first s results, at equal distances in what a process has of them
//
//   θ(m) = fit(the first m results; started from θ(s)),  s the greatest of S below m, else from
//          nothing; from 200 on, fit(the first m results; started from fit(E(s); from nothing)),
//          s the greatest of S up to m
//
// After n results θ(m) is used, m the greatest of F up to n. A fit that starts near its end costs
// a few steps, one that starts from nothing dozens; and yet nothing depends on what was asked
// before, because where each fit starts follows from the results too. While a history grows, all
// that is needed of it is known but for θ of the newest count. Where nothing is known (after a
// restart, or of another history), the fits of S are made again. Their costs grow with the cube of
// the count: from 200 on some results tell as good a place to start from as all of the first s, at
// a fraction of the cost, so that 5,000 results that are there already, as after an import, take
// no longer than 1,000.
#pragma once

#include <Eigen/Dense>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/mutex.h"
#include "suggestion/gp/surrogate.h"
#include "suggestion/history.h"

namespace shirabe::suggestion::gp {

class FitChain {
 public:
  // Keeps at most `bytes` of θs, the last used ones. They are found by SHA-256 of the results that
  // they were fitted to, so that it makes no difference whose they are, what else was asked, and
  // what has been dropped: that costs time, never another answer.
  explicit FitChain(int64_t bytes) : capacity_(bytes) {}
  static FitChain& Shared();

  // θ to go on from after these results, as Learn takes it. It is empty where the first m are all
  // equal, and incomplete where the call was cancelled. `scores` finite, in the order of the rows.
  SurrogateMemo After(const Inputs& inputs, const Eigen::VectorXd& scores);

  int64_t bytes() const;
  int64_t fits() const;  // made so far

 private:
  struct Entry {
    std::string digest;
    SurrogateMemo memo;
  };
  using Entries = std::list<Entry>;  // the last used one first

  static int64_t BytesOf(const Entry& entry);
  std::optional<SurrogateMemo> Find(const std::string& digest);
  void Keep(Entry entry);

  const int64_t capacity_;
  mutable Mutex mutex_;
  Entries entries_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, Entries::iterator> by_digest_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t fits_ ABSL_GUARDED_BY(mutex_) = 0;
};

// What the algorithm's last proposal left in the history; empty where there is none.
SurrogateMemo MemoryOf(const History& history);

// After the results of the history in the order in which its trials ended, as far as it is known.
SurrogateMemo MemoryFrom(const History& history);

}  // namespace shirabe::suggestion::gp
