#include "cmd/job_packages.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "artifacts/package/code_package.h"
#include "artifacts/retries.h"
#include "base/file_io.h"
#include "base/open_beneath.h"
#include "base/printable.h"
#include "base/sha256.h"
#include "base/sorting.h"
#include "base/temporary_folder.h"
#include "base/text/number.h"
#include "cmd/artifact_stores.h"
#include "cmd/terminal.h"
#include "experiment/spec/local_support.h"

namespace shirabe::cmd {
namespace {

namespace fs = std::filesystem;

constexpr char kPackagesField[] = "trainingInput.packageUris";
constexpr int64_t kMaxListBytes = 64 << 10;
constexpr size_t kMaxRequirements = 8;

// ---- an archive ---------------------------------------------------------------------------------

bool IsFolder(const fs::path& path) {
  std::error_code error;
  return fs::symlink_status(path, error).type() == fs::file_type::directory;
}

StatusOr<std::vector<fs::path>> EntriesOf(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator at(folder, error); !error && at != fs::directory_iterator();
       at.increment(error)) {
    entries.push_back(at->path());
  }
  if (error) return ErrnoStatus("cannot list " + folder.string(), error.value());
  StableSort(entries);
  return entries;
}

// What is unpacked may be read and no more; here it is moved.
Status MakeMovable(const fs::path& folder) {
  std::error_code error;
  fs::permissions(folder, fs::perms::owner_all, error);
  if (error) return ErrnoStatus("cannot open " + folder.string(), error.value());
  ASSIGN_OR_RETURN(const auto entries, EntriesOf(folder));
  for (const fs::path& entry : entries) {
    if (IsFolder(entry)) RETURN_IF_ERROR(MakeMovable(entry));
  }
  return absl::OkStatus();
}

std::vector<std::string> LinesOf(const fs::path& root, const fs::path& file) {
  const auto text = ReadBeneath(root.string(), file.string(), kMaxListBytes);
  std::vector<std::string> lines;
  if (!text.ok()) return lines;
  for (const auto line : absl::StrSplit(*text, '\n')) {
    const std::string word(absl::StripAsciiWhitespace(line));
    if (!word.empty() && word[0] != '#') lines.push_back(word);
  }
  return lines;
}

// NAME.egg-info of a folder; "" = there is none.
fs::path EggInfoOf(const fs::path& folder) {
  const auto entries = EntriesOf(folder);
  if (!entries.ok()) return {};
  for (const fs::path& entry : *entries) {
    if (entry.extension() == ".egg-info" && IsFolder(entry)) return entry;
  }
  return {};
}

// A source distribution (NAME-VERSION/setup.py …) as its installation would have it: the modules
// and packages alone. Whatever else it is, it is taken as it is.
class Distribution {
 public:
  static StatusOr<Distribution> Of(const fs::path& folder) {
    Distribution made;
    made.whole_ = made.root_ = folder;
    ASSIGN_OR_RETURN(const auto top, EntriesOf(folder));
    if (top.size() != 1 || !IsFolder(top[0])) return made;
    bool built = false;
    for (const char* file : {"setup.py", "setup.cfg", "pyproject.toml", "PKG-INFO"}) {
      std::error_code error;
      built = built || fs::is_regular_file(fs::symlink_status(top[0] / file, error));
    }
    if (!built) return made;
    made.is_source_ = true;
    made.root_ = top[0];
    made.egg_info_ = EggInfoOf(made.root_);
    const fs::path source = made.root_ / "src";
    if (made.egg_info_.empty() && IsFolder(source)) {
      made.root_ = source;
      made.egg_info_ = EggInfoOf(source);
    }
    return made;
  }

  // What there is to be imported, or all of it.
  StatusOr<std::vector<fs::path>> Parts() const {
    ASSIGN_OR_RETURN(auto entries, EntriesOf(root_));
    if (!is_source_) return entries;
    std::set<std::string> names;
    if (!egg_info_.empty()) {
      for (std::string& name : LinesOf(whole_, egg_info_ / "top_level.txt")) names.insert(name);
    }
    std::erase_if(entries, [&](const fs::path& entry) {
      const bool folder = IsFolder(entry);
      const bool module = entry.extension() == ".py" && entry.filename() != "setup.py";
      if (!folder && !module) return true;
      if (names.empty()) return entry.extension() == ".egg-info";
      return !names.contains(folder ? entry.filename().string() : entry.stem().string());
    });
    return entries;
  }

  // Other distributions that it is used with, without those of its extras.
  std::vector<std::string> Requirements() const {
    if (egg_info_.empty()) return {};
    std::vector<std::string> lines = LinesOf(whole_, egg_info_ / "requires.txt");
    const auto extras = std::find_if(lines.begin(), lines.end(),
                                     [](const std::string& line) { return line[0] == '['; });
    lines.erase(extras, lines.end());
    return lines;
  }

