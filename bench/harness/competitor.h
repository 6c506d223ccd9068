// Another process that wants every core too.
#pragma once

#include <sys/types.h>

namespace headlight::bench {

class Competitor {
 public:
  // Starts a process with that many busy threads at normal priority. To be called while this process has one thread.
  explicit Competitor(int threads);
  ~Competitor();
  Competitor(const Competitor&) = delete;
  Competitor& operator=(const Competitor&) = delete;

 private:
  pid_t process_;
};

}  // namespace headlight::bench
