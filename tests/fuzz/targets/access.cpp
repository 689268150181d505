// Files of tokens and of rights, and the proofs of tokens that a worker sends with a table's name.
// SPDX-License-Identifier: Apache-2.0
//
// Input: which file it is about, the length of the table's name, the name, the file. The other file
// is genuine, and '@' in the input stands for its token.
#include "tests/fuzz/memory_file.h"

#include "ps/table/access.h"

#include <sys/stat.h>

using namespace dtrain;
using namespace dtrain::ps;
using fuzz::Bytes;

namespace {

constexpr std::string_view token = "a-token-of-some-length";

std::string with_token(const Bytes &bytes) {
    std::string out;
    for (const uint8_t byte : bytes)
        byte == '@' && out.size() < 65536 ? void(out += token) : out.push_back(char(byte));
    return out;
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static fuzz::MemoryFile list, tokens;
    static const bool closed = fchmod(list.fd(), 0600) == 0 && fchmod(tokens.fd(), 0600) == 0;
    FUZZ_REQUIRE(closed);
    fuzz::Input in(data, size);
    const uint8_t what = in.byte();
    const Bytes bytes = in.bytes(in.byte());
    const std::string table(bytes.begin(), bytes.end()),
        text = with_token(in.rest()),
        genuine =
            what % 2 ? "t*  pull,push  " + std::string(token) + "\n" : std::string(token) + "\n";
    fuzz::MemoryFile &own = what % 2 ? tokens : list, &other = what % 2 ? list : tokens;
    own.assign(reinterpret_cast<const uint8_t *>(text.data()), text.size());
    other.assign(reinterpret_cast<const uint8_t *>(genuine.data()), genuine.size());
    Access access;
    Tokens proven;
    const protection::Occasion here{7, 1, table}, elsewhere{7, 2, table};
    const Status listed = Access::read(list.path(), access),
                 held = Tokens::read(tokens.path(), proven);
    FUZZ_REQUIRE(what % 2 ? listed == DTRAIN_OK : held == DTRAIN_OK);
    if (listed != DTRAIN_OK || held != DTRAIN_OK) return 0;
    const std::string proofs = proven.proofs(here);
    FUZZ_REQUIRE(proofs.size() <= most_tokens * sizeof(protection::TokenProof));
    const uint8_t without = access.rights(here, ""), with = access.rights(here, proofs);
    FUZZ_REQUIRE((without & ~with) == 0 && with <= Right::all);
    FUZZ_REQUIRE(*right_name(with) != 0);
    // A proof serves one worker and table, and nobody has rights without one if a line names it.
    FUZZ_REQUIRE(access.rights(elsewhere, proofs) == without);
    FUZZ_REQUIRE(without == 0 || without == Right::all);
    std::string changed = proofs.substr(0, proofs.size() - proofs.size() % 3);
    for (char &c : changed) c = char(c ^ 1);
    FUZZ_REQUIRE(access.rights(here, changed) == without);
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    std::vector<Bytes> out;
    const auto add = [&](uint8_t what, std::string_view table, std::string_view text) {
        out.push_back(Made().byte(what).byte(uint8_t(table.size())).all(table).all(text));
    };
    add(0, "embedding1", "# who may do what\nembedding*  create,push,pull  @\n*  pull  @2\n");
    add(0, "t", "t all @\r\n");
    add(0, "other", "t checkpoint @\n\n");
    add(0, "t", "t push,pull,fly @\n");
    add(0, "t", "t push short\n");
    add(0, "t", "t push @ more\n");
    add(0, "t", "t\n");
    add(0, "t", "\n");
    add(0, "", std::string(5000, 'x'));
    add(0, "t", std::string_view("\0\0\0", 3));
    add(1, "t1", "@\n# mine\n@2 \n");
    add(1, "t1", "@ @\n");
    add(1, "t1", "short\n");
    add(1, "t1", "@\n@\n@\n@\n@\n@\n@\n@\n@\n");
    return out;
}
