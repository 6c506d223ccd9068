// The GGUF format: metadata and named tensors in one file, whose numbers are often blocks of ggml's.
//
// "GGUF", u32 version, u64 number of tensors, u64 number of metadata entries; the entries, {string key, u32 type,
// value}; the tensors, {string name, u32 axes, u64 extent of each axis, u32 type, u64 offset}; zeros up to a multiple
// of the alignment; and the tensors' bytes, from there each at its offset. A string is u64 bytes and those, an array
// u32 type of its elements, u64 number and those. All little-endian.
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headlight/export.h"
#include "headlight/parameters.h"
#include "headlight/storage_format.h"

namespace headlight::models {

// What a value of the metadata is, with the numbers of the format.
enum class GgufType : std::uint32_t {
  uint8,
  int8,
  uint16,
  int16,
  uint32,
  int32,
  float32,
  boolean,
  string,
  array,
  uint64,
  int64,
  float64
};

// A value of the metadata, a place in the file: as long as that is open, it may be read. It ends where it ended when
// the file was opened: whoever changes the file meanwhile changes what is read, but nothing beyond its end is.
class HEADLIGHT_API GgufValue {
 public:
  // What the file says that it is.
  [[nodiscard]] GgufType type() const noexcept;
  // Of an array; uint8 and 0 of any other value.
  [[nodiscard]] GgufType element_type() const noexcept;
  [[nodiscard]] std::uint64_t size() const noexcept;

  // What it is, where it is that: an integer of any type that 63 bits hold, an integer or a float, a boolean, a string
  // (of any bytes).
  [[nodiscard]] std::optional<std::int64_t> integer() const noexcept;
  [[nodiscard]] std::optional<double> number() const noexcept;
  [[nodiscard]] std::optional<bool> boolean() const noexcept;
  [[nodiscard]] std::optional<std::string_view> string() const noexcept;

  // The elements of an array, where all are that. They take at most eight times what they take in the file, strings
  // twice.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> integers() const;
  [[nodiscard]] std::optional<std::vector<double>> numbers() const;
  [[nodiscard]] std::optional<std::vector<std::string_view>> strings() const;

 private:
  friend class GgufArray;
  friend class GgufEntry;
  explicit GgufValue(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}
  [[nodiscard]] std::span<const std::byte> behind_type() const noexcept;

  std::span<const std::byte> bytes_;  // of its type, and of what lies behind that
};

// One entry of the metadata.
class GgufEntry {
 public:
  // "llama.block_count"
  [[nodiscard]] std::string_view key() const noexcept { return {key_, key_bytes_}; }
  // What it has.
  [[nodiscard]] GgufValue value() const noexcept {
    return GgufValue({reinterpret_cast<const std::byte*>(key_ + key_bytes_), end_});
  }
  // All of it, from the length of its key to the end of its value.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return {reinterpret_cast<const std::byte*>(key_) - sizeof(std::uint64_t), end_};
  }

 private:
  friend class GgufHeader;
  GgufEntry(std::string_view key, const std::byte* end) noexcept
      : key_(key.data()), end_(end), key_bytes_(static_cast<std::uint16_t>(key.size())) {}

  const char* key_;  // behind which its value lies
  const std::byte* end_;
  std::uint16_t key_bytes_;
};

// One tensor of a file, as it lies there.
struct GgufTensor {
  std::string_view name;             // "blk.0.attn_q.weight"
  std::span<const std::byte> bytes;  // none where its type is no storage format of ours
  std::uint32_t type = 0;            // the number of its type in the file
  // What it is stored as, where that is a storage format of ours.
  std::optional<StorageFormat> format{};

  // [rows, columns] of a matrix: the file has its extents the other way round. Valid as long as the file.
  [[nodiscard]] std::span<const std::int64_t> shape() const noexcept { return {extents_, axes_}; }

 private:
  friend class GgufHeader;

  std::uint8_t axes_ = 0;
  const std::int64_t* extents_ = nullptr;
};

// An open file of version 2 or 3 (which have the same bytes), or several that are read as one: memory-mapped, and
// wholly validated before the constructor returns. Memory beyond the mapping of one file is at most twice the bytes in
// front of the tensors' own; while several become one, their lists of tensors are there twice. Whoever shortens the
// file while it is open breaks the mapping: reading then ends the process, as with any mapped file.
class HEADLIGHT_API GgufFile {
 public:
  // Throws FileError, naming the key or the tensor, when the file cannot be read or breaks a rule of the format:
  // lengths and numbers beyond its end, types that are none, keys or names that are empty or repeated, arrays of
  // arrays, booleans that are neither 0 nor 1, an alignment that is no multiple of 8, more than four axes, extents
  // whose product does not fit 63 bits, rows of a part of a block, offsets that are not aligned, bytes that lie beyond
  // the end or are those of two tensors.
  explicit GgufFile(const std::string& path);
  // The same from memory, which outlives this object; `name` stands for the path in errors.
  GgufFile(std::string_view name, std::span<const std::byte> bytes);
  // Several files, one or more, as one: the path and the metadata of the first, and the tensors of all. Throws
  // FileError where two of these have one name, and std::invalid_argument for none or one that was moved from.
  explicit GgufFile(std::vector<GgufFile> splits);
  // The file of that path, and where it is the first of several (split.count), NAME-00001-of-00003.gguf, all of them,
  // which lie beside it. Throws FileError as above, and where others are missing or are not of these.
  [[nodiscard]] static GgufFile whole(const std::string& path);
  ~GgufFile();
  GgufFile(GgufFile&&) noexcept;
  GgufFile& operator=(GgufFile&&) noexcept;

  // As the constructor was told.
  [[nodiscard]] const std::string& path() const noexcept;
  // Bytes of the file, or of all that are read as one.
  [[nodiscard]] std::uint64_t bytes() const noexcept;
  // In ascending order of keys and of names; valid as long as this object.
  [[nodiscard]] std::span<const GgufEntry> metadata() const noexcept;
  [[nodiscard]] std::optional<GgufValue> find_value(std::string_view key) const noexcept;
  [[nodiscard]] std::span<const GgufTensor> tensors() const noexcept;
  [[nodiscard]] const GgufTensor* find(std::string_view name) const noexcept;

  // The tensor as it lies in the file, F32 as `values` and all else as `stored`, whose owner keeps the mapping (numbers
  // that do not lie at a multiple of their size, which only memory can have, are copied, and then valid as long as this
  // object). Throws FileError for a name that is not there or a type that is no storage format.
  [[nodiscard]] WeightView stored(std::string_view name);
  // The same as float32: each number rounded once; valid as long as this object.
  [[nodiscard]] WeightView float32(std::string_view name);
  // Every tensor that stored() gives.
  [[nodiscard]] Weights weights();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headlight::models
