#include "base/registry.h"
#include "base/text/json_text.h"
#include "client/state_location.h"
#include "cmd/commit.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "crd/resource_kinds.h"
#include "proto/katib/v1beta1/api.pb.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "service/http/web_files.h"
#include "suggestion/accelerator/program_gpu.h"
#include "suggestion/processor_level.h"
#include "trial/checkpoint/checkpoint_manifest.h"
#include "view/record_json.h"

namespace shirabe::cmd {

namespace {

StatusOr<view::Json> VersionFields() {
  // As it is written, so that the number stands in one place.
  ASSIGN_OR_RETURN(const view::Json manifest,
                   ParseJson<view::Json>(trial::EncodeManifest(trial::Manifest())));
  const view::Json formats = {
      {"experiment", crd::kApiVersion},
      {"api", v1::Experiment::descriptor()->file()->package()},
      {"katib", ::api::v1::beta1::Experiment::descriptor()->file()->package()},
      {"checkpointManifest", manifest.at("version")},
  };
  const std::string page = service::WebVersion();
  const auto gpu = suggestion::accelerator::ProbeGpu();
  const auto or_null = [](const std::string& text) {
    return text.empty() ? view::Json() : view::Json(text);
  };
  return view::Json{
      {"version", SHIRABE_VERSION},
      {"commit", kCommit},
      {"modified", kCommitModified},
      {"schema", view::Json(client::StoredSchemas())},
      {"formats", formats},
      {"processor", suggestion::ProcessorLevel()},
      {"gpu",
       {{"state", suggestion::accelerator::WordFor(gpu.state)},
        {"device", or_null(gpu.device)},
        {"reason", or_null(gpu.reason)}}},
      {"dashboard", or_null(page)},
  };
}

}  // namespace

StatusOr<int> Version(const Arguments& arguments) {
  std::string output = "table";
  Globals globals;
  Options options("version [-o json]",
                  "Prints the version. As JSON also the commit that it was built from, which "
                  "versions of tables and formats it writes, for which processors the "
                  "algorithms are compiled that it uses here, which GPU computes suggestions "
                  "and why none does, and which dashboard it has.");
  options.Word("-o,--output", &output, {"table", "json"}, "how to print");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  if (output == "table") {
    Out("shirabe " SHIRABE_VERSION "\n");
    return 0;
  }
  ASSIGN_OR_RETURN(const view::Json fields, VersionFields());
  Out(view::PrintJson(fields));
  return 0;
}

SHIRABE_REGISTER(Verb, {.name = "version",
                        .group = VerbGroup::kTools,
                        .summary = "print the version",
                        .run = Version});

}  // namespace shirabe::cmd