 private:
  fs::path whole_;
  fs::path root_;
  fs::path egg_info_;
  bool is_source_ = false;
};

// Moves `from`, of the package that is `shown`, to `to`; folders that are both are one afterwards.
Status MoveInto(const fs::path& from, const fs::path& to, const std::string& shown) {
  std::error_code error;
  if (!fs::exists(fs::symlink_status(to, error))) {
    fs::rename(from, to, error);
    return error ? ErrnoStatus("cannot move " + from.string(), error.value()) : absl::OkStatus();
  }
  if (!IsFolder(from) || !IsFolder(to)) {
    return absl::InvalidArgumentError(
        absl::StrCat(shown, " has ", Quoted(Printable(from.filename().string())),
                     ", which another of the packages has too: leave one of them out"));
  }
  ASSIGN_OR_RETURN(const auto entries, EntriesOf(from));
  for (const fs::path& entry : entries) {
    RETURN_IF_ERROR(MoveInto(entry, to / entry.filename(), shown));
  }
  return absl::OkStatus();
}

void SayRequirements(const std::string& shown, std::vector<std::string> needs) {
  if (needs.empty()) return;
  const size_t more = needs.size() > kMaxRequirements ? needs.size() - kMaxRequirements : 0;
  needs.resize(needs.size() - more);
  for (std::string& need : needs) need = Printable(need);
  Warn(absl::StrCat(shown, " requires ", absl::StrJoin(needs, ", "),
                    more > 0 ? absl::StrCat(" and ", more, " more") : "",
                    ", which is not installed by this: the Python of the trials must have it"));
}

// ---- where they come from -----------------------------------------------------------------------

class Gatherer {
 public:
  Gatherer(std::vector<StoreBucket> buckets, std::string ns, std::string work)
      : buckets_(std::move(buckets)), ns_(std::move(ns)), work_(std::move(work)) {}

  // Each is an archive of its own in the work's folder, and then a part of one folder.
  StatusOr<std::string> Add(const std::string& field, const std::string& archive) {
    const bool remote = absl::StrContains(archive, "://");
    const std::string shown = Printable(archive);
    if (absl::EndsWith(archive, ".whl") || absl::EndsWith(archive, ".zip")) {
      return InvalidField(field, Quoted(shown) +
                                     " is no tar.gz: give the source distribution (python3 -m "
                                     "build --sdist), or unpack it and give the folder with --code "
                                     "DIR");
    }
    ASSIGN_OR_RETURN(const Fd fd, NewFile());
    const auto digest = remote ? Fetch(field, archive, fd.get()) : Copy(archive, fd.get());
    RETURN_IF_ERROR(digest.status());
    RETURN_IF_ERROR(Prefix(absl::StrCat(field, ": ", shown), Unpack(fd.get(), shown)));
    ProgressLine(absl::StrCat(shown, ": sha256:", *digest));
    return absl::StrCat(archive, "@", artifacts::kPackageScheme, *digest);
  }

  // As gcloud packs it: under its own name.
  Status AddFolder(const std::string& folder) {
    ASSIGN_OR_RETURN(const Fd fd, NewFile());
    const fs::path whole(folder);
    RETURN_IF_ERROR(
        artifacts::PackFolder({whole.parent_path().string(), whole.filename().string()}, fd.get())
            .status());
    return Unpack(fd.get(), Printable(folder));
  }

  std::string all() const { return work_ + "/all"; }
  const std::string& store() const { return store_; }  // of the first that came from one

 private:
  // For one archive. Its name is gone at once, and it with its descriptor.
  StatusOr<Fd> NewFile() const {
    const std::string path = work_ + "/archive";
    Fd fd(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd.valid()) return ErrnoStatus("cannot make " + path, errno);
    unlink(path.c_str());
    return fd;
  }

  StatusOr<const StoreBucket*> BucketOf(const std::string& field, const std::string& uri,
                                        const std::string& bucket) const {
    for (const StoreBucket& one : buckets_) {
      if (one.entry.bucket() == bucket && artifacts::MayUse(one.entry, ns_)) return &one;
    }
    return InvalidField(
        field,
        absl::StrCat(Quoted(Printable(uri)), ": no store of type gcs is known here for bucket ",
                     bucket, " that namespace ", ns_,
                     " may use: name the administrator's file that has one with --stores FILE, "
                     "give the program's folder with --code DIR, or name an image that has it"));
  }

  // Whole, and from its start with each try: what comes is of one version of the object.
  StatusOr<std::string> Fetch(const std::string& field, const std::string& uri, int fd) {
    auto parsed = experiment::ParsePackageUri(uri);
    RETURN_IF_ERROR(Prefix(field, parsed.status()));
    ASSIGN_OR_RETURN(const StoreBucket* bucket, BucketOf(field, uri, parsed->bucket));
    const std::string shown = absl::StrCat(field, ": ", Printable(uri));
    RETURN_IF_ERROR(Prefix(shown, artifacts::ValidateObjectKey(parsed->object)));
    std::string digest;
    const Status fetched = artifacts::WithRetries({}, {}, [&]() -> Status {
      if (ftruncate(fd, 0) != 0) return ErrnoStatus("cannot empty a file", errno);
      if (lseek(fd, 0, SEEK_SET) != 0) return ErrnoStatus("cannot wind a file back", errno);
      Writer writer(fd);
      RETURN_IF_ERROR(bucket->whole->Get(
          parsed->object, {}, [&](std::string_view piece) { return writer.Add(piece); }, {}));
      digest = writer.Hex();
      return absl::OkStatus();
    });
    RETURN_IF_ERROR(Prefix(absl::StrCat(shown, " (store ", bucket->entry.name(), ")"), fetched));
    if (store_.empty()) store_ = bucket->entry.name();
    return digest;
  }

