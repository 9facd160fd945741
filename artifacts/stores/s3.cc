#include "artifacts/s3_store.h"

namespace shirabe::artifacts {
namespace {

SHIRABE_REGISTER(StoreType, {.name = "s3",
                             .help = "a bucket of S3, or of a server that speaks like it",
                             .presigns = true,
                             .validate = S3Store::Validate,
                             .open = S3Store::Open});

}  // namespace
}  // namespace shirabe::artifacts
