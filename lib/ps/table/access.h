// What workers may do with tables: their tokens, and what a server grants for them.
// SPDX-License-Identifier: Apache-2.0
//
// A server's list (option ps.access) has lines such as
//
//   embedding*  create,push,pull  TOKEN
//   *           pull              ANOTHER-TOKEN
//
// A table that a line names is restricted: a worker may do with it what the lines grant whose
// tokens it has proven (protection/token.h) when it opened the table. Other tables are everybody's.
#pragma once
#include "base/secret.h"
#include "base/status.h"
#include "protection/token.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace dtrain::ps {

struct Right {
    enum : uint8_t { create = 1, push = 2, pull = 4, checkpoint = 8, all = 15 };
};
const char *right_name(uint64_t rights); // "push to"; of several rights, the first

inline constexpr size_t most_tokens = 8;  // of a worker
inline constexpr size_t least_token = 16; // bytes

// A worker's tokens: the lines of a file (option ps.token.file); empty: none.
class Tokens {
  public:
    static Status read(const std::string &path, Tokens &out);
    // One proof after the other.
    std::string proofs(const protection::Occasion &occasion) const;

  private:
    Secret lines_;
};

// A server's list.
class Access {
  public:
    static Status read(const std::string &path, Access &out); // empty: every table is everybody's
    // proofs: as above, from a peer.
    uint8_t rights(const protection::Occasion &occasion, std::string_view proofs) const;

  private:
    Secret lines_;
};

} // namespace dtrain::ps
