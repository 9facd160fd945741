// What a server of S3 says in XML, read as the word of a stranger: a document has a bound of size
// and depth, no DTD and no entities of its own, and what is in it is checked before it is believed.
// libexpat does the reading. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace shirabe::artifacts {

inline constexpr size_t kMaxReplyBytes = 4 << 20;

struct ListedObject {
  std::string key;
  int64_t bytes = 0;
};

struct ListReply {
  std::vector<ListedObject> objects;
  bool truncated = false;
};

// All: kDataLoss for what is not the document that was asked for.
StatusOr<ListReply> ReadListReply(const std::string& xml);
StatusOr<std::string> ReadUploadId(const std::string& xml);
// Whether a reply that was sent with 200 is one of success: the end of a multipart upload may fail
// after the header has gone.
Status CheckCompleted(const std::string& xml);

// The code of an error, as NoSuchKey; "" if there is none that looks like one. Nothing else of an
// error is believed or repeated: it may hold what was signed, and with what key.
std::string ReadErrorCode(const std::string& xml);

}  // namespace shirabe::artifacts
