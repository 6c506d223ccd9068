// Tensors of the C interface, drawn from bytes: any shape, any strides, in memory that ends where they do.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "fuzz/bytes.h"
#include "headlight/headlight.h"
#include "support/random.h"
#include "support/stored.h"

namespace headlight::fuzz {

// What the numbers of a call are: small ones, whose results can be held against the twin; or any, infinities and NaN
// too.
enum class Numbers { tame, any };

inline float draw_number(test::Random& random, Numbers numbers) {
  if (numbers == Numbers::tame || !random.once_in(8)) return 2 * random.uniform();
  constexpr float kAny[] = {std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN(),
                            1e30f,
                            -1e30f,
                            1e-40f,
                            -0.0f,
                            3e38f};
  return kAny[random.integer(0, 7)];
}

template <class T>
class CTensor {
 public:
  enum class Kind { input, output };

  // An output's memory begins as a pattern that no call writes.
  void draw(Bytes& bytes, const std::vector<std::int64_t>& sane, Kind kind, test::Random& random, Numbers numbers) {
    shape_ = sane;
    for (std::int64_t& extent : shape_) extent = bytes.wild(extent);
    has_sane_shape_ = shape_ == sane;
    draw_strides(bytes, kind);
    std::int64_t count = 1;
    std::int64_t reach = 1;
    bool fits = true;
    for (std::size_t axis = 0; axis < shape_.size(); ++axis) {
      std::int64_t of_axis = 0;
      fits = fits && shape_[axis] >= 0 && strides_[axis] >= 0 && !__builtin_mul_overflow(count, shape_[axis], &count) &&
             !__builtin_mul_overflow(std::max<std::int64_t>(shape_[axis] - 1, 0), strides_[axis], &of_axis) &&
             !__builtin_add_overflow(reach, of_axis, &reach) && count <= kMost && reach <= kMost;
    }
    // What would need more memory than there is here is given none: it must be refused before.
    size_ = fits && count > 0 ? static_cast<std::size_t>(reach) : 0;
    memory_ = size_ == 0 ? nullptr : std::make_unique<T[]>(size_);
    fill(kind, random, numbers);
    told_shape_ = shape_;
    told_strides_ = strides_;
    told_shape_.resize(shape_.size() + 16, 1);  // whatever rank is told, up to the most that is read
    told_strides_.resize(shape_.size() + 16, 1);
    tensor_ = {memory_.get(), type(), static_cast<std::int32_t>(shape_.size()), told_shape_.data(),
               has_strides_ ? told_strides_.data() : nullptr};
    const std::uint8_t twist = bytes.byte();
    if (twist == 255) tensor_.rank = static_cast<std::int32_t>(bytes.wild(tensor_.rank));
    if (twist == 254) tensor_.type = static_cast<headlight_type>(bytes.wild(tensor_.type));
    if (twist == 253) tensor_.shape = nullptr;
    if (twist == 252) tensor_.data = nullptr;
  }

  // Walks the same memory from the other end of that axis.
  void turn_around(std::size_t axis) {
    if (size_ == 0 || tensor_.data == nullptr || tensor_.shape == nullptr) return;
    tensor_.data = static_cast<T*>(tensor_.data) + (shape_[axis] - 1) * strides_[axis];
    told_strides_[axis] = -strides_[axis];
    tensor_.strides = told_strides_.data();
  }

  [[nodiscard]] const headlight_tensor* get() const noexcept { return shape_.empty() ? nullptr : &tensor_; }
  [[nodiscard]] headlight_tensor& tensor() noexcept { return tensor_; }
  [[nodiscard]] bool is_given() const noexcept { return !shape_.empty() && tensor_.data != nullptr; }
  // Has the shape that was asked for: a call may be taken with another that fits as well.
  [[nodiscard]] bool is_sane() const noexcept { return !shape_.empty() && has_sane_shape_; }

