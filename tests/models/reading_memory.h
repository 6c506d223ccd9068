// How much memory reading a file takes, beside what it may.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

#include "headlight/models/errors.h"
#include "support/heap_watch.h"
#include "text/table_limit.h"

namespace headlight::test {

// A document's head; or an error with its messages.
inline constexpr std::size_t kFewBytes = 1024 + HeapLimit::kMessages;
inline constexpr std::size_t kMany = 100'000;

// So many bytes that no other number has.
inline std::string name_of(std::size_t number, std::size_t bytes) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  std::string name;
  for (; name.size() < bytes; number /= kLetters.size()) name += kLetters[number % kLetters.size()];
  return name;
}

// What becomes of a file.
enum class Outcome { read, refused };

// The most memory that read() holds at a time, which comes to that.
template <class Read>
std::size_t memory_of(Outcome expected, std::string_view what, Read read) {
  const HeapWatch heap;
  std::string refusal;
  try {
    read();
  } catch (const models::FileError& error) {
    refusal = error.what();
  }
  const std::size_t most = heap.most();
  EXPECT_EQ(refusal.empty(), expected == Outcome::read) << what << ": " << refusal;
  return most;
}

template <class Read>
void expect_within(const std::string& file, std::size_t times, std::size_t beside, std::string_view what,
                   Outcome expected, Read read) {
  const std::size_t memory = memory_of(expected, what, [&] { read(file); });
  std::printf("%-40.*s %9zu bytes, %.2f times in memory\n", static_cast<int>(what.size()), what.data(), file.size(),
              static_cast<double>(memory) / static_cast<double>(file.size()));
  EXPECT_LE(memory, times * file.size() + beside) << what;
}

// A file of parts, which is read with 1,000 and with `many` of them in twice its bytes and what tables may take beside;
// and what becomes of it with `more`.
template <class FileOf, class Read>
void expect_within_tables(std::string_view what, FileOf file, std::size_t many, std::size_t more, Outcome outcome,
                          Read read) {
  for (const std::size_t count : {std::size_t{1000}, many, more}) {
    expect_within(file(count), 2, text::TableLimit::kBeside + kFewBytes, what, count == more ? outcome : Outcome::read,
                  read);
  }
}

}  // namespace headlight::test
