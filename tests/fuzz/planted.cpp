// Not a target: a decoder with the faults that a run of fuzzers must report. DTRAIN_PLANT chooses
// one: overflow, property, hang or allocation. tests/fuzz/run looks for all of them before it
// believes that there are no others. And pause, which is none: it takes long once, as if the
// machine had stood still, and leaves the file DTRAIN_PLANT_MARK.
// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <memory>
#include <unistd.h>

using namespace dtrain;
using fuzz::Bytes;

namespace {

std::string_view plant() {
    const char *name = std::getenv("DTRAIN_PLANT");
    return name != nullptr ? name : "property";
}

} // namespace

// A length, then as many bytes.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz::Input in(data, size);
    const size_t length = in.byte();
    const Bytes bytes = in.rest();
    if (length <= bytes.size()) return 0;
    if (plant() == "overflow") {
        const std::unique_ptr<uint8_t[]> copy(new uint8_t[bytes.size()]);
        volatile uint8_t last = copy[length - 1]; // believes the length
        (void)last;
    } else if (plant() == "property") {
        FUZZ_REQUIRE(length <= bytes.size());
    } else if (plant() == "hang") {
        for (volatile size_t at = 0; at < length;) {
        } // waits for more
    } else if (plant() == "pause") {
        const char *mark = std::getenv("DTRAIN_PLANT_MARK");
        const int first = mark != nullptr ? open(mark, O_CREAT | O_EXCL, 0600) : -1;
        if (first < 0) return 0;
        close(first);
        for (unsigned left = 4; left > 0;) left = sleep(left); // libFuzzer's alarm interrupts it
    } else if (plant() == "allocation") {
        const Bytes all(length << 20); // believes the length
        FUZZ_REQUIRE(all[length] == 0);
    }
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    if (plant() == "property") return {Made().byte(3).all(Bytes(3)), Made().byte(4).all(Bytes(3))};
    return {Made().byte(3).all(Bytes(3))};
}