  // Seldom, 16 bits a number in the place of floats: each rounded to bfloat16 or float16, and what copy() gives and
  // put_back() takes are these, widened. widen() makes floats of them again.
  void narrow(Bytes& bytes) requires std::is_same_v<T, float> {
    const int drawn = bytes.byte() % 8;
    if (drawn < 6 || tensor_.type != HEADLIGHT_FLOAT32 || tensor_.data != memory_.get()) return;
    stored_as_ = drawn == 6 ? NumberType::bfloat16 : NumberType::float16;
    if (size_ > 0) halves_ = std::make_unique<std::uint16_t[]>(size_);
    put_back({memory_.get(), memory_.get() + size_});
    tensor_.type = drawn == 6 ? HEADLIGHT_BFLOAT16 : HEADLIGHT_FLOAT16;
    tensor_.data = halves_.get();
  }
  void widen() requires std::is_same_v<T, float> {
    if (!is_narrow()) return;
    const std::vector<T> numbers = copy();
    stored_as_ = NumberType::float32;
    put_back(numbers);
    tensor_.type = HEADLIGHT_FLOAT32;
    tensor_.data = memory_.get();
  }
  [[nodiscard]] NumberType stored_as() const noexcept { return stored_as_; }
  [[nodiscard]] bool is_narrow() const noexcept { return stored_as_ != NumberType::float32; }

  [[nodiscard]] std::vector<T> copy() const {
    std::vector<T> numbers(size_);
    for (std::size_t n = 0; n < size_; ++n) numbers[n] = number(n);
    return numbers;
  }
  void put_back(const std::vector<T>& numbers) {
    for (std::size_t n = 0; n < numbers.size(); ++n) {
      if constexpr (std::is_same_v<T, float>) {
        if (is_narrow()) {
          test::put(halves_.get(), static_cast<std::int64_t>(n), numbers[n], stored_as_);
          continue;
        }
      }
      memory_[n] = numbers[n];
    }
  }
  [[nodiscard]] bool holds(const std::vector<T>& numbers) const {
    for (std::size_t n = 0; n < size_; ++n) {
      const T here = number(n);
      // Which of two NaNs an operation gives on is the processor's choice, by the order of its operands.
      if (here != here && numbers[n] != numbers[n]) continue;
      if (std::memcmp(&here, &numbers[n], sizeof(T)) != 0) return false;
    }
    return true;
  }

 private:
  static constexpr std::int64_t kMost = 1 << 18;

  [[nodiscard]] T number(std::size_t n) const {
    if constexpr (std::is_same_v<T, float>) {
      if (is_narrow()) return test::get(halves_.get(), static_cast<std::int64_t>(n), stored_as_);
    }
    return memory_[n];
  }

  static constexpr headlight_type type() {
    if (std::is_same_v<T, std::int8_t>) return HEADLIGHT_INT8;
    return sizeof(T) == 1 ? HEADLIGHT_UINT8 : sizeof(T) == 8 ? HEADLIGHT_INT64 : HEADLIGHT_FLOAT32;
  }

  void draw_strides(Bytes& bytes, Kind kind) {
    const std::uint8_t how = bytes.byte();
    has_strides_ = how % 4 != 0;
    strides_.assign(shape_.size(), 1);
    std::vector<std::size_t> axes(shape_.size());
    for (std::size_t axis = 0; axis < axes.size(); ++axis) axes[axis] = axis;
    // Heads before rows, as others lay them out.
    if (how % 4 == 2 && axes.size() == 4) std::swap(axes[1], axes[2]);
    // The last two exchanged: a matrix that lies transposed.
    if (how % 4 == 3 && axes.size() >= 2) std::swap(axes[axes.size() - 2], axes[axes.size() - 1]);
    std::int64_t step = 1;
    for (std::size_t n = axes.size(); n-- > 0;) {
      strides_[axes[n]] = step;
      if (__builtin_mul_overflow(step, std::max<std::int64_t>(shape_[axes[n]], 1), &step)) step = 0;
      if (has_strides_ && n + 1 < axes.size() && __builtin_add_overflow(step, how >> 2 & 3, &step)) step = 0;
    }
    if (!has_strides_ || (how & 16) == 0) return;
    const std::size_t axis = bytes.byte() % shape_.size();
    strides_[axis] = kind == Kind::input && (how & 32) == 0 ? 0 : bytes.wild(strides_[axis]);
  }

  void fill(Kind kind, test::Random& random, Numbers numbers) {
    if (size_ == 0) return;
    if (kind == Kind::output) {
      std::memset(memory_.get(), 0x5A, size_ * sizeof(T));
    } else if constexpr (sizeof(T) == 4) {
      for (std::size_t n = 0; n < size_; ++n) memory_[n] = draw_number(random, numbers);
    } else if constexpr (std::is_same_v<T, std::int8_t>) {
      for (std::size_t n = 0; n < size_; ++n) memory_[n] = static_cast<T>(random.integer(-128, 127));
    } else {
      for (std::size_t n = 0; n < size_; ++n) memory_[n] = static_cast<T>(random.once_in(3) ? 0 : 1);
    }
  }

