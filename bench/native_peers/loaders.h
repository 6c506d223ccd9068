// One for each library; null when it is absent.
#pragma once

#include <memory>

#include "native_peers/sgemm_peer.h"

namespace headlight::bench {

[[nodiscard]] std::unique_ptr<SgemmPeer> load_openblas();
[[nodiscard]] std::unique_ptr<SgemmPeer> load_blis();
[[nodiscard]] std::unique_ptr<SgemmPeer> load_onednn();

}  // namespace headlight::bench