  static StatusOr<std::string> Copy(const std::string& path, int fd) {
    auto source = OpenBeneath("", path);
    if (!source.ok()) return UsageError("--packages: " + Message(source.status()));
    Writer writer(fd);
    std::string buffer(256 << 10, '\0');
    for (;;) {
      const ssize_t n = read(source->get(), buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return ErrnoStatus("cannot read " + Printable(path), errno);
      if (n == 0) return writer.Hex();
      RETURN_IF_ERROR(writer.Add(std::string_view(buffer.data(), static_cast<size_t>(n))));
    }
  }

  // What comes, with its digest; no more than a package may have.
  class Writer {
   public:
    explicit Writer(int fd) : fd_(fd) {}
    Status Add(std::string_view piece) {
      bytes_ += static_cast<int64_t>(piece.size());
      if (bytes_ > limits_.packed_bytes) {
        return absl::InvalidArgumentError(
            absl::StrFormat("it has more than %d MiB", limits_.packed_bytes >> 20));
      }
      hash_.Add(piece);
      return WriteAll(fd_, piece, "a package");
    }
    std::string Hex() { return hash_.Hex(); }

   private:
    const int fd_;
    const artifacts::PackageLimits limits_;
    int64_t bytes_ = 0;
    Sha256 hash_;
  };

  Status Unpack(int fd, const std::string& shown) {
    const std::string folder = absl::StrCat(work_, "/unpacked-", ++folders_);
    RETURN_IF_ERROR(artifacts::UnpackPackage(fd, folder, {}, {}));
    RETURN_IF_ERROR(MakeMovable(folder));
    ASSIGN_OR_RETURN(const Distribution distribution, Distribution::Of(folder));
    ASSIGN_OR_RETURN(const auto parts, distribution.Parts());
    if (parts.empty()) {
      return absl::InvalidArgumentError("it has no module and no package of Python");
    }
    RETURN_IF_ERROR(MakeDirs(all()));
    for (const fs::path& part : parts) {
      RETURN_IF_ERROR(MoveInto(part, fs::path(all()) / part.filename(), shown));
    }
    SayRequirements(shown, distribution.Requirements());
    return absl::OkStatus();
  }

  const std::vector<StoreBucket> buckets_;
  const std::string ns_;
  const std::string work_;
  std::string store_;
  int folders_ = 0;
};

}  // namespace

Status FetchPackages(v1::Experiment& experiment, const MorePackages& more, const Globals& globals,
                     const client::StateLocation& place) {
  auto& annotations = *experiment.mutable_metadata()->mutable_annotations();
  const std::vector<std::string> uris = experiment::PackageUrisOf(experiment);
  const auto named = annotations.find(experiment::kPackageUris);
  if (named != annotations.end() && experiment.spec().shirabe().has_code() &&
      !absl::StrContains(named->second, artifacts::kPackageScheme)) {
    annotations.erase(named);
    Warn(absl::StrCat(kPackagesField, " are not fetched: spec.shirabe.code has the program"));
  }
  if (uris.empty() && more.archives.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const StoreTablePtr stores, FindStores(globals, place));
  ASSIGN_OR_RETURN(std::vector<StoreBucket> buckets, FindBuckets(globals, place));
  ASSIGN_OR_RETURN(const auto work, TemporaryFolder::Create("shirabe-packages"));
  const std::string& ns = experiment.metadata().namespace_();
  Gatherer gatherer(std::move(buckets), ns, work->path());
  std::vector<std::string> fetched;
  for (size_t i = 0; i < uris.size(); ++i) {
    const std::string field = absl::StrCat(kPackagesField, "[", i, "]");
    ASSIGN_OR_RETURN(fetched.emplace_back(), gatherer.Add(field, uris[i]));
  }
  for (const std::string& archive : more.archives) {
    ASSIGN_OR_RETURN(fetched.emplace_back(), gatherer.Add("--packages", archive));
  }
  if (!more.folder.empty()) RETURN_IF_ERROR(gatherer.AddFolder(more.folder));
  v1::ShirabeSpec& ours = *experiment.mutable_spec()->mutable_shirabe();
  const std::string store =
      ours.artifacts().store().empty() ? gatherer.store() : ours.artifacts().store();
  ASSIGN_OR_RETURN(*ours.mutable_code(),
                   UploadCode({gatherer.all(), "", store, ours.artifacts().prefix()}, stores, ns));
  annotations[experiment::kPackageUris] = absl::StrJoin(fetched, ",");
  return absl::OkStatus();
}

}  // namespace shirabe::cmd
