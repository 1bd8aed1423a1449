// Random numbers that belong to a query: a hash of its key and a counter. Python's `runtime.randomness` has the same.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace dicoflex {

inline constexpr std::uint64_t GOLDEN = 0x9E3779B97F4A7C15;

// The finaliser of SplitMix64 (Steele, Lea and Flood 2014): every input bit reaches every output bit.
inline constexpr std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
}

// The bits of a value to hash; zero and missing have one pattern each, whatever sign they came with.
inline std::uint64_t pattern_of(double value) {
    if (value == 0.0) {
        return 0;
    }
    return value != value ? 0x7FF8000000000000 : std::bit_cast<std::uint64_t>(value);
}

// The key of a row: all its bits mixed into `start`, one value after the other.
inline std::uint64_t row_key(std::span<const double> row, std::uint64_t start) {
    for (const double value : row) {
        start = mix((start ^ pattern_of(value)) + GOLDEN);
    }
    return start;
}

// Number `counter` of a key's stream, strictly between 0 and 1.
inline double uniform(std::uint64_t key, std::uint64_t counter) {
    const std::uint64_t z = mix(key + (counter + 1) * GOLDEN);
    return (static_cast<double>(z >> 12) + 0.5) * 0x1p-52;
}

}  // namespace dicoflex
