// Files that trials have left: those of a checkpoint, or of a trial's outputs, as a list and one by
// one. A file is sent as bytes to be saved, never as what a browser would show, whatever a program
// has called it; or a part of it (Range), on condition that it is still the same (If-Range).
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/trial_files.h"
#include "client/wire_format.h"
#include "proto/shirabe/v1/http.pb.h"
#include "service/http/etag.h"
#include "service/http/http_body.h"
#include "service/http/http_message.h"
#include "service/http/route_table.h"

namespace shirabe::service {
namespace {

constexpr char kBytes[] = "application/octet-stream";
constexpr size_t kSentBytes = 64 << 10;  // at a time

const char* const kOutputs =
    "/api/v1/namespaces/{namespace}/experiments/{name}/trials/{trial}/outputs";
const char* const kOfCheckpoint =
    "/api/v1/namespaces/{namespace}/experiments/{name}/trials/{trial}/checkpoints/{step}";

v1::FilesRequest FilesOf(const Call& call) {
  v1::FilesRequest request;
  *request.mutable_trial() = client::ToWire(call.Trial());
  request.set_attempt(static_cast<int32_t>(call.Integer("attempt", 0)));
  request.set_step(call.Integer("step", 0));
  return request;
}

StatusOr<HttpReply> ListFiles(Call& call) {
  ASSIGN_OR_RETURN(const int64_t revision, call.client->Revision());
  ASSIGN_OR_RETURN(const PagePosition position, ReadPosition(call));
  ASSIGN_OR_RETURN(const auto files, call.client->List<v1::FileInfo>("ListFiles", FilesOf(call)));
  const auto place = [](const v1::FileInfo& file) {
    return PageKey{{}, Json::array({file.path()})};
  };
  return PageReply(SlicePage(call, position, files, PageForm{place, view::FileJson}), revision);
}

// ---- one file ----------------------------------------------------------------------------------

// From `first` on up to, and without, `end`.
struct Span {
  int64_t first = 0;
  int64_t end = 0;
};

// What Range asks for of a file of this size. nullopt: all of it, also where there are several
// ranges, or it is no range of bytes, as the standard allows; kOutOfRange: there is no such part.
StatusOr<std::optional<Span>> ReadRange(const std::string& range, int64_t size) {
  std::string_view text = range;
  if (!text.starts_with("bytes=")) return std::nullopt;
  text.remove_prefix(6);
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto number = [](std::string_view digits) -> std::optional<int64_t> {
    const bool all = std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit);
    int64_t value = 0;
    if (digits.empty() || !all || !absl::SimpleAtoi({digits.data(), digits.size()}, &value))
      return std::nullopt;
    return value;
  };
  const std::string_view left = text.substr(0, dash), right = text.substr(dash + 1);
  const auto first = number(left), last = number(right);
  Span span{.first = first.value_or(0), .end = size};
  if (left.empty() && last) {
    span.first = size - std::min(size, *last);
  } else if (!first || (!last && !right.empty()) || (last && *last < *first)) {
    return std::nullopt;
  } else if (last) {
    span.end = std::min(size, *last == INT64_MAX ? size : *last + 1);
  }
  if (span.first < span.end) return span;
  return absl::OutOfRangeError(absl::StrCat("it has ", size, " bytes"));
}

// The rest of a file. A reply that ends too early shows that the file has changed, or is gone.
class FileSource : public PieceSource {
 public:
  FileSource(std::unique_ptr<client::Client> client, v1::ReadFileRequest next, int64_t end,
             Quota::Share share)
      : client_(std::move(client)), next_(std::move(next)), end_(end), share_(std::move(share)) {}

  StatusOr<Piece> Next() override {
    if (at_ == data_.size()) RETURN_IF_ERROR(Fill());
    Piece piece{data_.substr(at_, kSentBytes)};
    at_ += piece.text.size();
    piece.end = at_ == data_.size() && next_.offset() >= end_;
    return piece;
  }
  bool slow() const override { return true; }

 private:
  Status Fill() {
    at_ = 0;
    data_.clear();
    if (next_.offset() >= end_) return absl::OkStatus();
    next_.set_max_bytes(std::min(end_ - next_.offset(), client::kMaxFilePiece));
    ASSIGN_OR_RETURN(auto piece, client_->Get<v1::FileChunk>("ReadFile", next_));
    if (piece.data().empty()) return absl::DataLossError("the file has become shorter");
    data_ = std::move(*piece.mutable_data());
    next_.set_offset(next_.offset() + static_cast<int64_t>(data_.size()));
    return absl::OkStatus();
  }

