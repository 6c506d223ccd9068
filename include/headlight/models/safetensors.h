// The safetensors format: named tensors in one file, as published checkpoints come.
//
// u64 little-endian header length N, N bytes of JSON {name: {dtype, shape, data_offsets: [begin, end]}, "__metadata__":
// {…}}, then the data. https://github.com/huggingface/safetensors#format
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/export.h"
#include "headlight/number_type.h"
#include "headlight/parameters.h"

namespace headlight::models {

// One tensor of a file, as it lies there.
struct SafetensorsEntry {
  std::string name;                  // "embeddings.word_embeddings.weight"
  std::string dtype;                 // as the format spells it: "F32", "BF16", "I64" …
  std::vector<std::int64_t> shape;   // empty: a single number
  std::span<const std::byte> bytes;  // little-endian, C order
};

// An open file, or several that are read as one: memory-mapped, and wholly validated before the constructor returns.
// Memory beyond the mapping is at most twice the header, which has at most 100,000,000 bytes, and 8 MiB. Whoever
// shortens the file while it is open breaks the mapping: reading then ends the process, as with any mapped file.
class HEADLIGHT_API SafetensorsFile {
 public:
  // Throws FileError when the file cannot be read or breaks any rule of the format: a header longer than allowed or
  // than the file, JSON that is none, nests too deep or repeats a key, an unknown dtype, extents or offsets that are no
  // plain integers, shapes whose size does not fit 63 bits or differs from their bytes, bytes that are not covered
  // exactly once.
  explicit SafetensorsFile(const std::string& path);
  // The same from memory, which outlives this object; `name` stands for the path in errors.
  SafetensorsFile(std::string_view name, std::span<const std::byte> bytes);
  // Several files, none of whose tensors has a name twice, as one of that name.
  SafetensorsFile(std::string_view name, std::vector<SafetensorsFile> shards);
  // Those that the index of a model in several files names (`model.safetensors.index.json`), which lie beside it.
  // Throws FileError as above, and where the index breaks its format, names what is no plain name of a file, or does
  // not say of each tensor where it is.
  [[nodiscard]] static SafetensorsFile sharded(const std::string& index);
  ~SafetensorsFile();
  SafetensorsFile(SafetensorsFile&&) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) noexcept;

  // As the constructor was told.
  [[nodiscard]] const std::string& path() const noexcept;
  // In the order of their bytes, file by file; valid as long as this object.
  [[nodiscard]] std::span<const SafetensorsEntry> tensors() const noexcept;
  [[nodiscard]] const SafetensorsEntry* find(std::string_view name) const noexcept;
  // Of several files that of the first.
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const noexcept;

  // The tensor as float32, valid as long as this object: the mapped bytes themselves for F32 (copied where they are not
  // aligned), whose owner keeps the mapping even longer, widened exactly and once for F16 and BF16; for I8 and U8, as
  // write_safetensors() makes them, each integer times its scale, rounded once. FileError for another dtype, or
  // integers without what is beside them there, or a name that is not there.
  [[nodiscard]] WeightView float32(std::string_view name);

  // The same, but all that is no F32 as it lies in the file: `stored` of the view, whose owner keeps the mapping. F16
  // and BF16 must lie at even addresses for that, and are widened where they do not.
  [[nodiscard]] WeightView stored(std::string_view name);

  // Every tensor that float32() reads, without those that hold scales or shapes of others; all else (such as the I64
  // position ids of old BERT files) is left out.
  [[nodiscard]] Weights weights();

 private:
  void parse(std::span<const std::byte> bytes);
  [[nodiscard]] std::shared_ptr<const void> owner_of(const SafetensorsEntry& entry) const noexcept;

  struct State;
  std::unique_ptr<State> state_;
};

// Writes all of `weights`, names in ascending order, and `metadata`; the file appears whole or not at all. Vectors are
// F32, and so are matrices and what has more axes, unless another type is asked for: F16 or BF16, the nearest numbers,
// ties to even; or int8, for a quarter of the bytes. Then a weight [.., K] becomes "name", I8 of the same shape, and
// "name_scale", F32 [.., 1]: with t = max_k |w_k| / 127 of a row, at least 2⁻¹²⁶, the integers q_k = round(w_k · (1 /
// t)), ties to even, and (127 · t) / 127, every operation a float32 one. The number that float32() reads is q_k times
// that. Rounded to int8 by PackedMatrix they give the integers of the file and its scales, which are those that
// `weights` themselves give, but for one unit in the last place of one scale in 129.
//
// Or int4, for a seventh of the bytes: "name", U8 [.., ⌈K / 2⌉], whose byte b of a row holds number 2b in its lower
// four bits and number 2b + 1 in its upper ones, each as its integer plus 8 (behind the end: 8); "name_scale", BF16
// [.., ⌈K / 32⌉]; and "name_shape", I64: the extents of the weight. With t = max_k |w_k| / 7 of the numbers k in 32 g …
// 32 g + 31 of a row, at least 2⁻¹²⁶ and then rounded to bfloat16, the integers are q_k = round(w_k · (1 / t)), ties to
// even, in −7 … 7 by the nearer. Rounded to int4 by PackedMatrix what float32() reads has the panels of `weights`.
//
// Weights that are `stored` are read a row at a time. Throws FileError when it cannot be written, std::invalid_argument
// for a type that is none of these, a shape that does not match its values, a name that is not UTF-8 or is
// "__metadata__", and for int8 and int4 numbers that are not finite, or a name that is that of another tensor's scales
// or shape.
HEADLIGHT_API void write_safetensors(const std::string& path, const Weights& weights,
                                     const std::map<std::string, std::string>& metadata = {},
                                     NumberType type = NumberType::float32);

// The same, each weight in the format that it is in: what is `stored` as F16, BF16, int8 or int4 byte for byte,
// integers with the scales that they have, and all else, blocks of ggml's among it, as float32. Throws
// std::invalid_argument for integers without an axis, too.
HEADLIGHT_API void write_safetensors_as_stored(const std::string& path, const Weights& weights,
                                               const std::map<std::string, std::string>& metadata = {});

}  // namespace headlight::models
