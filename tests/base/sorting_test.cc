#include "base/sorting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace shirabe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Sorting, WhatComparesEqualKeepsItsOrder) {
  std::vector<std::string> words = {"bb", "a", "cc", "", "d", "ee"};
  StableSort(words, [](const auto& a, const auto& b) { return a.size() < b.size(); });
  EXPECT_THAT(words, ElementsAre("", "a", "d", "bb", "cc", "ee"));
}

TEST(Sorting, ThoseThatCannotBeCopiedAreMoved) {
  std::vector<std::unique_ptr<int>> list;
  for (const int value : {3, 1, 2}) list.push_back(std::make_unique<int>(value));
  StableSort(list, [](const auto& a, const auto& b) { return *a < *b; });
  ASSERT_EQ(list.size(), 3u);
  EXPECT_THAT((std::vector<int>{*list[0], *list[1], *list[2]}), ElementsAre(1, 2, 3));
}

TEST(Sorting, AsOperatorLessSaysUnlessToldOtherwise) {
  std::vector<int> numbers = {2, 3, 1};
  StableSort(numbers);
  EXPECT_THAT(numbers, ElementsAre(1, 2, 3));
}

TEST(Sorting, PlacesOfALongListAreInOrder) {
  const auto key = [](size_t place) { return place * 7919 % 1009; };
  const std::vector<size_t> places =
      SortedPlaces(1009, [&](size_t a, size_t b) { return key(a) < key(b); });
  ASSERT_EQ(places.size(), 1009u);
  for (size_t i = 0; i < places.size(); ++i) EXPECT_EQ(key(places[i]), i);
  EXPECT_THAT(SortedPlaces(0, [](size_t, size_t) { return false; }), IsEmpty());
}

}  // namespace
}  // namespace shirabe
