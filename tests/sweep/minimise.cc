#include "sweep/minimise.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "sweep/case.h"

namespace headlight::sweep {
namespace {

bool stays(const Word& word) { return word.name == "seed" || word.name == "isa"; }

// The whole numbers of a value, "3,17"; none where there is anything else.
std::vector<std::int64_t> numbers_of(const Word& word) {
  std::vector<std::int64_t> numbers;
  std::istringstream stream(word.value);
  for (std::string one; std::getline(stream, one, ',');) {
    if (one.find_first_not_of("-0123456789") != std::string::npos) return {};
    numbers.push_back(std::stoll(one));
  }
  return numbers;
}

std::string value_of(const std::vector<std::int64_t>& numbers) {
  std::string value;
  for (const std::int64_t number : numbers) value += (value.empty() ? "" : ",") + std::to_string(number);
  return value;
}

// How large a case is: its words, then its numbers.
std::pair<std::size_t, double> weight(const Words& words) {
  double sum = 0;
  for (const Word& word : words) {
    if (stays(word)) continue;
    for (const std::int64_t number : numbers_of(word)) sum += std::abs(static_cast<double>(number));
  }
  return {words.size(), sum};
}

std::vector<Words> smaller_ones(const Words& words) {
  std::vector<Words> all;
  const auto with = [&](std::size_t n, std::string value) {
    all.push_back(words);
    all.back()[n].value = std::move(value);
  };
  for (std::size_t n = 0; n < words.size(); ++n) {
    if (stays(words[n])) continue;
    all.push_back(words);
    all.back().erase(all.back().begin() + static_cast<std::ptrdiff_t>(n));
  }
  for (std::size_t n = 0; n < words.size(); ++n) {
    if (stays(words[n])) continue;
    const std::vector<std::int64_t> numbers = numbers_of(words[n]);
    for (std::size_t place = 0; place < numbers.size(); ++place) {
      const std::int64_t number = numbers[place];
      for (const std::int64_t less : std::set<std::int64_t>{0, 1, number / 2, number - 1}) {
        if (less < 0 || less >= number) continue;
        std::vector<std::int64_t> changed = numbers;
        changed[place] = less;
        with(n, value_of(changed));
      }
      if (numbers.size() < 2) continue;
      std::vector<std::int64_t> shorter = numbers;
      shorter.erase(shorter.begin() + static_cast<std::ptrdiff_t>(place));
      with(n, value_of(shorter));
    }
  }
  return all;
}

}  // namespace

std::string minimised(const std::string& line, const Fails& fails, int most_tries) {
  std::unique_ptr<Case> smallest = parse(line);
  std::set<std::string> tried;
  for (bool found = true; found;) {
    found = false;
    for (const Words& words : smaller_ones(smallest->words())) {
      std::unique_ptr<Case> candidate;
      try {
        candidate = nearest(smallest->operation(), words);
      } catch (const std::exception&) {
        continue;  // a list that may not be shorter
      }
      if (!(weight(candidate->words()) < weight(smallest->words()))) continue;
      if (!tried.insert(line_of(*candidate)).second || --most_tries < 0 || !fails(line_of(*candidate))) continue;
      smallest = std::move(candidate);
      found = true;
      break;
    }
  }
  return line_of(*smallest);
}

}  // namespace headlight::sweep
