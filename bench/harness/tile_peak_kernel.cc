// Compiled with AMX-BF16 and AMX-INT8: the fastest that products of tiles can go.
#include "harness/fma_peak_kernel.h"
#include "kernels/gemm/amx-inl.h"
#include "simd/vector-inl.h"

namespace headlight::HEADLIGHT_TARGET {

// One product takes sixteen cycles and is done after 52 (Intel's optimization manual): four in flight.
extern const FmaBurst fma_burst;
const FmaBurst fma_burst = {kFeature.amx_products * 2 * kLanes * kAmxRows, 4, 1'300,
                            [](std::int64_t steps, float one, float, float* result) noexcept {
                              alignas(64) float ones[2 * kAmxRows][kAmxWords];
                              for (auto& row : ones) store(broadcast(one), row);
                              AmxRegisters registers;
                              registers.configure(2 * kAmxRows);
                              _tile_zero(0);
                              _tile_zero(1);
                              _tile_zero(2);
                              _tile_zero(3);
                              amx_iteration<true, true>({ones[0], kAmxWords, ones[0], ones[0], kAmxWords});
                              for (std::int64_t step = 1; step < steps; ++step) {
                                HEADLIGHT_AMX_PRODUCT(0, 4, 6);
                                HEADLIGHT_AMX_PRODUCT(1, 4, 7);
                                HEADLIGHT_AMX_PRODUCT(2, 5, 6);
                                HEADLIGHT_AMX_PRODUCT(3, 5, 7);
                              }
                              _tile_stored(0, ones, 4 * kAmxWords);
                              *result = ones[0][0];
                            }};

}  // namespace headlight::HEADLIGHT_TARGET
