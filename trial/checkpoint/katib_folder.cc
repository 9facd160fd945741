#include "trial/checkpoint/katib_folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file_io.h"
#include "base/open_beneath.h"
#include "trial/checkpoint/checkpoint_folder.h"
#include "trial/checkpoint/checkpoint_resumer.h"
#include "trial/checkpoint/checkpoint_store.h"

namespace shirabe::trial {
namespace {

constexpr char kFolderName[] = "suggestion";
constexpr int64_t kMaxOpened = 1'000'000;  // files, as of a checkpoint

// What a checkpoint may be in cannot be one, and neither can a longer name be the path.
bool EndsName(const std::string& text, size_t at) {
  if (at == text.size()) return true;
  const auto next = static_cast<unsigned char>(text[at]);
  return std::isalnum(next) == 0 && next != '_' && next != '-' && next != '.';
}

bool BeginsPath(const std::string& text, size_t at) {
  return at == 0 || (EndsName(text, at - 1) && text[at - 1] != '/');
}

// For whatever user the program is: it writes over what it finds.
Status OpenToAll(const std::string& folder) {
  ASSIGN_OR_RETURN(FileTree tree, FileTree::Open(AT_FDCWD, folder, folder));
  ASSIGN_OR_RETURN(const std::vector<std::string> files, tree.Files(kMaxOpened));
  std::string opened;
  const auto open_folder = [&](const std::string& path) -> Status {
    if (path == opened) return absl::OkStatus();
    opened = path;
    if (chmod(path.c_str(), 0777) == 0) return absl::OkStatus();
    return ErrnoStatus("cannot open folder " + path + " to the program's user", errno);
  };
  RETURN_IF_ERROR(open_folder(folder));
  for (const std::string& file : files) {
    for (size_t cut = file.find('/'); cut != std::string::npos; cut = file.find('/', cut + 1)) {
      RETURN_IF_ERROR(open_folder(absl::StrCat(folder, "/", file.substr(0, cut))));
    }
    ASSIGN_OR_RETURN(const Fd fd, tree.OpenFile(file));
    struct stat info;
    if (fstat(fd.get(), &info) != 0 || fchmod(fd.get(), 0666 | (info.st_mode & 0111)) != 0) {
      return ErrnoStatus("cannot open " + file + " to the program's user", errno);
    }
  }
  return absl::OkStatus();
}

bool IsEmpty(const std::string& folder) {
  const auto tree = FileTree::Open(AT_FDCWD, folder, folder);
  if (!tree.ok()) return true;
  const auto files = tree->Files(kMaxOpened);
  return files.ok() && files->empty();  // what cannot be listed is refused where it is committed
}

}  // namespace

Status CheckKatibPath(const std::string& path) {
  const auto below = [&](const char* folder) {
    return absl::StartsWith(path + "/", absl::StrCat(folder, "/"));
  };
  std::string why;
  if (path.empty() || path[0] != '/') why = "must be absolute";
  for (const auto part : absl::StrSplit(path, '/')) {
    if (part == "." || part == "..") why = "must not hold \".\" or \"..\"";
  }
  if (path.find_first_not_of('/') == std::string::npos || path.find(':') != std::string::npos ||
      below("/shirabe") || below("/var/run/secrets") || below("/proc") || below("/dev") ||
      below("/sys")) {
    why = "cannot be the folder of a program's checkpoints";
  }
  if (why.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("suggestion_trial_dir \"", path, "\" ", why,
                                                 "; give one such as ",
                                                 "/var/log/katib/checkpoints"));
}

std::string KatibPath(const std::map<std::string, std::string>& environment) {
  const auto found = environment.find(kKatibFolderVariable);
  std::string path = found == environment.end() ? "" : found->second;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::string KatibFolder(const AttemptPaths& paths) {
  return FolderAbove(paths.checkpoint_dir, 1) + "/" + kFolderName;
}

std::string WithKatibFolder(const std::string& text, const std::string& path,
                            const std::string& folder) {
  if (path.empty()) return text;
  std::string result;
  size_t from = 0;
  for (size_t at = text.find(path); at != std::string::npos; at = text.find(path, at + 1)) {
    if (at < from || !BeginsPath(text, at) || !EndsName(text, at + path.size())) continue;
    absl::StrAppend(&result, text.substr(from, at - from), folder);
    from = at + path.size();
  }
  return result + text.substr(from);
}

Status FillKatibFolder(const FileLayout& layout, const AttemptKey& key, bool open_to_all) {
  const AttemptPaths paths = layout.Paths(key);
  const std::string folder = KatibFolder(paths);
  RETURN_IF_ERROR(RemoveAll(folder));
  RETURN_IF_ERROR(RemoveAll(folder + ".tmp"));
  const Resume resume = ReadResume(paths.dir);
  if (resume.from) {
    // Its copy stands in the attempt's own directory, by the same digest.
    v1::Checkpoint own = *resume.from;
    SetKey(key, own);
    RETURN_IF_ERROR(CheckpointStore(&layout).Export(own, folder));
    // That of the next one is another.
    const std::string manifest = absl::StrCat(folder, "/", kManifestName);
    if (unlink(manifest.c_str()) != 0) return ErrnoStatus("cannot remove " + manifest, errno);
  } else if (mkdir(folder.c_str(), 0700) != 0) {
    return ErrnoStatus("cannot create folder " + folder, errno);
  }
  return open_to_all ? OpenToAll(folder) : absl::OkStatus();
}

Status SaveKatibFolder(const FileLayout& layout, const AttemptKey& key) {
  const AttemptPaths paths = layout.Paths(key);
  if (IsEmpty(KatibFolder(paths))) return absl::OkStatus();
  const Resume resume = ReadResume(paths.dir);
  const std::string step = absl::StrCat(resume.from ? resume.from->step() + 1 : 1);
  // By name from the attempt's own folder, through no link that the program has put there.
  const std::string own = FolderAbove(paths.checkpoint_dir, 1);
  ASSIGN_OR_RETURN(const FileTree from, FileTree::Open(AT_FDCWD, own, own));
  ASSIGN_OR_RETURN(const FileTree to,
                   FileTree::Open(from.root(), paths.checkpoint_dir.substr(own.size() + 1),
                                  paths.checkpoint_dir));
  // Nothing but an empty folder can be there and be replaced.
  if (renameat(from.root(), kFolderName, to.root(), step.c_str()) == 0) {
    return SyncFd(to.root(), paths.checkpoint_dir);
  }
  return ErrnoStatus(absl::StrCat("cannot keep ", KatibFolder(paths), " as checkpoint ", step),
                     errno);
}

}  // namespace shirabe::trial
