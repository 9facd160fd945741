// Fitted processes of the whole program, so that whoever asks again with the same results does not
// fit again: the next of several workers, a request that is repeated, an experiment whose trials
// are all still running. What it returns is what Learn returns: it can be emptied at any time
// without changing an answer. Thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>

#include "absl/container/flat_hash_map.h"
#include "suggestion/gp/surrogate.h"

namespace shirabe::suggestion::gp {

class SurrogateCache {
 public:
  struct Learned {
    Surrogate surrogate;
    Memory memory;  // as Learn leaves it
  };

  // Holds at most `bytes` of matrices, the last used ones.
  explicit SurrogateCache(int64_t bytes) : capacity_(bytes) {}
  static SurrogateCache& Shared();

  using Answer = std::shared_ptr<const Learned>;  // shared: it may be dropped while it is read
  Answer Learn(const Inputs& inputs, const Eigen::VectorXd& scores, const Memory& memory);

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
  mutable std::mutex mutex_;
  Entries entries_;
  absl::flat_hash_map<uint64_t, Entries::iterator> by_digest_;
  int64_t bytes_ = 0;
};

}  // namespace shirabe::suggestion::gp
