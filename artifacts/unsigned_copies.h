// Whether a server of S3 takes an `x-amz-copy-source` that is not signed: then the bearer of a URL
// to put one object with has any other object copied there that the URL's signer may read. S3
// refuses headers of its own that are not signed; MinIO, of 2026, takes this one.
#pragma once

#include <string>

#include "artifacts/artifact_store.h"

namespace shirabe::artifacts {

// Asks the server as such a bearer would, with URLs of the store: puts two objects, has one copied
// to the place of the other, looks at what is there, and removes both. Six requests, of four
// seconds at most each. `bucket` is the store's. kPermissionDenied if it does not take what is put;
// kUnavailable where the answers leave it open.
StatusOr<bool> TakesUnsignedCopies(ArtifactStore& store, const std::string& bucket);

}  // namespace shirabe::artifacts
