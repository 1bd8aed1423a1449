// Functions compiled for each width of vectors, chosen when the library is loaded.
//
// No sum may cross lanes in them but in an order written down, so that all widths give equal bits.
#pragma once

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)  // zig cannot link clang's clones
#define DICOFLEX_CLONES __attribute__((target_clones("arch=skylake-avx512", "avx2", "default")))
#else
#define DICOFLEX_CLONES
#endif

#define INLINE [[gnu::always_inline]] inline  // into every one of the clones
