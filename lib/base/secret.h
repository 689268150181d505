// The secret that the members of a job share.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/options.h"

#include <concepts>
#include <memory>
#include <string_view>

namespace dtrain {

// Lies in secret memory (secret_memory.h). Copies share it; it is wiped with the last one.
class Secret {
  public:
    static constexpr size_t most_bytes = 4096; // no option is longer

    Secret() = default; // none
    // At most most_bytes. Throws std::bad_alloc.
    template <std::convertible_to<std::string_view> Text> Secret(const Text &text) {
        keep(std::string_view(text));
    }

    std::string_view text() const { return {bytes_.get(), length_}; }
    bool empty() const { return length_ == 0; }

  private:
    void keep(std::string_view text);

    std::shared_ptr<const char> bytes_;
    size_t length_ = 0;
};

// What the file holds, of which the option is to hold the path; only its owner may have access to
// it.
Status read_private_file(const char *option, const std::string &path, Secret &secret);

// The value of option secret, else what the file of option secret.file holds; empty if neither is
// set.
Status read_secret(const Options &options, Secret &secret);

} // namespace dtrain
