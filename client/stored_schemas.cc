#include "client/stored_schemas.h"

#include "db/postgres/postgres_schema.h"
#include "db/sqlite/sqlite_schema.h"

namespace shirabe::client {

std::map<std::string, int64_t> StoredSchemas() {
  return {{"sqlite", static_cast<int64_t>(db::CurrentSchema().size())},
          {"postgres", static_cast<int64_t>(db::CurrentPostgresSchema().size())}};
}

}  // namespace shirabe::client
