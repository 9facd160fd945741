// An algorithm in another process, asked over Katib's Suggestion service: any of Katib's own
// images, or a program of one's own (deploy/examples/plugin). Built by
// experiment/spec/algorithm_setup for an experiment whose algorithm is remote
// (remote_algorithm_table.h); the one part of this folder that does I/O.
//
// A call blocks until there is an answer, an error, the deadline or Cancel; callers keep it away
// from threads that others wait for (experiment/algorithm_workers). It asks twice at most, the
// second time only where the connection broke: pausing and asking again later is the caller's.
//
// Nothing is believed. An answer is refused as a whole, with kDataLoss and the reason in words,
// where one of its points lacks a parameter, has an unknown one, or a value that is no number, not
// finite or outside of the space, or labels of no sensible size; and where all of its points have
// been tried before. Otherwise points that were tried, or stand there twice, are left out (unless a
// label says which trial they go on from, as Katib's PBT does), and so is what is more than was
// asked for. No point at all means wait while trials run. Every other error means that there was no
// answer: kUnavailable, kDeadlineExceeded, kInvalidArgument (it refuses the experiment),
// kCancelled, kUnimplemented (it is no such service), kUnknown (it failed).
//
// One that searches architectures (spec.nasConfig: Katib's enas and darts) answers with texts of
// its own in the place of values: an architecture, and what builds it. They are labels of the
// suggestion here, in a space without parameters, and may be answered twice.
//
// Settings that the service answers with (Katib's hyperband keeps its state there) are its memo:
// they replace those of the experiment in the next request.
#pragma once

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "base/status.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "suggestion/algorithm.h"

namespace shirabe::suggestion {

// Of the label that is an assignment; its name follows.
inline constexpr char kAssignedLabel[] = "shirabe.io/assigned/";

struct RemoteOptions {
  std::string endpoint;  // host:port
  absl::Duration deadline = absl::Seconds(60);
};

// Connects when it is first asked.
std::unique_ptr<Algorithm> MakeRemoteAlgorithm(const v1::Experiment& experiment, const Space& space,
                                               const RemoteOptions& options);

}  // namespace shirabe::suggestion
