// A shared library that is opened when something first needs it, not linked: a start without it
// costs nothing of it, and a machine without it runs the rest. Any thread. What is opened stays for
// good. Errors are kUnimplemented, with the loader's words; the caller says what to install.
#pragma once

#include "base/status.h"

namespace shirabe {

// Its symbols stay its own: this program holds other copies of some of its libraries.
StatusOr<void*> OpenLibrary(const char* file);

StatusOr<void*> FindSymbol(void* library, const char* name);

// Of a function of that name and type.
template <class Function>
Status FindFunction(void* library, const char* name, Function* function) {
  ASSIGN_OR_RETURN(void* const found, FindSymbol(library, name));
  *function = reinterpret_cast<Function>(found);
  return absl::OkStatus();
}

}  // namespace shirabe
