#include "suggestion/accelerator/shared_gpu.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/cancellation.h"
#include "base/log.h"
#include "suggestion/processor_turn.h"

namespace shirabe::suggestion::accelerator {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(50);  // whether who waits has gone
// Matrices of n × n that one evaluation has on the device, and of n × points that a scoring has,
// about.
constexpr int64_t kMatrices = 4;

std::vector<double> CopyOf(const double* values, int64_t count) {
  return values == nullptr ? std::vector<double>() : std::vector<double>(values, values + count);
}

int64_t SquareBytes(int64_t n) { return n * n * static_cast<int64_t>(sizeof(double)); }

}  // namespace

// A model or a posterior.
class SharedGpu::GpuResident : public Resident {
 public:
  GpuResident(std::shared_ptr<SharedGpu> there,  // shared: outlived
              const GpuJob& job, int64_t points)
      : gpu(std::move(there)), model(job.model), posterior(job.posterior), n(points) {}
  ~GpuResident() override { gpu->Discard(model, posterior); }

  const std::shared_ptr<SharedGpu> gpu;  // shared: what is on it holds on to it
  gpu::DeviceModel* const model;
  gpu::DevicePosterior* const posterior;
  const int64_t n;
};

// ---- the life of it ----------------------------------------------------------------------------

StatusOr<std::shared_ptr<SharedGpu>> SharedGpu::Open(const Options& options) {  // shared: header
  std::unique_ptr<SharedGpu> made(new SharedGpu(options));  // its constructor is private
  std::shared_ptr<SharedGpu> gpu = std::move(made);         // shared: see the header
  gpu->thread_ = std::jthread([at = gpu.get()](const std::stop_token& stop) { at->Work(stop); });
  const Status opened = gpu->AwaitOpening();
  if (opened.ok()) return gpu;
  if (absl::IsDeadlineExceeded(opened)) {
    // Its thread hangs in the driver, and to join it would hang, too.
    using Kept = std::shared_ptr<SharedGpu>;  // shared: see the header
    static Kept* const hanging = std::make_unique<Kept>().release();
    *hanging = std::move(gpu);
  }
  return opened;
}

SharedGpu::~SharedGpu() = default;

Status SharedGpu::AwaitOpening() {
  MutexLock lock(mutex_);
  const absl::Duration until = options_.clock->Monotonic() + options_.patience;
  while (!opened_) {
    if (options_.clock->Monotonic() > until) {
      Lose("the driver does not answer");
      return absl::DeadlineExceededError(reason_);
    }
    changed_.WaitFor(lock, kPoll);
  }
  return *opened_;
}

bool SharedGpu::lost() const {
  const MutexLock lock(mutex_);
  return lost_;
}

std::string SharedGpu::reason() const {
  const MutexLock lock(mutex_);
  return reason_;
}

GpuCounts SharedGpu::counts() const {
  const MutexLock lock(mutex_);
  GpuCounts counts = counts_;
  counts.waiting = static_cast<int64_t>(queue_.size());
  counts.busy = busy_since_.has_value();
  return counts;
}

void SharedGpu::Lose(const std::string& why) {
  if (lost_) return;
  lost_ = true;
  reason_ = why;
  for (const auto& job : queue_) {
    job->status = absl::UnavailableError(why);
    job->done = true;
  }
  queue_.clear();
  changed_.NotifyAll();
  if (!opened_ || !opened_->ok()) return;  // its opener says so
  Log(LogLevel::kWarning, "the GPU is lost; the processor computes suggestions from now on",
      {{"gpu", name_}, {"error", why}});
}

// ---- in the callers' threads -------------------------------------------------------------------

Status SharedGpu::Run(const std::shared_ptr<GpuJob>& job) {  // shared: see the header
  const LentTurn lent;                                       // so that others come to wait, too
  MutexLock lock(mutex_);
  while (!lost_ && queue_.size() >= options_.most_waiting) {
    if (IsCancelled()) return absl::CancelledError("the caller has gone");
    changed_.WaitFor(lock, kPoll);
  }
  if (lost_) return absl::UnavailableError(reason_);
  queue_.push_back(job);
  changed_.NotifyAll();
  const Status status = Await(job, lock);
  if (!status.ok() && !absl::IsCancelled(status)) ++counts_.failures;
  return status;
}

Status SharedGpu::Await(const std::shared_ptr<GpuJob>& job,  // shared: see the header
                        MutexLock& lock) {
  while (!job->done) {
    if (IsCancelled()) {
      Abandon(job);
      return absl::CancelledError("the caller has gone");
    }
    if (busy_since_ && options_.clock->Monotonic() - *busy_since_ > options_.patience) {
      Abandon(job);
      Lose("it does not answer");
      return absl::UnavailableError(reason_);
    }
    changed_.WaitFor(lock, kPoll);
  }
  return job->status;
}

