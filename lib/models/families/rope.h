// rope_parameters, and rope_theta and rope_scaling before them: how a config.json says which angles rows are turned by.
#pragma once

#include <cstdint>
#include <string_view>

#include "files/json_value.h"
#include "headlight/rotary.h"

namespace headlight::models {

struct RopeDefaults {
  std::int64_t head_dim = 0;
  std::int64_t longest = 0;  // max_position_embeddings
  double theta = 10000;
  // The key of config.json that has the base where the parameters do not.
  std::string_view theta_key = "rope_theta";
  // Whether rope_scaling is of these layers, too.
  bool scaled = true;
};

// Of layers of that type ("full_attention"), where parameters are kept by type; else of all. As modeling_rope_utils of
// Transformers 5 reads them: rope_scaling before rope_parameters, "type" for rope_type. Throws FileError naming the key
// for a type that is not known, and for every key that this type does not know; and, where parameters are kept by type
// of layer, for a rope_scaling with "type" but no rope_type, which Transformers 5 passes over and Transformers 4 reads.
[[nodiscard]] RotarySpec read_rope(const files::JsonValue& config, const RopeDefaults& defaults,
                                   std::string_view layer_type = "");

}  // namespace headlight::models
