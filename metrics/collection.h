// Pieces of the sentence that a person reads whose trial had no metric. Used by the collectors'
// `describe`. They read files, and never fail: what cannot be read is said to be so.
#pragma once

#include <string>
#include <vector>

#include "metrics/collector.h"

namespace shirabe::metrics {

// metric "loss", or: metrics "loss" and "accuracy".
std::string MetricNames(const Source& source);

// "a", "b": each as text for people.
std::string QuotedList(const std::vector<std::string>& names);

// How text is searched: as `loss=<number>` or `loss: <number>`, or: with metricsFormat `…`.
std::string TextFormat(const Source& source);

// absent, empty, 1 line, 12 lines.
std::string LineCount(const std::string& path);

// `; it has values named "val_loss", "acc"` for text at `path` that gives numbers to some names,
// so that a misspelt metric shows; else "".  Callers ask only where the metric was not found.
std::string OtherNames(const std::string& path);

}  // namespace shirabe::metrics
