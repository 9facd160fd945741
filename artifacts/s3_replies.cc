#include "artifacts/s3_replies.h"

#include <expat.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "base/rng.h"

// Debian's libexpat.a asks glibc 2.36 for this; with ours the program starts with older ones, too.
extern "C" void arc4random_buf(void* buffer, size_t size) noexcept {
  std::memcpy(buffer, shirabe::RandomBytes(static_cast<int>(size)).data(), size);
}

namespace shirabe::artifacts {
namespace {

constexpr size_t kMaxDepth = 16;
constexpr size_t kMaxTextBytes = 4096;  // of one element

// Told of each element that holds text alone: its way from the root, as "ListBucketResult/Name",
// and the text; and of each other element, with an empty text, when it begins.
using OnElement = std::function<bool(const std::string& way, const std::string& text, bool begins)>;

class Reader {
 public:
  explicit Reader(OnElement on_element)
      : on_element_(std::move(on_element)), parser_(XML_ParserCreate("UTF-8"), XML_ParserFree) {
    XML_SetUserData(parser_.get(), this);
    XML_SetElementHandler(
        parser_.get(),
        +[](void* self, const XML_Char* name, const XML_Char**) {
          static_cast<Reader*>(self)->Begin(name);
        },
        +[](void* self, const XML_Char*) { static_cast<Reader*>(self)->End(); });
    XML_SetCharacterDataHandler(
        parser_.get(), +[](void* self, const XML_Char* text, int size) {
          static_cast<Reader*>(self)->Text({text, static_cast<size_t>(size)});
        });
    // A document with a DTD could define entities: none that S3 sends has one.
    XML_SetStartDoctypeDeclHandler(
        parser_.get(), +[](void* self, const XML_Char*, const XML_Char*, const XML_Char*, int) {
          static_cast<Reader*>(self)->Refuse();
        });
  }

  bool Read(const std::string& xml) {
    if (xml.size() > kMaxReplyBytes) return false;
    const auto status = XML_Parse(parser_.get(), xml.data(), static_cast<int>(xml.size()), 1);
    return status == XML_STATUS_OK && !refused_;
  }

 private:
  void Refuse() {
    refused_ = true;
    XML_StopParser(parser_.get(), XML_FALSE);
  }
  void Begin(const std::string& name) {
    if (ends_.size() >= kMaxDepth || way_.size() + name.size() > kMaxTextBytes) return Refuse();
    ends_.push_back(way_.size());
    way_ += (way_.empty() ? "" : "/") + name;
    text_.clear();
    if (!on_element_(way_, text_, /*begins=*/true)) Refuse();
  }
  void Text(std::string_view text) {
    if (text_.size() + text.size() > kMaxTextBytes) return Refuse();
    text_ += text;
  }
  void End() {
    if (refused_) return;
    if (!on_element_(way_, text_, /*begins=*/false)) return Refuse();
    way_.resize(ends_.back());
    ends_.pop_back();
    text_.clear();
  }

  const OnElement on_element_;
  const std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> parser_;
  std::string way_;
  std::vector<size_t> ends_;  // of the ways to the elements around
  std::string text_;
  bool refused_ = false;
};

Status NotTheReply(const char* what) {
  return absl::DataLossError(std::string("the server's answer is not ") + what);
}

bool ReadSize(const std::string& text, int64_t* bytes) {
  return absl::SimpleAtoi(text, bytes) && *bytes >= 0;
}

}  // namespace

StatusOr<ListReply> ReadListReply(const std::string& xml) {
  ListReply reply;
  bool is_list = false;
  Reader reader([&](const std::string& way, const std::string& text, bool begins) {
    is_list = is_list || way == "ListBucketResult";
    if (begins && way == "ListBucketResult/Contents") reply.objects.emplace_back();
    if (begins) return true;
    if (way == "ListBucketResult/IsTruncated") reply.truncated = text == "true";
    if (way == "ListBucketResult/Contents/Key") reply.objects.back().key = text;
    if (way != "ListBucketResult/Contents/Size") return true;
    return ReadSize(text, &reply.objects.back().bytes);
  });
  if (!reader.Read(xml) || !is_list) return NotTheReply("a list of objects");
  return reply;
}

StatusOr<std::string> ReadUploadId(const std::string& xml) {
  std::string id;
  Reader reader([&](const std::string& way, const std::string& text, bool begins) {
    if (!begins && way == "InitiateMultipartUploadResult/UploadId") id = text;
    return true;
  });
  if (!reader.Read(xml) || id.empty() || id.size() > 1024) return NotTheReply("an upload's id");
  return id;
}

Status CheckCompleted(const std::string& xml) {
  bool completed = false;
  Reader reader([&](const std::string& way, const std::string&, bool) {
    completed = completed || way == "CompleteMultipartUploadResult";
    return true;
  });
  if (reader.Read(xml) && completed) return absl::OkStatus();
  return NotTheReply("the end of an upload");
}

std::string ReadErrorCode(const std::string& xml) {
  std::string code;
  Reader reader([&](const std::string& way, const std::string& text, bool begins) {
    if (!begins && way == "Error/Code") code = text;
    return true;
  });
  const bool read = reader.Read(xml);
  const bool plain = code.size() <= 64 && std::all_of(code.begin(), code.end(), [](char c) {
                       return absl::ascii_isalnum(static_cast<unsigned char>(c));
                     });
  return read && plain ? code : "";
}

}  // namespace shirabe::artifacts
