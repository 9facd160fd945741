#include "artifacts/directory_store.h"

namespace shirabe::artifacts {
namespace {

SHIRABE_REGISTER(StoreType, {.name = "directory",
                             .help = "a folder of this machine, or of a file system that it shares",
                             .validate = DirectoryStore::Validate,
                             .open = DirectoryStore::Open});

}  // namespace
}  // namespace shirabe::artifacts
