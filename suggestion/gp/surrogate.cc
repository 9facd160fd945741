#include "suggestion/gp/surrogate.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <numeric>
#include <utility>
#include <vector>

#include "base/cancellation.h"
#include "base/rng.h"
#include "suggestion/gp/engine_choice.h"

namespace shirabe::suggestion::gp {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr char kMagic[8] = {'g', 'p', ' ', 'm', 'e', 'm', 'o', '1'};
// The same with the engine after the thetas.
constexpr char kMagicOfEngine[8] = {'g', 'p', ' ', 'm', 'e', 'm', 'o', '2'};
// So many points more than at the last fit ask for another: each of them up to 60, then 2 %.
constexpr int64_t kEveryTime = 60;
constexpr double kGrowth = 1.02;
constexpr int kWarps = static_cast<int>(std::size(kWarpKinds));
// Of labels of variance 1: how far one odd trial is believed.
constexpr double kLabelNoise = 0.1;
// A warp that is not better by this share of ordered pairs does not replace the last one.
constexpr double kHysteresis = 0.005;
constexpr double kSure = 2;  // deviations of the difference, to recommend

// The least count of points, after a fit to `fitted_at` of them, at which there is another.
int64_t NextFit(int64_t fitted_at) {
  if (fitted_at < kEveryTime) return fitted_at + 1;
  return static_cast<int64_t>(std::ceil(kGrowth * static_cast<double>(fitted_at)));
}

bool NeedsFit(int64_t n, const SurrogateMemo& memory) {
  if (memory.fitted_at <= 0 || n < memory.fitted_at) return true;
  if (memory.thetas[static_cast<int>(memory.warp)].values.size() == 0) return true;
  return n >= NextFit(memory.fitted_at);
}

// Which points the parameters are fitted to: all of them, or the better half of what is allowed and
// others evenly from the rest.
std::vector<Index> ChooseForFit(const VectorXd& scores, Index most) {
  std::vector<Index> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  if (scores.size() <= most) return order;
  std::stable_sort(order.begin(), order.end(),
                   [&](Index a, Index b) { return scores[a] > scores[b]; });
  std::vector<Index> chosen(order.begin(), order.begin() + most / 2);
  std::sort(order.begin() + most / 2, order.end());
  const Index rest = scores.size() - most / 2, wanted = most - most / 2;
  for (Index i = 0; i < wanted; ++i) chosen.push_back(order[most / 2 + i * rest / wanted]);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

// A model, and the points of it that parameters are fitted to, as a model of their own.
struct FitModels {
  std::vector<Index> chosen;
  std::unique_ptr<Engine::Model> all, some;  // some: null where all are chosen

  const Engine::Model& fitted() const { return some == nullptr ? *all : *some; }
};
StatusOr<FitModels> UploadForFit(const Engine& engine, const Inputs& inputs, const MatrixXd& y,
                                 const VectorXd& scores) {
  FitModels models{.chosen = ChooseForFit(scores, engine.most_fitted())};
  ASSIGN_OR_RETURN(models.all, engine.Upload(inputs, y));
  const std::vector<Index>& chosen = models.chosen;
  if (static_cast<Index>(chosen.size()) == y.rows()) return models;
  ASSIGN_OR_RETURN(models.some,
                   engine.Upload({inputs.x(chosen, Eigen::all), inputs.u(chosen, Eigen::all)},
                                 y(chosen, Eigen::all)));
  return models;
}

LearnSize SizeOf(const Inputs& inputs, int fits) {
  return {inputs.rows(), inputs.numeric() + inputs.categorical(), fits};
}

Theta StartOf(const Theta& last, const Inputs& inputs) {
  if (last.values.size() > 0) return last;
  return DefaultTheta(inputs.numeric(), inputs.categorical());
}

Posterior Condition(const Theta& theta, const Inputs& inputs, const VectorXd& y) {
  Posterior posterior(theta, inputs);
  posterior.SetTargets(y);
  return posterior;
}

void Put(std::string& text, double value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  text.append(bytes, sizeof bytes);
}

double Get(const std::string& text, size_t at) {
  double value = 0;
  std::memcpy(&value, text.data() + at, sizeof value);
  return value;
}

// As a double of 48 whole bits, so that every field has the same form.
double Checksum(const std::string& text) { return static_cast<double>(Fingerprint(text) >> 16); }

}  // namespace

std::string SurrogateMemo::Serialize() const {
  const bool here = engine == EngineKind::kProcessor;
  std::string text(here ? kMagic : kMagicOfEngine, sizeof kMagic);
  Put(text, static_cast<double>(fitted_at));
  Put(text, static_cast<double>(static_cast<int>(warp)));
  for (const Theta& theta : thetas) {
    Put(text, static_cast<double>(theta.values.size()));
    for (const double value : theta.values) Put(text, value);
  }
  if (!here) Put(text, static_cast<double>(static_cast<int>(engine)));
  Put(text, Checksum(text));
  return text;
}

SurrogateMemo SurrogateMemo::Parse(const std::string& text, int theta_size) {
  constexpr size_t kField = sizeof(double);
  if (text.size() < sizeof kMagic + kField || text.size() % kField != 0) return {};
  const bool with_engine = std::memcmp(text.data(), kMagicOfEngine, sizeof kMagic) == 0;
  if (!with_engine && std::memcmp(text.data(), kMagic, sizeof kMagic) != 0) return {};
  const size_t end = text.size() - kField;
  if (Get(text, end) != Checksum(text.substr(0, end))) return {};
  SurrogateMemo memory;
  size_t at = sizeof kMagic;
  const auto next = [&] {
    const double value = at < end ? Get(text, at) : 0;
    at += kField;
    return value;
  };
  memory.fitted_at = static_cast<int64_t>(next());
  memory.warp = static_cast<WarpKind>(static_cast<int>(next()));
  for (Theta& theta : memory.thetas) {
    const auto size = static_cast<int>(next());
    if (size != 0 && size != theta_size) return {};  // of another space
    theta.values.resize(size);
    for (double& value : theta.values) value = next();
  }
  if (with_engine) {
    memory.engine = EngineKind::kAccelerator;
    if (next() != static_cast<int>(memory.engine)) return {};
  }
  return at == end ? memory : SurrogateMemo();
}

int64_t LastFitCount(int64_t points) {
  if (points <= kEveryTime) return points;
  int64_t count = kEveryTime;
  for (int64_t next = count; next <= points; next = NextFit(next)) count = next;
  return count;
}

namespace {

// What is fitted, and whether a process of all points is wanted, or of those that were fitted.
struct Task {
  const Inputs& inputs;
  const VectorXd& scores;
  bool of_all;
};

// As Refit, by one engine, whose kind is left to the caller.
StatusOr<Surrogate> RefitBy(const Engine& engine, const Task& task, SurrogateMemo& memory) {
  const auto& [inputs, scores, of_all] = task;
  const WarpKind last = memory.warp;
  const bool has_last = memory.fitted_at > 0;
  std::vector<Warp> warps;
  MatrixXd y(inputs.rows(), kWarps);
  std::vector<Engine::Start> starts;
  for (const WarpKind kind : kWarpKinds) {
    const int column = static_cast<int>(kind);
    warps.emplace_back(kind, scores);
    y.col(column) = warps.back().warped();
    starts.push_back({column, StartOf(memory.thetas[column], inputs)});
  }
  ASSIGN_OR_RETURN(const FitModels models, UploadForFit(engine, inputs, y, scores));
  ASSIGN_OR_RETURN(const auto fitted, engine.Fit(models.fitted(), starts));
  const VectorXd compared = scores(models.chosen);
  std::optional<Posterior> best;
  double best_order = -1;
  for (const WarpKind kind : kWarpKinds) {
    const int column = static_cast<int>(kind);
    memory.thetas[column] = fitted[column].theta;
    ASSIGN_OR_RETURN(Posterior posterior,
                     engine.Condition(models.fitted(), {column, memory.thetas[column]}));
    double order = Concordance(compared, posterior.LeaveOneOut());
    if (has_last && kind == last) order += kHysteresis;
    if (order <= best_order) continue;
    best_order = order;
    memory.warp = kind;
    best = std::move(posterior);
  }
  const int column = static_cast<int>(memory.warp);
  if (models.some != nullptr && of_all) {
    ASSIGN_OR_RETURN(best, engine.Condition(*models.all, {column, memory.thetas[column]}));
  }
  memory.fitted_at = inputs.rows();
  return Surrogate{std::move(warps[column]), *std::move(best)};
}

Surrogate RefitFor(const Task& task, SurrogateMemo& memory) {
  const LearnSize size = SizeOf(task.inputs, kWarps);
  const std::unique_ptr<Engine> engine = DecidedEngine(memory.past(), size);
  const bool was_there = memory.engine == EngineKind::kAccelerator && AcceleratorPays(size);
  if (engine != nullptr) {
    SurrogateMemo after = memory;
    after.engine = engine->kind();
    StatusOr<Surrogate> surrogate = RefitBy(*engine, task, after);
    if (surrogate.ok()) {
      memory = std::move(after);
      return *std::move(surrogate);
    }
  }
  memory.engine = EngineKind::kProcessor;
  Surrogate surrogate = *RefitBy(ProcessorEngine(), task, memory);
  surrogate.moved = was_there || engine != nullptr;
  return surrogate;
}

// The process as it was fitted last, where it was fitted.
StatusOr<Posterior> ConditionAgain(const Inputs& inputs, const VectorXd& y, const Theta& theta,
                                   const LearnSize& size) {
  const std::unique_ptr<Engine> engine = FindAcceleratedEngine(size);
  if (engine == nullptr) return absl::UnavailableError("the accelerator is gone");
  ASSIGN_OR_RETURN(const auto model, engine->Upload(inputs, y));
  return engine->Condition(*model, {0, theta});
}

StatusOr<Posterior> RefitUnwarpedBy(const Engine& engine, const Inputs& inputs, const VectorXd& y,
                                    Theta& theta) {
  ASSIGN_OR_RETURN(const FitModels models, UploadForFit(engine, inputs, y, -y.cwiseAbs()));
  ASSIGN_OR_RETURN(const auto fitted, engine.Fit(models.fitted(), {{0, StartOf(theta, inputs)}}));
  theta = fitted[0].theta;
  return engine.Condition(*models.all, {0, theta});
}

}  // namespace

Surrogate Learn(const Inputs& inputs, const VectorXd& scores, SurrogateMemo& memory) {
  if (NeedsFit(inputs.rows(), memory)) return Refit(inputs, scores, memory);
  const Theta& theta = memory.thetas[static_cast<int>(memory.warp)];
  Warp warp(memory.warp, scores);
  if (memory.engine == EngineKind::kProcessor) {
    Posterior posterior = gp::Condition(theta, inputs, warp.warped());
    return {std::move(warp), std::move(posterior)};
  }
  StatusOr<Posterior> posterior =
      ConditionAgain(inputs, warp.warped(), theta, SizeOf(inputs, kWarps));
  if (!posterior.ok()) return Refit(inputs, scores, memory);
  return {std::move(warp), *std::move(posterior)};
}

Surrogate Refit(const Inputs& inputs, const VectorXd& scores, SurrogateMemo& memory) {
  return RefitFor({inputs, scores, true}, memory);
}

void RefitMemory(const Inputs& inputs, const VectorXd& scores, SurrogateMemo& memory) {
  RefitFor({inputs, scores, false}, memory);
}

Posterior LearnUnwarped(const Inputs& inputs, const VectorXd& y, SurrogateMemo& memory) {
  memory.warp = WarpKind::kNone;
  Theta& theta = memory.thetas[static_cast<int>(memory.warp)];
  const LearnSize size = SizeOf(inputs, 1);
  const bool again = NeedsFit(inputs.rows(), memory);
  if (!again && memory.engine == EngineKind::kProcessor) return gp::Condition(theta, inputs, y);
  if (!again) {
    StatusOr<Posterior> posterior = ConditionAgain(inputs, y, theta, size);
    if (posterior.ok()) return *std::move(posterior);
  }
  const std::unique_ptr<Engine> engine = DecidedEngine(memory.past(), size);
  memory.fitted_at = inputs.rows();
  if (engine != nullptr) {
    Theta fitted = theta;
    StatusOr<Posterior> posterior = RefitUnwarpedBy(*engine, inputs, y, fitted);
    memory.engine = posterior.ok() ? engine->kind() : EngineKind::kProcessor;
    if (posterior.ok()) {
      theta = std::move(fitted);
      return *std::move(posterior);
    }
  }
  memory.engine = EngineKind::kProcessor;
  return *RefitUnwarpedBy(ProcessorEngine(), inputs, y, theta);
}

Posterior LearnFeasibility(const Inputs& inputs, const VectorXd& labels, EngineKind engine) {
  Theta theta = DefaultTheta(inputs.numeric(), inputs.categorical());
  theta.values[theta.values.size() - 2] = std::log(kLabelNoise);
  if (engine == EngineKind::kAccelerator) {
    StatusOr<Posterior> posterior = ConditionAgain(inputs, labels, theta, SizeOf(inputs, kWarps));
    if (posterior.ok()) return *std::move(posterior);
  }
  return gp::Condition(theta, inputs, labels);
}

namespace {

constexpr int64_t kShared = 64 << 20;

std::string BytesOf(const Eigen::MatrixXd& matrix) {
  return {reinterpret_cast<const char*>(matrix.data()), matrix.size() * sizeof(double)};
}

bool Same(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b) {
  return a.rows() == b.rows() && a.cols() == b.cols() && a == b;
}

}  // namespace

SurrogateCache& SurrogateCache::Shared() {
  static SurrogateCache cache(kShared);
  return cache;
}

bool SurrogateCache::Question::operator==(const Question& other) const {
  return memory == other.memory && Same(scores, other.scores) && Same(inputs.x, other.inputs.x) &&
         Same(inputs.u, other.inputs.u);
}

uint64_t SurrogateCache::DigestOf(const Question& question) {
  const std::string bytes = BytesOf(question.inputs.x) + BytesOf(question.inputs.u) +
                            BytesOf(question.scores) + question.memory;
  return Fingerprint(bytes);
}

SurrogateCache::Answer SurrogateCache::Learn(const Inputs& inputs, const Eigen::VectorXd& scores,
                                             const SurrogateMemo& memory) {
  Question question{inputs, scores, memory.Serialize()};
  const uint64_t digest = DigestOf(question);
  {
    const MutexLock lock(mutex_);
    const auto found = by_digest_.find(digest);
    if (found != by_digest_.end() && found->second->question == question) {
      entries_.splice(entries_.begin(), entries_, found->second);
      return entries_.front().answer;
    }
  }
  SurrogateMemo after = memory;
  Surrogate surrogate = gp::Learn(inputs, scores, after);
  auto answer =
      std::make_shared<const Learned>(Learned{std::move(surrogate), after});  // shared: see Learn
  const int64_t n = inputs.rows(), columns = inputs.numeric() + inputs.categorical();
  const int64_t bytes = static_cast<int64_t>(sizeof(double)) * n * (n + 2 * columns + 8);
  // One that was cut short is not the answer to this question.
  if (!IsCancelled()) Insert({digest, std::move(question), answer, bytes});
  return answer;
}

void SurrogateCache::Insert(Entry entry) {
  const MutexLock lock(mutex_);
  const auto drop = [this](Entries::iterator old) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    bytes_ -= old->bytes;
    by_digest_.erase(old->digest);
    entries_.erase(old);
  };
  const auto same = by_digest_.find(entry.digest);
  if (same != by_digest_.end()) drop(same->second);
  bytes_ += entry.bytes;
  entries_.push_front(std::move(entry));
  by_digest_[entries_.front().digest] = entries_.begin();
  while (bytes_ > capacity_) drop(std::prev(entries_.end()));
}

