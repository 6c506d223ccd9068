#include "sweep/case.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace headlight::sweep {
namespace {

std::vector<Machine>& machines() {
  static std::vector<Machine> all = [] {
    std::vector<Machine> made;
    for (const test::Instructions& each : test::available_instructions()) made.emplace_back(each);
    return made;
  }();
  return all;
}

template <class Function>
void for_each_operation(Function f) {
  for (const std::span<const Operation> some : {attention_sweep::operations(), attention_backward_sweep::operations(),
                                                gemm_sweep::operations(), rows_sweep::operations()}) {
    for (const Operation& each : some) f(each);
  }
}

std::unique_ptr<Case> make(const std::string& name) {
  std::unique_ptr<Case> made;
  std::string all;
  for_each_operation([&](const Operation& each) {
    if (name == each.name) made = each.make(each.name);
    all += all.empty() ? each.name : std::string(", ") + each.name;
  });
  if (made == nullptr) throw std::invalid_argument("there is no operation '" + name + "', expected one of " + all);
  return made;
}

}  // namespace

Engine& Machine::engine(std::int64_t threads) {
  const auto place = static_cast<std::size_t>(threads);
  if (engines_.size() <= place) engines_.resize(place + 1);
  if (engines_[place] == nullptr) {
    engines_[place] = std::make_unique<Engine>(instructions_.options(static_cast<int>(threads)));
  }
  return *engines_[place];
}

void Report::fail(const std::string& what) {
  if (text_.empty()) failed_on_ = machine_;
  text_ += "  " + (machine_.empty() ? "" : machine_ + ": ") + what + "\n";
}

void Case::visit_all(Fields& fields) {
  fields.number("seed", seed, std::uint64_t{0});
  visit(fields);
  fields.number("threads", threads, std::int64_t{3});
  fields.text("isa", isa);
}

void Case::set(const Word& word) {
  Fields fields(word);
  visit_all(fields);
  if (!fields.found()) throw std::invalid_argument(operation() + " has no field '" + word.name + "'");
  threads = std::clamp<std::int64_t>(threads, 1, 16);
}

Words Case::words() {
  Words written;
  Fields fields(written);
  visit_all(fields);
  return written;
}

void Case::for_each_machine(Report& report, const std::function<void(Machine&, bool)>& f) const {
  const Machine* before = nullptr;
  for (Machine& each : machines()) {
    if (!isa.empty() && each.name() != isa) continue;
    report.goes_on(each.name());
    f(each, before != nullptr && before->isa() == each.isa());
    before = &each;
  }
  report.goes_on("");
}

std::string line_of(const std::string& operation, const Words& words) {
  std::string line = operation;
  for (const Word& word : words) line += " " + word.name + "=" + word.value;
  return line;
}
std::string line_of(Case& of) { return line_of(of.operation(), of.words()); }

std::unique_ptr<Case> nearest(const std::string& operation, const Words& words) {
  std::unique_ptr<Case> made = make(operation);
  for (const Word& word : words) made->set(word);
  made->make_valid();
  return made;
}

std::unique_ptr<Case> parse(const std::string& line) {
  std::istringstream stream(line);
  std::string operation;
  stream >> operation;
  Words words;
  for (std::string word; stream >> word;) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) throw std::invalid_argument("'" + word + "' is no name=value");
    words.push_back({word.substr(0, equals), word.substr(equals + 1)});
  }
  std::unique_ptr<Case> as_it_says = make(operation);
  for (const Word& word : words) as_it_says->set(word);
  std::unique_ptr<Case> made = nearest(operation, words);
  if (line_of(*made) != line_of(*as_it_says)) {
    throw std::invalid_argument("that call would be refused; the nearest that is not is\n" + line_of(*made));
  }
  return made;
}

std::unique_ptr<Case> draw(std::uint64_t seed, std::uint64_t n) {
  test::Random random(seed * 0x9E3779B97F4A7C15u + n * 0xD1B54A32D192ED03u);
  int shares = 0;
  for_each_operation([&](const Operation& each) { shares += each.share; });
  auto left = random.integer(1, shares);
  std::unique_ptr<Case> drawn;
  for_each_operation([&](const Operation& each) {
    if (left > 0 && left <= each.share) drawn = each.draw(each.name, random);
    left -= each.share;
  });
  drawn->seed = random.next() >> 32;
  drawn->threads = random.once_in(2) ? 3 : random.integer(2, 5);
  drawn->make_valid();
  return drawn;
}

Report report_of(const Case& on) {
  Report report;
  try {
    on.run(report);
  } catch (const std::exception& error) {
    report.fail(std::string("threw ") + error.what());
  }
  return report;
}

std::int64_t draw_size(test::Random& random, std::int64_t most, std::span<const std::int64_t> edges) {
  if (edges.empty() || random.once_in(3)) return random.integer(1, std::min<std::int64_t>(most, 20));
  if (random.once_in(3)) return random.integer(1, most);
  const std::int64_t edge = edges[static_cast<std::size_t>(random.integer(0, std::ssize(edges) - 1))];
  const std::int64_t multiple = edge * random.integer(1, std::max<std::int64_t>(1, most / edge));
  return std::clamp<std::int64_t>(multiple + random.integer(-1, 1), 1, most);
}

}  // namespace headlight::sweep
