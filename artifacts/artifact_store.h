// Files elsewhere: objects under keys, in a directory, in a bucket of S3 or of Google's Cloud
// Storage. Copies of checkpoints go there and come back from there. Called by executors
// (trial/checkpoint) and by the command line.
//
// What all variants promise:
//   - an object is seen whole or not at all: what was cut off half-way is never listed nor read
//   - Put of a key that exists replaces it, whole; doing it again is fine
//   - what is put is what was meant: the digest of the bytes is checked on their way, and an answer
//     that claims success and is not plausible is an error
//   - whatever is read has been bounded before: an object, a page, a text of an error
//   - to try again, and how often, is for the caller (artifacts/retries.h)
//   - no error, and nothing that is logged, has a credential or a signature in it
//
// Errors: kNotFound no such object · kPermissionDenied the store refuses us · kResourceExhausted it
// is full, or more than the limits · kUnavailable it is gone, slow or says to come again ·
// kDataLoss what came is not what was put · kInvalidArgument no key, or what it cannot do at all ·
// kCancelled `stop` was requested. Only kUnavailable and kDataLoss are worth another try at once.
//
// Thread-safe; a call blocks its thread, and has a limit of time for each piece of 16 MiB.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/registry.h"
#include "base/status.h"
#include "proto/shirabe/v1/artifacts.pb.h"

namespace shirabe::artifacts {

// One request to a store that can be given away as a URL: what its bearer may do, and with which
// object. Data.
struct PresignedRequest {
  v1::StoreAction action = v1::READ_OBJECT;
  std::string key = {};     // of a list: what the keys begin with
  std::string after = {};   // of a list: the key to go on after; "" = from its start
  int64_t bytes = 0;        // of what is put: exactly so many
  std::string md5 = {};     // of what is put, base64; "" = not checked
  std::string upload = {};  // the server's name for parts that become one object
  int part = 0;             // from 1
};

// A secret for as long as it is good. The headers belong to the request; more may be added, as a
// range.
struct PresignedUrl {
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string key;  // as the server knows it, of the object or what a list's keys begin with
  std::string ca;   // PEM; "" = the system's authorities
};

// Names of letters, digits and "._-" that begin with a letter, a digit or '_', joined by '/', and
// do not end with ".partial". kInvalidArgument for everything else, and for more than these.
inline constexpr size_t kMaxObjectKeyBytes = 900;
inline constexpr size_t kMaxObjectNameBytes = 200;
inline constexpr int kMaxObjectKeyNames = 32;
Status ValidateObjectKey(std::string_view key);

struct ObjectInfo {
  std::string key;
  int64_t bytes = 0;
};

// A page of keys in ascending order, byte by byte.
struct ObjectPage {
  std::vector<ObjectInfo> objects;
  std::string next;  // to go on with; "" = that was all
};

struct PutSource {
  int fd = -1;         // a regular file; read with pread, from its start
  int64_t bytes = 0;   // of it
  std::string sha256;  // hexadecimal; kInvalidArgument if its bytes have another, or are fewer
};

struct ByteRange {
  int64_t first = 0;
  int64_t bytes = -1;  // -1 = to the end
};

// Told in order, each piece once; an error of its own ends the call with it.
using PieceSink = std::function<Status(std::string_view)>;

class ArtifactStore {
 public:
  virtual ~ArtifactStore() = default;

  virtual Status Put(const std::string& key, const PutSource& source, std::stop_token stop) = 0;
  // kDataLoss if the object is replaced by another meanwhile. A range that begins behind its end:
  // kInvalidArgument.
  virtual Status Get(const std::string& key, const ByteRange& range, const PieceSink& sink,
                     std::stop_token stop) = 0;
  virtual StatusOr<ObjectInfo> Head(const std::string& key, std::stop_token stop) = 0;
  // Of the keys that begin with `prefix` (a key and a '/', or ""), a thousand at most after
  // `after`, which is a page's `next`.
  virtual StatusOr<ObjectPage> List(const std::string& prefix, const std::string& after,
                                    std::stop_token stop) = 0;
  // What is not there is fine.
  virtual Status Remove(const std::string& key, std::stop_token stop) = 0;
  // A URL with which its bearer may make this one request for so long (at most a week), without a
  // word to the server. kUnimplemented where the store is no server.
  virtual StatusOr<PresignedUrl> Presign(const PresignedRequest& request,
                                         absl::Duration lifetime) = 0;
};

// All of them, page by page; kResourceExhausted if there are more than `most`.
StatusOr<std::vector<ObjectInfo>> ListAll(ArtifactStore& store, const std::string& prefix,
                                          size_t most, std::stop_token stop);

// A whole small object. kResourceExhausted if it is larger.
StatusOr<std::string> GetText(ArtifactStore& store, const std::string& key, int64_t max_bytes,
                              std::stop_token stop);

// A type of store: `type` of an administrator's entry.
struct StoreType {
  std::string name;  // directory, s3, gcs
  std::string help;
  bool presigns = false;  // Presign works: so do pods, which have no credentials
  // kInvalidArgument, beginning with the field, for an entry that cannot be one of this type.
  Status (*validate)(const v1::ArtifactStore& entry) = nullptr;
  // Reads its credentials. Connects to nothing.
  StatusOr<std::unique_ptr<ArtifactStore>> (*open)(const v1::ArtifactStore& entry) = nullptr;
};

}  // namespace shirabe::artifacts
