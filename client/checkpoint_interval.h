// How often to save: often enough that a preemption costs little, seldom enough that saving does.
//
//   symbol    meaning                                         unit
//   C         time that one checkpoint takes                  s
//   M         mean time between preemptions                   s
//   tau       time of training between two checkpoints        s
//
// Young, "A first order approximation to the optimum checkpoint interval", CACM 17(9), 1974:
//   tau = sqrt(2 C M).
// Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", FGCS 22(3),
// 2006, eq. 37, which holds where C is not small beside M:
//   tau = sqrt(2 C M) (1 + 1/3 sqrt(C / (2 M)) + 1/9 (C / (2 M))) - C   for C < 2 M,
//   tau = M                                                             otherwise.
// Called by the rehearsal. Pure.
#pragma once

namespace shirabe::client {

// Both in seconds; 0 where either is not positive.
double YoungInterval(double cost, double mean_time_between_preemptions);
double DalyInterval(double cost, double mean_time_between_preemptions);

// Share of the time that goes into saving and into what preemptions take back: C / tau + tau / 2M.
double ExpectedOverhead(double interval, double cost, double mean_time_between_preemptions);

}  // namespace shirabe::client
