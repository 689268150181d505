// Random numbers that cannot be guessed.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/host.h"

#include <utility>

namespace dtrain::tp {

// Getting random numbers takes a system call of half a microsecond or more, while a large message
// over a fast network takes five. So many numbers are fetched at a time. One thread at a time.
class Secrets {
  public:
    explicit Secrets(const Host &host) : host_(host) {}
    uint64_t next() {
        if (!left_) {
            host_.random(numbers_, sizeof numbers_);
            left_ = at_once;
        }
        return std::exchange(numbers_[--left_], 0);
    }

  private:
    static constexpr uint32_t at_once = 64;
    const Host &host_;
    uint64_t numbers_[at_once];
    uint32_t left_ = 0;
};

} // namespace dtrain::tp
