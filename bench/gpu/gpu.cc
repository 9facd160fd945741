// The Gaussian process on a GPU and on one core, the same data and the same θ. A program by itself,
// without gRPC: it is carried to a machine with a GPU, libshirabe-cuda.so beside it. Where there is
// no GPU it says so, and measures the core alone.
//
//   gpu_bench [FACTOR [gpu]]   FACTOR: of all numbers of points and candidates, to try it quickly
//                              (0.1); gpu: leaves the core out
//
// Times of the core are its processor time, those of the GPU elapsed time, copies included; the
// median of the repetitions. bench/gpu/peer.py measures BoTorch on the same GPU.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "suggestion/gp/gaussian_process.h"
#include "suggestion/gpu/shirabe_cuda.h"

namespace shirabe::suggestion::gpu {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr int kCoordinates = 20, kStudies = 64;

struct Library {
  decltype(&shirabe_cuda_open) open;
  decltype(&shirabe_cuda_upload) upload;
  decltype(&shirabe_cuda_evaluate) evaluate;
  decltype(&shirabe_cuda_condition) condition;
  decltype(&shirabe_cuda_score) score;
  decltype(&shirabe_cuda_release) release;
  Context* context = nullptr;
};

// Its context is null where there is no GPU; says why.
Library Open(const std::string& program) {
  Library library{};
  const std::string path = program.substr(0, program.rfind('/') + 1) + "libshirabe-cuda.so";
  void* opened = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr) {
    std::printf("no GPU here: %s\n", dlerror());
    return library;
  }
  const auto find = [opened](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(opened, name));
  };
  find(library.open, "shirabe_cuda_open");
  find(library.upload, "shirabe_cuda_upload");
  find(library.evaluate, "shirabe_cuda_evaluate");
  find(library.condition, "shirabe_cuda_condition");
  find(library.score, "shirabe_cuda_score");
  find(library.release, "shirabe_cuda_release");
  DeviceInfo info;
  if (library.open(-1, &library.context, &info) != kOk) {
    std::printf("no GPU here: %s\n", info.reason);
  } else {
    std::printf("GPU: %s, compute capability %d.%d, driver for CUDA %d, doubles at 1/%d\n",
                info.name, info.major, info.minor, info.driver_version / 1000,
                info.single_to_double);
  }
  return library;
}

void Check(int code) {
  if (code == kOk) return;
  std::fprintf(stderr, "gpu_bench: the library returned %d\n", code);
  std::exit(1);
}

double Elapsed() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
double Processor() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

bool with_core = true;

// Median milliseconds of so many calls.
double Time(double (*clock)(), int repetitions, const std::function<void()>& call) {
  std::vector<double> times;
  for (int i = 0; i < repetitions; ++i) {
    const double start = clock();
    call();
    times.push_back(1000 * (clock() - start));
  }
  std::nth_element(times.begin(), times.begin() + repetitions / 2, times.end());
  return times[repetitions / 2];
}

// Of processor time; 0 where the core is left out.
double TimeCore(int repetitions, const std::function<void()>& call) {
  return with_core ? Time(Processor, repetitions, call) : 0;
}

struct Data {
  gp::Inputs inputs;
  VectorXd y;
};

