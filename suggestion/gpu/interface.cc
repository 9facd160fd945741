// The functions of suggestion/gpu/shirabe_cuda.h: arguments are checked here, and nothing but a
// code leaves.
#include <cmath>
#include <new>

#include "suggestion/gpu/context.h"

namespace shirabe::suggestion::gpu {
namespace {

// What follows from these stays finite: 1e6 e^50 squared.
constexpr double kMaxInput = 1e6, kMaxTheta = 50, kMaxTarget = 1e100;

bool Within(const double* values, int64_t count, double bound) {
  for (int64_t i = 0; i < count; ++i) {
    if (!(std::abs(values[i]) <= bound)) return false;  // also what is not a number
  }
  return true;
}

// A matrix of points × columns; null where it has none.
bool Readable(const double* values, int64_t count, double bound) {
  return count == 0 || (values != nullptr && Within(values, count, bound));
}

bool IsTheta(const double* theta, const Uploaded& inputs) {
  return theta != nullptr && Within(theta, inputs.p + inputs.c + 3, kMaxTheta);
}

// Calls `function`; of the host's memory, too, it may be that there is not enough.
template <class Function>
int Guarded(Function function) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return kNoMemory;
  } catch (...) {
    return kInternal;
  }
}

// The same on a context's device, unless that is lost.
template <class Function>
int OnDevice(Context& context, Function function) {
  if (context.lost) return kDeviceLost;
  return Guarded([&]() -> int {
    Code code = UseDevice(context.info.ordinal);
    if (code == kOk) code = function();
    context.lost = context.lost || code == kDeviceLost;
    return code;
  });
}

bool IsModelData(const ModelData& data) {
  if (data.n < 1 || data.n > kMaxModelPoints || data.p < 0 || data.c < 0) return false;
  if (data.p > kMaxCoordinates || data.c > kMaxCoordinates - data.p) return false;
  if (data.p + data.c < 1 || data.m < 1 || data.m > kMaxColumns) return false;
  return Readable(data.x, data.n * data.p, kMaxInput) &&
         Readable(data.u, data.n * data.c, kMaxInput) &&
         Readable(data.y, data.n * data.m, kMaxTarget);
}

Code Upload(const ModelData& data, DeviceModel& model) {
  model.inputs = std::make_shared<Uploaded>();  // shared: with posteriors
  Uploaded& inputs = *model.inputs;
  inputs.n = static_cast<int>(data.n);
  inputs.p = data.p;
  inputs.c = data.c;
  model.m = data.m;
  const int64_t numeric = data.n * data.p, categories = data.n * data.c, y = data.n * data.m;
  Code code = inputs.memory.Reserve(numeric + categories);
  if (code == kOk) code = model.y.Reserve(y);
  if (code != kOk) return code;
  inputs.x = inputs.memory.data();
  inputs.u = inputs.x + numeric;
  if (numeric > 0) code = CopyToDevice(inputs.x, data.x, numeric * sizeof(double));
  if (code == kOk && categories > 0) {
    code = CopyToDevice(inputs.u, data.u, categories * sizeof(double));
  }
  return code == kOk ? CopyToDevice(model.y.data(), data.y, y * sizeof(double)) : code;
}

bool IsEvaluation(const Context& context, const Evaluation& evaluation) {
  const DeviceModel* model = evaluation.model;
  return model != nullptr && model->context == &context && evaluation.column >= 0 &&
         evaluation.column < model->m && evaluation.gradient != nullptr &&
         IsTheta(evaluation.theta, *model->inputs);
}

bool IsConditioning(const DeviceModel& model, const Conditioning& conditioning) {
  if (!IsTheta(conditioning.theta, *model.inputs)) return false;
  if (conditioning.mean != nullptr && !Within(conditioning.mean, 1, kMaxTarget)) return false;
  if (conditioning.y == nullptr) return true;
  return conditioning.m >= 1 && conditioning.m <= kMaxColumns &&
         Within(conditioning.y, static_cast<int64_t>(model.inputs->n) * conditioning.m, kMaxTarget);
}

