#include "tools/headlight_mpi/scale_check.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace headlight::program::scale_study {
namespace {

constexpr double kEpsilon = 0x1p-23;
// How often the square root of the sum of their squares independent roundings are together: not once in 10⁷ sums
// (Hoeffding 1963; of sums of floats, Higham & Mary 2019).
constexpr double kDeviations = 6;
// Keys whose weights one lane of a block adds up, and keys of a block at least.
constexpr double kKeysOfLane = 512, kKeysOfBlock = 128;

// Half the distance of two numbers, relative; of float32, which is not rounded to, 0. And that of the smallest numbers,
// where a gradient may be as small.
double rounding_of(NumberType type) {
  return type == NumberType::bfloat16 ? 0x1p-8 : type == NumberType::float16 ? 0x1p-11 : 0;
}
double smallest_rounding_of(NumberType type) { return type == NumberType::float16 ? 0x1p-25 : 0; }
// Of weights, and score gradients, where pairs of bfloat16 are multiplied.
double rounding_of_pairs(NumberType type) { return type == NumberType::bfloat16 ? 0x1p-8 : 0; }

// A number as it is stored.
double stored(NumberType type, Kind kind, std::int64_t token, std::int64_t head, std::int64_t dim) {
  const float exact = number(kind, token, head, dim);
  if (type == NumberType::bfloat16) return static_cast<double>(static_cast<float>(BFloat16(exact)));
  if (type == NumberType::float16) return static_cast<double>(static_cast<float>(Float16(exact)));
  return static_cast<double>(exact);
}

// A sum of terms in the order of the keys: how far it ever is from 0, and its terms' norm, are what roundings go by.
struct Sum {
  double sum = 0;
  double furthest = 0;
  double squares = 0;

  void add(double term) noexcept {
    sum += term;
    furthest = std::max(furthest, std::abs(sum));
    squares += term * term;
  }
  [[nodiscard]] double norm() const noexcept { return std::sqrt(squares); }
};

// One row of the whole in float64, from all the keys before it.
class Row {
 public:
  Row(const Tensors& tensors, std::int64_t token, std::int64_t head)
      : tensors_(tensors), token_(token), head_(head), query_(numbers(Kind::query, token)) {}

  [[nodiscard]] std::vector<double> numbers(Kind kind, std::int64_t token) const {
    std::vector<double> all;
    for (std::int64_t dim = 0; dim < tensors_.whole.head_dim; ++dim) {
      all.push_back(stored(tensors_.type, kind, token, head_, dim));
    }
    return all;
  }
  // f(score, keys, values) for every key.
  template <class Function>
  void for_each_key(const Function& f) const {
    for (std::int64_t token = 0; token <= token_; ++token) {
      const std::vector<double> key = numbers(Kind::key, token);
      f(scale() * dot(query_, key), key, numbers(Kind::value, token));
    }
  }
  [[nodiscard]] static double dot(const std::vector<double>& a, const std::vector<double>& b) noexcept {
    double sum = 0;
    for (std::size_t dim = 0; dim < a.size(); ++dim) sum += a[dim] * b[dim];
    return sum;
  }
  [[nodiscard]] double dims() const noexcept { return static_cast<double>(tensors_.whole.head_dim); }
  [[nodiscard]] double scale() const noexcept { return 1 / std::sqrt(dims()); }
  // A weight's relative error by those of its score, whose D products are at most √D together.
  [[nodiscard]] double of_score() const noexcept { return kEpsilon * 2 * dims() * std::sqrt(dims()); }
  // That of a sum over the keys, by the furthest that it is ever from 0.
  [[nodiscard]] double of_sum() const noexcept {
    return kDeviations * kEpsilon * std::sqrt(kKeysOfLane + static_cast<double>(token_) / kKeysOfBlock);
  }

