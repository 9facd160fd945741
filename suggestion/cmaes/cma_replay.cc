#include "suggestion/cmaes/cma_replay.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/cancellation.h"
#include "suggestion/algorithm.h"

namespace shirabe::suggestion {
namespace {

using Tier = CmaMember::Tier;

constexpr char kMemoHead[] = "cmaes 1 ";

// "<run>.<number>". Trial `index` cannot be of a later generation than there are trials before it.
std::optional<CmaGeneration> Parse(const std::string& label, int64_t index) {
  CmaGeneration generation;
  const char* end = label.data() + label.size();
  const auto run = std::from_chars(label.data(), end, generation.run);
  if (run.ec != std::errc() || run.ptr == end || *run.ptr != '.') return std::nullopt;
  const auto number = std::from_chars(run.ptr + 1, end, generation.number);
  if (number.ec != std::errc() || number.ptr != end) return std::nullopt;
  const auto possible = [index](int64_t part) { return part >= 0 && part <= index; };
  if (!possible(generation.run) || !possible(generation.number)) return std::nullopt;
  return generation;
}

std::optional<CmaGeneration> GenerationOf(const History& history, int64_t index) {
  if (history.trial(index).earlier) return std::nullopt;
  const auto label = history.label(index, CmaReplay::kLabel);
  return label ? Parse(*label, index) : std::nullopt;
}

// A trial that was stopped early was worse than others at that step, whatever its loss says beside
// theirs at the end.
Tier TierOf(const TrialSummary& view) {
  const bool has_loss = view.state == TrialState::kCompleted && std::isfinite(view.loss);
  if (!has_loss) return Tier::kInfeasible;
  return view.early_stopped ? Tier::kStopped : Tier::kCompleted;
}

// Trials of several experiments, whose losses may not be compared: each gets instead of its loss
// its rank among its own, as a share of them.
class Sources {
 public:
  explicit Sources(const CmaLayout& layout) : layout_(layout) {}

  void Add(const std::vector<Point>& points, const std::vector<double>& losses) {
    const Eigen::VectorXd ranks = AverageRanks(losses);
    for (size_t i = 0; i < points.size(); ++i) {
      points_.push_back(points[i]);
      shares_.push_back(ranks[static_cast<Eigen::Index>(i)] / static_cast<double>(points.size()));
    }
  }

  void InitialDesign(CmaSearch& search) const {
    const auto count = static_cast<Eigen::Index>(points_.size());
    if (count == 0) return;
    CmaSource source{.points = Eigen::MatrixXd(layout_.numeric.size(), count), .losses = shares_};
    Eigen::MatrixXi categories(layout_.categorical.size(), count);
    for (Eigen::Index i = 0; i < count; ++i) {
      source.points.col(i) = layout_.Numbers(points_[i]);
      categories.col(i) = layout_.Categories(points_[i]);
    }
    search.WarmStartFrom(source, categories);
  }

