// Softmax, layer normalisation, pooling, embedding lookup, non-linearities, dropout, and their gradients.
#include <array>

#include "c/handles.h"
#include "headlight/activation.h"
#include "headlight/dropout.h"
#include "headlight/loss.h"
#include "headlight/normalization.h"

namespace headlight::c {
namespace {

// Tables that one call reads: as many as embed() takes, without the heap.
constexpr std::size_t kMostTables = 8;
constexpr const char* kTableNames[kMostTables] = {"tables[0]", "tables[1]", "tables[2]", "tables[3]",
                                                  "tables[4]", "tables[5]", "tables[6]", "tables[7]"};

// Tensors of any types: what goes through an operation on rows.
TypedView<2> rows(const char* operation, const char* argument, const headlight_tensor* tensor) {
  return typed_view<2, const void*>(operation, argument, tensor);
}
MutableTypedView<2> written_rows(const char* operation, const char* argument, const headlight_tensor* tensor) {
  return typed_view<2, void*>(operation, argument, tensor);
}
TypedView<2> optional_rows(const char* operation, const char* argument, const headlight_tensor* tensor) {
  return optional_typed_view<2, const void*>(operation, argument, tensor);
}

LayerNormOptions layer_norm_options(const char* operation, const headlight_layer_norm_options* given) {
  const Fields fields(operation, "options", given);
  LayerNormOptions options;
  options.weight = optional_vector<const float>(operation, "weight", fields->weight);
  options.bias = optional_vector<const float>(operation, "bias", fields->bias);
  options.residual = optional_rows(operation, "residual", fields->residual);
  if (fields->epsilon != nullptr) options.epsilon = *fields->epsilon;
  return options;
}

// Embedding or EmbeddingGradient, one for each table, as `table_of` reads one.
template <class Row, class TableOf>
std::array<Row, kMostTables> table_rows(const char* operation, const headlight_tensor* tables,
                                        const headlight_indices* ids, std::size_t count, TableOf table_of) {
  std::array<Row, kMostTables> rows{};
  if (count > rows.size()) refuse(operation, count, " tables given, expected 1 to 8");
  for (std::size_t table = 0; table < count; ++table) {
    rows[table].table = table_of(operation, kTableNames[table], &required(operation, "tables", tables) + table);
    rows[table].ids = indices(operation, "ids", (&required(operation, "ids", ids))[table]);
  }
  return rows;
}

}  // namespace
}  // namespace headlight::c

using namespace headlight;
using namespace headlight::c;

headlight_status headlight_activate(headlight_engine* engine, headlight_activation activation,
                                    const headlight_tensor* x, const headlight_tensor* y, headlight_error* error) {
  constexpr const char* kName = "activate";
  return call(kName, engine, error, [&](Engine& on) {
    activate(on, named_activation(kName, activation), rows(kName, "x", x), written_rows(kName, "y", y));
  });
}

headlight_status headlight_activate_backward(headlight_engine* engine, headlight_activation activation,
                                             const headlight_tensor* x, const headlight_tensor* y_gradient,
                                             const headlight_tensor* x_gradient, headlight_error* error) {
  constexpr const char* kName = "activate_backward";
  return call(kName, engine, error, [&](Engine& on) {
    activate_backward(on, named_activation(kName, activation), rows(kName, "x", x),
                      rows(kName, "y_gradient", y_gradient), written_rows(kName, "x_gradient", x_gradient));
  });
}

headlight_status headlight_softmax(headlight_engine* engine, const headlight_tensor* x, const headlight_tensor* y,
                                   headlight_error* error) {
  constexpr const char* kName = "softmax";
  return call(kName, engine, error, [&](Engine& on) { softmax(on, rows(kName, "x", x), written_rows(kName, "y", y)); });
}

headlight_status headlight_softmax_backward(headlight_engine* engine, const headlight_tensor* y,
                                            const headlight_tensor* y_gradient, const headlight_tensor* x_gradient,
                                            headlight_error* error) {
  constexpr const char* kName = "softmax_backward";
  return call(kName, engine, error, [&](Engine& on) {
    softmax_backward(on, rows(kName, "y", y), rows(kName, "y_gradient", y_gradient),
                     written_rows(kName, "x_gradient", x_gradient));
  });
}

headlight_status headlight_layer_norm(headlight_engine* engine, const headlight_tensor* x, const headlight_tensor* y,
                                      const headlight_layer_norm_options* options, headlight_error* error) {
  constexpr const char* kName = "layer_norm";
  return call(kName, engine, error, [&](Engine& on) {
    layer_norm(on, rows(kName, "x", x), written_rows(kName, "y", y), layer_norm_options(kName, options));
  });
}

