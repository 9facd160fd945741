// What other folders ask of a source of metrics: its collector, where to begin, and what to tell a
// user whose trial had no metric. Thread-safe: no state.
#pragma once

#include <string>
#include <vector>

#include "metrics/collector.h"

namespace shirabe::metrics {

// The collector of `spec.collector.kind` (StdOut where none is given). kUnimplemented, naming the
// kinds at hand, for one that this build lacks.
StatusOr<std::unique_ptr<Collector>> CreateCollector(const v1::MetricsCollectorSpec& spec);

// What was looked for and where, and which other values the output names.
std::string DescribeSource(const Collector& collector, const Source& source);

// The first cursor of an attempt, to be committed before the attempt starts: what a file holds by
// then (an absolute path that trials share, a resumed trial that appends) is not this attempt's.
// `counts` is the caller's to fill, with the points that count up to the step resumed from.
v1::CollectorCursor StartCursor(const Collector& collector, const Source& source);

// Pieces of that sentence, for the collectors' `Describe`. They read files, and never fail: what
// cannot be read is said to be so.

// metric "loss", or: metrics "loss" and "accuracy".
std::string MetricNames(const Source& source);

// "a", "b": each as text for people.
std::string QuotedList(const std::vector<std::string>& names);

// How text is searched: as `loss=<number>` or `loss: <number>`, or: with metricsFormat `…`.
std::string TextFormat(const v1::FilterSpec& filter, const Source& source);

// absent, empty, 1 line, 12 lines.
std::string LineCount(const std::string& path);

// `; it has values named "val_loss", "acc"` for text at `path` that gives numbers to some names,
// so that a misspelt metric shows; else "".  Callers ask only where the metric was not found.
std::string OtherNames(const std::string& path);

}  // namespace shirabe::metrics