 private:
  const CmaLayout& layout_;
  std::vector<Point> points_;
  std::vector<double> shares_;
};

void AddPrior(const History& history, Sources& sources) {
  const std::vector<PriorTrial>& prior = history.prior();
  for (size_t first = 0, end = 0; first < prior.size(); first = end) {
    std::vector<Point> points;
    std::vector<double> losses;
    for (; end < prior.size() && prior[end].source == prior[first].source; ++end) {
      points.push_back(prior[end].point);
      losses.push_back(prior[end].loss);
    }
    sources.Add(points, losses);
  }
}

}  // namespace

CmaReplay::CmaReplay(const Input& input)
    : in_(input), search_(input.layout.shape, input.options), unlabelled_(CountUnlabelled()) {
  const bool lost = LabelsAreLost();
  if (lost) unlabelled_ = 0;
  if (!ReadMemo()) BeginFromSources();
  lost ? RunInBlocks() : RunByLabel();
}

std::string CmaReplay::label() const {
  return absl::StrCat(generation_.run, ".", generation_.number);
}

int64_t CmaReplay::CountUnlabelled() const {
  int64_t index = 0;
  while (index < in_.history.size() && !GenerationOf(in_.history, index)) ++index;
  return index;
}

// Whether no trial has a label and the first one is what this algorithm draws first.
bool CmaReplay::LabelsAreLost() const {
  if (unlabelled_ == 0 || unlabelled_ < in_.history.size()) return false;
  if (in_.history.trial(0).earlier) return false;
  Sources sources(in_.layout);
  AddPrior(in_.history, sources);
  CmaSearch search = search_;
  sources.InitialDesign(search);
  Rng rng = in_.root.Fork(0);
  return in_.layout.Gives(search.Draw(rng, {}), in_.history, 0);
}

void CmaReplay::BeginFromSources() {
  Sources sources(in_.layout);
  AddPrior(in_.history, sources);
  std::vector<Point> points;
  std::vector<double> losses;
  for (int64_t i = 0; i < unlabelled_; ++i) {
    const TrialSummary& view = in_.history.trial(i);
    if (view.outside) continue;
    if (view.state == TrialState::kActive) settled_ = false;
    if (TierOf(view) != Tier::kCompleted) continue;
    points.push_back(in_.history.point(i));
    losses.push_back(view.loss);
  }
  sources.Add(points, losses);
  sources.InitialDesign(search_);
  next_ = unlabelled_;
}

void CmaReplay::RunByLabel() {
  const Generations generations = ByLabel();
  auto left = static_cast<int64_t>(generations.size());
  if (left > kMaxPendingGenerations) settled_ = true;  // no longer waits for the sources
  for (const auto& [generation, members] : generations) {
    if (IsCancelled()) return;
    MoveTo(generation);
    --left;
    const bool open = left == 0 && IsOpen(members);
    if (settled_ && left <= kMaxPendingGenerations && (open || AnyActive(members)))
      Settle(members.front());
    if (open) return Open(members);
    Close(members);
    ++generation_.number;
  }
  if (search_.RunEnded()) MoveTo({.run = generation_.run + 1});
  if (settled_) WriteMemo(in_.history.size());
}

// The trials that are not yet in the state.
CmaReplay::Generations CmaReplay::ByLabel() const {
  Generations generations;
  std::optional<CmaGeneration> generation;
  for (int64_t i = next_; i > unlabelled_ && !generation; --i)
    generation = GenerationOf(in_.history, i - 1);
  for (int64_t i = next_; i < in_.history.size(); ++i) {
    const auto own = GenerationOf(in_.history, i);
    if (own) generation = own;
    if (generation && *generation >= generation_) generations[*generation].push_back(i);
  }
  return generations;
}

void CmaReplay::RunInBlocks() {
  for (int64_t first = next_;;) {
    if (IsCancelled()) return;
    const int64_t end = first + search_.population();
    const int64_t ahead = in_.history.size() - end;
    Indices members;
    for (int64_t i = first; i < std::min(end, in_.history.size()); ++i) members.push_back(i);
    const bool open = ahead <= 0 && IsOpen(members);
    const bool waits = ahead <= kMaxPendingGenerations * search_.population() && AnyActive(members);
    if (settled_ && (open || waits)) Settle(first);
    if (open) return Open(members);
    Close(members);
    ++generation_.number;
    if (search_.RunEnded()) MoveTo({.run = generation_.run + 1});
    first = end;
  }
}

void CmaReplay::MoveTo(const CmaGeneration& generation) {
  for (; generation_.run < generation.run; ++generation_.run) {
    Rng rng = in_.root.Fork(Mix(Fingerprint("cmaes run"), static_cast<uint64_t>(generation_.run)));
    search_.Restart(rng);
  }
  generation_ = generation;
}

void CmaReplay::Close(const Indices& members) {
  std::vector<CmaMember> ended;
  OrthogonalSampler sampler;
  for (int64_t i : members) {
    const TrialSummary& view = in_.history.trial(i);
    const CmaDraw draw = DrawnAs(i, sampler);
    sampler.Add(draw.z);
    if (view.state == TrialState::kActive) continue;
    ended.push_back({.draw = draw, .tier = TierOf(view), .loss = view.loss});
  }
  search_.Tell(ended, static_cast<int64_t>(members.size()), [this](int coordinate, double mean) {
    return in_.layout.EdgesOf(in_.history.space(), coordinate, mean);
  });
}

// The generation that the next suggestions join.
void CmaReplay::Open(const Indices& members) {
  for (int64_t i : members) sampler_.Add(DrawnAs(i, sampler_).z);
}

CmaDraw CmaReplay::DrawnAs(int64_t index, const OrthogonalSampler& sampler) const {
  Rng rng = in_.root.Fork(index);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    CmaDraw draw = search_.Draw(rng, sampler);
    if (in_.layout.Gives(draw, in_.history, index)) return draw;
  }
  const Point point = in_.history.point(index);
  return search_.Injected(in_.layout.Numbers(point), in_.layout.Categories(point));
}

int64_t CmaReplay::Ended(const Indices& members) const {
  return std::count_if(members.begin(), members.end(), [this](int64_t i) {
    return in_.history.trial(i).state != TrialState::kActive;
  });
}

// Half of λ, since the better half decides where the mean goes. Waiting for all of them would fill
// the slots with draws from a distribution that is already known to be old.
bool CmaReplay::IsOpen(const Indices& members) const {
  const int64_t wanted = search_.population();
  return static_cast<int64_t>(members.size()) < wanted || 2 * Ended(members) < wanted;
}

bool CmaReplay::AnyActive(const Indices& members) const {
  return Ended(members) < static_cast<int64_t>(members.size());
}

// From here on the state depends on results that are still to come.
void CmaReplay::Settle(int64_t next) {
  WriteMemo(next);
  settled_ = false;
}

// Memo: "cmaes 1 ", the fields, and a checksum of both; none where it would be too long (beyond
// some thousand dimensions or categories), and then every state is computed from the beginning.
void CmaReplay::WriteMemo(int64_t next) {
  next_ = next;
  CmaRecord record;
  (void)Fields(record);
  memo_ = kMemoHead + record.text();
  CmaRecord sum;
  uint64_t word = Fingerprint(memo_);
  sum.Word(word);
  memo_ += sum.text();
  if (memo_.size() > kMaxMemo) memo_.clear();
}

