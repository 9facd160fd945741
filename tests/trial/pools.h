// Pools in a line or two, for tests of what is given out and taken away.
#pragma once

#include <initializer_list>
#include <string>

#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::trial {

inline v1::NodePool& AddPool(v1::NodePools& pools, const std::string& name, v1::Capacity capacity,
                             int slots) {
  v1::NodePool& pool = *pools.add_pools();
  pool.set_name(name);
  pool.set_capacity(capacity);
  pool.set_slots(slots);
  return pool;
}

// One pool "spot" of so many slots at 0.9 an hour, reclaimed at `times`.
inline v1::NodePools SpotPool(int slots, std::initializer_list<double> times = {},
                              double notice_seconds = 0) {
  v1::NodePools pools;
  v1::NodePool& pool = AddPool(pools, "spot", v1::SPOT, slots);
  pool.set_price_per_hour(0.9);
  for (const double time : times) pool.mutable_reclaim()->add_times(time);
  pool.mutable_reclaim()->set_notice_seconds(notice_seconds);
  return pools;
}

}  // namespace shirabe::trial
