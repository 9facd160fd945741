#include "artifacts/package/tar_reader.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/printable.h"

namespace shirabe::artifacts {
namespace {

constexpr size_t kBlock = 512;
constexpr int64_t kMaxExtensionBytes = 64 << 10;
constexpr size_t kMaxNameBytes = 255;  // of a file system
constexpr size_t kShownBytes = 200;
constexpr int64_t kMaxNumber = int64_t{1} << 53;

// Where the fields of a header stand.
struct Field {
  size_t at;
  size_t bytes;
};
constexpr Field kName = {0, 100};
constexpr Field kMode = {100, 8};
constexpr Field kSize = {124, 12};
constexpr Field kChecksum = {148, 8};
constexpr size_t kType = 156;
constexpr Field kTarget = {157, 100};
constexpr Field kMagic = {257, 6};
constexpr Field kFolder = {345, 155};  // of ustar

std::string_view BytesOf(std::string_view header, const Field& field) {
  return header.substr(field.at, field.bytes);
}

// To its first NUL.
std::string_view TextOf(std::string_view header, const Field& field) {
  const std::string_view bytes = BytesOf(header, field);
  return bytes.substr(0, bytes.find('\0'));
}

Status Refuse(const std::string& what) { return absl::InvalidArgumentError(what); }

std::string ShownPath(std::string_view path) {
  return Quoted(Printable(std::string(path.substr(0, kShownBytes))));
}

// Octal digits between blanks, or, with the highest bit set, a number in base 256.
StatusOr<int64_t> NumberOf(std::string_view header, const Field& field) {
  const std::string_view bytes = BytesOf(header, field);
  int64_t number = 0;
  if ((static_cast<unsigned char>(bytes[0]) & 0x80) != 0) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      const int byte = static_cast<unsigned char>(bytes[i]) & (i == 0 ? 0x7F : 0xFF);
      if (number > kMaxNumber) break;
      number = number * 256 + byte;
    }
  } else {
    const size_t first = bytes.find_first_not_of(' ');
    const size_t end =
        std::min(bytes.find_first_of(std::string_view(" \0", 2), first), bytes.size());
    for (size_t i = std::min(first, end); i < end; ++i) {
      if (bytes[i] < '0' || bytes[i] > '7') return Refuse("a number of it cannot be read");
      number = number * 8 + (bytes[i] - '0');
    }
  }
  if (number > kMaxNumber) return Refuse("a file of it is too large");
  return number;
}

// Of all bytes, with blanks for its own.
bool HasItsChecksum(std::string_view header) {
  int64_t sum = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const bool own = i >= kChecksum.at && i < kChecksum.at + kChecksum.bytes;
    sum += own ? ' ' : static_cast<unsigned char>(header[i]);
  }
  const auto said = NumberOf(header, kChecksum);
  return said.ok() && *said == sum;
}

const char* KindWord(char type) {
  switch (type) {
    case '1': return "a hard link";
    case '3':
    case '4': return "a device";
    case '6': return "a named pipe";
    case 'S': return "a sparse file";
    default: return "of a kind that is not known";
  }
}

bool IsPlain(char type) { return type == '0' || type == '\0' || type == '7'; }

int64_t PaddingOf(int64_t bytes) {
  return (static_cast<int64_t>(kBlock) - bytes % static_cast<int64_t>(kBlock)) %
         static_cast<int64_t>(kBlock);
}

bool IsZero(std::string_view bytes) {
  return bytes.find_first_not_of('\0') == std::string_view::npos;
}

// The path as ustar has it in two parts, and GNU's and older ones in one.
std::string OwnPath(std::string_view header) {
  const std::string name(TextOf(header, kName));
  const bool ustar = BytesOf(header, kMagic) == std::string_view("ustar\0", 6);
  const std::string_view folder = ustar ? TextOf(header, kFolder) : std::string_view();
  return folder.empty() ? name : absl::StrCat(std::string(folder), "/", name);
}

}  // namespace

