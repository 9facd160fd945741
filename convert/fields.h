// One mapping of a file, read field by field: what is asked for is known, and what is not is said
// when the reading is over, so that nothing is dropped in silence. Used by the readers of formats;
// the tree and the report must outlive it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "convert/report.h"

namespace shirabe::convert {

// The value of a scalar, as a program would be given it.
std::string ScalarText(const YamlNode& scalar);

class Fields {
 public:
  // Null, or what is no mapping, reads as an empty one; the latter after an error.
  Fields(const YamlNode* node, Place place, Report* report);

  const Place& place() const { return place_; }
  Place At(const std::string& key) const;
  Place ItemAt(const std::string& key, int index) const;
  // In the file, and not null.
  bool Has(const std::string& key) const { return Peek(key) != nullptr; }
  std::vector<std::string> Keys() const;

  // From now on the key is known. Null if it is not there, or null.
  const YamlNode* Find(const std::string& key);
  // nullopt if it is not there, or cannot be read, which is an error of the file.
  std::optional<std::string> Text(const std::string& key);
  std::optional<std::string> Word(const std::string& key, const std::vector<std::string>& words);
  std::optional<double> Number(const std::string& key);
  std::optional<int32_t> Count(const std::string& key, int32_t least);
  std::optional<bool> Flag(const std::string& key);
  // Empty if it is not there. A list of scalars; one of mappings; a mapping of scalars.
  std::vector<std::string> Texts(const std::string& key);
  std::vector<Fields> Items(const std::string& key);
  std::vector<std::pair<std::string, std::string>> Pairs(const std::string& key);
  Fields Child(const std::string& key);

  // Known, and without a counterpart: said if they are there.
  void LeaveOut(std::initializer_list<const char*> keys, const std::string& why);

  // Says of all fields that were not asked for that they are left out; of one that is nearly
  // spelled like one of those, that it is an error.
  void Finish(const std::string& what);

 private:
  const YamlNode* Peek(const std::string& key) const;

  const YamlNode* node_;
  Place place_;
  Report* report_;
  std::set<std::string> known_;
};

}  // namespace shirabe::convert