headlight_status headlight_layer_norm_backward(headlight_engine* engine, const headlight_tensor* x,
                                               const headlight_tensor* y_gradient,
                                               const headlight_layer_norm_gradients* gradients,
                                               const headlight_layer_norm_options* options, headlight_error* error) {
  constexpr const char* kName = "layer_norm_backward";
  return call(kName, engine, error, [&](Engine& on) {
    const Fields to(kName, "gradients", &required(kName, "gradients", gradients));
    layer_norm_backward(on, rows(kName, "x", x), rows(kName, "y_gradient", y_gradient),
                        {.x = optional_typed_view<2, void*>(kName, "gradients.x", to->x),
                         .residual = optional_rows(kName, "gradients.residual", to->residual),
                         .weight = optional_vector<float>(kName, "gradients.weight", to->weight),
                         .bias = optional_vector<float>(kName, "gradients.bias", to->bias)},
                        layer_norm_options(kName, options));
  });
}

headlight_status headlight_bias_backward(headlight_engine* engine, const headlight_tensor* c_gradient,
                                         const headlight_tensor* bias_gradient, headlight_error* error) {
  constexpr const char* kName = "bias_backward";
  return call(kName, engine, error, [&](Engine& on) {
    bias_backward(on, rows(kName, "c_gradient", c_gradient), vector<float>(kName, "bias_gradient", bias_gradient));
  });
}

headlight_status headlight_apply_dropout(headlight_engine* engine, const headlight_tensor* x, const headlight_tensor* y,
                                         const headlight_dropout* drop, const headlight_tensor* residual,
                                         headlight_error* error) {
  constexpr const char* kName = "apply_dropout";
  return call(kName, engine, error, [&](Engine& on) {
    dropout(on, rows(kName, "x", x), written_rows(kName, "y", y), dropout_of(required(kName, "dropout", drop)),
            optional_rows(kName, "residual", residual));
  });
}

headlight_status headlight_embed(headlight_engine* engine, const headlight_tensor* tables, const headlight_indices* ids,
                                 size_t count, const headlight_tensor* out, headlight_error* error) {
  constexpr const char* kName = "embed";
  return call(kName, engine, error, [&](Engine& on) {
    const auto embeddings = table_rows<Embedding>(kName, tables, ids, count, rows);
    embed(on, std::span(embeddings).first(count), written_rows(kName, "out", out));
  });
}

headlight_status headlight_embed_backward(headlight_engine* engine, const headlight_tensor* out_gradient,
                                          const headlight_tensor* table_gradients, const headlight_indices* ids,
                                          size_t count, headlight_error* error) {
  constexpr const char* kName = "embed_backward";
  return call(kName, engine, error, [&](Engine& on) {
    const auto gradients = table_rows<EmbeddingGradient>(kName, table_gradients, ids, count, view<float, 2>);
    embed_backward(on, rows(kName, "out_gradient", out_gradient), std::span(gradients).first(count));
  });
}

headlight_status headlight_mean_pool(headlight_engine* engine, const headlight_tensor* x,
                                     const headlight_indices* offsets, const headlight_tensor* out,
                                     int32_t l2_normalize, headlight_error* error) {
  constexpr const char* kName = "mean_pool";
  return call(kName, engine, error, [&](Engine& on) {
    mean_pool(on, view<const float, 2>(kName, "x", x), indices(kName, "offsets", required(kName, "offsets", offsets)),
              view<float, 2>(kName, "out", out), l2_normalize != 0);
  });
}

headlight_status headlight_mean_pool_backward(headlight_engine* engine, const headlight_tensor* x,
                                              const headlight_indices* offsets, const headlight_tensor* out_gradient,
                                              const headlight_tensor* x_gradient, int32_t l2_normalize,
                                              headlight_error* error) {
  constexpr const char* kName = "mean_pool_backward";
  return call(kName, engine, error, [&](Engine& on) {
    mean_pool_backward(on, optional_view<const float, 2>(kName, "x", x),
                       indices(kName, "offsets", required(kName, "offsets", offsets)),
                       view<const float, 2>(kName, "out_gradient", out_gradient),
                       view<float, 2>(kName, "x_gradient", x_gradient), l2_normalize != 0);
  });
}

headlight_status headlight_cross_entropy(headlight_engine* engine, const headlight_tensor* logits,
                                         const headlight_indices* labels, double* loss, int64_t* rows,
                                         const headlight_cross_entropy_options* options, headlight_error* error) {
  constexpr const char* kName = "cross_entropy";
  return call(kName, engine, error, [&](Engine& on) {
    const Fields fields(kName, "options", options);
    CrossEntropyOptions wanted;
    if (fields->ignore_label != nullptr) wanted.ignore_label = *fields->ignore_label;
    wanted.logits_gradient = optional_view<float, 2>(kName, "logits_gradient", fields->logits_gradient);
    double& mean = required(kName, "loss", loss);
    const CrossEntropy found = cross_entropy(on, view<const float, 2>(kName, "logits", logits),
                                             indices(kName, "labels", required(kName, "labels", labels)), wanted);
    mean = found.loss;
    if (rows != nullptr) *rows = found.rows;
  });
}