void SharedGpu::Abandon(const std::shared_ptr<GpuJob>& job) {  // shared: see the header
  job->abandoned = true;
  const auto waits = std::find(queue_.begin(), queue_.end(), job);
  if (waits != queue_.end()) queue_.erase(waits);
  changed_.NotifyAll();  // there is room
}

void SharedGpu::Discard(gpu::DeviceModel* model, gpu::DevicePosterior* posterior) {
  const MutexLock lock(mutex_);
  discarded_.emplace_back(model, posterior);
  changed_.NotifyAll();
}

StatusOr<Accelerator::Handle> SharedGpu::Upload(const Data& data) {
  const auto job = std::make_shared<GpuJob>();  // shared: with the thread
  job->kind = &GpuCounts::uploads;
  job->x = CopyOf(data.x, data.n * data.p);
  job->u = CopyOf(data.u, data.n * data.c);
  job->y = CopyOf(data.y, data.n * data.m);
  job->call = [n = data.n, p = data.p, c = data.c, m = data.m](GpuSession& session, GpuJob& own) {
    const auto made = session.Upload({.n = n,
                                      .p = p,
                                      .c = c,
                                      .m = m,
                                      .x = OrNull(own.x),
                                      .u = OrNull(own.u),
                                      .y = OrNull(own.y)});
    if (made.ok()) own.model = *made;
    return made.status();
  };
  RETURN_IF_ERROR(Run(job));
  return std::make_unique<const GpuResident>(shared_from_this(), *job, data.n);
}

StatusOr<std::vector<Accelerator::Answer>> SharedGpu::Evaluate(std::vector<Question> questions) {
  const auto job = std::make_shared<GpuJob>();  // shared: with the thread
  job->together = GpuJob::Together::kEvaluations;
  for (Question& question : questions) {
    const auto& at = static_cast<const GpuResident&>(*question.model);
    job->answers.push_back({0, std::vector<double>(question.theta.size())});
    job->items.push_back({at.model, question.column, std::move(question.theta)});
    job->bytes += kMatrices * SquareBytes(at.n);
  }
  if (job->items.empty()) return job->answers;
  RETURN_IF_ERROR(Run(job));
  return std::move(job->answers);
}

StatusOr<Accelerator::Conditioned> SharedGpu::Condition(const Resident& model,
                                                        Conditioning conditioning) {
  const auto& at = static_cast<const GpuResident&>(model);
  const auto job = std::make_shared<GpuJob>();  // shared: with the thread
  job->kind = &GpuCounts::conditionings;
  job->theta = std::move(conditioning.theta);
  job->y = std::move(conditioning.y);
  if (conditioning.mean != nullptr) job->mean = *conditioning.mean;
  if (conditioning.wants_inverse) job->inverse.resize(at.n * at.n);
  job->call = [on = at.model, m = conditioning.m](GpuSession& session, GpuJob& own) {
    gpu::PosteriorParts parts = {};
    parts.inverse = OrNull(own.inverse);
    const auto made = session.Condition(on,
                                        {.theta = own.theta.data(),
                                         .y = OrNull(own.y),
                                         .m = m,
                                         .mean = own.mean ? &*own.mean : nullptr},
                                        &parts);
    if (made.ok()) own.posterior = *made;
    return made.status();
  };
  RETURN_IF_ERROR(Run(job));
  return Conditioned{std::make_unique<const GpuResident>(shared_from_this(), *job, at.n),
                     std::move(job->inverse)};
}

StatusOr<Accelerator::Scores> SharedGpu::Score(const Resident& posterior, const Points& points) {
  const auto& at = static_cast<const GpuResident&>(posterior);
  const auto job = std::make_shared<GpuJob>();  // shared: with the thread
  job->together = GpuJob::Together::kScorings;
  job->kind = &GpuCounts::scorings;
  job->bytes = kMatrices * points.count * at.n * static_cast<int64_t>(sizeof(double));
  job->scored = at.posterior;
  job->points = points.count;
  job->x = CopyOf(points.x, points.count * points.p);
  job->u = CopyOf(points.u, points.count * points.c);
  job->scores.mean.resize(points.count * points.m);
  job->scores.variance.resize(points.count);
  if (points.slopes) {
    job->scores.mean_slopes.resize(points.count * points.m * points.p);
    job->scores.variance_slope.resize(points.count * points.p);
  }
  RETURN_IF_ERROR(Run(job));
  return std::move(job->scores);
}

// ---- in its own thread -------------------------------------------------------------------------

void SharedGpu::Work(const std::stop_token& stop) {
  const Status opened = OpenSession();
  {
    const MutexLock lock(mutex_);
    opened_ = opened;
    changed_.NotifyAll();
  }
  if (opened.ok()) Serve(stop);
  session_.reset();
}

