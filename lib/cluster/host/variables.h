// Reads environment variables and checks their values.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/status.h"

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>

namespace dtrain::cluster {

using Getenv = std::function<const char *(const char *)>; // NULL: not set

class Variables {
  public:
    explicit Variables(const Getenv &getenv) : getenv_(getenv) {}

    std::string text(const char *name) const; // "" counts as not set
    bool has(const char *name) const { return !text(name).empty(); }
    bool has_any(std::initializer_list<const char *> names) const;
    // A required number in [least, limit]; DTRAIN_ERR_CONFIG names the variable.
    Status number(const char *name, int32_t least, int32_t limit, int32_t &out) const;

  private:
    const Getenv &getenv_;
};

} // namespace dtrain::cluster
