// The table of storage formats: whoever meets a format asks it.
#include "storage/formats.h"

#include <array>
#include <cstddef>
#include <iterator>
#include <optional>

#include "headlight/storage_types.h"
#include "storage/ggml_blocks.h"
#include "storage/ggml_k_blocks.h"
#include "storage/integer_rows.h"
#include "storage/plain_rows.h"

namespace headlight {
namespace storage {
namespace {

using enum StorageFormat;
constexpr auto kNone = std::nullopt;

// Numbers one behind another.
constexpr StorageFormatInfo plain(StorageFormat format, NumberType type, std::string_view name,
                                  std::string_view safetensors, int gguf, std::string_view gguf_name) {
  const auto bytes = static_cast<std::int64_t>(bytes_of(type));
  return {format, name,  1,           bytes, false,    0, 0, kNone, 0, static_cast<std::size_t>(bytes),
          type,   kNone, safetensors, gguf,  gguf_name};
}

// Integers whose scales lie beside.
constexpr StorageFormatInfo integers(StorageFormat format, NumberType panels, std::string_view name,
                                     std::int64_t numbers, NumberType scales, std::int64_t numbers_of_scale,
                                     std::string_view safetensors) {
  return {format, name, numbers, 1, false, 0, 0, scales, numbers_of_scale, 1, kNone, panels, safetensors, -1, ""};
}

// Blocks of ggml: numbers, bytes, scales and minima of one.
constexpr StorageFormatInfo blocks(StorageFormat format, std::string_view name, std::int64_t numbers,
                                   std::int64_t bytes, int scales, int minima, int gguf, std::string_view gguf_name,
                                   std::optional<NumberType> panels = kNone) {
  return {format, name, numbers, bytes, true, scales, minima, kNone, numbers, 1, kNone, panels, "", gguf, gguf_name};
}

constexpr Format kFormats[] = {
    {plain(float32, NumberType::float32, "float32", "F32", 0, "F32"), widen_plain<float>, nullptr},
    {plain(bfloat16, NumberType::bfloat16, "bfloat16", "BF16", 30, "BF16"), widen_plain<BFloat16>, nullptr},
    {plain(float16, NumberType::float16, "float16", "F16", 1, "F16"), widen_plain<Float16>, nullptr},
    {integers(int8, NumberType::int8, "int8", 1, NumberType::float32, 0, "I8"), widen_int8, int8_integers},
    {integers(int4, NumberType::int4, "int4", 2, NumberType::bfloat16, kInt4Group, "U8"), widen_int4, int4_integers},
    {blocks(q8_0, "q8_0", kGgmlBlock, kQ80Bytes, 1, 0, 8, "Q8_0"), widen_q8_0, nullptr},
    {blocks(q4_0, "q4_0", kGgmlBlock, kQ40Bytes, 1, 0, 2, "Q4_0", NumberType::int4), widen_q4_0, q4_0_integers},
    {blocks(q4_1, "q4_1", kGgmlBlock, kQ41Bytes, 1, 1, 3, "Q4_1"), widen_q4_1, nullptr},
    {blocks(q4_k, "q4_k", kKBlock, kQ4KBytes, 8, 8, 12, "Q4_K"), widen_q4_k, nullptr},
    {blocks(q5_k, "q5_k", kKBlock, kQ5KBytes, 8, 8, 13, "Q5_K"), widen_q5_k, nullptr},
    {blocks(q6_k, "q6_k", kKBlock, kQ6KBytes, 16, 0, 14, "Q6_K"), widen_q6_k, nullptr},
};

// Each at the place of its number.
constexpr bool is_in_order() {
  for (std::size_t n = 0; n < std::size(kFormats); ++n) {
    if (static_cast<std::size_t>(kFormats[n].info.format) != n) return false;
  }
  return true;
}
static_assert(is_in_order());

constexpr auto kInfos = [] {
  std::array<StorageFormatInfo, std::size(kFormats)> infos{};
  for (std::size_t n = 0; n < infos.size(); ++n) infos[n] = kFormats[n].info;
  return infos;
}();

}  // namespace

const Format& table_entry(StorageFormat format) noexcept { return kFormats[static_cast<std::size_t>(format)]; }

Row row_of(const StoredNumbers& stored, std::int64_t columns, std::int64_t row) noexcept {
  const auto* const blocks = static_cast<const std::byte*>(stored.data) + row * row_bytes(stored.format, columns);
  if (stored.scales == nullptr) return {blocks, nullptr};
  return {blocks, static_cast<const std::byte*>(stored.scales) + row * row_scale_bytes(stored.format, columns)};
}

}  // namespace storage

std::span<const StorageFormatInfo> storage_formats() noexcept { return storage::kInfos; }

const StorageFormatInfo& info(StorageFormat format) noexcept {
  return storage::kInfos[static_cast<std::size_t>(format)];
}

std::int64_t row_bytes(StorageFormat format, std::int64_t columns) noexcept {
  const StorageFormatInfo& of = info(format);
  return storage::divide_up(columns, of.numbers) * of.bytes;
}

std::int64_t row_scale_bytes(StorageFormat format, std::int64_t columns) noexcept {
  const StorageFormatInfo& of = info(format);
  if (!of.beside) return 0;
  return storage::scales_of_row(of, columns) * static_cast<std::int64_t>(bytes_of(*of.beside));
}

StoredNumbers some_rows(const StoredNumbers& stored, std::int64_t columns, std::int64_t first,
                        std::int64_t count) noexcept {
  const storage::Row row = storage::row_of(stored, columns, first);
  return {stored.format, row.blocks, count * columns, row.scales};
}

void widen_rows(const StoredNumbers& stored, std::int64_t columns, std::int64_t first, std::int64_t count,
                float* to) noexcept {
  const storage::Format& format = storage::table_entry(stored.format);
  if (format.info.plain) {  // all rows are one
    return format.widen(storage::row_of(stored, columns, first), count * columns, to);
  }
  for (std::int64_t row = first; row < first + count; ++row, to += columns) {
    format.widen(storage::row_of(stored, columns, row), columns, to);
  }
}

}  // namespace headlight