// In [0, 1), the same everywhere: SplitMix64.
double Draw(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return static_cast<double>((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

// A function with structure, and noise.
Data MakeData(int n, uint64_t seed) {
  uint64_t state = seed;
  Data data{{MatrixXd(n, kCoordinates), MatrixXd(n, 0)}, VectorXd(n)};
  for (double& x : data.inputs.x.reshaped()) x = Draw(state);
  for (int i = 0; i < n; ++i) {
    data.y[i] = 0.2 * (Draw(state) - 0.5);
    for (int j = 0; j < 5; ++j) data.y[i] += std::sin((3 + j) * data.inputs.x(i, j));
  }
  data.y.array() -= data.y.mean();
  data.y /= std::sqrt(data.y.squaredNorm() / n);
  return data;
}

DeviceModel* Upload(const Library& library, const Data& data) {
  const ModelData model_data{
      data.inputs.rows(), data.inputs.numeric(), 0, 1, data.inputs.x.data(), nullptr,
      data.y.data()};
  DeviceModel* model = nullptr;
  Check(library.upload(library.context, &model_data, &model));
  return model;
}

// The library leaves the prior out: it is what is left of one point, whose likelihood is known.
double AddPrior(const gp::Theta& theta, VectorXd& gradient) {
  const gp::Inputs point{MatrixXd::Zero(1, kCoordinates), MatrixXd(1, 0)};
  VectorXd prior;
  const double value = gp::NegativeLogPosterior(theta, point, VectorXd::Zero(1), prior);
  const double k = theta.scale() + theta.noise() + 1e-9;
  prior[kCoordinates] -= 0.5 * theta.scale() / k;
  prior[kCoordinates + 1] -= 0.5 * theta.noise() / k;
  gradient += prior;
  return value - 0.5 * std::log(k);
}

// Whole fits of all models in lock-step, as gp::Fit does one; `inputs` of any, for its size.
// Evaluations of the longest.
int FitTogether(const Library& library, const std::vector<DeviceModel*>& models,
                const gp::Inputs& inputs) {
  const gp::Lbfgs begun = gp::BeginFit(inputs, gp::DefaultTheta(kCoordinates, 0));
  std::vector<gp::Lbfgs> fits(models.size(), begun);
  std::vector<VectorXd> gradients(models.size(), VectorXd(kCoordinates + 3));
  for (int steps = 0;; ++steps) {
    std::vector<Evaluation> batch;
    std::vector<size_t> which;
    for (size_t i = 0; i < fits.size(); ++i) {
      if (fits[i].done()) continue;
      which.push_back(i);
      batch.push_back({models[i], 0, fits[i].next().data(), 0, gradients[i].data()});
    }
    if (batch.empty()) return steps;
    Check(library.evaluate(library.context, batch.data(), static_cast<int64_t>(batch.size())));
    for (size_t b = 0; b < batch.size(); ++b) {
      gp::Lbfgs& fit = fits[which[b]];
      VectorXd& gradient = gradients[which[b]];
      const double prior = AddPrior({fit.next()}, gradient);
      fit.Tell(batch[b].value + prior, gradient);
    }
  }
}

void Row(const char* what, double core, double gpu) {
  std::printf("| %s | ", what);
  if (core > 0) {
    std::printf("%.4g | ", core);
  } else {
    std::printf("left out | ");
  }
  if (gpu > 0 && core > 0) {
    std::printf("%.4g | %.1f |\n", gpu, core / gpu);
  } else if (gpu > 0) {
    std::printf("%.4g | |\n", gpu);
  } else {
    std::printf("not measured on a GPU | |\n");
  }
  std::fflush(stdout);
}

void MeasureOneFit(const Library& library, int n) {
  const Data data = MakeData(n, 1);
  const gp::Theta theta = gp::DefaultTheta(kCoordinates, 0);
  VectorXd gradient(kCoordinates + 3);
  const double core_step =
      TimeCore(3, [&] { gp::NegativeLogPosterior(theta, data.inputs, data.y, gradient); });
  int evaluations = 0;
  const double core_fit =
      TimeCore(1, [&] { evaluations = gp::Fit(data.inputs, data.y, theta).evaluations; });
  double gpu_step = 0, gpu_fit = 0;
  if (library.context != nullptr) {
    DeviceModel* model = Upload(library, data);
    Evaluation evaluation{model, 0, theta.values.data(), 0, gradient.data()};
    const auto step = [&] { Check(library.evaluate(library.context, &evaluation, 1)); };
    step();
    gpu_step = Time(Elapsed, 21, step);
    gpu_fit = Time(Elapsed, 3, [&] { evaluations = FitTogether(library, {model}, data.inputs); });
    library.release(model, nullptr);
  }
  const std::string size = "n = " + std::to_string(n);
  Row((size + ", value and gradient").c_str(), core_step, gpu_step);
  const std::string steps = ", a whole fit (" + std::to_string(evaluations) + " evaluations)";
  Row((size + steps).c_str(), core_fit, gpu_fit);
}

// The core does one of them, which is multiplied.
void MeasureBatch(const Library& library, int n) {
  const gp::Theta theta = gp::DefaultTheta(kCoordinates, 0);
  const Data first = MakeData(n, 2);
  VectorXd gradient(kCoordinates + 3);
  const double core_step = kStudies * TimeCore(3, [&] {
                             gp::NegativeLogPosterior(theta, first.inputs, first.y, gradient);
                           });
  const double core_fit = kStudies * TimeCore(1, [&] { gp::Fit(first.inputs, first.y, theta); });
  double gpu_step = 0, gpu_fit = 0;
  int evaluations = 0;
  if (library.context != nullptr) {
    std::vector<DeviceModel*> models;
    MatrixXd gradients(kCoordinates + 3, kStudies);
    std::vector<Evaluation> batch;
    for (int i = 0; i < kStudies; ++i) {
      models.push_back(Upload(library, MakeData(n, 2 + i)));
      batch.push_back({models[i], 0, theta.values.data(), 0, gradients.col(i).data()});
    }
    const auto step = [&] { Check(library.evaluate(library.context, batch.data(), kStudies)); };
    step();
    gpu_step = Time(Elapsed, 11, step);
    gpu_fit = Time(Elapsed, 3, [&] { evaluations = FitTogether(library, models, first.inputs); });
    for (DeviceModel* model : models) library.release(model, nullptr);
  }
  const std::string size = "64 × n = " + std::to_string(n);
  Row((size + ", value and gradient").c_str(), core_step, gpu_step);
  std::string fits = size + ", whole fits";
  if (evaluations > 0) fits += " (the longest: " + std::to_string(evaluations) + ")";
  Row(fits.c_str(), core_fit, gpu_fit);
}

void MeasureScoring(const Library& library, int n, int candidates) {
  constexpr int kBlock = 128;  // as gp::Acquisition::EvaluateAll
  const Data data = MakeData(n, 3);
  const gp::Inputs points = MakeData(candidates, 4).inputs;
  const gp::Theta theta = gp::DefaultTheta(kCoordinates, 0);
  gp::Posterior posterior(theta, data.inputs);
  posterior.SetTargets(data.y);
  VectorXd mean(candidates), variance(candidates);
  const double core = TimeCore(1, [&] {
    for (int begin = 0; begin < candidates; begin += kBlock) {
      const int count = std::min(kBlock, candidates - begin);
      const auto prediction = posterior.Predict(points.Rows(begin, count));
      mean.segment(begin, count) = prediction.mean.col(0);
      variance.segment(begin, count) = prediction.variance;
    }
  });
  double gpu = 0;
  if (library.context != nullptr) {
    DeviceModel* model = Upload(library, data);
    const Conditioning conditioning{theta.values.data(), nullptr, 0, nullptr};
    DevicePosterior* conditioned = nullptr;
    Check(library.condition(model, &conditioning, &conditioned, nullptr));
    const Scoring scoring{conditioned, candidates,      points.x.data(), nullptr,
                          mean.data(), variance.data(), nullptr,         nullptr};
    const auto score = [&] { Check(library.score(library.context, &scoring, 1)); };
    score();
    gpu = Time(Elapsed, 21, score);
    library.release(model, conditioned);
  }
  Row((std::to_string(candidates) + " candidates, n = " + std::to_string(n)).c_str(), core, gpu);
}

}  // namespace
}  // namespace shirabe::suggestion::gpu

int main(int argc, char** argv) {
  using namespace shirabe::suggestion::gpu;
  const double factor = argc > 1 ? std::atof(argv[1]) : 1;
  with_core = argc <= 2;
  if (!(factor > 0 && factor <= 2) || argc > 3 || (argc == 3 && std::strcmp(argv[2], "gpu") != 0)) {
    std::fprintf(stderr, "usage: gpu_bench [FACTOR [gpu]], FACTOR above 0 and at most 2\n");
    return 2;
  }
  const Library library = Open(argv[0]);
  std::printf("| what, %d coordinates | one core, ms | GPU, ms | times faster |\n", kCoordinates);
  std::printf("| --- | ---: | ---: | ---: |\n");
  MeasureScoring(library, static_cast<int>(1000 * factor), static_cast<int>(65536 * factor));
  MeasureOneFit(library, static_cast<int>(2000 * factor));
  MeasureBatch(library, static_cast<int>(1000 * factor));
}
