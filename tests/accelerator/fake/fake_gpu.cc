// libshirabe-cuda.so for tests: the interface of suggestion/gpu/shirabe_cuda.h on this processor,
// by Eigen, with the faults that SHIRABE_FAKE_GPU names, as "what=value" parted by blanks. It is
// read when a context is opened (the version: when that is asked).
//
//   version=N        says that it has interface N
//   open=CODE        opening fails
//   ratio=N          floats are so many times as fast as doubles
//   FUNCTION=K:CODE  from the K-th call on (the first is 1) upload, evaluate, condition or score
//                    fails with CODE
//   limit=N          a batch of more than N evaluations or scorings has no memory
//   hang=FILE        evaluations and scorings wait while FILE exists
//   calls=FILE       the first letter of each of these functions that is called is written there
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "suggestion/gp/gaussian_process.h"
#include "suggestion/gpu/shirabe_cuda.h"

namespace shirabe::suggestion::gpu {

using Eigen::Index;
using Eigen::Map;
using Eigen::MatrixXd;
using Eigen::VectorXd;

struct Context {
  std::map<std::string, int> calls;
  int alive = 0;
};
struct DeviceModel {
  Context* context;
  gp::Inputs inputs;
  MatrixXd y;
};
struct DevicePosterior {
  Context* context;
  gp::Posterior posterior;
};

namespace {

std::string Setting(const std::string& name) {
  const char* const all = std::getenv("SHIRABE_FAKE_GPU");
  const std::string text = std::string(" ") + (all == nullptr ? "" : all) + " ";
  const size_t at = text.find(" " + name + "=");
  if (at == std::string::npos) return "";
  const size_t begin = at + name.size() + 2;
  return text.substr(begin, text.find(' ', begin) - begin);
}

int Number(const std::string& name, int without) {
  const std::string text = Setting(name);
  return text.empty() ? without : std::atoi(text.c_str());
}

int FaultOf(Context& context, const std::string& function) {
  const std::string calls = Setting("calls");
  if (!calls.empty()) std::ofstream(calls, std::ios::app) << function[0];
  const int call = ++context.calls[function];
  const std::string fault = Setting(function);
  const size_t colon = fault.find(':');
  if (colon == std::string::npos || call < std::atoi(fault.c_str())) return kOk;
  return std::atoi(fault.c_str() + colon + 1);
}

MatrixXd CopyOf(const double* values, Index rows, Index columns) {
  if (columns == 0) return MatrixXd(rows, 0);
  return Map<const MatrixXd>(values, rows, columns);
}

gp::Theta ThetaOf(const double* values, const gp::Inputs& inputs) {
  return {Map<const VectorXd>(values, gp::Theta::Size(inputs.numeric(), inputs.categorical()))};
}

void Put(const MatrixXd& from, double* to) {
  if (to != nullptr) std::memcpy(to, from.data(), from.size() * sizeof(double));
}

void WaitWhileItHangs() {
  const std::string file = Setting("hang");
  while (!file.empty() && access(file.c_str(), F_OK) == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void ScoreOne(const Scoring& scoring) {
  const gp::Posterior& from = scoring.posterior->posterior;
  const Index count = scoring.count, p = from.inputs().numeric(), m = from.scenarios();
  const gp::Inputs points{CopyOf(scoring.x, count, p),
                          CopyOf(scoring.u, count, from.inputs().categorical())};
  const auto prediction = from.Predict(points, gp::Slopes::kYes);
  Put(prediction.mean, scoring.mean);
  Put(prediction.variance, scoring.variance);
  for (Index k = 0; k < m && scoring.mean_slopes != nullptr; ++k) {
    MatrixXd bar = MatrixXd::Zero(count, m);
    bar.col(k).setOnes();
    Put(from.Pullback(points, prediction, bar, VectorXd::Zero(count)),
        scoring.mean_slopes + k * p * count);
  }
  if (scoring.variance_slopes != nullptr) {
    Put(from.Pullback(points, prediction, MatrixXd::Zero(count, m), VectorXd::Ones(count)),
        scoring.variance_slopes);
  }
}

}  // namespace

extern "C" {

int32_t shirabe_cuda_version() { return Number("version", kAbiVersion); }

const char* shirabe_cuda_text(int code) {
  static const char* const texts[] = {"fine",        "bad argument", "no device", "no memory",
                                      "device lost", "not positive", "internal"};
  return code >= 0 && code <= kInternal ? texts[code] : "unknown";
}

int shirabe_cuda_open(int32_t ordinal, Context** context, DeviceInfo* info) {
  *info = {};
  std::snprintf(info->name, sizeof info->name, "Fake 1");
  if (const int code = Number("open", ordinal > 0 ? kNoDevice : kOk); code != kOk) {
    std::snprintf(info->reason, sizeof info->reason, "there is no GPU %d", ordinal);
    return code;
  }
  info->devices = 1;
  info->major = 9;
  info->single_to_double = Number("ratio", 2);
  info->free_bytes = info->total_bytes = uint64_t{8} << 30;
  *context = std::make_unique<Context>().release();
  return kOk;
}

void shirabe_cuda_close(Context* context) {
  // What was not released is a mistake of the caller.
  if (context != nullptr && context->alive != 0) std::abort();
  const std::unique_ptr<Context> end(context);
}

int shirabe_cuda_upload(Context* context, const ModelData* data, DeviceModel** model) {
  if (const int code = FaultOf(*context, "upload"); code != kOk) return code;
  gp::Inputs inputs{CopyOf(data->x, data->n, data->p), CopyOf(data->u, data->n, data->c)};
  DeviceModel made{context, std::move(inputs), CopyOf(data->y, data->n, data->m)};
  *model = std::make_unique<DeviceModel>(std::move(made)).release();
  ++context->alive;
  return kOk;
}

int shirabe_cuda_evaluate(Context* context, Evaluation* batch, int64_t count) {
  if (const int code = FaultOf(*context, "evaluate"); code != kOk) return code;
  if (count > Number("limit", kMaxBatch)) return kNoMemory;
  WaitWhileItHangs();
  for (Evaluation* one = batch; one < batch + count; ++one) {
    const gp::Inputs& inputs = one->model->inputs;
    const gp::Theta theta = ThetaOf(one->theta, inputs);
    if (!theta.values.allFinite()) return kBadArgument;
    VectorXd gradient, prior = VectorXd::Zero(theta.values.size());
    const VectorXd y = one->model->y.col(one->column);
    one->value = gp::NegativeLogPosterior(theta, inputs, y, gradient);
    if (std::isfinite(one->value)) {
      one->value -= gp::NegativeLogPrior(theta, inputs.numeric(), inputs.categorical(), prior);
      gradient -= prior;
    }
    Put(gradient, one->gradient);
  }
  return kOk;
}

int shirabe_cuda_condition(const DeviceModel* model, const Conditioning* conditioning,
                           DevicePosterior** posterior, PosteriorParts* parts) {
  if (const int code = FaultOf(*model->context, "condition"); code != kOk) return code;
  const Index n = model->inputs.rows();
  gp::Posterior made(ThetaOf(conditioning->theta, model->inputs), model->inputs);
  const double* const mean = conditioning->mean;
  made.SetTargets(
      conditioning->y == nullptr ? model->y : CopyOf(conditioning->y, n, conditioning->m),
      mean == nullptr ? std::nullopt : std::optional<double>(*mean));
  if (parts != nullptr && parts->inverse != nullptr) Put(made.inverse(), parts->inverse);
  DevicePosterior owned{model->context, std::move(made)};
  *posterior = std::make_unique<DevicePosterior>(std::move(owned)).release();
  ++model->context->alive;
  return kOk;
}

int shirabe_cuda_score(Context* context, const Scoring* batch, int64_t count) {
  if (const int code = FaultOf(*context, "score"); code != kOk) return code;
  if (count > Number("limit", kMaxBatch)) return kNoMemory;
  WaitWhileItHangs();
  for (const Scoring* one = batch; one < batch + count; ++one) {
    const Index cells = one->count * one->posterior->posterior.inputs().numeric();
    for (Index i = 0; i < cells; ++i) {
      if (!std::isfinite(one->x[i])) return kBadArgument;
    }
  }
  for (const Scoring* one = batch; one < batch + count; ++one) ScoreOne(*one);
  return kOk;
}

void shirabe_cuda_release(DeviceModel* model, DevicePosterior* posterior) {
  if (model != nullptr) --model->context->alive;
  if (posterior != nullptr) --posterior->context->alive;
  const std::unique_ptr<DeviceModel> first(model);
  const std::unique_ptr<DevicePosterior> second(posterior);
}

}  // extern "C"

}  // namespace shirabe::suggestion::gpu
