// Tuning files: what another job has measured, or anybody has written.
// SPDX-License-Identifier: Apache-2.0
//
// Input: whether the checksum is computed here, then the file (without its last line, if it is).
#include "tests/fuzz/memory_file.h"

#include "base/crc32c.h"
#include "collectives/cost/tuning.h"

#include <cmath>

using namespace dtrain;
using namespace dtrain::collectives;
using fuzz::Bytes;

namespace {

constexpr std::string_view last_line = "crc32c = ";

Tuning some_tuning() {
    Tuning tuning;
    tuning.machine = {"A processor", "shm+tcp", 2, 1'000'000'000, 4, 2};
    tuning.model.latency_ns = 1500;
    tuning.exchange_bytes = 1 << 20;
    tuning.chunk_bytes = 1 << 16;
    tuning.eager_bytes = 16 << 10;
    return tuning;
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz::Input in(data, size);
    const bool finish = in.byte() == 0;
    const Bytes bytes = in.rest();
    std::string text(bytes.begin(), bytes.end());
    if (finish) {
        char sum[16];
        std::snprintf(sum, sizeof sum, "%08x\n", crc32c(text.data(), text.size()));
        text += std::string(last_line) + sum;
    }
    static fuzz::MemoryFile file;
    file.assign(reinterpret_cast<const uint8_t *>(text.data()), text.size());
    Tuning tuning;
    if (read_tuning(file.path().c_str(), tuning) != DTRAIN_OK) return 0;
    for (const double value :
         {tuning.model.latency_ns, tuning.model.overhead_ns, tuning.model.ns_per_byte})
        FUZZ_REQUIRE(std::isfinite(value) && value >= 0);
    FUZZ_REQUIRE(tuning.machine.ranks >= 2 && tuning.chunk_bytes >= 4096);
    Tuning again;
    const std::string once = to_text(tuning);
    FUZZ_REQUIRE(once.size() > max_tuning_bytes || parse_tuning(once, again) == DTRAIN_OK);
    FUZZ_REQUIRE(once.size() > max_tuning_bytes || to_text(again) == once);
    FUZZ_REQUIRE(difference(tuning.machine, tuning.machine).empty());
    (void)difference(tuning.machine, some_tuning().machine);
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    const std::string text = to_text(some_tuning());
    const std::string body = text.substr(0, text.rfind(last_line));
    const auto with = [&](std::string_view from, std::string_view to) {
        std::string other = body;
        other.replace(other.find(from), from.size(), to);
        return other;
    };
    std::vector<Bytes> out{Made().byte(0).all(body), Made().byte(1).all(text),
                           Made().byte(1).all(body),
                           Made().byte(1).all(body).all(std::string_view("crc32c = 00000000\n"))};
    for (const std::string &other :
         {with("2\n", "1\n"), with("ranks = 4", "ranks = 1"),
          with("latency_ns = 1500", "latency_ns = inf"), with("cpu = A processor", "cpu = "),
          with("cores = 2", "cores = many"), with("hosts = 2\n", ""), with("dtrain", "d"),
          body + "more\n", body + std::string(9000, ' ')})
        out.push_back(Made().byte(0).all(other));
    return out;
}
