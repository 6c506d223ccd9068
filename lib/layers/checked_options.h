// What layers are made of, checked: layers that stand for them in another form refuse the same.
#pragma once

#include "headlight/layers/feed_forward.h"
#include "headlight/layers/multi_head_attention.h"

namespace headlight::layers {

// Every 0 that stands for another size replaced by it. Throw std::invalid_argument, OutOfMemory.
[[nodiscard]] MultiHeadAttentionOptions checked(MultiHeadAttentionOptions options);
[[nodiscard]] FeedForwardOptions checked(FeedForwardOptions options);

}  // namespace headlight::layers
