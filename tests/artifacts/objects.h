// What tests of artifact stores share: sources to put, and reading back. Any thread.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "artifacts/artifact_store.h"
#include "base/file_io.h"
#include "base/sha256.h"

namespace shirabe::artifacts {

// A file of its own with these bytes.
class SourceFile {
 public:
  explicit SourceFile(const std::string& bytes) : bytes_(bytes) {
    std::string path = testing::TempDir() + "shirabe-source-XXXXXX";
    fd_ = Fd(mkstemp(path.data()));
    CHECK(fd_.valid() && unlink(path.c_str()) == 0);
    CHECK(pwrite(fd_.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  }
  PutSource source() const {
    return {fd_.get(), static_cast<int64_t>(bytes_.size()), HexSha256(bytes_)};
  }

 private:
  const std::string bytes_;
  Fd fd_;
};

inline Status PutText(ArtifactStore& store, const std::string& key, const std::string& text) {
  return store.Put(key, SourceFile(text).source(), {});
}

inline StatusOr<std::string> GetRange(ArtifactStore& store, const std::string& key,
                                      ByteRange range = {}) {
  std::string text;
  const auto keep = [&](std::string_view piece) {
    text += piece;
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(store.Get(key, range, keep, {}));
  return text;
}

// Bytes that no two pieces of have in common.
inline std::string ManyBytes(size_t bytes) {
  std::string text;
  for (uint32_t i = 0; text.size() < bytes; ++i) {
    text.append(reinterpret_cast<const char*>(&i), sizeof i);
  }
  text.resize(bytes);
  return text;
}

}  // namespace shirabe::artifacts
