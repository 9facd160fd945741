// Whether a server of S3 heeds an `x-amz-copy-source` that is not signed: then the bearer of a URL
// to put one object with has any other object copied there that the URL's signer may read. S3
// refuses headers of its own that are not signed; MinIO, of 2026, takes this one.
#pragma once

#include <string>

#include "artifacts/artifact_store.h"

namespace shirabe::artifacts {

// Asks the server, with URLs of the store: puts an empty object with one, which must succeed; with
// another has an object copied that is not there; removes the first. Three requests, of four
// seconds at most each. `bucket` is the store's. The errors of Put where the first is refused;
// kUnavailable.
StatusOr<bool> HeedsUnsignedCopies(ArtifactStore& store, const std::string& bucket);

}  // namespace shirabe::artifacts
