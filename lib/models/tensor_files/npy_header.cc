#include "models/tensor_files/npy_header.h"

#include <limits>

#include "headlight/models/errors.h"
#include "runtime/list_text.h"

namespace headlight::models {
namespace {

// One walk over the literal. The grammar is what numpy itself writes: three keys in any order, either quote, spaces
// anywhere. Under Python 2 numpy wrote extents as long integers, "(3L, 2L)".
class HeaderParser {
 public:
  HeaderParser(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  NpyHeader parse() {
    expect('{');
    bool has_descr = false;
    bool has_order = false;
    bool has_shape = false;
    while (!take('}')) {
      const std::string_view key = string();
      bool& seen = key == "descr" ? has_descr : key == "fortran_order" ? has_order : has_shape;
      if (key != "descr" && key != "fortran_order" && key != "shape") {
        fail("has the unknown key " + in_quotes(key) + ", expected 'descr', 'fortran_order' and 'shape'");
      }
      if (seen) fail("names " + in_quotes(key) + " twice");
      seen = true;
      expect(':');
      if (key == "descr") {
        parse_descr();
      } else if (key == "fortran_order") {
        parse_order();
      } else {
        parse_shape();
      }
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    if (at_ != text_.size()) fail("goes on after the dict at its byte " + std::to_string(at_));
    if (!has_descr || !has_order || !has_shape) {
      fail("lacks " + std::string(!has_descr ? "'descr'" : !has_order ? "'fortran_order'" : "'shape'"));
    }
    count_elements();
    return header_;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const { throw FileError(path_, "the header " + message); }

  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }

  bool take(char wanted) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  void expect(char wanted) {
    if (take(wanted)) return;
    const std::string found = at_ == text_.size() ? "ends" : "has " + in_quotes(text_.substr(at_, 1));
    fail(found + " at its byte " + std::to_string(at_) + ", expected '" + wanted + "'");
  }

  std::string_view string() {
    skip_spaces();
    const char quote = at_ < text_.size() && text_[at_] == '"' ? '"' : '\'';
    expect(quote);
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\\' && text_[at_] != '\n') ++at_;
    const std::string_view content = text_.substr(begin, at_ - begin);
    expect(quote);
    return content;
  }

  void parse_descr() {
    if (take('[')) fail("describes a structured array, expected plain numbers");
    const std::string_view descr = string();
    header_.descr = descr;
    if (descr.size() >= 2 && descr[1] == 'O') fail("describes an array of Python objects, expected plain numbers");
    const bool ordered =
        descr.size() == 3 && (descr[0] == '<' || descr[0] == '>' || descr[0] == '|' || descr[0] == '=');
    const char kind = ordered ? descr[1] : '\0';
    const int size = ordered ? descr[2] - '0' : 0;
    const bool known = (kind == 'b' && size == 1) || (kind == 'f' && (size == 2 || size == 4 || size == 8)) ||
                       ((kind == 'i' || kind == 'u') && (size == 1 || size == 2 || size == 4 || size == 8));
    // '|' says that there is no byte order, which only single bytes can say.
    if (!known || (descr[0] == '|' && size > 1)) {
      fail("gives the type " + in_quotes(descr) + ", expected a float of 2, 4 or 8 bytes, an integer or bool");
    }
    header_.kind = kind;
    header_.element_size = size;
    header_.big_endian = descr[0] == '>';
  }

  void parse_order() {
    skip_spaces();
    if (text_.substr(at_).starts_with("True")) {
      header_.fortran_order = true;
      at_ += 4;
    } else if (text_.substr(at_).starts_with("False")) {
      at_ += 5;
    } else {
      fail("gives a 'fortran_order' that is neither True nor False");
    }
  }

  void parse_shape() {
    expect('(');
    while (!take(')')) {
      if (header_.shape.size() == kMostAxes) fail("gives more than " + std::to_string(kMostAxes) + " axes");
      header_.shape.push_back(extent());
      if (take(',')) continue;
      if (header_.shape.size() == 1) fail("gives a number for the shape, expected a tuple such as (3,)");
      expect(')');
      break;
    }
  }

  std::int64_t extent() {
    skip_spaces();
    const std::size_t begin = at_;
    std::int64_t value = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      if (__builtin_mul_overflow(value, std::int64_t{10}, &value) ||
          __builtin_add_overflow(value, std::int64_t{text_[at_] - '0'}, &value)) {
        fail("gives an extent of 2^63 or more on axis " + std::to_string(header_.shape.size()));
      }
      ++at_;
    }
    if (at_ == begin)
      fail("gives an extent that is no integer from 0 on, on axis " + std::to_string(header_.shape.size()));
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;
    return value;
  }

  // Axes of no extent do not excuse the others: strides are products of them.
  void count_elements() {
    std::int64_t bytes = header_.element_size;
    bool empty = false;
    for (const std::int64_t extent_of_axis : header_.shape) {
      empty = empty || extent_of_axis == 0;
      if (extent_of_axis != 0 && __builtin_mul_overflow(bytes, extent_of_axis, &bytes)) {
        fail("gives a shape whose size does not fit 63 bits");
      }
    }
    header_.count = empty ? 0 : bytes / header_.element_size;
  }

  const std::string& path_;
  std::string_view text_;
  std::size_t at_ = 0;
  NpyHeader header_;
};

}  // namespace

NpyHeader parse_npy_header(const std::string& path, std::string_view text) { return HeaderParser(path, text).parse(); }

std::string npy_tuple(std::span<const std::int64_t> shape) {
  std::string tuple;
  for (const std::int64_t extent : shape) runtime::append_item(tuple, std::to_string(extent));
  return shape.size() == 1 ? tuple + ',' : tuple;
}

std::string npy_start(std::string_view descr, std::span<const std::int64_t> shape) {
  constexpr std::size_t kAlignment = 64;
  std::string start = std::string(kNpyMagic) + std::string("\x01\x00\x00\x00", 4) + "{'descr': '" + std::string(descr) +
                      "', 'fortran_order': False, 'shape': (" + npy_tuple(shape) + "), }";
  start.append(kAlignment - 1 - start.size() % kAlignment, ' ');
  start += '\n';
  const std::size_t length = start.size() - 10;
  start[8] = static_cast<char>(length & 0xFF);
  start[9] = static_cast<char>(length >> 8);
  return start;
}

}  // namespace headlight::models
