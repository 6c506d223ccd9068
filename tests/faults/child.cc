#include "faults/child.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <new>
#include <stdexcept>

#include "faults/plan.h"

namespace headlight::faults {
namespace {

int memory_file(const char* name, unsigned flags) {
  const int descriptor = ::memfd_create(name, flags);
  if (descriptor < 0) throw std::runtime_error("no memory file");
  return descriptor;
}

std::string taken(int descriptor) {
  std::string text(static_cast<std::size_t>(::lseek(descriptor, 0, SEEK_END)), '\0');
  if (::pread(descriptor, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    throw std::runtime_error("a memory file cannot be read");
  ::close(descriptor);
  return text;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> list;
  for (std::string& word : words) list.push_back(word.data());
  list.push_back(nullptr);
  return list;
}

}  // namespace

SharedBoard::SharedBoard() : descriptor_(memory_file("board", 0)) {
  if (::ftruncate(descriptor_, sizeof(Board)) != 0) throw std::runtime_error("no room for a board");
  void* const memory = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("no memory for a board");
  board_ = new (memory) Board{};
}

SharedBoard::~SharedBoard() {
  ::munmap(board_, sizeof(Board));
  ::close(descriptor_);
}

Finished SharedBoard::run(const Child& child) {
  forget_seen(*board_);
  std::vector<std::string> command = child.command;
  std::vector<std::string> environment = {"LD_PRELOAD=" + child.injector,
                                          std::string(kVariable) + "=" + std::to_string(descriptor_),
                                          "HEADLIGHT_NUM_THREADS=3"};
  const std::vector<char*> arguments = pointers(command), variables = pointers(environment);
  const int out = memory_file("out", MFD_CLOEXEC), error = memory_file("error", MFD_CLOEXEC);

  // Between fork and exec there are system calls alone, for another thread may have held a lock.
  const pid_t process = ::fork();
  if (process == 0) {
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) ::signal(signal, SIG_DFL);
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    const int null = ::open("/dev/null", O_RDONLY);
    if (::chdir(child.folder.c_str()) == 0 && ::dup2(null, STDIN_FILENO) >= 0 && ::dup2(out, STDOUT_FILENO) >= 0 &&
        ::dup2(error, STDERR_FILENO) >= 0) {
      ::close(null);
      ::alarm(kPatience);
      ::execve(arguments[0], arguments.data(), variables.data());
    }
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(process, &status, 0);
  Finished finished;
  if (WIFEXITED(status)) finished.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) finished.signal = WTERMSIG(status);
  finished.out = taken(out);
  finished.error = taken(error);
  return finished;
}

}  // namespace headlight::faults
