// oneDNN's matmul with weights in the layout that it likes best, by the C interface of its version 2: what frameworks
// call for a layer whose weights stay.
#pragma once

#include <functional>

#include "native_peers/sgemm_peer.h"
#include "native_peers/shared_library.h"

namespace headlight::bench {

// The product of `call` on as many threads as OpenMP has now, B packed here and now; empty when the library is another
// version or refuses. With bfloat16 A and B are rounded here and now, too; with int8 each is 127 times its
// numbers, of −1 to 1, rounded, and C has one scale. The memory of `call` must outlive the function.
[[nodiscard]] std::function<void()> onednn_packed_product(const SharedLibrary& library, const SgemmCall& call,
                                                          NumberType type);

}  // namespace headlight::bench
