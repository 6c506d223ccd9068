#include "native_peers/sgemm_peer.h"

#include "native_peers/loaders.h"

namespace headlight::bench {

const std::vector<std::unique_ptr<SgemmPeer>>& sgemm_peers() {
  static const std::vector<std::unique_ptr<SgemmPeer>> peers = [] {
    std::vector<std::unique_ptr<SgemmPeer>> found;
    for (const auto load : {load_openblas, load_blis, load_onednn}) {
      if (std::unique_ptr<SgemmPeer> peer = load()) found.push_back(std::move(peer));
    }
    return found;
  }();
  return peers;
}

}  // namespace headlight::bench
