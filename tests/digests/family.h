// Families of calls whose results are held to the bit: what a case is, and which families there are.
//
// Everything that a case draws and fills in is here, for a change of a draw changes all digests behind it: these files
// are not to be tidied, and new options of the engine get a family of their own.
#pragma once

#include <array>
#include <cstdint>
#include <sstream>
#include <string>

#include "digests/digest.h"
#include "headlight/engine.h"
#include "support/random.h"

namespace headlight::test {

// One call, or a few that belong together: draws its arguments from `random`, adds what comes out to `digest`, and says
// in `words` what it was.
struct DigestCase {
  Engine& engine;
  // The same for every instruction set; `number` counts the cases of a family.
  std::int64_t number;
  Random random;
  Digest digest;
  std::ostringstream words;
};

struct DigestFamily {
  const char* name;
  std::uint64_t seed;
  // Of kDigestGroup cases each: a group has one digest in the tables.
  std::int64_t groups;
  void (*run)(DigestCase&);
};

inline constexpr std::int64_t kDigestGroup = 20;

void digest_attention(DigestCase& c);
void digest_attention_stream(DigestCase& c);
void digest_attention_backward(DigestCase& c);
void digest_attention_unfused(DigestCase& c);
void digest_gemm(DigestCase& c);
void digest_rows(DigestCase& c);
void digest_row_gradients(DigestCase& c);
void digest_layers(DigestCase& c);
void digest_training(DigestCase& c);
void digest_block_rows(DigestCase& c);
void digest_block_row_gradients(DigestCase& c);

inline constexpr std::array<DigestFamily, 11> kDigestFamilies = {{
    {"attention", 1000, 36, digest_attention},
    {"attention_stream", 2000, 6, digest_attention_stream},
    {"attention_backward", 3000, 22, digest_attention_backward},
    {"attention_unfused", 4000, 6, digest_attention_unfused},
    {"gemm", 5000, 25, digest_gemm},
    {"rows", 6000, 12, digest_rows},
    {"row_gradients", 7000, 10, digest_row_gradients},
    {"layers", 8000, 10, digest_layers},
    {"training", 9000, 8, digest_training},
    {"block_rows", 10000, 8, digest_block_rows},
    {"block_row_gradients", 11000, 6, digest_block_row_gradients},
}};

}  // namespace headlight::test