StatusOr<std::string> PackedPath(std::string_view path) {
  if (path.size() > kMaxPackedPathBytes) return Refuse("a path is too long: " + ShownPath(path));
  if (absl::StartsWith(std::string(path), "/")) {
    return Refuse(ShownPath(path) + " is an absolute path");
  }
  if (path.find('\0') != std::string_view::npos) return Refuse("a path has a NUL in it");
  std::vector<std::string> names;
  for (const auto part : absl::StrSplit(std::string(path), '/')) {
    const std::string name(part);
    if (name.empty() || name == ".") continue;
    if (name == "..") return Refuse(ShownPath(path) + " leads out of the package");
    if (name.size() > kMaxNameBytes) return Refuse("a name is too long: " + ShownPath(path));
    names.push_back(name);
  }
  if (names.size() > kMaxPackedPathNames) return Refuse(ShownPath(path) + " is nested too deep");
  return absl::StrJoin(names, "/");
}

bool LinkStaysWithin(const std::string& path, std::string_view target) {
  if (target.empty() || target.front() == '/' || target.size() > kMaxPackedPathBytes ||
      target.find('\0') != std::string_view::npos) {
    return false;
  }
  auto above = std::count(path.begin(), path.end(), '/');
  bool down = false;
  for (const auto part : absl::StrSplit(std::string(target), '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      down = true;
    } else if (down || above-- == 0) {
      return false;
    }
  }
  return true;
}

Status TarReader::Add(std::string_view bytes) {
  while (!bytes.empty()) RETURN_IF_ERROR(AddPiece(bytes));
  return absl::OkStatus();
}

// Takes from the front what belongs to the part that is being read.
Status TarReader::AddPiece(std::string_view& bytes) {
  if (part_ == Part::kEnd) {
    if (!IsZero(bytes)) return Refuse("the archive has something behind its end");
    bytes = {};
    return absl::OkStatus();
  }
  const int64_t wanted =
      part_ == Part::kHeader ? static_cast<int64_t>(kBlock - header_.size()) : left_;
  const std::string_view piece =
      bytes.substr(0, static_cast<size_t>(std::min<int64_t>(wanted, bytes.size())));
  bytes.remove_prefix(piece.size());
  if (part_ == Part::kHeader) {
    header_ += piece;
    return header_.size() == kBlock ? ReadHeader() : absl::OkStatus();
  }
  left_ -= static_cast<int64_t>(piece.size());
  if (part_ == Part::kFile) RETURN_IF_ERROR(sink_.Bytes(piece));
  if (part_ == Part::kExtension) extension_ += piece;
  return left_ > 0 ? absl::OkStatus() : EndData();
}

Status TarReader::ReadHeader() {
  if (IsZero(header_)) {
    part_ = Part::kEnd;
    return absl::OkStatus();
  }
  if (!HasItsChecksum(header_)) return Refuse("it is no tar archive, or a damaged one");
  const char type = header_[kType];
  if (type == 'x' || type == 'g' || type == 'L' || type == 'K') {
    ASSIGN_OR_RETURN(left_, NumberOf(header_, kSize));
    if (left_ > kMaxExtensionBytes) return Refuse("an extended header is too long");
    type_ = type;
    part_ = Part::kExtension;
    extension_.clear();
    padding_ = PaddingOf(left_);
    return left_ == 0 ? EndData() : absl::OkStatus();
  }
  return BeginEntry(type);
}

