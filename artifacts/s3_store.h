// A bucket of S3, or of what speaks like it: Google's Cloud Storage (its XML API with HMAC keys),
// MinIO, Ceph, versitygw. Requests go out over net/, signed by artifacts/sigv4.h.
//
// Objects up to 16 MiB are put in one request, larger ones in parts, which become an object
// together or not at all; what breaks off in between is given up with the server
// (AbortMultipartUpload). The SHA-256 of every body is signed, and the server refuses others.
// Objects are read 16 MiB at a time, each piece on condition that the object is still the one of
// the first. A piece of a larger object is tried three times. Redirects are not followed: an entry
// names the server that is meant.
#pragma once

#include <memory>
#include <string>

#include "artifacts/artifact_store.h"
#include "artifacts/s3_request.h"
#include "artifacts/sigv4.h"
#include "base/clock.h"
#include "net/http_client.h"

namespace shirabe::artifacts {

// Where a request goes that is made without keys: a URL for it, asked for each time.
using UrlSource = std::function<StatusOr<PresignedUrl>(const PresignedRequest&)>;

struct S3Options {
  std::string origin;  // http(s)://HOST[:PORT] that is connected to
  std::string host;    // as the header and the signature have it
  std::string path;    // of the bucket: /BUCKET, or "" where the host names it
  Signer signer;
  UrlSource urls = {};  // in place of all of these, for a caller without keys
  net::TlsOptions tls = {};
  absl::Duration answer = absl::Minutes(2);  // to one request, of at most 16 MiB
  int64_t piece_bytes = 16 << 20;            // at least 5 MiB, but for servers that ask for less
  Clock* clock = RealClock();
};

class S3Store : public ArtifactStore {
 public:
  // kInvalidArgument, beginning with the field, for an entry that cannot be one.
  static Status Validate(const v1::ArtifactStore& entry);
  // Reads the entry's credentials and its authority.
  static StatusOr<std::unique_ptr<ArtifactStore>> Open(const v1::ArtifactStore& entry);
  static StatusOr<std::unique_ptr<ArtifactStore>> Create(S3Options options);

  Status Put(const std::string& key, const PutSource& source, std::stop_token stop) override;
  Status Get(const std::string& key, const ByteRange& range, const PieceSink& sink,
             std::stop_token stop) override;
  StatusOr<ObjectInfo> Head(const std::string& key, std::stop_token stop) override;
  StatusOr<ObjectPage> List(const std::string& prefix, const std::string& after,
                            std::stop_token stop) override;
  Status Remove(const std::string& key, std::stop_token stop) override;
  StatusOr<PresignedUrl> Presign(const PresignedRequest& request, absl::Duration lifetime) override;

 private:
  struct Piece {
    int64_t first = 0;
    int64_t bytes = 0;  // wanted
    std::string etag;   // of the pieces before; "" = this is the first
  };
  struct GotPiece {
    std::string body;
    std::string etag;
    int64_t total = 0;  // of the object
  };

  S3Store(S3Options options, std::unique_ptr<net::HttpClient> http)
      : options_(std::move(options)), http_(std::move(http)) {}
  net::HttpCall CallWithKeys(S3Request request) const;
  StatusOr<net::HttpCall> CallWithUrl(S3Request request, std::string* key) const;
  // The answer if it is one of success; else what it means. `key` becomes that of the object, or
  // the prefix of a list, as the server has it, where that is another one than we say.
  StatusOr<net::HttpResponse> Send(S3Request request, const std::stop_token& stop,
                                   std::string* key = nullptr);
  // The same, a few times where another try may end otherwise.
  StatusOr<net::HttpResponse> SendPiece(const S3Request& request, const std::stop_token& stop);
  Status PutInParts(const std::string& key, const PutSource& source, const std::stop_token& stop);
  StatusOr<std::string> PutParts(const std::string& key, const PutSource& source,
                                 const std::string& upload, const std::stop_token& stop);
  StatusOr<GotPiece> GetPiece(const std::string& key, const Piece& piece,
                              const std::stop_token& stop);
  StatusOr<GotPiece> GetEmpty(const std::string& key, const std::stop_token& stop);

  const S3Options options_;
  const std::unique_ptr<net::HttpClient> http_;
};

}  // namespace shirabe::artifacts
