// Where the state of this user lies: the home directory with the trials' files, the database, and
// the namespace that a name without one is in. A flag wins over the environment, the environment
// over the defaults. Pure functions of their arguments, any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/status.h"

namespace shirabe::client {

struct StateLocation {
  std::string home;           // directory of outputs, logs and checkpoints
  std::string db;             // address of the store: sqlite:PATH, postgres://…, memory:
  bool db_is_default = true;  // not named by the user, so it may not be there yet
  std::string ns;
  bool ns_is_default = true;  // not named by the user: a file may
};

struct StateLocationFlags {
  std::string db;  // "" = not given
  std::string ns;
};

// The value of an environment variable; nullopt where it is not set.
using Environment = std::function<std::optional<std::string>(const std::string&)>;
Environment ProcessEnvironment();

// SHIRABE_HOME, else ${XDG_DATA_HOME:-$HOME/.local/share}/shirabe; SHIRABE_DB, else shirabe.db in
// the home; SHIRABE_NAMESPACE, else "default". kInvalidArgument, naming the variable and the fix,
// if nothing says where the home is, or if the namespace cannot be one.
StatusOr<StateLocation> FindStateLocation(const StateLocationFlags& flags,
                                          const Environment& environment);

// The address of its store as it may be shown and logged: without a password.
std::string ShownDatabase(const StateLocation& place);

// Whether no database was named, and there is none in the default place.
bool IsDefaultStoreMissing(const StateLocation& place);

// Which versions of the tables of each kind of store this program writes. It opens all older ones,
// and refuses newer ones. For `shirabe version`. Pure; any thread.
//
// By the scheme of a store's address; memory, which outlives no program, has none.
std::map<std::string, int64_t> StoredSchemas();

}  // namespace shirabe::client