bool IsScoring(const Context& context, const Scoring& scoring) {
  if (scoring.posterior == nullptr || scoring.posterior->context != &context) return false;
  const Kernel& kernel = scoring.posterior->item.kernel;
  return scoring.count >= 1 && scoring.count <= kMaxScoredPoints &&
         Readable(scoring.x, scoring.count * kernel.p, kMaxInput) &&
         Readable(scoring.u, scoring.count * kernel.c, kMaxInput);
}

}  // namespace

extern "C" {

int32_t shirabe_cuda_version() { return kAbiVersion; }

const char* shirabe_cuda_text(int code) {
  switch (code) {
    case kOk: return "done";
    case kBadArgument: return "an argument is null, out of bounds or not finite";
    case kNoDevice: return "no GPU that can be used";
    case kNoMemory: return "not enough memory";
    case kDeviceLost: return "the GPU is lost";
    case kNotPositive: return "the covariance matrix could not be factored";
    case kInternal: return "an internal error";
    default: return "an unknown code";
  }
}

int shirabe_cuda_open(int32_t ordinal, Context** context, DeviceInfo* info) {
  if (context == nullptr || info == nullptr) return kBadArgument;
  *context = nullptr;
  *info = DeviceInfo{};
  if (ordinal < -1) return kBadArgument;
  return Guarded([&]() -> int {
    const Code code = FindDevice(ordinal, *info);
    if (code != kOk) return code;
    auto opened = std::make_unique<Context>();
    opened->info = *info;
    *context = opened.release();
    return kOk;
  });
}

void shirabe_cuda_close(Context* context) {
  if (context == nullptr) return;
  UseDevice(context->info.ordinal);
  const std::unique_ptr<Context> owner(context);
}

int shirabe_cuda_upload(Context* context, const ModelData* data, DeviceModel** model) {
  if (context == nullptr || data == nullptr || model == nullptr) return kBadArgument;
  *model = nullptr;
  if (!IsModelData(*data)) return kBadArgument;
  return OnDevice(*context, [&] {
    auto uploaded = std::make_unique<DeviceModel>();
    uploaded->context = context;
    const Code code = Upload(*data, *uploaded);
    if (code == kOk) *model = uploaded.release();
    return code;
  });
}

int shirabe_cuda_evaluate(Context* context, Evaluation* batch, int64_t count) {
  if (context == nullptr || batch == nullptr || count < 1 || count > kMaxBatch) {
    return kBadArgument;
  }
  for (int64_t i = 0; i < count; ++i) {
    if (!IsEvaluation(*context, batch[i])) return kBadArgument;
  }
  return OnDevice(*context, [&] { return Evaluate(*context, {batch, count}); });
}

int shirabe_cuda_condition(const DeviceModel* model, const Conditioning* conditioning,
                           DevicePosterior** posterior, PosteriorParts* parts) {
  if (model == nullptr || conditioning == nullptr || posterior == nullptr) return kBadArgument;
  *posterior = nullptr;
  if (!IsConditioning(*model, *conditioning)) return kBadArgument;
  return OnDevice(*model->context, [&] {
    auto made = std::make_unique<DevicePosterior>();
    const Code code = Condition(*model, *conditioning, *made, parts);
    if (code == kOk) *posterior = made.release();
    return code;
  });
}

int shirabe_cuda_score(Context* context, const Scoring* batch, int64_t count) {
  if (context == nullptr || batch == nullptr || count < 1 || count > kMaxBatch) {
    return kBadArgument;
  }
  for (int64_t i = 0; i < count; ++i) {
    if (!IsScoring(*context, batch[i])) return kBadArgument;
  }
  return OnDevice(*context, [&] { return ScorePoints(*context, {batch, count}); });
}

void shirabe_cuda_release(DeviceModel* model, DevicePosterior* posterior) {
  if (model != nullptr) UseDevice(model->context->info.ordinal);
  if (posterior != nullptr) UseDevice(posterior->context->info.ordinal);
  const std::unique_ptr<DeviceModel> owned_model(model);
  const std::unique_ptr<DevicePosterior> owned_posterior(posterior);
}

}  // extern "C"

}  // namespace shirabe::suggestion::gpu
