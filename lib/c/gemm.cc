#include "headlight/gemm.h"

#include <string>

#include "c/handles.h"

namespace headlight::c {
namespace {

constexpr const char* kGemm = "gemm";

GemmOptions gemm_options(const headlight_gemm_options* given, int rank) {
  GemmOptions options;
  if (given == nullptr) return options;
  const Fields fields(kGemm, "options", given, HEADLIGHT_C_FIELDS(headlight_gemm_options));
  if (fields->alpha != nullptr) options.alpha = *fields->alpha;
  if (fields->beta != nullptr) options.beta = *fields->beta;
  options.bias = optional_vector<const float>(kGemm, "bias", fields->bias);
  options.activation = activation_of(kGemm, fields->activation, Activation::none);
  if (rank == 2) options.residual = optional_view<const float, 2>(kGemm, "residual", fields->residual);
  if (rank == 3) options.batched_residual = optional_view<const float, 3>(kGemm, "residual", fields->residual);
  return options;
}

template <int Rank>
void multiply(Engine& engine, const headlight_tensor* a, const headlight_tensor* b, const headlight_tensor* c,
              const headlight_gemm_options* given) {
  const Stored<Rank> left = stored<Rank>(kGemm, "a", a), right = stored<Rank>(kGemm, "b", b);
  GemmOptions options = gemm_options(given, Rank);
  options.transpose_a = left.transpose;
  options.transpose_b = right.transpose;
  gemm(engine, left.view, right.view, view<float, Rank>(kGemm, "c", c), options);
}

GemmShape gemm_shape(const headlight_gemm_shape* given) {
  required(kGemm, "shape", given);
  const Fields fields(kGemm, "shape", given);
  return {fields->batch == 0 ? 1 : fields->batch,  fields->m, fields->n, fields->k, fields->packed != 0,
          number_type(kGemm, "type", fields->type)};
}

}  // namespace
}  // namespace headlight::c

using namespace headlight;
using namespace headlight::c;

headlight_status headlight_gemm(headlight_engine* engine, const headlight_tensor* a, const headlight_tensor* b,
                                const headlight_tensor* c, const headlight_gemm_options* options,
                                headlight_error* error) {
  return call(kGemm, engine, error, [&](Engine& on) {
    if (required(kGemm, "c", c).rank == 3) {
      multiply<3>(on, a, b, c, options);
    } else {
      multiply<2>(on, a, b, c, options);
    }
  });
}

headlight_status headlight_packed_matrix_create(headlight_engine* engine, const headlight_tensor* b,
                                                headlight_type type, headlight_packed_matrix** packed,
                                                headlight_error* error) {
  constexpr const char* kPacked = "packed_matrix";
  return create(kPacked, packed, error, [&] {
    Engine& on = engine_of(kPacked, engine);
    const Stored<2> matrix = stored<2>(kPacked, "b", b);
    return std::make_unique<headlight_packed_matrix>(
        headlight_packed_matrix{PackedMatrix(on, matrix.view, matrix.transpose, number_type(kPacked, "type", type))});
  });
}

void headlight_packed_matrix_destroy(headlight_packed_matrix* packed) { delete packed; }

int64_t headlight_packed_matrix_rows(const headlight_packed_matrix* packed) {
  return packed == nullptr ? 0 : packed->matrix.rows();
}

int64_t headlight_packed_matrix_columns(const headlight_packed_matrix* packed) {
  return packed == nullptr ? 0 : packed->matrix.columns();
}

size_t headlight_packed_matrix_bytes(const headlight_packed_matrix* packed) {
  return packed == nullptr ? 0 : packed->matrix.bytes();
}

headlight_isa headlight_packed_matrix_isa(const headlight_packed_matrix* packed) {
  return packed == nullptr ? HEADLIGHT_ISA_BEST : isa_in_c(packed->matrix.isa());
}

headlight_type headlight_packed_matrix_type(const headlight_packed_matrix* packed) {
  return packed == nullptr ? HEADLIGHT_FLOAT32 : type_in_c(packed->matrix.type());
}

headlight_status headlight_gemm_packed(headlight_engine* engine, const headlight_tensor* a,
                                       const headlight_packed_matrix* b, const headlight_tensor* c,
                                       const headlight_gemm_options* options, headlight_error* error) {
  return call(kGemm, engine, error, [&](Engine& on) {
    const Stored<2> left = stored<2>(kGemm, "a", a);
    GemmOptions fields = gemm_options(options, 2);
    fields.transpose_a = left.transpose;
    gemm(on, left.view, required(kGemm, "b", b).matrix, view<float, 2>(kGemm, "c", c), fields);
  });
}

headlight_status headlight_gemm_workspace_bytes(const headlight_engine* engine, const headlight_gemm_shape* shape,
                                                size_t* bytes, headlight_error* error) {
  return call(kGemm, engine, error,
              [&](const Engine& on) { required(kGemm, "bytes", bytes) = workspace_bytes(on, gemm_shape(shape)); });
}

headlight_status headlight_gemm_reserve(headlight_engine* engine, const headlight_gemm_shape* shape,
                                        headlight_error* error) {
  return call(kGemm, engine, error, [&](Engine& on) { reserve(on, gemm_shape(shape)); });
}
