#include "base/text/did_you_mean.h"

#include <algorithm>
#include <cstdlib>

namespace shirabe {
namespace {

// Longer names are not typed by hand, and the distance costs the product of the lengths.
constexpr size_t kMaxWordLength = 64;
// Among so many names a guess says nothing, and comparing each takes time.
constexpr size_t kMaxSuggestedNames = 200;

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// The edit distance with swaps of neighbours ("optimal string alignment"), three rows at a time.
size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replace, above[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(above);
    above.swap(row);
  }
  return above[b.size()];
}

}  // namespace

std::optional<std::string> Nearest(std::string_view word,
                                   const std::vector<std::string>& candidates) {
  if (word.empty() || word.size() > kMaxWordLength || candidates.size() > kMaxSuggestedNames) {
    return std::nullopt;
  }
  const std::string wanted = LowerCase(word);
  std::optional<std::string> best;
  size_t best_distance = kMaxWordLength;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kMaxWordLength) continue;
    const size_t distance = EditDistance(wanted, LowerCase(candidate));
    const size_t longest = std::max(wanted.size(), candidate.size());
    if (distance * 3 > longest || distance >= best_distance) continue;
    best = candidate;
    best_distance = distance;
  }
  return best;
}

}  // namespace shirabe
