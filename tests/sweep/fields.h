// The fields of a case as words, name=value, both ways: a case visits its fields once, for whoever reads or writes
// them.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace headlight::sweep {

struct Word {
  std::string name;
  std::string value;
  friend bool operator==(const Word&, const Word&) = default;
};
using Words = std::vector<Word>;

// Throws std::invalid_argument for what is no number, or goes on behind one.
template <class Number>
[[nodiscard]] Number number_in(const Word& word) {
  Number number{};
  const char* const end = word.value.data() + word.value.size();
  const auto [read_to, error] = std::from_chars(word.value.data(), end, number);
  if (error != std::errc() || read_to != end) {
    throw std::invalid_argument(word.name + " is '" + word.value + "', expected a number");
  }
  return number;
}

// As short as it can be read back.
template <class Number>
[[nodiscard]] std::string text_of(Number number) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

class Fields {
 public:
  // Those that differ from the usual values are written, behind one another.
  explicit Fields(Words& written) : written_(&written) {}
  // The field of that name takes the word's value.
  explicit Fields(const Word& read) : read_(&read) {}

  // Whether there was such a field.
  [[nodiscard]] bool found() const { return found_; }

  template <class Number>
  void number(const char* name, Number& value, Number usual) {
    if (is_read(name)) value = number_in<Number>(*read_);
    if (written_ != nullptr && value != usual) written_->push_back({name, text_of(value)});
  }
  void flag(const char* name, bool& value) {
    if (is_read(name)) value = number_in<int>(*read_) != 0;
    if (written_ != nullptr && value) written_->push_back({name, "1"});
  }
  void text(const char* name, std::string& value) {
    if (is_read(name)) value = read_->value;
    if (written_ != nullptr && !value.empty()) written_->push_back({name, value});
  }
  // One of an enum, whose names stand in the order of its values. The first is the usual one.
  template <class Enum>
  void choice(const char* name, Enum& value, std::span<const char* const> names) {
    if (is_read(name)) value = static_cast<Enum>(place_of(names));
    const auto place = static_cast<std::size_t>(value);
    if (written_ != nullptr && place != 0) written_->push_back({name, names[place]});
  }
  // Fields that somebody else knows: set(name, value) says whether there is such a one, `line` holds all.
  template <class Set>
  void others(Set set, const std::string& line) {
    if (read_ != nullptr) found_ = set(read_->name, read_->value) || found_;
    if (written_ == nullptr) return;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      const std::size_t equals = word.find('=');
      written_->push_back({word.substr(0, equals), word.substr(equals + 1)});
    }
  }

 private:
  [[nodiscard]] bool is_read(const char* name) {
    if (read_ == nullptr || read_->name != name) return false;
    return found_ = true;
  }
  [[nodiscard]] std::size_t place_of(std::span<const char* const> names) const {
    std::string all;
    for (std::size_t n = 0; n < names.size(); ++n) {
      if (read_->value == names[n]) return n;
      all += all.empty() ? names[n] : std::string(", ") + names[n];
    }
    throw std::invalid_argument(read_->name + " is '" + read_->value + "', expected one of " + all);
  }

  Words* written_ = nullptr;
  const Word* read_ = nullptr;
  bool found_ = false;
};

}  // namespace headlight::sweep
