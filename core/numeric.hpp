// Exponential and logarithm with equal bits on every platform.
//
// The library functions of C differ in their last bits between platforms, and a receipt is compared bit for bit. Both
// functions here use only additions, multiplications and divisions in a fixed order, which IEEE 754 defines exactly;
// compilers are told not to contract or reorder them. The error is below 1 unit in the last place.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>

namespace dicoflex {

// ln 2 in two parts; the first has enough trailing zeros that its products with exponents are exact.
inline constexpr double LN2_HIGH = 0x1.62e42fee00000p-1;
inline constexpr double LN2_LOW = 0x1.a39ef35793c76p-33;
inline constexpr double LOG2_E = 0x1.71547652b82fep+0;

// The natural logarithm: x = m * 2^k with m near 1, then the series of atanh for log m.
inline double log(double x) {
    if (!(x > 0.0)) {
        constexpr double inf = std::numeric_limits<double>::infinity();
        return x == 0.0 ? -inf : std::numeric_limits<double>::quiet_NaN();
    }
    if (x == std::numeric_limits<double>::infinity()) {
        return x;
    }
    double k = 0.0;
    if (x < 0x1p-1022) {  // subnormal numbers have no exponent of their own
        x *= 0x1p54;
        k = -54.0;
    }
    constexpr std::uint64_t HALF_ROOT = 0x3fe6a09e667f3bcd;  // the bits of sqrt(1/2): m lies in [sqrt(1/2), sqrt(2))
    const auto bits = std::bit_cast<std::uint64_t>(x);
    const auto shift = static_cast<std::int64_t>(bits - HALF_ROOT) >> 52;
    k += static_cast<double>(shift);
    const double m = std::bit_cast<double>(bits - (static_cast<std::uint64_t>(shift) << 52));
    const double f = m - 1.0, s = f / (2.0 + f), z = s * s, half = 0.5 * f * f;
    double series = 2.0 / 23.0;
    for (const double next : {2.0 / 21.0, 2.0 / 19.0, 2.0 / 17.0, 2.0 / 15.0, 2.0 / 13.0, 2.0 / 11.0, 2.0 / 9.0,
                              2.0 / 7.0, 2.0 / 5.0, 2.0 / 3.0}) {
        series = series * z + next;
    }
    // log m = 2 atanh s = 2 s + s z series, and 2 s = f - (half - s half): f is exact, so the error stays small.
    const double rest = s * (half + z * series);
    return k * LN2_HIGH - ((half - (rest + k * LN2_LOW)) - f);
}

// exp r - 1 for |r| <= ln 2 / 2, by its series.
inline double expm1_near_zero(double r) {
    double series = 1.0 / 6227020800.0;  // 1 / 13!
    for (const double next : {1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0, 1.0 / 40320.0,
                              1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 1.0 / 2.0}) {
        series = series * r + next;
    }
    return r + r * r * series;
}

// The exponential: x = r + k ln 2 with |r| <= ln 2 / 2, then the series of exp r.
inline double exp(double x) {
    if (!(x <= 709.782712893384)) {
        return x != x ? x : std::numeric_limits<double>::infinity();
    }
    if (x < -745.2) {
        return 0.0;
    }
    const double k = std::floor(x * LOG2_E + 0.5);
    const double r = (x - k * LN2_HIGH) - k * LN2_LOW;
    const double power = 1.0 + expm1_near_zero(r);
    // In two steps, so that neither factor leaves the range where the result does not.
    const auto first = static_cast<std::int64_t>(k) / 2, second = static_cast<std::int64_t>(k) - first;
    const auto scale = [](std::int64_t e) { return std::bit_cast<double>(static_cast<std::uint64_t>(e + 1023) << 52); };
    return power * scale(first) * scale(second);
}

// The hyperbolic tangent: (e - 1) / (e + 1) for e = exp 2x, of which e - 1 is worked out without cancellation.
inline double tanh(double x) {
    const double size = x < 0.0 ? -x : x;
    if (!(size < 22.0)) {  // nearer to 1 than to the number before it
        return x != x ? x : (x < 0.0 ? -1.0 : 1.0);
    }
    const double k = std::floor(2.0 * size * LOG2_E + 0.5);
    const double r = (2.0 * size - k * LN2_HIGH) - k * LN2_LOW;
    const double scale = std::bit_cast<double>(static_cast<std::uint64_t>(static_cast<std::int64_t>(k) + 1023) << 52);
    const double above = (scale - 1.0) + scale * expm1_near_zero(r);
    const double found = above / (above + 2.0);
    return x < 0.0 ? -found : found;
}

// |x|^p; the two common exponents take no logarithm.
inline double power(double x, double p) {
    if (p == 2.0) {
        return x * x;
    }
    x = x < 0.0 ? -x : x;
    return p == 1.0 || x == 0.0 ? x : exp(p * log(x));
}

}  // namespace dicoflex
