// A map from name to variant, filled before main by one line at the end of each variant's file:
//   SHIRABE_REGISTER(AlgorithmInfo, {.name = "random", …});
// Read-only once main runs, so any thread may read. A name given twice ends the process at start.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace shirabe {

// Info is a struct with a `std::string name` and, if it likes, `std::vector<std::string> aliases`.
template <class Info>
class Registry {
 public:
  static Registry& Get() {
    static Registry registry;
    return registry;
  }

  bool Add(Info info) {
    if constexpr (requires { info.aliases; }) {
      for (const std::string& alias : info.aliases) {
        CHECK(!variants_.contains(alias) && aliases_.emplace(alias, info.name).second);
      }
    }
    std::string name = info.name;
    CHECK(!aliases_.contains(name));
    CHECK(variants_.emplace(std::move(name), std::move(info)).second);
    return true;
  }

  // By name or alias; null if there is none.
  const Info* Find(const std::string& name) const {
    const auto alias = aliases_.find(name);
    const auto found = variants_.find(alias == aliases_.end() ? name : alias->second);
    return found == variants_.end() ? nullptr : &found->second;
  }

  // Sorted; without the aliases.
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& [name, info] : variants_) names.push_back(name);
    return names;
  }

  std::vector<std::string> Aliases() const {
    std::vector<std::string> names;
    for (const auto& [alias, name] : aliases_) names.push_back(alias);
    return names;
  }

 private:
  std::map<std::string, Info> variants_;
  std::map<std::string, std::string> aliases_;
};

}  // namespace shirabe

// The name differs where several files are compiled as one.
#define SHIRABE_REGISTER(Info, ...)                                                     \
  [[maybe_unused]] static const bool SHIRABE_CONCAT(shirabe_registered_, __COUNTER__) = \
      ::shirabe::Registry<Info>::Get().Add(Info __VA_ARGS__)
