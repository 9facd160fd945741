#include "db/sqlite/sqlite_copy.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/file_io.h"

namespace shirabe::db {
namespace {

constexpr int kMaxCopies = 1000;

Status Flush(const std::string& path, int flags) {
  const Fd fd(open(path.c_str(), flags | O_CLOEXEC));
  if (!fd.valid() || fsync(fd.get()) != 0) return ErrnoStatus("cannot write " + path, errno);
  return absl::OkStatus();
}

// Empty, new, and its owner's alone: SQLite takes such a file, and would make a public one.
Status MakeEmpty(const std::string& path) {
  // Left by a process that was killed while it had the lock that we have.
  if (unlink(path.c_str()) != 0 && errno != ENOENT)
    return ErrnoStatus("cannot remove " + path, errno);
  const Fd fd(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  return fd.valid() ? absl::OkStatus() : ErrnoStatus("cannot make " + path, errno);
}

// A connection of its own: in a transaction nothing can be copied, and the one that has the lock is
// in one. It sees what was committed before.
Status CopyInto(const SqliteConnection& db, const std::string& path) {
  ASSIGN_OR_RETURN(auto source, SqliteConnection::Open({.path = db.path()}));
  RETURN_IF_ERROR(source->Prepare("VACUUM INTO ?").Bind(path).Run());
  return Flush(path, O_RDWR);
}

// Under the first name that is free; a link never replaces what is there.
StatusOr<std::string> Publish(const std::string& partial, const std::string& name) {
  for (int i = 1; i <= kMaxCopies; ++i) {
    const std::string path = i == 1 ? name : absl::StrCat(name, "-", i);
    if (link(partial.c_str(), path.c_str()) == 0) {
      const std::string folder = std::filesystem::path(path).parent_path().string();
      RETURN_IF_ERROR(Flush(folder, O_RDONLY | O_DIRECTORY));
      return path;
    }
    if (errno != EEXIST) return ErrnoStatus("cannot make " + path, errno);
  }
  return absl::AlreadyExistsError(absl::StrCat("there are ", kMaxCopies, " copies ", name, "…"));
}

}  // namespace

StatusOr<std::string> CopyBeforeMigration(const SqliteConnection& db, int64_t version) {
  const std::string name = absl::StrCat(db.path(), ".schema-", version);
  const std::string partial = name + ".partial";
  const auto copy = [&]() -> StatusOr<std::string> {
    RETURN_IF_ERROR(MakeEmpty(partial));
    RETURN_IF_ERROR(CopyInto(db, partial));
    return Publish(partial, name);
  };
  auto published = copy();
  unlink(partial.c_str());
  if (published.ok()) return published;
  std::error_code ignored;
  const uintmax_t bytes = std::filesystem::file_size(db.path(), ignored);
  return Prefix(absl::StrCat("database ", db.path(), " has the older schema version ", version,
                             ", and before it is changed it is copied to ", name,
                             ", for which about ", bytes, " bytes must be free beside it; it was ",
                             "not changed, and the program that wrote it can go on with it"),
                published.status());
}

}  // namespace shirabe::db
