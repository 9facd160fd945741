#include "suggestion/accelerator/gpu_session.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace shirabe::suggestion::accelerator {
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
