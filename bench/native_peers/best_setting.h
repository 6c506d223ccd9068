// Finding the environment in which a library is fastest. Libraries read it once, when they are loaded, so each setting
// is tried in a child process of its own; what crashes there (kernels for another CPU) is out of the race.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "native_peers/sgemm_peer.h"

namespace headlight::bench {

// Sets the environment variable `name` to the one of `values` with which the loaded peer multiplies fastest, over
// several shapes on one thread and on all, "" meaning not at all, and returns it. To be called before the library is
// loaded here.
std::string choose_best_setting(const char* name, const std::vector<std::string>& values,
                                const std::function<std::unique_ptr<SgemmPeer>()>& load);

}  // namespace headlight::bench
