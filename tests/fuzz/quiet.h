// Keeps what programs say on stderr out of a fuzzer's own output.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdio>
#include <utility>

namespace dtrain::fuzz {

// While one is there, nothing that is written to the stream `stderr` is seen. What a sanitizer or
// libFuzzer says does not go through it.
class Quiet {
  public:
    Quiet() : before_(std::exchange(stderr, nowhere())) {}
    ~Quiet() { stderr = before_; }
    Quiet(const Quiet &) = delete;

  private:
    static FILE *nowhere() {
        static FILE *const file = std::fopen("/dev/null", "w");
        return file != nullptr ? file : stderr;
    }
    FILE *const before_;
};

} // namespace dtrain::fuzz