 private:
  const Tensors& tensors_;
  std::int64_t token_;
  std::int64_t head_;
  std::vector<double> query_;
};

// f(row of the share, its token, head) for the first row and the last; f gives what is wrong, or nothing.
template <class Function>
std::string problem_of_rows(const Tensors& tensors, const Function& f) {
  if (tensors.rows == 0) return {};
  for (const bool is_last : {false, true}) {
    const std::int64_t row = is_last ? tensors.rows - 1 : 0;
    const std::int64_t token =
        is_last ? tensors.runs.back().first + tensors.runs.back().count - 1 : tensors.runs.front().first;
    for (std::int64_t head = 0; head < tensors.whole.query_heads; ++head) {
      const std::string problem = f(row, token, head);
      if (!problem.empty()) return "row " + std::to_string(token) + " of " + problem + " is not what float64 gives";
    }
  }
  return {};
}

std::string problem_of_out(const Tensors& tensors, std::int64_t at_row, std::int64_t token, std::int64_t head) {
  const Row row(tensors, token, head);
  const auto dims = static_cast<std::size_t>(tensors.whole.head_dim);
  std::vector<Sum> sums(dims);
  double all = 0;
  row.for_each_key([&](double score, const std::vector<double>&, const std::vector<double>& value) {
    const double weight = std::exp(score);
    all += weight;
    for (std::size_t dim = 0; dim < dims; ++dim) sums[dim].add(weight * value[dim]);
  });
  for (std::size_t dim = 0; dim < dims; ++dim) {
    const double expected = sums[dim].sum / all;
    const double of_weights = kDeviations * (row.of_score() + rounding_of_pairs(tensors.type)) * sums[dim].norm() / all;
    const double of_sums = row.of_sum() * (sums[dim].furthest / all + std::abs(expected));
    const double furthest = of_weights + of_sums + (rounding_of(tensors.type) + kEpsilon) * std::abs(expected);
    const double given = tensors.out[tensors.place(at_row, head) + static_cast<std::int64_t>(dim)];
    if (!(std::abs(given - expected) <= furthest)) return "out";
  }
  return {};
}

std::string problem_of_query_gradient(const Tensors& tensors, std::int64_t at_row, std::int64_t token,
                                      std::int64_t head) {
  const Row row(tensors, token, head);
  const std::vector<double> out_gradient = row.numbers(Kind::out_gradient, token);
  const auto dims = static_cast<std::size_t>(tensors.whole.head_dim);
  double delta = 0, delta_size = 0;
  for (std::size_t dim = 0; dim < dims; ++dim) {
    const double term = out_gradient[dim] *
                        static_cast<double>(tensors.out[tensors.place(at_row, head) + static_cast<std::int64_t>(dim)]);
    delta += term;
    delta_size += std::abs(term);
  }
  const double log_sum_exp = tensors.log_sum_exp(0, head, at_row);
  std::vector<Sum> sums(dims), key_sums(dims);
  row.for_each_key([&](double score, const std::vector<double>& key, const std::vector<double>& value) {
    const double probability = std::exp(score - log_sum_exp);
    const double of_score = probability * (Row::dot(out_gradient, value) - delta);
    for (std::size_t dim = 0; dim < dims; ++dim) {
      sums[dim].add(row.scale() * of_score * key[dim]);
      key_sums[dim].add(row.scale() * probability * key[dim]);
    }
  });
  for (std::size_t dim = 0; dim < dims; ++dim) {
    const double expected = sums[dim].sum;
    // By the score, and by the product with the value, of D terms of 1 at most; and by δ, the same of all keys, as
    // log_sum_exp is.
    const double of_keys = kDeviations * ((row.of_score() + rounding_of_pairs(tensors.type)) * sums[dim].norm() +
                                          kEpsilon * row.dims() * row.dims() * key_sums[dim].norm());
    const double of_row = kEpsilon * (row.dims() * delta_size * std::abs(key_sums[dim].sum) +
                                      2 * (1 + std::abs(log_sum_exp)) * std::abs(expected));
    const double furthest = of_keys + of_row + row.of_sum() * sums[dim].furthest +
                            (rounding_of(tensors.type) + kEpsilon) * std::abs(expected) +
                            smallest_rounding_of(tensors.type);
    const double given = tensors.query_gradient[tensors.place(at_row, head) + static_cast<std::int64_t>(dim)];
    if (!(std::abs(given - expected) <= furthest)) return "the query gradient";
  }
  return {};
}

// Two sums over all ranks that are the same but for roundings, and the squares of their terms.
struct Balance {
  double one = 0;
  double other = 0;
  double squares = 0;
};

}  // namespace

std::string problem_of_forward(const Tensors& tensors) {
  return problem_of_rows(tensors, [&](auto... place) { return problem_of_out(tensors, place...); });
}

std::string problem_of_backward(const Tensors& tensors, MPI_Comm ranks) {
  Balance of_values, of_scores;
  for (std::int64_t n = 0; n < tensors.query.size(); ++n) {
    const auto add = [](double& sum, double& squares, double term) {
      sum += term;
      squares += term * term;
    };
    const auto product = [](const StoredArray& a, const StoredArray& b, std::int64_t at) {
      return static_cast<double>(a[at]) * static_cast<double>(b[at]);
    };
    add(of_values.one, of_values.squares, tensors.value_gradient[n]);
    add(of_values.other, of_values.squares, tensors.out_gradient[n]);
    add(of_scores.one, of_scores.squares, product(tensors.key_gradient, tensors.key, n));
    add(of_scores.other, of_scores.squares, product(tensors.query_gradient, tensors.query, n));
  }
  double numbers[] = {of_values.one, of_values.other, of_values.squares,
                      of_scores.one, of_scores.other, of_scores.squares};
  MPI_Allreduce(MPI_IN_PLACE, numbers, 6, MPI_DOUBLE, MPI_SUM, ranks);
  // A sum over the rows, or keys, rounds as often as there are such; each gradient, and each term of it, once more.
  const auto length = static_cast<double>(tensors.whole.query_length);
  const auto head_dim = static_cast<double>(tensors.whole.head_dim);
  const double relative = kEpsilon * (2 * head_dim * std::sqrt(head_dim) + std::sqrt(length)) +
                          rounding_of(tensors.type) + rounding_of_pairs(tensors.type);
  const double terms = 2 * length * static_cast<double>(tensors.whole.query_heads) * head_dim;
  const double of_smallest = smallest_rounding_of(tensors.type) * std::sqrt(terms);
  const auto differ = [&](const double* balance) {
    const double furthest = kDeviations * (relative * std::sqrt(balance[2]) + of_smallest);
    return !(std::abs(balance[0] - balance[1]) <= furthest);
  };
  if (differ(numbers)) return "gradients of values do not sum to those of out";
  if (differ(numbers + 3)) return "gradients of keys are not of the scores that those of queries are";
  return problem_of_rows(tensors, [&](auto... place) { return problem_of_query_gradient(tensors, place...); });
}

}  // namespace headlight::program::scale_study
