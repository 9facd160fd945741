// Logarithms of functions of the standard normal distribution (base/statistics.h) that the
// acquisition functions need, accurate in the tails, where the textbook forms lose all their
// digits. Pure; any thread.
//
//   z     real                                  φ, Φ   density and distribution function
//   h(z)  φ(z) + z·Φ(z): the expected improvement in units of the standard deviation
//
// The tail of h by 1 - t·R(t) = 1/t² - 3/t⁴ + 15/t⁶ - …, with t = -z and Mills' ratio
// R(t) = Φ(-t)/φ(t) (Abramowitz & Stegun 26.2.12). Why its logarithm is what should be maximised:
// S. Ament et al., "Unexpected improvements to expected improvement", NeurIPS 2023.
#pragma once

namespace shirabe::suggestion::gp {

// A function with its derivative.
struct Value {
  double value;
  double slope;
};

// log h(z), for every finite z. Relative error of h below 1e-11.
Value LogH(double z);
// log Φ(z), for every finite z.
Value LogCdf(double z);

// h, Φ and φ of many z at once, in a tenth of the time: each to a relative 1e-11 where z is at
// least kLeastZ, and below that no more than what they are there, some 1e-300.
constexpr double kLeastZ = -37;
struct Normals {
  double *h, *cdf, *pdf;
};
void FillNormals(const double* z, int count, const Normals& normals);

}  // namespace shirabe::suggestion::gp