  const std::unique_ptr<client::Client> client_;
  v1::ReadFileRequest next_;
  const int64_t end_;
  const Quota::Share share_;  // of what the caller may follow at the same time
  std::string data_;
  size_t at_ = 0;
};

// A name to save it under: the last of its path. What is not plain is escaped, so that it cannot
// end the header, or lead to another folder.
std::string Disposition(const std::string& path) {
  std::string plain, escaped;
  for (const char c : path.substr(path.rfind('/') + 1)) {
    const bool good =
        absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '_';
    plain += good ? c : '_';
    if (good) {
      escaped += c;
    } else {
      absl::StrAppend(&escaped, "%", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    }
  }
  return absl::StrCat("attachment; filename=\"", plain, "\"; filename*=UTF-8''", escaped);
}

HttpReply NoSuchRange(int64_t size, const Status& status) {
  HttpReply reply = ErrorReply(WithHttpStatus(absl::InvalidArgumentError(Message(status)), 416));
  reply.headers.emplace_back("Content-Range", absl::StrCat("bytes */", size));
  return reply;
}

StatusOr<HttpReply> GetFile(Call& call) {
  v1::ReadFileRequest request;
  *request.mutable_files() = FilesOf(call);
  request.set_path(call.Text("path"));
  request.set_max_bytes(1);
  ASSIGN_OR_RETURN(const auto begin, call.client->Get<v1::FileChunk>("ReadFile", request));
  const std::string etag = EtagOf(begin.version());
  if (IsKnown(call.request, etag)) return NotModified(etag);
  const std::string& condition = call.request.Header("if-range");
  std::optional<Span> span;
  if (condition.empty() || condition == etag) {
    const auto range = ReadRange(call.request.Header("range"), begin.size());
    if (!range.ok()) return NoSuchRange(begin.size(), range.status());
    span = *range;
  }
  HttpReply reply{.status = span ? 206 : 200, .type = kBytes};
  if (span) {
    reply.headers.emplace_back("Content-Range", absl::StrCat("bytes ", span->first, "-",
                                                             span->end - 1, "/", begin.size()));
  }
  reply.headers.emplace_back("ETag", etag);
  reply.headers.emplace_back("Accept-Ranges", "bytes");
  reply.headers.emplace_back("Content-Disposition", Disposition(request.path()));
  reply.headers.emplace_back("Content-Security-Policy", "sandbox; default-src 'none'");
  const Span sent = span.value_or(Span{.first = 0, .end = begin.size()});
  reply.length = sent.end - sent.first;
  if (*reply.length == 0 || call.request.method == "HEAD") return reply;
  ASSIGN_OR_RETURN(Quota::Share share, call.AcquireStream());
  request.set_offset(sent.first);
  request.set_version(begin.version());
  reply.source = std::make_unique<FileSource>(std::move(call.client), std::move(request), sent.end,
                                              std::move(share));
  return reply;
}

// ---- the table ---------------------------------------------------------------------------------

Parameter OfAttempt() {
  return {.name = "attempt",
          .help = "that saved it (default: the newest that has one at this step)",
          .type = Parameter::Type::kInteger,
          .min = 1,
          .max = 1 << 30};
}

Route FilesRoute(const std::string& folder, const char* id, const char* summary) {
  Route route{.method = "GET",
              .path = folder + "/files",
              .id = id,
              .rpc = "ListFiles",
              .summary = summary,
              .parameters = PageParameters(false),
              .results = {{.body = v1::http::File::descriptor(), .list = true}},
              .slow = true,
              .handle = ListFiles};
  if (folder == kOfCheckpoint) route.parameters.push_back(OfAttempt());
  return route;
}

Route FileRoute(const std::string& folder, const char* id, const char* summary) {
  const auto header = [](const char* name, const char* help) {
    return Parameter{.name = name, .help = help, .in = Parameter::In::kHeader};
  };
  Route route{.method = "GET",
              .path = folder + "/file",
              .id = id,
              .rpc = "ReadFile",
              .summary = summary,
              .parameters = {{.name = "path", .help = "of the file, as the list has it"},
                             header("Range", "a part of it, as bytes=0-1023"),
                             header("If-Range", "the ETag that it must still have for that")},
              .results = {{.type = kBytes}, {.status = 206, .type = kBytes}},
              .slow = true,
              .handle = GetFile};
  if (folder == kOfCheckpoint) route.parameters.push_back(OfAttempt());
  return route;
}

std::vector<Route> FileRoutes() {
  return {FilesRoute(kOutputs, "listOutputs", "Lists the files that a trial has left as outputs"),
          FileRoute(kOutputs, "getOutput", "A file of a trial's outputs, or a part of it"),
          FilesRoute(kOfCheckpoint, "listCheckpointFiles", "Lists the files of a checkpoint"),
          FileRoute(kOfCheckpoint, "getCheckpointFile", "A file of a checkpoint, or a part of it")};
}

}  // namespace

SHIRABE_REGISTER(RouteGroup, {.name = "files", .routes = FileRoutes});

}  // namespace shirabe::service
