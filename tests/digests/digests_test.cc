// That no bit of any result has moved: random calls of everything, against digests of what they once gave. README.md
// beside this file says what the tables are.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>

#include "digests/family.h"
#include "gtest/gtest.h"
#include "headlight/system.h"
#include "support/isas.h"
#include "support/quick.h"

namespace headlight::test::digests_test {

// From "FAMILY FIRST-LAST" to a digest.
using Table = std::map<std::string, std::string>;

std::ifstream open(const std::string& name) { return std::ifstream(std::string(HEADLIGHT_DIGESTS_DIR "/") + name); }

// "g++ 12" of "g++ 12.2.0".
std::string compiler() {
  const std::string whole = system_info().compiler;
  return whole.substr(0, whole.find('.'));
}

// The name of the table for this build: what tables.txt says behind SIMD library, compiler and instruction set.
std::optional<std::string> table_name(Isa isa) {
  const std::string wanted = std::string(simd_library()) + " " + compiler() + " " + std::string(name(isa)) + " ";
  std::ifstream file = open("tables.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(wanted)) return line.substr(wanted.size());
  }
  return std::nullopt;
}

Table read_table(const std::string& name) {
  Table table;
  std::ifstream file = open(name);
  for (std::string family, cases, digest; file >> family >> cases >> digest;) table[family + " " + cases] = digest;
  return table;
}

std::string hexadecimal(std::uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

// HEADLIGHT_PRINT_DIGESTS=groups prints every line of the tables behind the name of the instruction set; =cases the
// digest of every case, and what it is.
bool prints(std::string_view what) {
  const char* asked = std::getenv("HEADLIGHT_PRINT_DIGESTS");
  return asked != nullptr && asked == what;
}

std::string cases_of(std::int64_t group) {
  return std::to_string(group * kDigestGroup) + "-" + std::to_string((group + 1) * kDigestGroup - 1);
}

// The digest of a group of cases, half of which run on three threads.
std::string digest_of(const DigestFamily& family, std::int64_t group, Engine& one, Engine& three) {
  Digest digest;
  for (std::int64_t number = group * kDigestGroup; number < (group + 1) * kDigestGroup; ++number) {
    Random random(family.seed * 1'000'000 + static_cast<std::uint64_t>(number));
    Engine& engine = random.once_in(2) ? one : three;
    DigestCase c{engine, number, random, {}, {}};
    family.run(c);
    digest.add(c.digest.value());
    if (prints("cases")) {
      std::printf("%s %s %lld %s threads=%d%s\n", std::string(name(one.isa())).c_str(), family.name,
                  static_cast<long long>(number), hexadecimal(c.digest.value()).c_str(), engine.threads(),
                  c.words.str().c_str());
    }
  }
  return hexadecimal(digest.value());
}

class Digests : public testing::TestWithParam<std::tuple<Isa, DigestFamily>> {};

TEST_P(Digests, Stay) {
  const auto& [isa, family] = GetParam();
  const std::string set(name(isa));
  const std::optional<std::string> file = table_name(isa);
  const bool prints_something = prints("groups") || prints("cases");
  if (!file && !prints_something) {
    GTEST_SKIP() << "tests/digests/tables.txt names no table for " << simd_library() << ", " << compiler() << " and "
                 << set << ": nobody recorded what this combination gave";
  }
  const Table table = file ? read_table(*file) : Table();
  EngineOptions options;
  options.isa = isa;
  options.threads = 1;
  Engine one(options);
  options.threads = 3;
  Engine three(options);
  // Of many groups few, but whole ones.
  for (std::int64_t group = 0; group < family.groups; group += count(1, 8)) {
    const std::string digest = digest_of(family, group, one, three);
    const std::string line = std::string(family.name) + " " + cases_of(group);
    if (prints("groups")) std::printf("%s %s %s\n", set.c_str(), line.c_str(), digest.c_str());
    if (!file) continue;
    const auto found = table.find(line);
    ASSERT_NE(found, table.end()) << "tests/digests/" << *file << " has no line for " << line;
    EXPECT_EQ(digest, found->second) << "bits moved on " << set << " in cases " << line << " (table " << *file
                                     << "). HEADLIGHT_PRINT_DIGESTS=cases digests_test --gtest_filter='*" << set << "_"
                                     << family.name << "' prints each case: compare with a build of before.";
  }
}

INSTANTIATE_TEST_SUITE_P(On, Digests,
                         testing::Combine(testing::ValuesIn(available_isas()), testing::ValuesIn(kDigestFamilies)),
                         [](const auto& param) {
                           return std::string(name(std::get<0>(param.param))) + "_" + std::get<1>(param.param).name;
                         });

// A table that holds less, or more, than what is run would hold nothing of the rest.
TEST(DigestTables, HoldEveryGroup) {
  std::int64_t groups = 0;
  for (const DigestFamily& family : kDigestFamilies) groups += family.groups;
  EXPECT_GE(groups * kDigestGroup, 2000);
  std::ifstream file = open("tables.txt");
  std::int64_t tables = 0;
  for (std::string library, compiler, version, isa, table; file >> library >> compiler >> version >> isa >> table;) {
    ++tables;
    const Table lines = read_table(table);
    EXPECT_EQ(static_cast<std::int64_t>(lines.size()), groups) << table;
    for (const DigestFamily& family : kDigestFamilies) {
      for (std::int64_t group = 0; group < family.groups; ++group) {
        EXPECT_TRUE(lines.contains(std::string(family.name) + " " + cases_of(group))) << table;
      }
    }
  }
  EXPECT_GT(tables, 0);
}

}  // namespace headlight::test::digests_test
