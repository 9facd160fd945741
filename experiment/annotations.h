// Notes and tags that people give to experiments and trials: what they may hold, and how they are
// written. The owner of an experiment writes them as it writes everything else; where it has none,
// as after its end, the process that is asked for it does so at once. No threads.
#pragma once

#include <cstddef>

#include "base/clock.h"
#include "base/names.h"
#include "base/status.h"
#include "db/store.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::experiment {

inline constexpr size_t kMaxNoteBytes = 16 << 10;      // of an experiment
inline constexpr size_t kMaxTrialNoteBytes = 4 << 10;  // there are many
inline constexpr int kMaxTags = 16;                    // of each
inline constexpr size_t kMaxTagBytes = 63;

// kInvalidArgument, with the field, if this ANNOTATE intent changes nothing, or holds a text that
// is too long, a tag that is no word, or characters that no text should have.
Status CheckAnnotation(const v1::Intent& intent);

// The note and tags after the intent; true if they differ. kInvalidArgument: too many tags.
StatusOr<bool> Annotate(const v1::Intent& intent, v1::ShirabeStatus& experiment);
StatusOr<bool> Annotate(const v1::Intent& intent, v1::Trial& trial);

// Who changed what, for people; it tells the tags, never the note.
v1::Event AnnotationEvent(const v1::Intent& intent);

// Writes it at once if no process owns the experiment: true. False: its owner must.
StatusOr<bool> AnnotateUnowned(db::Store& store, Clock& clock, const ExperimentKey& key,
                               const v1::Intent& intent);

}  // namespace shirabe::experiment