int64_t SurrogateCache::bytes() const {
  const MutexLock lock(mutex_);
  return bytes_;
}

std::optional<Recommended> Recommend(const Surrogate& surrogate, const Eigen::VectorXd& scores) {
  const Posterior& posterior = surrogate.posterior;
  const Posterior::Prediction prediction = posterior.Predict(posterior.inputs());
  const auto mean = prediction.mean.col(0);
  Recommended found;
  scores.maxCoeff(&found.best);
  mean.maxCoeff(&found.point);
  const Eigen::Index b = found.best, r = found.point;
  const double together =
      prediction.cross.k(b, r) - prediction.solved.col(b).dot(prediction.solved.col(r));
  const double variance = prediction.variance[r] + prediction.variance[b] - 2 * together;
  if (!(mean[r] - mean[b] > kSure * std::sqrt(std::max(0.0, variance)))) return std::nullopt;
  const double deviation = std::sqrt(prediction.variance[r]);
  const Warp& warp = surrogate.warp;
  found.score = warp.Unwarp(mean[r]);
  found.deviation = (warp.Unwarp(mean[r] + deviation) - warp.Unwarp(mean[r] - deviation)) / 2;
  found.at_best = warp.Unwarp(mean[b]);
  return found;
}

}  // namespace shirabe::suggestion::gp
