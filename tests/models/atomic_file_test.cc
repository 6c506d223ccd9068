#include "headlight/models/atomic_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "models/scratch_folder.h"

namespace headlight::models::atomic_file_test {

using test::file_error;
using test::ScratchFolder;

TEST(AtomicFile, AppearsOnCommitOnly) {
  const ScratchFolder folder;
  {
    AtomicFile file(folder.path("out"));
    file.write("new", 3);
    EXPECT_FALSE(std::filesystem::exists(folder.path("out")));
    file.commit();
  }
  EXPECT_EQ(folder.read("out"), "new");
  EXPECT_EQ(folder.count(), 1);
}

TEST(AtomicFile, ANamedOneIsWrittenByOthersToo) {
  const ScratchFolder folder;
  folder.write("out", "old");
  for (const bool commits : {false, true}) {
    AtomicFile file(folder.path("out"), AtomicFile::Beside::named);
    file.write("new", 3);
    const int other = ::open(file.name_beside().c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_GE(other, 0);
    EXPECT_EQ(::pwrite(other, "er", 2, 3), 2);
    ::close(other);
    EXPECT_EQ(folder.read("out"), "old");
    if (commits) file.commit();
  }
  EXPECT_EQ(folder.read("out"), "newer");
  EXPECT_EQ(folder.count(), 1);
  EXPECT_EQ(AtomicFile("/dev/null", AtomicFile::Beside::named).name_beside(), "");
}

TEST(AtomicFile, WithoutCommitNothingIsLeft) {
  const ScratchFolder folder;
  folder.write("out", "old");
  {
    AtomicFile file(folder.path("out"));
    file.write("new", 3);
  }
  EXPECT_EQ(folder.read("out"), "old");
  EXPECT_EQ(folder.count(), 1);
}

TEST(AtomicFile, KeepsLinksAndModes) {
  const ScratchFolder folder;
  folder.write("real", "old");
  ASSERT_EQ(0, ::chmod(folder.path("real").c_str(), 0640));
  std::filesystem::create_symlink("real", folder.path("link"));
  AtomicFile file(folder.path("link"));
  file.write("new", 3);
  file.commit();
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path("link")));
  EXPECT_EQ(folder.read("real"), "new");
  struct stat status {};
  ASSERT_EQ(0, ::stat(folder.path("real").c_str(), &status));
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

TEST(AtomicFile, NothingComesAfterCommit) {
  const ScratchFolder folder;
  AtomicFile file(folder.path("out"));
  file.write("new", 3);
  file.commit();
  const auto said = [](auto&& call) {
    try {
      call();
    } catch (const std::logic_error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_TRUE(test::contains(said([&] { file.commit(); }), "/out: is committed a second time, expected once"));
  EXPECT_TRUE(test::contains(said([&] { file.write("more", 4); }), "/out: is written to after commit()"));
  EXPECT_EQ(folder.read("out"), "new");
}

// Somebody else holds what a descriptor leads to: it is gone on with, in place, even where it is a regular file.
TEST(AtomicFile, DescriptorsAreWrittenThrough) {
  const ScratchFolder folder;
  const int open = ::open(folder.path("log").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(open, 0);
  ASSERT_EQ(::write(open, "one ", 4), 4);
  for (const char* names : {"/dev/fd/", "/proc/self/fd/"}) {
    AtomicFile file(names + std::to_string(open));
    file.write("two ", 4);
    EXPECT_EQ(folder.count(), 1) << "nothing beside it";
    file.commit();
  }
  ASSERT_EQ(::write(open, "three", 5), 5);
  ::close(open);
  EXPECT_EQ(folder.read("log"), "one two two three");
  EXPECT_TRUE(test::contains(file_error([&] { AtomicFile file("/dev/fd/" + std::to_string(open)); }),
                             "cannot write: Bad file descriptor"));
}

// As in containers, where a log is a link to /dev/stdout.
TEST(AtomicFile, LinksToDescriptorsAreWrittenThrough) {
  const ScratchFolder folder;
  folder.write("held", "");
  const int open = ::open(folder.path("held").c_str(), O_WRONLY | O_APPEND);
  ASSERT_GE(open, 0);
  ASSERT_EQ(::symlink(("/dev/fd/" + std::to_string(open)).c_str(), folder.path("log").c_str()), 0);
  ASSERT_EQ(::symlink("log", folder.path("log of log").c_str()), 0);
  struct stat before {
  }, after{};
  ASSERT_EQ(::stat(folder.path("held").c_str(), &before), 0);
  AtomicFile file(folder.path("log of log"));
  file.write("new", 3);
  file.commit();
  ASSERT_EQ(::stat(folder.path("held").c_str(), &after), 0);
  EXPECT_EQ(after.st_ino, before.st_ino) << "who holds it open would not see what was written";
  EXPECT_EQ(folder.read("held"), "new");
  ::close(open);
}

TEST(AtomicFile, ANameEndsWhereItEnds) {
  const ScratchFolder folder;
  EXPECT_TRUE(test::contains(file_error([&] { AtomicFile file(folder.path("out") + std::string(1, '\0') + "more"); }),
                             "cannot write"));
  EXPECT_EQ(folder.count(), 0);
}

TEST(AtomicFile, TargetsThatCannotBe) {
  const ScratchFolder folder;
  EXPECT_TRUE(test::contains(file_error([&] { AtomicFile file(folder.path("none/out")); }),
                             "/none/out: cannot write: there is no folder " + folder.path("none/")));
  EXPECT_TRUE(test::contains(file_error([&] { AtomicFile file(folder.path()); }), "Is a directory"));
  EXPECT_TRUE(test::contains(file_error([&] { AtomicFile file(""); }), "cannot"));
  EXPECT_EQ(folder.count(), 0);
}

TEST(AtomicFile, DevicesAreWrittenInto) {
  AtomicFile null("/dev/null");
  null.write("gone", 4);
  null.commit();
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_TRUE(test::contains(file_error([] {
                               AtomicFile full("/dev/full");
                               full.write("more", 4);
                               full.commit();
                             }),
                             "/dev/full: cannot write: No space left on device"));
}

// A limit on the size of files stands in for a full disk: the bytes that fit are written, the next ones fail.
TEST(AtomicFile, WhenTheBytesDoNotFitNothingIsLeft) {
  const ScratchFolder folder;
  folder.write("out", "old");
  rlimit before{};
  ASSERT_EQ(0, ::getrlimit(RLIMIT_FSIZE, &before));
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit tight = before;
  tight.rlim_cur = 10000;
  ASSERT_EQ(0, ::setrlimit(RLIMIT_FSIZE, &tight));
  const std::string message = file_error([&] {
    AtomicFile file(folder.path("out"));
    const std::vector<char> bytes(20000, 'x');
    file.write(bytes.data(), bytes.size());
    file.commit();
  });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(test::contains(message, "/out: cannot write: File too large"));
  EXPECT_EQ(folder.read("out"), "old");
  EXPECT_EQ(folder.count(), 1);
}

TEST(FileError, IsOnePrintableLine) {
  const FileError error("a\nb", "names " + in_quotes(std::string("x\0\x1b[31m\xFFü\u202E\u2028\uE000", 19)));
  EXPECT_STREQ(error.what(), "a\\nb: names 'x\\x00\\x1b[31m\\xffü\\u{202e}\\u{2028}\\u{e000}'");
  EXPECT_LT(in_quotes(std::string(100'000'000, 'n')).size(), 300u);
}

}  // namespace headlight::models::atomic_file_test
