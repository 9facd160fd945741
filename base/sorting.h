// Sorts lists that no loop of an algorithm waits for. std::sort and std::stable_sort are compiled
// for each type and order, up to 20 KB of code each time; this is compiled once, and costs an
// indirect call for each comparison.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"

namespace shirabe {

// The places 0 … count-1 in the order of `less`, a strict weak order of places. Those that compare
// equal keep theirs.
std::vector<size_t> SortedPlaces(size_t count, absl::FunctionRef<bool(size_t, size_t)> less);

// As std::stable_sort. Takes the memory of a second list.
template <class T, class Less = std::less<>>
void StableSort(std::vector<T>& list, const Less& less = {}) {
  const auto before = [&](size_t a, size_t b) { return less(list[a], list[b]); };
  std::vector<T> sorted;
  sorted.reserve(list.size());
  for (const size_t place : SortedPlaces(list.size(), before)) {
    sorted.push_back(std::move(list[place]));
  }
  list = std::move(sorted);
}

}  // namespace shirabe
