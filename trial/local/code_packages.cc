#include "trial/local/code_packages.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "artifacts/package/code_package.h"
#include "base/log.h"
#include "trial/start_error.h"

namespace shirabe::trial {
namespace {

constexpr size_t kFetchThreads = 2;
constexpr size_t kShownDigits = 12;

// To try again soon may end otherwise; what is not there, or is not what it should be, is looked at
// again by the next attempt only.
bool MayChange(const Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status) ||
         absl::IsPermissionDenied(status);
}

std::string Shown(const v1::CodePackage& package) {
  return absl::StrCat(
      "code package ",
      package.package().substr(0, std::string(artifacts::kPackageScheme).size() + kShownDigits),
      "… of store ", package.store());
}

Status NotFetched(absl::StatusCode code, const std::string& message) {
  return StartError(code, kCodeNotFetched, message);
}

std::string PlaceOf(const v1::CodePackage& package, const std::string& ns) {
  return absl::StrCat(ns, "/", package.store(), "/", package.prefix(), "/", package.package());
}

}  // namespace

CodePackages::CodePackages(CodePackagesOptions options)
    : options_(std::move(options)),
      cache_(options_.home + "/code", options_.limits),
      threads_(kFetchThreads) {}

CodePackages::~CodePackages() {
  stop_.request_stop();
  threads_.End();
}

void CodePackages::SetPackage(const ExperimentKey& key, const v1::CodePackage& package) {
  const MutexLock lock(mutex_);
  if (package.package().empty()) {
    packages_.erase(key);
  } else {
    packages_[key] = package;
  }
}

Status CodePackages::Check(const ExperimentKey& key) const {
  std::string store;
  {
    const MutexLock lock(mutex_);
    const auto found = packages_.find(key);
    if (found == packages_.end()) return absl::OkStatus();
    store = found->second.store();
    RETURN_IF_ERROR(Prefix("spec.shirabe.code.package",
                           artifacts::DigestOfPackage(found->second.package()).status()));
  }
  if (options_.stores != nullptr) {
    return options_.stores->Check(store, key.ns, artifacts::kCodeStoreField);
  }
  return InvalidField(artifacts::kCodeStoreField,
                      "no stores are known here: name them with --stores FILE");
}

StatusOr<std::string> CodePackages::Prepare(const ExperimentKey& key) {
  RETURN_IF_ERROR(Check(key));
  v1::CodePackage package;
  const MutexLock lock(mutex_);
  const auto found = packages_.find(key);
  if (found == packages_.end()) return std::string();
  package = found->second;
  ASSIGN_OR_RETURN(const std::string digest, artifacts::DigestOfPackage(package.package()));
  const std::string place = PlaceOf(package, key.ns);
  if (cache_.Has(digest)) {
    fetching_.erase(place);
    return cache_.PathOf(digest);
  }
  Fetching& fetching = fetching_[place];
  fetching.waiting.insert(key);
  if (fetching.under_way) {
    return NotFetched(absl::StatusCode::kUnavailable, Shown(package) + " is being fetched");
  }
  const std::string why = absl::StrCat(Shown(package), ": ", Message(fetching.last));
  if (!fetching.last.ok() && (!MayChange(fetching.last) || fetching.failures >= options_.tries)) {
    fetching_.erase(place);
    return NotFetched(absl::StatusCode::kDataLoss, why);
  }
  if (options_.clock->Monotonic() < fetching.again) {
    return NotFetched(absl::StatusCode::kResourceExhausted, why + "; it is tried again");
  }
  fetching.under_way = true;
  threads_.Run([this, package, ns = key.ns, place] { Finish(place, FetchNow(package, ns)); });
  if (!fetching.last.ok()) {
    return NotFetched(absl::StatusCode::kResourceExhausted, why + "; it is tried again");
  }
  return NotFetched(absl::StatusCode::kUnavailable, Shown(package) + " is being fetched");
}

Status CodePackages::FetchNow(const v1::CodePackage& package, const std::string& ns) {
  ASSIGN_OR_RETURN(const std::string digest, artifacts::DigestOfPackage(package.package()));
  ASSIGN_OR_RETURN(const auto whole, options_.stores->Find(package.store(), ns));
  artifacts::RetryingStore store(whole.get(), options_.calls);
  const std::string name = artifacts::PackageKey(package.prefix(), digest);
  const std::stop_token stop = stop_.get_token();
  const Status status = cache_.Fill(
      digest, [&](const artifacts::PieceSink& sink) { return store.Get(name, {}, sink, stop); },
      stop);
  if (absl::IsDataLoss(status)) {
    return absl::DataLossError(
        absl::StrCat(name, ": ", Message(status), ": put it there again with shirabe upload"));
  }
  if (!absl::IsNotFound(status)) return status;
  return absl::NotFoundError(
      absl::StrCat("there is no ", name, ": put it there with shirabe upload"));
}

void CodePackages::Finish(const std::string& place, const Status& status) {
  std::set<ExperimentKey> waiting;
  {
    const MutexLock lock(mutex_);
    const auto found = fetching_.find(place);
    if (found == fetching_.end()) return;
    Fetching& fetching = found->second;
    fetching.under_way = false;
    fetching.last = status;
    waiting = std::exchange(fetching.waiting, {});
    if (!status.ok()) {
      fetching.again = options_.clock->Monotonic() + options_.pause.Delay(fetching.failures++);
    }
  }
  if (!status.ok() && !stop_.stop_requested()) {
    Log(LogLevel::kWarning, "a code package is not fetched",
        {{"package", place}, {"error", Message(status)}});
  }
  for (const ExperimentKey& key : waiting) {
    if (options_.on_change) options_.on_change(key);
  }
}

}  // namespace shirabe::trial