Status TarReader::BeginEntry(char type) {
  TarEntry entry;
  const std::string own = path_.empty() ? OwnPath(header_) : path_;
  const bool folder = type == '5' || (IsPlain(type) && absl::EndsWith(own, "/"));
  if (!IsPlain(type) && type != '5' && type != '2') {
    return Refuse(ShownPath(own) + " is " + KindWord(type) +
                  ": a package has plain files, folders and symbolic links");
  }
  ASSIGN_OR_RETURN(entry.path, PackedPath(own));
  if (folder) entry.kind = TarEntry::Kind::kFolder;
  if (type == '2') entry.kind = TarEntry::Kind::kLink;
  ASSIGN_OR_RETURN(left_, NumberOf(header_, kSize));
  if (bytes_ >= 0) left_ = bytes_;
  ASSIGN_OR_RETURN(const int64_t mode, NumberOf(header_, kMode));
  if (entry.kind == TarEntry::Kind::kFile) {
    entry.bytes = left_;
    entry.executable = (mode & 0100) != 0;
  } else if (left_ != 0) {
    return Refuse(ShownPath(own) + " is no file and has bytes");
  }
  if (entry.path.empty() && !folder) return Refuse("an entry has no name");
  if (type == '2') {
    entry.target = target_.empty() ? std::string(TextOf(header_, kTarget)) : target_;
    if (!LinkStaysWithin(entry.path, entry.target)) {
      return Refuse(absl::StrCat(ShownPath(own), " is a link that leads out of the package, to ",
                                 ShownPath(entry.target)));
    }
  }
  path_.clear();
  target_.clear();
  bytes_ = -1;
  entry_open_ = !entry.path.empty();
  if (entry_open_) RETURN_IF_ERROR(sink_.Begin(entry));
  padding_ = PaddingOf(left_);
  part_ = Part::kFile;
  return left_ == 0 ? EndData() : absl::OkStatus();
}

// The bytes of a part have all come.
Status TarReader::EndData() {
  const Part ended = part_;
  header_.clear();
  part_ = Part::kHeader;
  if (ended == Part::kFile && std::exchange(entry_open_, false)) RETURN_IF_ERROR(sink_.End());
  if (ended == Part::kExtension) {
    const std::string_view text = extension_;
    if (type_ == 'L') path_ = std::string(text.substr(0, text.find('\0')));
    if (type_ == 'K') target_ = std::string(text.substr(0, text.find('\0')));
    if (type_ == 'x' || type_ == 'g') RETURN_IF_ERROR(ReadRecords(text, type_ == 'g'));
  }
  if (ended != Part::kPadding && padding_ > 0) {
    part_ = Part::kPadding;
    left_ = padding_;
  }
  return absl::OkStatus();
}

// "LENGTH KEY=VALUE\n", each with the length of all of it.
Status TarReader::ReadRecords(std::string_view records, bool global) {
  while (!records.empty()) {
    const size_t blank = records.find(' ');
    int64_t length = 0;
    const bool good = blank != std::string_view::npos && blank <= 6 &&
                      absl::SimpleAtoi(std::string(records.substr(0, blank)), &length) &&
                      length > static_cast<int64_t>(blank) + 1 &&
                      length <= static_cast<int64_t>(records.size()) &&
                      records[static_cast<size_t>(length) - 1] == '\n';
    if (!good) return Refuse("an extended header cannot be read");
    const std::string_view record =
        records.substr(blank + 1, static_cast<size_t>(length) - blank - 2);
    records.remove_prefix(static_cast<size_t>(length));
    const size_t equals = record.find('=');
    if (equals == std::string_view::npos) return Refuse("an extended header cannot be read");
    const std::string key(record.substr(0, equals));
    const std::string value(record.substr(equals + 1));
    const bool ours = key == "path" || key == "linkpath" || key == "size";
    if ((global && ours) || absl::StartsWith(key, "GNU.sparse")) {
      return Refuse("an extended header has " + key + ", which is refused there");
    }
    if (key == "path") path_ = value;
    if (key == "linkpath") target_ = value;
    if (key == "size" && (!absl::SimpleAtoi(value, &bytes_) || bytes_ < 0 || bytes_ > kMaxNumber)) {
      return Refuse("an extended header has a size that cannot be");
    }
  }
  return absl::OkStatus();
}

Status TarReader::Finish() const {
  return part_ == Part::kEnd ? absl::OkStatus() : Refuse("the archive is cut off");
}

}  // namespace shirabe::artifacts