  std::vector<std::int64_t> shape_;
  std::vector<std::int64_t> strides_;
  std::vector<std::int64_t> told_shape_;
  std::vector<std::int64_t> told_strides_;
  bool has_strides_ = false;
  bool has_sane_shape_ = false;
  std::unique_ptr<T[]> memory_;
  std::size_t size_ = 0;
  NumberType stored_as_ = NumberType::float32;
  std::unique_ptr<std::uint16_t[]> halves_;  // the numbers, where they have 16 bits
  headlight_tensor tensor_{};
};

// Whether numbers of that type are those floats, each rounded once.
[[nodiscard]] inline bool are_rounded(const std::vector<float>& numbers, const std::vector<float>& floats,
                                      NumberType type) {
  for (std::size_t n = 0; n < numbers.size(); ++n) {
    const float expected = test::rounded_to(type, floats[n]);
    if (std::isnan(numbers[n]) && std::isnan(expected)) continue;
    if (std::memcmp(&numbers[n], &expected, sizeof expected) != 0) return false;
  }
  return true;
}

// The size of an option struct, seldom another; never one that is more than there is and would be believed.
inline std::size_t struct_size(Bytes& bytes, std::size_t size) {
  if (bytes.byte() != 255) return size;
  const auto told = static_cast<std::size_t>(bytes.wild(12));
  return told > size && told <= 4096 ? 12 : told;
}

// A pool without threads, which runs tasks one after another, from the last to the first: what workers share is cut as
// for threads, and each run of an input is the same.
class Pool {
 public:
  explicit Pool(int workers) : workers_(workers) {
    executor_.context = this;
    executor_.worker_count = [](void* context) { return static_cast<Pool*>(context)->workers_; };
    executor_.inside_worker = [](void* context) { return static_cast<Pool*>(context)->is_inside_; };
    executor_.run = [](void* context, int count, void (*task)(void*, int), void* argument) {
      bool& is_inside = static_cast<Pool*>(context)->is_inside_;
      is_inside = true;
      for (int index = count - 1; index >= 0; --index) task(argument, index);
      is_inside = false;
      return context;
    };
    executor_.wait = [](void*, void*) {};
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  [[nodiscard]] const headlight_executor* executor() const noexcept { return &executor_; }

 private:
  headlight_executor executor_ = HEADLIGHT_OPTIONS(headlight_executor);
  int workers_;
  bool is_inside_ = false;
};

// An engine of so many workers over one instruction set.
class CEngine {
 public:
  CEngine(headlight_isa isa, int workers) : pool_(workers) {
    headlight_engine_options options = HEADLIGHT_OPTIONS(headlight_engine_options);
    options.isa = isa;
    options.executor = pool_.executor();
    must(headlight_engine_create(&options, &engine_, nullptr) == HEADLIGHT_OK, "an engine");
  }
  ~CEngine() { headlight_engine_destroy(engine_); }
  CEngine(const CEngine&) = delete;
  CEngine& operator=(const CEngine&) = delete;
  [[nodiscard]] headlight_engine* get() const noexcept { return engine_; }

 private:
  Pool pool_;
  headlight_engine* engine_ = nullptr;
};

// With one worker and with three, of every instruction set of the build.
struct Engines {
  struct Pair {
    explicit Pair(headlight_isa isa) : one(isa, 1), three(isa, 3) {}
    CEngine one;
    CEngine three;
  };
  Engines() {
    headlight_isa isas[8];
    std::size_t count = 0;
    must(headlight_available_isas(isas, 8, &count, nullptr) == HEADLIGHT_OK && count <= 8, "instruction sets");
    for (std::size_t n = 0; n < count; ++n) pairs.push_back(std::make_unique<Pair>(isas[n]));
  }
  std::vector<std::unique_ptr<Pair>> pairs;
};

// A call either does what it says, or refuses; nothing else may come of arguments.
inline bool accepted(headlight_status status, const headlight_error& error) {
  must(status == error.status, "the status that the error tells");
  must(status == HEADLIGHT_OK || status == HEADLIGHT_INVALID_ARGUMENT || status == HEADLIGHT_OUT_OF_MEMORY,
       "a call is done, refused, or lacks memory");
  must((status == HEADLIGHT_OK) == (error.message[0] == '\0'), "a message where something failed");
  return status == HEADLIGHT_OK;
}

}  // namespace headlight::fuzz
