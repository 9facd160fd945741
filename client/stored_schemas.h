// Which versions of the tables of each kind of store this program writes. It opens all older ones,
// and refuses newer ones. For `shirabe version`. Pure; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace shirabe::client {

// By the scheme of a store's address; memory, which outlives no program, has none.
std::map<std::string, int64_t> StoredSchemas();

}  // namespace shirabe::client