Status SharedGpu::OpenSession() {
  ASSIGN_OR_RETURN(const GpuLibrary library, LoadGpuLibrary(options_.folders));
  ASSIGN_OR_RETURN(GpuSession session,
                   GpuSession::Open(library, options_.ordinal, options_.most_ratio));
  name_ = DescribeDevice(session.info());
  together_bytes_ = static_cast<int64_t>(session.info().free_bytes / 2);
  while (limits_.most_points > 0 &&
         kMatrices * SquareBytes(limits_.most_points) > together_bytes_) {
    limits_.most_points -= 100;
  }
  limits_.most_fitted = std::min(limits_.most_fitted, limits_.most_points);
  session_.emplace(std::move(session));
  return absl::OkStatus();
}

void SharedGpu::Serve(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    Jobs jobs;
    std::vector<std::pair<gpu::DeviceModel*, gpu::DevicePosterior*>> discarded;
    {
      MutexLock lock(mutex_);
      const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return !queue_.empty() || !discarded_.empty();
      };
      changed_.Wait(lock, stop, has_work);
      if (lost_) return;
      discarded.swap(discarded_);
      jobs = NextJobs();
      busy_since_ = options_.clock->Monotonic();
    }
    for (const auto& [model, posterior] : discarded) session_->Release(model, posterior);
    if (!jobs.empty()) Perform(jobs);
    const MutexLock lock(mutex_);
    busy_since_.reset();
    Count(jobs);
    changed_.NotifyAll();
    if (lost_) return;
  }
}

// The first, and if it goes together with others, all others of its kind, as many as there is
// memory for. Of one kind none overtakes another; what is of another kind is the first soon.
SharedGpu::Jobs SharedGpu::NextJobs() {
  Jobs jobs;
  if (queue_.empty()) return jobs;
  const GpuJob::Together together = queue_.front()->together;
  int64_t bytes = 0, items = 0;
  for (auto at = queue_.begin(); at != queue_.end();) {
    const GpuJob& job = **at;
    if (job.together != together) {
      ++at;
      continue;
    }
    bytes += job.bytes;
    items += job.count();
    if (!jobs.empty() && (bytes > together_bytes_ || items > gpu::kMaxBatch)) break;
    jobs.push_back(*at);
    at = queue_.erase(at);
    if (together == GpuJob::Together::kNothing) break;
  }
  return jobs;
}

void SharedGpu::Perform(const Jobs& jobs) {
  if (jobs[0]->together == GpuJob::Together::kNothing) {
    jobs[0]->status = jobs[0]->call(*session_, *jobs[0]);
    return;
  }
  PerformTogether(jobs);
  const Status& status = jobs[0]->status;
  if (status.ok() || absl::IsUnavailable(status) || jobs.size() == 1) return;
  // One of them has a mistake, or they are too many: each for itself.
  for (const auto& job : jobs) PerformTogether({job});
}

void SharedGpu::PerformTogether(const Jobs& jobs) {
  const bool scorings = jobs[0]->together == GpuJob::Together::kScorings;
  const Status status = scorings ? ScoreTogether(jobs) : EvaluateTogether(jobs);
  for (const auto& job : jobs) job->status = status;
}

Status SharedGpu::ScoreTogether(const Jobs& jobs) {
  std::vector<gpu::Scoring> batch;
  for (const auto& job : jobs) batch.push_back(job->AsScoring());
  return session_->Score(batch);
}

Status SharedGpu::EvaluateTogether(const Jobs& jobs) {
  std::vector<gpu::Evaluation> batch;
  for (const auto& job : jobs) {
    for (size_t i = 0; i < job->items.size(); ++i) {
      const GpuJob::Item& item = job->items[i];
      batch.push_back({.model = item.model,
                       .column = item.column,
                       .theta = item.theta.data(),
                       .value = 0,
                       .gradient = job->answers[i].gradient.data()});
    }
  }
  const Status status = session_->Evaluate(batch);
  size_t next = 0;
  for (const auto& job : jobs) {
    for (Answer& answer : job->answers) answer.value = batch[next++].value;
  }
  return status;
}

void SharedGpu::Count(const Jobs& jobs) {
  int64_t items = 0;
  for (const auto& job : jobs) {
    items += job->count();
    counts_.*job->kind += job->count();
    job->done = true;
    if (absl::IsUnavailable(job->status)) Lose(Message(job->status));
    if (job->abandoned) discarded_.emplace_back(job->model, job->posterior);
  }
  if (jobs.empty() || jobs[0]->together == GpuJob::Together::kNothing) return;
  const bool scorings = jobs[0]->together == GpuJob::Together::kScorings;
  ++(scorings ? counts_.scoring_batches : counts_.batches);
  int64_t& largest = scorings ? counts_.largest_scoring : counts_.largest;
  largest = std::max(largest, items);
}

}  // namespace shirabe::suggestion::accelerator
