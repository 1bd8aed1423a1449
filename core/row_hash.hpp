// A keyed hash of rows: without the key it can be neither run backwards nor tried on a guess.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "random.hpp"

namespace dicoflex {

// SipHash-2-4 (Aumasson and Bernstein 2012) of a row's eight-byte numbers; the key is two words.
class SipHash {
public:
    SipHash(std::uint64_t one, std::uint64_t two)
        : a(one ^ 0x736f6d6570736575), b(two ^ 0x646f72616e646f6d), c(one ^ 0x6c7967656e657261),
          d(two ^ 0x7465646279746573) {}

    std::uint64_t of(std::span<const double> row) const {
        SipHash state = *this;
        for (const double value : row) {
            state.take(pattern_of(value));
        }
        state.take(std::uint64_t{8 * row.size() % 256} << 56);  // the last word is the length in bytes
        state.c ^= 0xFF;
        for (int i = 0; i < 4; ++i) {
            state.round();
        }
        return state.a ^ state.b ^ state.c ^ state.d;
    }

private:
    void take(std::uint64_t word) {
        d ^= word;
        round();
        round();
        a ^= word;
    }

    void round() {
        a += b;
        c += d;
        b = std::rotl(b, 13) ^ a;
        d = std::rotl(d, 16) ^ c;
        a = std::rotl(a, 32);
        c += b;
        a += d;
        b = std::rotl(b, 17) ^ c;
        d = std::rotl(d, 21) ^ a;
        c = std::rotl(c, 32);
    }

    std::uint64_t a, b, c, d;
};

}  // namespace dicoflex
