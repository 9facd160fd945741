// What the server counts, for Prometheus: counters, gauges and histograms of fixed families, and
// their text (exposition format 0.0.4). One object a server, shared by its endpoints;
// store_metrics.h adds what is known from the store. Labels are namespaces, verbs, codes: never the
// name of an experiment or a trial, of which there is no end. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "base/mutex.h"

namespace shirabe::service {

// One series' labels, in the order of its family.
using Labels = std::vector<std::string>;

struct HttpCallRecord {
  std::string method;  // "" = no route was found
  std::string route;
  int status = 0;
  absl::Duration took;
};
struct GrpcCallRecord {
  std::string method;  // /shirabe.v1.Shirabe/GetTrial
  std::string code;    // OK, NOT_FOUND, …
  absl::Duration took;
};

class Metrics {
 public:
  Metrics();

  // The family must be one of server_metrics.cc and take so many labels.
  void Add(std::string_view family, const Labels& labels, double amount = 1);
  void Set(std::string_view family, const Labels& labels, double value);
  void Observe(std::string_view family, const Labels& labels, double value);
  // All series of a gauge, before they are set again: what is no longer there must not stay.
  void Clear(std::string_view family);

  void RecordHttpCall(const HttpCallRecord& record);
  void RecordGrpcCall(const GrpcCallRecord& record);

  // Called before each Text(), to set what is looked up rather than counted; null = nothing.
  void BeforeText(std::function<void(Metrics&)> refresh);
  std::string Text();

  // The value of a series, or a histogram's count; 0 if there is none. For tests.
  double Value(std::string_view family, const Labels& labels) const;

 private:
  struct Series {
    double value = 0;              // counter, gauge; of a histogram the sum
    std::vector<int64_t> buckets;  // histogram: up to each bound, and all
  };

  Series* Find(std::string_view family, const Labels& labels) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex refresh_mutex_;
  // Guarded while it is called, too.
  std::function<void(Metrics&)> refresh_ ABSL_GUARDED_BY(refresh_mutex_);
  mutable Mutex mutex_;
  // By family.
  std::map<std::string, std::map<Labels, Series>, std::less<>> series_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shirabe::service
