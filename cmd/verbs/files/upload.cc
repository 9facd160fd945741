// upload: a folder of a program into a store of the administrator, for spec.shirabe.code.
#include "absl/strings/str_cat.h"
#include "base/registry.h"
#include "cmd/artifact_stores.h"
#include "cmd/session.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"

namespace shirabe::cmd {
namespace {

std::string CodeYaml(const v1::CodePackage& code) {
  return absl::StrCat("spec:\n  shirabe:\n    code:\n      store: ", code.store(),
                      code.prefix().empty() ? "" : "\n      prefix: ", code.prefix(),
                      "\n      package: ", code.package(), "\n");
}

}  // namespace

StatusOr<int> Upload(const Arguments& arguments) {
  Globals globals;
  std::vector<std::string> words;
  CodeUpload upload;
  std::string output = "yaml";
  Options options(
      "upload DIR",
      "Packs a folder of a program and puts it into a store of the administrator, for "
      "experiments that name it in spec.shirabe.code: each of their trials finds it in "
      "$SHIRABE_CODE_DIR. The same files have the same digest, and are put there once. Left out: "
      ".git, __pycache__ and what .shirabeignore names, as .gitignore does. At most 100,000 files "
      "and folders with 4 GiB, and 512 MiB packed.");
  options.Arguments("DIR", &words, 1, 1);
  options.Text("--store", &upload.store, "NAME",
               "the store (default the only one that the namespace may use)");
  options.Text("--prefix", &upload.prefix, "FOLDER", "in the namespace's part of the store");
  options.Word("-o,--output", &output, {"yaml", "name"}, "how to print: name is the digest alone");
  AddStores(options, &globals);
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  upload.folder = words[0];
  ASSIGN_OR_RETURN(const client::StateLocation place, StateLocationOf(globals));
  ASSIGN_OR_RETURN(const StoreTablePtr stores, FindStores(globals, place));
  ASSIGN_OR_RETURN(const v1::CodePackage code, UploadCode(upload, stores, place.ns));
  Out(output == "name" ? code.package() + "\n" : CodeYaml(code));
  return 0;
}

SHIRABE_REGISTER(Verb, {.name = "upload",
                        .group = VerbGroup::kSubmit,
                        .summary = "put a program's folder into a store, for its trials",
                        .run = Upload});

}  // namespace shirabe::cmd
