// One process, conditioned on its targets.
#include "suggestion/gpu/context.h"

namespace shirabe::suggestion::gpu {
namespace {

// As InverseFactor in suggestion/gp/gaussian_process.cc does: 1e-10 of s² first, then ten times
// more each time.
constexpr double kFirstJitter = 1e-10, kLastJitter = 1e3;

void DivideForPosterior(Divider& memory, Item& item) {
  const int64_t padded = item.padded;
  item.w = memory.Next(padded * padded);
  item.ones = memory.Next(padded);
  item.whitened = memory.Next(padded * item.m);
  item.alpha = memory.Next(padded * item.m);
  item.gradient = memory.Next(padded);  // the diagonal of K⁻¹
  item.scalars = memory.Next(kScalars);
  item.kernel.inverse_lengths = memory.Next(item.kernel.p + item.kernel.c);
}

Code Reserve(const DeviceModel& model, const double* theta, DevicePosterior& posterior) {
  const Uploaded& inputs = *model.inputs;
  std::vector<double> lengths(inputs.p + inputs.c);
  posterior.item = ItemOf(inputs, KernelOf(inputs, theta, lengths.data()), posterior.item.m);
  Item& item = posterior.item;
  Divider none(nullptr);
  DivideForPosterior(none, item);
  Code code = posterior.memory.Reserve(none.used());
  if (code != kOk) return code;
  Divider memory(posterior.memory.data());
  DivideForPosterior(memory, item);
  return CopyToDevice(
      posterior.memory.data() + (item.kernel.inverse_lengths - posterior.memory.data()),
      lengths.data(), lengths.size() * sizeof(double));
}

struct Working {
  Context& context;
  Batch batch;
};

Code FactorWithJitter(Working& working, Item& item) {
  double failed = 1, jitter = kFirstJitter;
  for (;; jitter *= 10) {
    Code code = UploadTo<Item>(working.context.items, {item});
    if (code != kOk) return code;
    working.batch.items = reinterpret_cast<const Item*>(working.context.items.data());
    MakeGram(working.batch);
    Factor(working.batch);
    code = CopyToHost(&failed, item.scalars + kFailed, sizeof failed);
    if (code != kOk || failed == 0) return code;
    if (!(jitter < kLastJitter)) return kNotPositive;
    item.kernel.diagonal += jitter * item.kernel.scale;
  }
}

// Columns of `padded` rows, of which the first n go to the host.
struct Columns {
  const double* data;
  int64_t padded, count;
};
Code Download(const Columns& columns, int64_t n, double* to) {
  if (to == nullptr) return kOk;
  std::vector<double> some(static_cast<size_t>(columns.padded * kTile));
  for (int64_t begin = 0; begin < columns.count; begin += kTile) {
    const int64_t count = std::min<int64_t>(kTile, columns.count - begin);
    const Code code = CopyToHost(some.data(), columns.data + begin * columns.padded,
                                 static_cast<size_t>(count * columns.padded) * sizeof(double));
    if (code != kOk) return code;
    for (int64_t j = 0; j < count; ++j) {
      std::copy_n(some.data() + j * columns.padded, n, to + (begin + j) * n);
    }
  }
  return kOk;
}

Code DownloadParts(const Item& item, PosteriorParts& parts) {
  const int64_t n = item.points.count, padded = item.padded;
  Code code = Download({item.w, padded, n}, n, parts.inverse);
  if (code == kOk) code = Download({item.whitened, padded, item.m}, n, parts.whitened);
  if (code == kOk) code = Download({item.alpha, padded, item.m}, n, parts.alpha);
  if (code == kOk) code = Download({item.gradient, padded, 1}, n, parts.precision);
  if (code == kOk) code = CopyToHost(&parts.mean, item.scalars + kMean, sizeof parts.mean);
  return code;
}

}  // namespace

Code Condition(const DeviceModel& model, const Conditioning& conditioning,
               DevicePosterior& posterior, PosteriorParts* parts) {
  Context& context = *model.context;
  posterior.context = &context;
  posterior.inputs = model.inputs;
  const bool own = conditioning.y == nullptr;
  posterior.item.m = own ? model.m : conditioning.m;
  Code code = Reserve(model, conditioning.theta, posterior);
  if (code != kOk) return code;
  Item& item = posterior.item;
  const int64_t square = static_cast<int64_t>(item.padded) * item.padded;
  const int64_t targets = static_cast<int64_t>(item.points.count) * item.m;
  code = context.workspace.Reserve(square + (own ? 0 : targets));
  if (code != kOk) return code;
  item.k = context.workspace.data();
  item.y = own ? model.y.data() : item.k + square;
  if (!own) {
    code = CopyToDevice(item.k + square, conditioning.y,
                        static_cast<size_t>(targets) * sizeof(double));
  }
  Working working{context, {nullptr, 1, item.tiles, item.m, 0}};
  if (code == kOk) code = FactorWithJitter(working, item);
  if (code != kOk) return code;
  Whiten(working.batch);
  if (conditioning.mean == nullptr) {
    Average(working.batch);
  } else {
    code = CopyToDevice(item.scalars + kMean, conditioning.mean, sizeof(double));
    if (code != kOk) return code;
  }
  Centre(working.batch);
  SquareColumns(working.batch);
  code = Synchronize();
  item.k = nullptr;
  item.y = nullptr;
  if (code != kOk || parts == nullptr) return code;
  return DownloadParts(item, *parts);
}

}  // namespace shirabe::suggestion::gpu
