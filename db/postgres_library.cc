#include "db/postgres_library.h"

#include <dlfcn.h>

#include <mutex>
#include <optional>

#include "absl/strings/str_cat.h"

namespace shirabe::db {
namespace {

constexpr char kFile[] = "libpq.so.5";

Status Missing(const char* why) {
  return absl::UnimplementedError(
      absl::StrCat("databases postgres: need PostgreSQL's client library, which cannot be loaded (",
                   why == nullptr ? "no reason given" : why,
                   "): install it (on Debian: apt-get install libpq5), or use sqlite:PATH"));
}

template <class Function>
Status Find(void* library, const char* name, Function* function) {
  void* found = dlsym(library, name);
  if (found == nullptr) return Missing(dlerror());
  *function = reinterpret_cast<Function>(found);
  return absl::OkStatus();
}

}  // namespace

StatusOr<PostgresLibrary> LoadPostgresLibraryFrom(const char* file) {
  // Its symbols stay its own: this program holds other copies of some of its libraries.
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Missing(dlerror());
  PostgresLibrary table;
#define SHIRABE_LIBPQ_FIND(name) RETURN_IF_ERROR(Find(library, #name, &table.name));
  SHIRABE_LIBPQ_FUNCTIONS(SHIRABE_LIBPQ_FIND)
#undef SHIRABE_LIBPQ_FIND
  return table;
}

StatusOr<const PostgresLibrary*> LoadPostgresLibrary() {
  static std::mutex mutex;
  static std::optional<PostgresLibrary> loaded;
  std::lock_guard lock(mutex);
  if (!loaded) {
    ASSIGN_OR_RETURN(loaded, LoadPostgresLibraryFrom(kFile));
  }
  return &*loaded;
}

}  // namespace shirabe::db
