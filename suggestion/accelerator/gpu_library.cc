#include "suggestion/accelerator/gpu_library.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/dynamic_library.h"

namespace shirabe::suggestion::accelerator {
namespace {

constexpr int kMaxOrdinal = 255;
constexpr size_t kLongestFolder = 1024;

// As it can be shown: of hostile values the beginning, without what a terminal obeys.
std::string Shown(const std::string& value) {
  constexpr size_t kShown = 64;
  return absl::StrCat("\"", absl::CHexEscape(value.substr(0, kShown)),
                      value.size() > kShown ? "…\"" : "\"");
}

// Why not, or "".
std::string WrongWithFolder(const std::string& folder) {
  if (folder[0] != '/') return " is not an absolute path";
  if (folder.size() > kLongestFolder) return " is too long";
  const bool controls = std::any_of(folder.begin(), folder.end(), [](char c) {
    return absl::ascii_iscntrl(static_cast<unsigned char>(c));
  });
  return controls ? " has a control character" : "";
}

bool IsNumber(const std::string& text) {
  return !text.empty() && text.size() <= 3 && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
}

}  // namespace

StatusOr<GpuSetting> ParseGpuSetting(const char* gpu, const char* folder) {
  GpuSetting setting;
  const std::string which = gpu == nullptr ? "" : gpu;
  setting.said = !which.empty();
  if (which == "off") {
    setting.off = true;
  } else if (!which.empty() && which != "auto") {
    if (!IsNumber(which) || !absl::SimpleAtoi(which, &setting.ordinal) ||
        setting.ordinal > kMaxOrdinal) {
      return absl::InvalidArgumentError(
          absl::StrCat("SHIRABE_GPU: ", Shown(which),
                       " is not auto, off or the number of a GPU: set it to one of them"));
    }
  }
  setting.folder = folder == nullptr ? "" : folder;
  if (setting.folder.empty()) return setting;
  if (const std::string wrong = WrongWithFolder(setting.folder); !wrong.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("SHIRABE_GPU_LIBRARY_DIR: ", Shown(setting.folder), wrong,
                     ": write the whole path of the folder that has libshirabe-cuda.so"));
  }
  return setting;
}

StatusOr<GpuSetting> ReadGpuSetting() {
  return ParseGpuSetting(std::getenv("SHIRABE_GPU"), std::getenv("SHIRABE_GPU_LIBRARY_DIR"));
}

namespace {

constexpr char kFileName[] = "libshirabe-cuda.so";

// "" where the system does not say.
std::string ProgramFolder() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0 || length == static_cast<ssize_t>(sizeof path)) return "";
  const std::string program(path, static_cast<size_t>(length));
  return program.substr(0, program.rfind('/'));
}

Status CheckOwner(const std::string& path, bool sticky_is_fine) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return ErrnoStatus("cannot look at " + path, errno);
  const bool owned = info.st_uid == 0 || info.st_uid == geteuid();
  if (owned && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0) return absl::OkStatus();
  if (owned && sticky_is_fine && (info.st_mode & S_ISVTX) != 0) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      path,
      owned ? " can be written by others: chmod go-w " : " belongs to another user: chown root ",
      path, ", or it is not opened"));
}

// Without symbolic links; the file itself, its folder and every one above: who may write to one of
// them could put another in the place of what is in it. A sticky folder (/tmp) is no such place.
Status CheckTrusted(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return ErrnoStatus("cannot look at " + path, errno);
  if (!S_ISREG(info.st_mode)) {
    return absl::PermissionDeniedError(path + " is not a file, so it is not opened");
  }
  RETURN_IF_ERROR(CheckOwner(path, /*sticky_is_fine=*/false));
  std::string folder = path.substr(0, path.rfind('/'));
  RETURN_IF_ERROR(CheckOwner(folder.empty() ? "/" : folder, /*sticky_is_fine=*/false));
  while (!folder.empty()) {
    folder.resize(folder.rfind('/'));
    RETURN_IF_ERROR(CheckOwner(folder.empty() ? "/" : folder, /*sticky_is_fine=*/true));
  }
  return absl::OkStatus();
}

StatusOr<std::string> WithoutLinks(const std::string& path) {
  char real[PATH_MAX];
  if (realpath(path.c_str(), real) == nullptr) return ErrnoStatus("cannot look at " + path, errno);
  return std::string(real);
}

StatusOr<GpuLibrary> LoadGpuLibraryFrom(const std::string& path) {
  const auto opened = OpenLibrary(path.c_str());
  if (!opened.ok()) return Prefix(path + " cannot be loaded", opened.status());
  decltype(&gpu::shirabe_cuda_version) version = nullptr;
  RETURN_IF_ERROR(FindFunction(*opened, "shirabe_cuda_version", &version));
  if (const int32_t is = version(); is != gpu::kAbiVersion) {
    return absl::UnimplementedError(
        absl::StrCat(path, " has interface ", is, ", and this program needs ",
                     int32_t{gpu::kAbiVersion}, ": install the one of version " SHIRABE_VERSION));
  }
  GpuLibrary library;
  Status found;
#define SHIRABE_GPU_FIND(name) \
  if (found.ok()) found = FindFunction(*opened, #name, &library.name);
  SHIRABE_GPU_FUNCTIONS(SHIRABE_GPU_FIND)
#undef SHIRABE_GPU_FIND
  if (!found.ok()) return Prefix(path, found);
  return library;
}

}  // namespace

