// Products of a vector and a matrix, eight columns at a time.
//
// A column's sum is made of two, of every other row, which are added at the end: processors add to several sums as fast
// as to one. Columns never mix, so that every width of vectors gives equal bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "clones.hpp"

namespace dicoflex {

inline constexpr std::size_t LANES = 8;

#if defined(__GNUC__)
using Lanes = float __attribute__((vector_size(LANES * sizeof(float))));
#else
struct Lanes {
    float at[LANES];
    float& operator[](std::size_t i) { return at[i]; }
    float operator[](std::size_t i) const { return at[i]; }
};
#endif

INLINE void load(Lanes& lanes, const float* from) { std::memcpy(&lanes, from, sizeof lanes); }

INLINE void store(const Lanes& lanes, float* to) { std::memcpy(to, &lanes, sizeof lanes); }

// lanes += x * (the eight numbers at `from`)
INLINE void add_scaled(Lanes& lanes, float x, const float* from) {
    Lanes other;
    load(other, from);
#if defined(__GNUC__)
    lanes += x * other;
#else
    for (std::size_t i = 0; i < LANES; ++i) {
        lanes[i] += x * other[i];
    }
#endif
}

INLINE void add(Lanes& lanes, const Lanes& other) {
#if defined(__GNUC__)
    lanes += other;
#else
    for (std::size_t i = 0; i < LANES; ++i) {
        lanes[i] += other[i];
    }
#endif
}

// The sum of all lanes, in an order of its own.
INLINE float sum_of(const Lanes& l) { return ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7])); }

template <std::size_t Blocks>
INLINE void add_rows(const float* x, std::size_t length, const float* weight, std::size_t width, float* out) {
    Lanes even[Blocks], odd[Blocks];
    for (std::size_t b = 0; b < Blocks; ++b) {
        load(even[b], out + b * LANES);
        odd[b] = Lanes{};
    }
    std::size_t i = 0;
    for (; i + 1 < length; i += 2) {
        const float *here = weight + i * width, *next = here + width;
        for (std::size_t b = 0; b < Blocks; ++b) {
            add_scaled(even[b], x[i], here + b * LANES);
            add_scaled(odd[b], x[i + 1], next + b * LANES);
        }
    }
    for (; i < length; ++i) {
        for (std::size_t b = 0; b < Blocks; ++b) {
            add_scaled(even[b], x[i], weight + i * width + b * LANES);
        }
    }
    for (std::size_t b = 0; b < Blocks; ++b) {
        add(even[b], odd[b]);
        store(even[b], out + b * LANES);
    }
}

// Add max(x, 0) @ weight to the first `n` of `out`; rows of the matrix are `width` long. room: as long as x.
INLINE void add_rectified(const float* x, std::size_t length, const float* weight, std::size_t width, float* out,
                          std::size_t n, float* room) {
    for (std::size_t i = 0; i < length; ++i) {
        room[i] = x[i] > 0.0f ? x[i] : 0.0f;
    }
    std::size_t k = 0;
    for (; k + 4 * LANES <= n; k += 4 * LANES) {
        add_rows<4>(room, length, weight + k, width, out + k);
    }
    for (; k + 2 * LANES <= n; k += 2 * LANES) {
        add_rows<2>(room, length, weight + k, width, out + k);
    }
    for (; k + LANES <= n; k += LANES) {
        add_rows<1>(room, length, weight + k, width, out + k);
    }
    for (std::size_t i = 0; i < (k < n ? length : 0); ++i) {
        for (std::size_t c = k; c < n; ++c) {
            out[c] += room[i] * weight[i * width + c];
        }
    }
}

// The product of two vectors.
INLINE float dot(const float* a, const float* b, std::size_t n) {
    Lanes sums = Lanes{};
    std::size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        Lanes one;
        load(one, a + i);
#if defined(__GNUC__)
        Lanes other;
        load(other, b + i);
        sums += one * other;
#else
        for (std::size_t r = 0; r < LANES; ++r) {
            sums[r] += one[r] * b[i + r];
        }
#endif
    }
    float rest = 0.0f;
    for (; i < n; ++i) {
        rest += a[i] * b[i];
    }
    return sum_of(sums) + rest;
}

}  // namespace dicoflex
