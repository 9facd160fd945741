#include "client/checkpoint_interval.h"

#include <cmath>

namespace shirabe::client {

double YoungInterval(double cost, double mean_time_between_preemptions) {
  if (cost <= 0 || mean_time_between_preemptions <= 0) return 0;
  return std::sqrt(2 * cost * mean_time_between_preemptions);
}

double DalyInterval(double cost, double mean_time_between_preemptions) {
  const double young = YoungInterval(cost, mean_time_between_preemptions);
  if (young == 0) return 0;
  const double ratio = cost / (2 * mean_time_between_preemptions);
  if (ratio >= 1) return mean_time_between_preemptions;
  return young * (1 + std::sqrt(ratio) / 3 + ratio / 9) - cost;
}

double ExpectedOverhead(double interval, double cost, double mean_time_between_preemptions) {
  if (interval <= 0 || mean_time_between_preemptions <= 0) return 0;
  return cost / interval + interval / (2 * mean_time_between_preemptions);
}

}  // namespace shirabe::client
