// GGUF files of any metadata and tensors.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headlight/storage_format.h"

namespace headlight::test {

class GgufWriter {
 public:
  explicit GgufWriter(std::string_view architecture) { text("general.architecture", architecture); }

  void integer(std::string_view key, std::uint32_t value) { begin(key, 4), put(entries_, value); }
  void number(std::string_view key, double value) { begin(key, 12), put(entries_, value); }
  void flag(std::string_view key, bool value) { begin(key, 7), put(entries_, static_cast<std::uint8_t>(value)); }
  void text(std::string_view key, std::string_view value) { begin(key, 8), put_text(entries_, value); }
  void integers(std::string_view key, const std::vector<std::int32_t>& values) {
    begin_array(key, 5, values.size());
    for (const std::int32_t value : values) put(entries_, value);
  }
  void bytes(std::string_view key, std::string_view values) {
    begin_array(key, 0, values.size());
    entries_ += values;
  }
  void numbers(std::string_view key, const std::vector<float>& values) {
    begin_array(key, 6, values.size());
    for (const float value : values) put(entries_, value);
  }
  void texts(std::string_view key, const std::vector<std::string>& values) {
    begin_array(key, 8, values.size());
    for (const std::string& value : values) put_text(entries_, value);
  }

  // A tensor of that shape, in a type by its number in the format.
  void tensor(std::string_view name, const std::vector<std::int64_t>& shape, std::uint32_t type,
              std::string_view numbers) {
    put_text(infos_, name);
    put(infos_, static_cast<std::uint32_t>(shape.size()));
    for (auto extent = shape.rbegin(); extent != shape.rend(); ++extent)
      put(infos_, static_cast<std::uint64_t>(*extent));
    put(infos_, type);
    put(infos_, static_cast<std::uint64_t>(data_.size()));
    data_ += numbers;
    data_.resize((data_.size() + kAlignment - 1) / kAlignment * kAlignment);
    ++tensors_;
  }
  void floats(std::string_view name, const std::vector<std::int64_t>& shape, const std::vector<float>& values) {
    tensor(name, shape, 0, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  }

  [[nodiscard]] std::string file() const {
    std::string all = "GGUF";
    put(all, std::uint32_t{3});
    put(all, static_cast<std::uint64_t>(tensors_));
    put(all, static_cast<std::uint64_t>(count_));
    all += entries_ + infos_;
    all.resize((all.size() + kAlignment - 1) / kAlignment * kAlignment);
    return all + data_;
  }

 private:
  static constexpr std::size_t kAlignment = 32;

  template <class T>
  static void put(std::string& to, T value) {
    to.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  static void put_text(std::string& to, std::string_view value) {
    put(to, static_cast<std::uint64_t>(value.size()));
    to += value;
  }
  void begin(std::string_view key, std::uint32_t type) {
    put_text(entries_, key);
    put(entries_, type);
    ++count_;
  }
  void begin_array(std::string_view key, std::uint32_t type, std::size_t size) {
    begin(key, 9);
    put(entries_, type);
    put(entries_, static_cast<std::uint64_t>(size));
  }

  std::string entries_, infos_, data_;
  std::size_t count_ = 0, tensors_ = 0;
};

}  // namespace headlight::test
