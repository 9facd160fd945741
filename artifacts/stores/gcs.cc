#include "artifacts/s3_store.h"

namespace shirabe::artifacts {
namespace {

// By its XML API, which takes S3's requests and signatures with keys of the kind that Google calls
// HMAC keys, and knows no regions.
SHIRABE_REGISTER(StoreType, {.name = "gcs",
                             .help = "a bucket of Google's Cloud Storage, with HMAC keys",
                             .presigns = true,
                             .validate = S3Store::Validate,
                             .open = S3Store::Open});

}  // namespace
}  // namespace shirabe::artifacts
