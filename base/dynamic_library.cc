#include "base/dynamic_library.h"

#include <dlfcn.h>

namespace shirabe {
namespace {

Status LoaderError() {
  const char* const why = dlerror();
  return absl::UnimplementedError(why == nullptr ? "no reason given" : why);
}

}  // namespace

StatusOr<void*> OpenLibrary(const char* file) {
  void* const library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return LoaderError();
  return library;
}

StatusOr<void*> FindSymbol(void* library, const char* name) {
  void* const found = dlsym(library, name);
  if (found == nullptr) return LoaderError();
  return found;
}

}  // namespace shirabe
