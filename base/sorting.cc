#include "base/sorting.h"

#include <algorithm>
#include <numeric>

namespace shirabe {

std::vector<size_t> SortedPlaces(size_t count, absl::FunctionRef<bool(size_t, size_t)> less) {
  std::vector<size_t> places(count);
  std::iota(places.begin(), places.end(), size_t{0});
  std::stable_sort(places.begin(), places.end(), less);
  return places;
}

}  // namespace shirabe
