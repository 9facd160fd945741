// A batch of evaluations, in as few parts as the memory allows. The parts make no difference to the
// numbers.
#include <cmath>
#include <limits>

#include "suggestion/gpu/context.h"

namespace shirabe::suggestion::gpu {
namespace {

constexpr double kSettled = 1e-9;  // added to σ²: as in suggestion/gp/gaussian_process.cc

int SlotsOf(const Evaluation& evaluation) {
  const Uploaded& inputs = *evaluation.model->inputs;
  return inputs.p + inputs.c + 3;
}

// What has to be there while an item is worked on; of its results, see ResultsOf.
void DivideForItem(Divider& memory, int slots, Item& item) {
  const int64_t padded = item.padded, tiles = item.tiles;
  item.k = memory.Next(padded * padded);
  item.w = memory.Next(padded * padded);
  item.ones = memory.Next(padded);
  item.whitened = memory.Next(padded);
  item.alpha = memory.Next(padded);
  item.partials = memory.Next(tiles * (tiles + 1) / 2 * slots);
}

int64_t SizeOfItem(const Evaluation& evaluation) {
  Item item = ItemOf(*evaluation.model->inputs, Kernel{}, 1);
  Divider none(nullptr);
  DivideForItem(none, SlotsOf(evaluation), item);
  return none.used();
}

// How many items, from the first on, fit into the budget: at least one.
int64_t CountWithin(const Span& batch, int64_t budget) {
  int64_t count = 0, size = 0;
  while (count < batch.count) {
    size += SizeOfItem(batch.begin[count]);
    if (count > 0 && size > budget) break;
    ++count;
  }
  return count;
}

// A part of a batch: scalars and gradient of each item, one after the other.
struct Part {
  std::vector<Item> items;
  std::vector<double> lengths, results;
  Batch batch{};
};

Part Prepare(const Span& span) {
  Part part;
  size_t lengths = 0, results = 0;
  for (int64_t i = 0; i < span.count; ++i) {
    const int slots = SlotsOf(span.begin[i]);
    lengths += slots - 3;
    results += kScalars + slots;
  }
  part.lengths.resize(lengths);
  part.results.resize(results);
  double* next = part.lengths.data();
  for (int64_t i = 0; i < span.count; ++i) {
    const Evaluation& evaluation = span.begin[i];
    const Uploaded& inputs = *evaluation.model->inputs;
    Item item = ItemOf(inputs, KernelOf(inputs, evaluation.theta, next), 1);
    next += inputs.p + inputs.c;
    item.y = evaluation.model->y.data() + static_cast<int64_t>(evaluation.column) * inputs.n;
    part.batch.tiles = std::max(part.batch.tiles, item.tiles);
    part.batch.slots = std::max(part.batch.slots, SlotsOf(evaluation));
    part.items.push_back(item);
  }
  part.batch.m = 1;
  part.batch.count = static_cast<int>(span.count);
  return part;
}

// Gives the items their memory, and brings them to the device.
Code Place(Context& context, const Span& span, Part& part) {
  int64_t size = 0;
  for (int64_t i = 0; i < span.count; ++i) size += SizeOfItem(span.begin[i]);
  Code code = context.workspace.Reserve(size);
  if (code == kOk) code = context.lengths.Reserve(static_cast<int64_t>(part.lengths.size()));
  if (code == kOk) code = context.results.Reserve(static_cast<int64_t>(part.results.size()));
  if (code != kOk) return code;
  Divider memory(context.workspace.data());
  double* lengths = context.lengths.data();
  double* results = context.results.data();
  for (int64_t i = 0; i < span.count; ++i) {
    Item& item = part.items[i];
    const int slots = SlotsOf(span.begin[i]);
    DivideForItem(memory, slots, item);
    item.kernel.inverse_lengths = lengths;
    lengths += slots - 3;
    item.scalars = results;
    item.gradient = results + kScalars;
    results += kScalars + slots;
  }
  code = CopyToDevice(context.lengths.data(), part.lengths.data(),
                      part.lengths.size() * sizeof(double));
  if (code == kOk) code = UploadTo(context.items, part.items);
  part.batch.items = reinterpret_cast<const Item*>(context.items.data());
  return code;
}

void Report(const Span& span, const Part& part) {
  const double* results = part.results.data();
  for (int64_t i = 0; i < span.count; ++i) {
    Evaluation& evaluation = span.begin[i];
    const int slots = SlotsOf(evaluation);
    evaluation.value =
        results[kFailed] != 0 ? std::numeric_limits<double>::infinity() : results[kValue];
    std::copy_n(results + kScalars, slots, evaluation.gradient);
    results += kScalars + slots;
  }
}

Code EvaluatePart(Context& context, const Span& span) {
  Part part = Prepare(span);
  Code code = Place(context, span, part);
  if (code != kOk) return code;
  MakeGram(part.batch);
  Factor(part.batch);
  Whiten(part.batch);
  Average(part.batch);
  Centre(part.batch);
  Differentiate(part.batch);
  code =
      CopyToHost(part.results.data(), context.results.data(), part.results.size() * sizeof(double));
  if (code == kOk) Report(span, part);
  return code;
}

}  // namespace

Kernel KernelOf(const Uploaded& inputs, const double* theta, double* inverse_lengths) {
  const int lengths = inputs.p + inputs.c;
  for (int j = 0; j < lengths; ++j) inverse_lengths[j] = std::exp(-theta[j]);
  Kernel kernel{};
  kernel.p = inputs.p;
  kernel.c = inputs.c;
  kernel.scale = std::exp(theta[lengths]);
  kernel.noise = std::exp(theta[lengths + 1]);
  kernel.diagonal = kernel.noise + kSettled;
  if (inputs.p > 0 && inputs.c > 0) {
    const double w = 1 / (1 + std::exp(-theta[lengths + 2]));
    kernel.numeric = kernel.categorical = 0.5 * (1 - w) * kernel.scale;
    kernel.product = w * kernel.scale;
    kernel.mix_slope = kernel.scale * w * (1 - w);
  } else {
    (inputs.p > 0 ? kernel.numeric : kernel.categorical) = kernel.scale;
  }
  return kernel;
}

Item ItemOf(const Uploaded& inputs, const Kernel& kernel, int m) {
  Item item{};
  item.points = {inputs.x, inputs.u, inputs.n};
  item.kernel = kernel;
  item.tiles = TilesOf(inputs.n);
  item.padded = item.tiles * kTile;
  item.m = m;
  return item;
}

Code Evaluate(Context& context, const Span& batch) {
  Span rest = batch;
  int64_t budget = context.budget();
  while (rest.count > 0) {
    const int64_t count = CountWithin(rest, budget);
    const Code code = EvaluatePart(context, {rest.begin, count});
    if (code == kNoMemory && count > 1) {
      budget /= 2;
      continue;
    }
    if (code != kOk) return code;
    rest = {rest.begin + count, rest.count - count};
  }
  return kOk;
}

}  // namespace shirabe::suggestion::gpu