// False, and nothing has changed, if there is no memo, or none of this history.
bool CmaReplay::ReadMemo() {
  constexpr size_t kHead = sizeof kMemoHead - 1;
  constexpr size_t kSum = 8;
  const std::string& memo = in_.history.memo();
  if (memo.size() < kHead + kSum || memo.compare(0, kHead, kMemoHead) != 0) return false;
  const std::string body = memo.substr(0, memo.size() - kSum);
  CmaRecord sum(memo.substr(body.size()));
  uint64_t word = 0;
  sum.Word(word);
  if (word != Fingerprint(body)) return false;
  CmaRecord record(body.substr(kHead));
  const CmaSearch before = search_;
  if (Fields(record) && record.AtEnd()) return true;
  search_ = before;
  generation_ = {};
  next_ = 0;
  return false;
}

bool CmaReplay::Fields(CmaRecord& record) {
  record.Integer(next_);
  if (!record.ok() || next_ < unlabelled_ || next_ > in_.history.size()) return false;
  uint64_t mark = Mark(next_);
  record.Word(mark);
  if (mark != Mark(next_)) return false;
  record.Integer(generation_.run);
  record.Integer(generation_.number);
  search_.Fields(record);
  return record.ok() && generation_.run >= 0 && generation_.number >= 0;
}

// Of what the state was made of, so that a memo of another history, or other settings, is noticed.
uint64_t CmaReplay::Mark(int64_t next) const {
  const History& history = in_.history;
  const uint64_t last = next == 0 ? 0 : history.space().Key(history.point(next - 1));
  const uint64_t first = Mix(static_cast<uint64_t>(unlabelled_), history.prior().size());
  return Mix(Mix(in_.fingerprint, in_.root.seed()), Mix(first, last));
}

namespace {

// The boundary of the shares of levels `k` and `k + 1`, to a thousandth of their distance.
double Edge(const Axis& axis, uint64_t k) {
  double low = axis.Coordinate(k);
  double high = axis.Coordinate(k + 1);
  for (int i = 0; i < 10; ++i) {
    const double middle = (low + high) / 2;
    (axis.Level(middle) <= k ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

CmaLayout::CmaLayout(const Space& space) {
  for (int i = 0; i < space.size(); ++i) {
    if (space.axis(i).categorical()) {
      categorical.push_back(i);
      shape.categories.push_back(static_cast<int>(space.axis(i).levels()));
    } else {
      numeric.push_back(i);
      shape.continuous.push_back(space.axis(i).continuous());
    }
  }
}

Point CmaLayout::PointOf(const Space& space, const CmaDraw& draw) const {
  Point point(space.size());
  for (size_t k = 0; k < numeric.size(); ++k) {
    point[numeric[k]] = std::clamp(draw.x[static_cast<Eigen::Index>(k)], 0.0, 1.0);
  }
  for (size_t k = 0; k < categorical.size(); ++k) {
    point[categorical[k]] = draw.categories[static_cast<Eigen::Index>(k)];
  }
  return space.Canonical(point);
}

Eigen::VectorXd CmaLayout::Numbers(const Point& point) const {
  Eigen::VectorXd x(numeric.size());
  for (Eigen::Index k = 0; k < x.size(); ++k) x[k] = point[numeric[k]];
  return x;
}

Eigen::VectorXi CmaLayout::Categories(const Point& point) const {
  Eigen::VectorXi categories(categorical.size());
  for (Eigen::Index k = 0; k < categories.size(); ++k) {
    categories[k] = static_cast<int>(point[categorical[k]]);
  }
  return categories;
}

bool CmaLayout::Gives(const CmaDraw& draw, const History& history, int64_t index) const {
  constexpr double kRounding = 1e-9;  // more than the codec ever moves a coordinate
  for (size_t k = 0; k < categorical.size(); ++k) {
    const double tried = history.coordinate(index, categorical[k]);
    if (draw.categories[static_cast<Eigen::Index>(k)] != tried) return false;
  }
  for (size_t k = 0; k < numeric.size(); ++k) {
    const Axis& axis = history.space().axis(numeric[k]);
    const double tried = history.coordinate(index, numeric[k]);
    const double drawn = std::clamp(draw.x[static_cast<Eigen::Index>(k)], 0.0, 1.0);
    const bool same = axis.continuous() ? std::abs(drawn - tried) <= kRounding
                                        : axis.Level(drawn) == axis.Level(tried);
    if (!same) return false;
  }
  return true;
}

CmaEdges CmaLayout::EdgesOf(const Space& space, int coordinate, double mean) const {
  const Axis& axis = space.axis(numeric[coordinate]);
  const uint64_t level = axis.Level(std::clamp(mean, 0.0, 1.0));
  CmaEdges edges;
  if (level > 0) edges.below = Edge(axis, level - 1);
  if (level + 1 < axis.levels()) edges.above = Edge(axis, level);
  return edges;
}

}  // namespace shirabe::suggestion
