// Calls of every operation with numbers that are finite, or −∞ where that means "not this key": rows that see nothing,
// biases and sinks of −FLT_MAX. Tests look at what such a call leaves alone.
#pragma once

#include <functional>
#include <string>

#include "headlight/engine.h"

namespace headlight::soak {

// Is handed each call with its name. It may be made any number of times, by one thread at a time.
using Visit = std::function<void(const std::string& name, const std::function<void(Engine&)>& call)>;

void visit_attention(const Visit& visit);
void visit_attention_of_several_blocks(const Visit& visit);
void visit_attention_of_capped_scores(const Visit& visit);
void visit_attention_of_large_scales(const Visit& visit);
void visit_attention_over_stored_types(const Visit& visit);
void visit_attention_over_int8(const Visit& visit);
void visit_attention_backward(const Visit& visit);
void visit_attention_backward_over_stored_types(const Visit& visit);
void visit_attention_stream(const Visit& visit);
void visit_merge_attention(const Visit& visit);
void visit_rows(const Visit& visit);
void visit_stored_rows(const Visit& visit);
void visit_products(const Visit& visit);
void visit_layers_and_their_training(const Visit& visit);

struct HarshCalls {
  const char* name;
  void (*visit)(const Visit& visit);
};
inline constexpr HarshCalls kHarshCalls[] = {
    {"attention", visit_attention},
    {"attention of several blocks", visit_attention_of_several_blocks},
    {"attention of capped scores", visit_attention_of_capped_scores},
    {"attention of large scales", visit_attention_of_large_scales},
    {"attention over stored types", visit_attention_over_stored_types},
    {"attention over int8", visit_attention_over_int8},
    {"attention backward", visit_attention_backward},
    {"attention backward over stored types", visit_attention_backward_over_stored_types},
    {"attention stream", visit_attention_stream},
    {"merge attention", visit_merge_attention},
    {"rows", visit_rows},
    {"stored rows", visit_stored_rows},
    {"products", visit_products},
    {"layers and their training", visit_layers_and_their_training}};

}  // namespace headlight::soak
