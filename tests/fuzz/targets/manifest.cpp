// Manifests of checkpoints, and what is decided by them.
// SPDX-License-Identifier: Apache-2.0
//
// Input: flags, then manifests, each up to a zero, without their last line: the checksum is
// computed here.
#include "tests/fuzz/fuzz.h"

#include "base/crc32c.h"
#include "ps/checkpoint/lineage.h"

using namespace dtrain;
using namespace dtrain::ps;
using fuzz::Bytes;

namespace {

constexpr std::string_view last_line = "\n\"crc32c\":\"";
constexpr size_t most_manifests = 8;

std::string finished(std::string text) {
    text += last_line;
    char sum[16];
    std::snprintf(sum, sizeof sum, "%08x", crc32c(text.data(), text.size()));
    return text + sum + "\"}\n";
}

std::string unfinished(const Manifest &manifest) {
    const std::string text = manifest_text(manifest);
    return text.substr(0, text.rfind(last_line));
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz::Input in(data, size);
    const bool as_it_is = in.byte() == 1;
    const uint8_t keep = in.byte();
    std::vector<Manifest> all;
    Bytes rest = in.rest();
    for (auto at = rest.begin(); at < rest.end() && all.size() < most_manifests;) {
        const auto end = std::find(at, rest.end(), 0);
        std::string text(at, end);
        at = end + (end != rest.end() ? 1 : 0);
        if (!as_it_is) text = finished(text);
        Manifest manifest;
        if (parse_manifest(text, manifest) != DTRAIN_OK) continue;
        FUZZ_REQUIRE(manifest_text(manifest) == text);
        all.push_back(std::move(manifest));
    }
    if (all.empty()) return 0;
    const std::vector<uint64_t> old = old_ones(all, all[0].lineage, keep);
    FUZZ_REQUIRE(old.size() < all.size() || keep == 0);
    const std::string tables[] = {"t"};
    Lineage lineage(keep % 4);
    const Manifest *found = nullptr;
    if (lineage.newest(all, tables, found) == DTRAIN_OK) {
        FUZZ_REQUIRE(found != nullptr && found->find("t") != nullptr);
        lineage.restored(all, *found, tables);
    }
    Manifest next;
    const Manifest *replaced = nullptr;
    if (lineage.next(all, tables, all[0].step, "path", next, replaced) == DTRAIN_OK) {
        lineage.saved(next);
        FUZZ_REQUIRE(next.step == all[0].step);
    }
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    const Manifest first{.step = 7,
                         .id = 1,
                         .lineage = 2,
                         .serial = 1,
                         .job = 2,
                         .tables = {{"t", {{100, 5}, {200, 6}}}, {"u", {{1, 0xffffffff}}}}};
    Manifest second = first, other = first;
    second.step = 8, second.serial = 2, second.id = 3;
    other.lineage = 9, other.job = 3, other.serial = 5;
    const auto made = [](std::initializer_list<Manifest> all) {
        Made out;
        out.byte(0).byte(2);
        for (const Manifest &one : all) out.all(unfinished(one)).byte(0);
        return Bytes(out);
    };
    return {made({first}),
            made({first, second}),
            made({second, first, other}),
            made({Manifest{}}),
            Made().byte(1).byte(0).all(manifest_text(first)),
            Made().byte(0).byte(1).all(std::string_view("{\"format\":\"dtrain checkpoint 1\""))};
}
