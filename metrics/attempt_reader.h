// Reads one attempt: first the files of the contract with training code, to their ends, then what
// else its collector reads. The contract's files are the metrics file (JSON lines, json_line.h) and
// the file of the library hypertune (ReadHypertune, below); a metric that they have named is taken
// from nowhere else: a program that reports it there means it. Every collector is a call of
// ReadAttempt. Stateless and thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "metrics/collection_builder.h"
#include "metrics/collector.h"
#include "metrics/line_parser.h"

namespace shirabe::metrics {

// What a collector reads besides the contract's files: puts what it finds of
// intake.UnclaimedMetrics(), which is not empty, into the intake. Called only when a line of the
// greatest length fits into what the call may still read. Null = nothing.
using ObservationSource = std::function<Status(CollectionBuilder&)>;

// The lines of a file. `path` is the same at each call for an attempt.
ObservationSource LineSource(std::string path, ParserMaker make_parser);

StatusOr<Collected> ReadAttempt(const Source& source, const ObservationSource& feed,
                                const v1::CollectorCursor& cursor);

// What is trusted when a file of the source is opened (base/open_beneath.h): the folder of the
// experiment, if it lies in there; else "", the folder that the specification names.
std::string RootOf(const Source& source, const std::string& path);

// A collector of the contract's files alone; `elsewhere` is what its Describe says.
std::unique_ptr<Collector> MakeContractCollector(std::string elsewhere);

// The file of $CLOUD_ML_HP_METRIC_FILE, as the library cloudml-hypertune writes it: with each
// report it truncates the file and writes its last 100 reports again, one JSON object a line,
// numbers as strings:
//   {"checkpoint_path": "", "global_step": "3", "loss": "0.23", "timestamp": 1795249800.5, "trial":
//   "7"}
// Each line counts once, whatever the file looks like meanwhile: the cursor keeps a fingerprint of
// each of the last 100 lines read, and a line among them is the same report again (its time stamp
// makes it unique). What is half written, or changes while it is read, is left to the next call. A
// report that came and went between two calls, more than 100 reports apart, was never to be seen.
//
// A global_step of 0 is also what the library writes for none. A metric's first point may be at
// step 0; a later 0 means none, and is counted. Stateless and thread-safe.

Status ReadHypertune(const std::string& path, CollectionBuilder& intake);

}  // namespace shirabe::metrics
