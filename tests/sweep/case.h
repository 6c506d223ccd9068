// A case of the sweep: one call with all that it is asked for, which is a line of text, can be drawn at random, and is
// held against its twin on every instruction set. README.md has the language.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "support/isas.h"
#include "support/random.h"
#include "sweep/fields.h"

namespace headlight::sweep {

// An instruction set with or without its features, and engines of any number of workers on it, each made once.
class Machine {
 public:
  explicit Machine(const test::Instructions& instructions) : instructions_(instructions) {}

  [[nodiscard]] std::string name() const { return test::name(instructions_); }
  [[nodiscard]] Isa isa() const { return instructions_.isa; }
  [[nodiscard]] bool has_bits_of_set(NumberType type) const { return test::has_bits_of_set(instructions_, type); }
  [[nodiscard]] Engine& engine(std::int64_t threads);

 private:
  test::Instructions instructions_;
  std::vector<std::unique_ptr<Engine>> engines_;
};

// What was found wrong.
class Report {
 public:
  void expect(const testing::AssertionResult& result, std::string_view what) {
    if (!result) fail(std::string(what) + ": " + result.message());
  }
  void fail(const std::string& what);
  // What follows happens there.
  void goes_on(const std::string& machine) { machine_ = machine; }

  [[nodiscard]] bool failed() const { return !text_.empty(); }
  [[nodiscard]] const std::string& text() const { return text_; }
  // Where the first thing went wrong; empty where it was nowhere in particular.
  [[nodiscard]] const std::string& failed_on() const { return failed_on_; }

 private:
  std::string text_;
  std::string machine_;
  std::string failed_on_;
};

class Case {
 public:
  virtual ~Case() = default;

  [[nodiscard]] virtual std::string operation() const = 0;
  // The case becomes the nearest one that the operation takes.
  virtual void make_valid() = 0;
  // Every call of it, on every machine that it names.
  virtual void run(Report& report) const = 0;

  // Throws std::invalid_argument for a field that there is not, or a value that it does not have.
  void set(const Word& word);
  // What differs from the usual values. It changes nothing.
  [[nodiscard]] Words words();

  std::uint64_t seed = 0;
  // The only machine that it is run on; empty: all.
  std::string isa;
  // Workers of the other engine, beside that of one.
  std::int64_t threads = 3;

 protected:
  // Each field but those above; it is given one word, or takes them all.
  virtual void visit(Fields& fields) = 0;
  // f(machine, whether the one before had the same instruction set without its features).
  void for_each_machine(Report& report, const std::function<void(Machine&, bool)>& f) const;

 private:
  void visit_all(Fields& fields);
};

// What the sweep knows how to call.
struct Operation {
  const char* name;
  // How many of all random cases are of it, in relation.
  int share;
  std::unique_ptr<Case> (*make)(const char* name);
  std::unique_ptr<Case> (*draw)(const char* name, test::Random& random);
};
namespace attention_sweep {
[[nodiscard]] std::span<const Operation> operations();
}
namespace attention_backward_sweep {
[[nodiscard]] std::span<const Operation> operations();
}
namespace gemm_sweep {
[[nodiscard]] std::span<const Operation> operations();
}
namespace rows_sweep {
[[nodiscard]] std::span<const Operation> operations();
}

// "attention seed=7 B=2 …". parse() throws std::invalid_argument for a line that it cannot read, or whose call would be
// refused; nearest() makes a call of it that is not.
[[nodiscard]] std::string line_of(Case& of);
[[nodiscard]] std::string line_of(const std::string& operation, const Words& words);
[[nodiscard]] std::unique_ptr<Case> parse(const std::string& line);
[[nodiscard]] std::unique_ptr<Case> nearest(const std::string& operation, const Words& words);
// Case n of a seed.
[[nodiscard]] std::unique_ptr<Case> draw(std::uint64_t seed, std::uint64_t n);

// run(), where what is thrown is a finding too.
[[nodiscard]] Report report_of(const Case& on);

// A size of 1 to `most`: small, or one to each side of a multiple of an edge.
[[nodiscard]] std::int64_t draw_size(test::Random& random, std::int64_t most, std::span<const std::int64_t> edges);

}  // namespace headlight::sweep
