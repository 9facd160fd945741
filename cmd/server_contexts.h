// The servers that a user knows by name: what `config` keeps in a file, and what the other verbs
// find a server and its secrets with. The file is YAML, in ${XDG_CONFIG_HOME:-~/.config}/shirabe/
// config.yaml or where $SHIRABE_CONFIG says, and holds no secret itself, only where they lie:
//   current: prod
//   contexts:
//   - name: prod
//     server: tls://tune.example:7450
//     tokenFile: /home/ada/prod.token
// A path that is relative starts at the folder of the file. Plain values; any thread.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "client/state_location.h"

namespace shirabe::cmd {

// How to reach one server, and as whom; "" = not said.
struct Access {
  std::string server = {};  // HOST:PORT, tls://HOST:PORT
  std::string token_file = {};
  std::string ca = {};           // PEM files
  std::string certificate = {};  // of this client, where the server asks for one
  std::string key = {};
  std::string ns = {};
};

struct Context {
  std::string name;
  Access access;
};

struct Contexts {
  std::string current = {};
  std::vector<Context> all = {};  // by name

  Context* Find(const std::string& name);
  // kNotFound, with the nearest name, if there is none.
  StatusOr<Context> Get(const std::string& name) const;
};

// The fields of an Access as the file and `config set-context` call them.
struct AccessField {
  const char* name;
  std::string Access::*member;
  bool is_path;
};
const std::vector<AccessField>& AccessFields();

// kInvalidArgument if nothing says where the user's files are.
StatusOr<std::string> ContextsPath(const client::Environment& environment);
// No file reads as an empty one. kInvalidArgument, with file, line and fix, for what it may not
// hold.
StatusOr<Contexts> LoadContexts(const std::string& path);
Status SaveContexts(const std::string& path, const Contexts& contexts);
// As the file holds it.
std::string ContextsText(const Contexts& contexts);

// Lower, more important layers first: each field is the first that is said.
Access Merge(const std::vector<Access>& layers);

// Flags, then the context that they name, then the environment, then the context that it names or
// the file's current one. A context that was not named counts only where neither flags nor
// environment say which server or store (`is_placed`), so that no secret goes to another server.
struct AccessQuery {
  Access flags = {};
  std::string context = {};  // --context
  bool is_placed = false;    // --db or SHIRABE_DB is set
};
StatusOr<Access> FindAccess(const AccessQuery& query, const client::Environment& environment);

}  // namespace shirabe::cmd
