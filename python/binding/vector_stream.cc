#include "vector_stream.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <span>
#include <utility>

#include "array.h"
#include "errors.h"
#include "interruptible.h"
#include "results.h"

namespace headlight::python {
namespace {

constexpr const char* kName = "embed_stream";
// Beside what the tokenizer works in: a str of four bytes a character, its UTF-8, and that twice with what is in front
// of it and what it becomes.
constexpr std::int64_t kCopies = 8;
// What an allocator keeps.
constexpr std::int64_t kSpare = std::int64_t{2} << 20;

// One call at a time, as of a generator: texts are asked of Python and computed without the GIL, and both let others
// call.
class Entry {
 public:
  explicit Entry(std::atomic<bool>& executing) : executing_(executing) {
    if (executing_.exchange(true)) {
      refuse_value(kName, "the stream is already executing, expected one next() after another");
    }
  }
  ~Entry() { executing_ = false; }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

 private:
  std::atomic<bool>& executing_;
};

}  // namespace

VectorStream::VectorStream(const models::TextEncoder& encoder, Engine& engine, nb::handle texts,
                           models::EmbedOptions options, std::int64_t memory, nb::object held)
    : encoder_(encoder),
      engine_(engine),
      held_(std::move(held)),
      given_(nb::borrow(texts)),
      items_(kName, "texts", given_, "a str or an iterable of them"),
      options_(std::move(options)),
      memory_(memory),
      is_one_text_(PyUnicode_Check(texts.ptr()) != 0) {
  models::TextEncoder::CallBytes call;
  compute([&] { call = encoder_.call_bytes(engine_, encoder_.options().embed_max_length); });
  const std::int64_t result = 2 * encoder_.embed_width(options_) * static_cast<std::int64_t>(sizeof(float));
  const models::TextBudget budget(call, {.copies = kCopies, .result = result, .spare = kSpare});
  if (memory < budget.least()) {
    refuse_value(kName, "memory is " + std::to_string(memory) + ", expected at least " +
                            std::to_string(budget.least()) + " bytes for one text beside the model's weights");
  }
  share_ = budget.share(memory);
}

bool VectorStream::read_text() {
  if (waits_) return true;
  if (ended_) return false;
  nb::object one;
  if (is_one_text_) {
    one = given_;
    ended_ = true;
  } else {
    one = items_.next();
    if (!one.is_valid()) ended_ = true;
  }
  if (!one.is_valid()) return false;
  const std::string name = "texts[" + std::to_string(read_++) + "]";
  const std::string_view words = text(kName, name.c_str(), one);
  if (words.size() > share_.text_bytes) {
    refusal_ = name + " has " + std::to_string(words.size()) + " bytes, more than memory " + std::to_string(memory_) +
               " has room for, expected at most " + std::to_string(share_.text_bytes);
    return waits_ = true;
  }
  waiting_ = words;
  return waits_ = true;
}

void VectorStream::read_block() {
  vectors_ = {};
  given_rows_ = 0;
  std::vector<std::string> texts;
  std::size_t bytes = 0;
  while (texts.size() < share_.texts && read_text()) {
    // Texts before one that is refused are given first.
    if (!texts.empty() && (!refusal_.empty() || bytes + waiting_.size() > share_.text_bytes)) break;
    if (!refusal_.empty()) refuse_value(kName, refusal_);
    bytes += waiting_.size();
    texts.push_back(std::move(waiting_));
    waits_ = false;
  }
  if (texts.empty()) return;
  Tensor<float, 2> vectors({static_cast<std::int64_t>(texts.size()), encoder_.embed_width(options_)});
  compute([&] { encoder_.embed(engine_, texts, vectors, options_); });
  vectors_ = std::move(vectors);
}

nb::object VectorStream::next() {
  const Entry entry(executing_);
  if (given_rows_ >= vectors_.shape()[0]) read_block();
  if (given_rows_ >= vectors_.shape()[0]) throw nb::stop_iteration();
  const std::int64_t width = vectors_.shape()[1];
  const nb::object result = new_array(std::array{width});
  const Array array(kName, "out", result, Array::Access::write);
  std::copy_n(&vectors_(given_rows_++, 0), width, array.floats<1>().data);
  return result;
}

void define_vector_stream(nb::module_& module) {
  nb::class_<VectorStream>(module, "VectorStream",
                           "Vectors of texts one after another: an iterator, which Encoder.embed_stream() gives.")
      .def(
          "__iter__", [](nb::object self) { return self; }, nb::sig("def __iter__(self) -> Iterator[Floats]"))
      .def("__next__", &VectorStream::next, nb::sig("def __next__(self) -> Floats"));
}

}  // namespace headlight::python
