#include "suggestion/gp/surrogate_cache.h"

#include <utility>

#include "base/cancellation.h"
#include "base/rng.h"

namespace shirabe::suggestion::gp {
namespace {

constexpr int64_t kShared = 64 << 20;

std::string BytesOf(const Eigen::MatrixXd& matrix) {
  return {reinterpret_cast<const char*>(matrix.data()), matrix.size() * sizeof(double)};
}

bool Same(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b) {
  return a.rows() == b.rows() && a.cols() == b.cols() && a == b;
}

}  // namespace

SurrogateCache& SurrogateCache::Shared() {
  static SurrogateCache cache(kShared);
  return cache;
}

bool SurrogateCache::Question::operator==(const Question& other) const {
  return memory == other.memory && Same(scores, other.scores) && Same(inputs.x, other.inputs.x) &&
         Same(inputs.u, other.inputs.u);
}

uint64_t SurrogateCache::DigestOf(const Question& question) {
  const std::string bytes = BytesOf(question.inputs.x) + BytesOf(question.inputs.u) +
                            BytesOf(question.scores) + question.memory;
  return Fingerprint(bytes);
}

SurrogateCache::Answer SurrogateCache::Learn(const Inputs& inputs, const Eigen::VectorXd& scores,
                                             const Memory& memory) {
  Question question{inputs, scores, memory.Serialize()};
  const uint64_t digest = DigestOf(question);
  {
    std::lock_guard lock(mutex_);
    const auto found = by_digest_.find(digest);
    if (found != by_digest_.end() && found->second->question == question) {
      entries_.splice(entries_.begin(), entries_, found->second);
      return entries_.front().answer;
    }
  }
  Memory after = memory;
  Surrogate surrogate = gp::Learn(inputs, scores, after);
  auto answer =
      std::make_shared<const Learned>(Learned{std::move(surrogate), after});  // shared: see Learn
  const int64_t n = inputs.rows(), columns = inputs.numeric() + inputs.categorical();
  const int64_t bytes = static_cast<int64_t>(sizeof(double)) * n * (n + 2 * columns + 8);
  // One that was cut short is not the answer to this question.
  if (!IsCancelled()) Insert({digest, std::move(question), answer, bytes});
  return answer;
}

void SurrogateCache::Insert(Entry entry) {
  std::lock_guard lock(mutex_);
  const auto drop = [this](Entries::iterator old) {
    bytes_ -= old->bytes;
    by_digest_.erase(old->digest);
    entries_.erase(old);
  };
  const auto same = by_digest_.find(entry.digest);
  if (same != by_digest_.end()) drop(same->second);
  bytes_ += entry.bytes;
  entries_.push_front(std::move(entry));
  by_digest_[entries_.front().digest] = entries_.begin();
  while (bytes_ > capacity_) drop(std::prev(entries_.end()));
}

int64_t SurrogateCache::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace shirabe::suggestion::gp