std::vector<std::string> GpuLibraryFolders(const GpuSetting& setting) {
  if (!setting.folder.empty()) return {setting.folder};
  const std::string own = ProgramFolder();
  if (own.empty()) return {};
  return {own, own + "/../lib/shirabe"};
}

StatusOr<GpuLibrary> LoadGpuLibrary(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    const std::string path = absl::StrCat(folder, "/", kFileName);
    if (access(path.c_str(), F_OK) != 0) continue;
    ASSIGN_OR_RETURN(const std::string real, WithoutLinks(path));
    RETURN_IF_ERROR(CheckTrusted(real));
    return LoadGpuLibraryFrom(real);
  }
  return absl::NotFoundError(
      absl::StrCat("no ", kFileName, " in ", absl::StrJoin(folders, " or ")));
}

namespace {

// Of a field that the library has filled, with or without its 0.
template <size_t size>
std::string TextOfField(const char (&field)[size]) {
  return {field, strnlen(field, size)};
}

}  // namespace

std::string DescribeDevice(const gpu::DeviceInfo& info) {
  return absl::StrFormat("%s, %.0f GB, compute capability %d.%d, GPU %d of %d",
                         TextOfField(info.name), static_cast<double>(info.total_bytes) / 1e9,
                         info.major, info.minor, info.ordinal, info.devices);
}

StatusOr<GpuSession> GpuSession::Open(const GpuLibrary& library, int ordinal, int most_ratio) {
  gpu::Context* context = nullptr;
  gpu::DeviceInfo info = {};
  const int code = library.shirabe_cuda_open(ordinal, &context, &info);
  if (code != gpu::kOk || context == nullptr) {
    const std::string reason = TextOfField(info.reason);
    return absl::UnavailableError(reason.empty() ? library.shirabe_cuda_text(code) : reason);
  }
  if (info.single_to_double > most_ratio) {
    library.shirabe_cuda_close(context);
    return absl::UnavailableError(
        absl::StrCat(DescribeDevice(info), ": doubles take ", info.single_to_double,
                     " times as long as floats there, so that the processor is as quick"));
  }
  return GpuSession(library, context, info);
}

GpuSession::GpuSession(GpuSession&& other) noexcept
    : library_(other.library_),
      context_(std::exchange(other.context_, nullptr)),
      info_(other.info_),
      models_(std::exchange(other.models_, {})),
      posteriors_(std::exchange(other.posteriors_, {})) {}

GpuSession::~GpuSession() {
  if (context_ == nullptr) return;
  for (gpu::DevicePosterior* posterior : posteriors_) {
    library_.shirabe_cuda_release(nullptr, posterior);
  }
  for (gpu::DeviceModel* model : models_) library_.shirabe_cuda_release(model, nullptr);
  library_.shirabe_cuda_close(context_);
}

Status GpuSession::StatusFor(int code) const {
  if (code == gpu::kOk) return absl::OkStatus();
  const char* const text = library_.shirabe_cuda_text(code);
  switch (code) {
    case gpu::kNoMemory: return absl::ResourceExhaustedError(text);
    case gpu::kNotPositive: return absl::FailedPreconditionError(text);
    case gpu::kBadArgument: return absl::InvalidArgumentError(text);
    default: return absl::UnavailableError(text);
  }
}

StatusOr<gpu::DeviceModel*> GpuSession::Upload(const gpu::ModelData& data) {
  gpu::DeviceModel* model = nullptr;
  RETURN_IF_ERROR(StatusFor(library_.shirabe_cuda_upload(context_, &data, &model)));
  models_.insert(model);
  return model;
}

Status GpuSession::Evaluate(std::span<gpu::Evaluation> batch) {
  const auto count = static_cast<int64_t>(batch.size());
  return StatusFor(library_.shirabe_cuda_evaluate(context_, batch.data(), count));
}

StatusOr<gpu::DevicePosterior*> GpuSession::Condition(const gpu::DeviceModel* model,
                                                      const gpu::Conditioning& conditioning,
                                                      gpu::PosteriorParts* parts) {
  gpu::DevicePosterior* posterior = nullptr;
  RETURN_IF_ERROR(
      StatusFor(library_.shirabe_cuda_condition(model, &conditioning, &posterior, parts)));
  posteriors_.insert(posterior);
  return posterior;
}

Status GpuSession::Score(std::span<const gpu::Scoring> batch) {
  const auto count = static_cast<int64_t>(batch.size());
  return StatusFor(library_.shirabe_cuda_score(context_, batch.data(), count));
}

void GpuSession::Release(gpu::DeviceModel* model, gpu::DevicePosterior* posterior) {
  if (models_.erase(model) == 0) model = nullptr;
  if (posteriors_.erase(posterior) == 0) posterior = nullptr;
  if (model != nullptr || posterior != nullptr) library_.shirabe_cuda_release(model, posterior);
}

}  // namespace shirabe::suggestion::accelerator
