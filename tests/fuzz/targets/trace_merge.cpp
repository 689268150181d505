// Timelines of ranks, as dtrain-trace reads them.
// SPDX-License-Identifier: Apache-2.0
//
// Input: the first file, a zero byte, the second one; a line "[" and a host are put in front of
// each, as every timeline has them.
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/quiet.h"

using namespace dtrain;
using fuzz::Bytes;

extern "C" {
int dtrain_trace_main(int argc, char **argv); // main() of tools/trace.c
const char *dtrain_version_string(void) { return "fuzz"; }
}

namespace {

int merge(std::initializer_list<std::string> files) {
    std::vector<std::string> arguments{"dtrain-trace", "merge"};
    arguments.insert(arguments.end(), files);
    std::vector<char *> all;
    for (std::string &argument : arguments) all.push_back(argument.data());
    all.push_back(nullptr);
    return dtrain_trace_main(int(arguments.size()), all.data());
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static fuzz::MemoryFile first, second, out, again;
    const uint8_t *zero = std::find(data, data + size, 0);
    const auto whole = [](const char *host, const uint8_t *from, const uint8_t *to) -> Bytes {
        const std::string begin =
            std::string("[\n{\"name\":\"dtrain_host\",\"args\":{\"host\":\"") + host + "\"}},\n";
        return fuzz::Made().all(begin).all(std::span(from, to));
    };
    const Bytes one = whole("a", data, zero),
                two = whole("b", std::min(zero + 1, data + size), data + size);
    first.assign(one.data(), one.size());
    second.assign(two.data(), two.size());
    const fuzz::Quiet quiet;
    if (merge({out.path(), first.path(), second.path()}) != 0) return 0;
    // It can read what it has written, and changes nothing more of it.
    FUZZ_REQUIRE(merge({again.path(), out.path()}) == 0);
    FUZZ_REQUIRE(again.content() == out.content());
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    const auto clock = [](const char *host, const char *ns) {
        return std::string(R"({"name":"dtrain_host","ph":"M","args":{"host":")") + host +
               "\"}},\n" + R"({"name":"dtrain_wall_offset","ph":"M","args":{"ns":)" + ns + "}},\n";
    };
    const std::string event = R"({"name":"sum","ph":"X","ts":1234.567,"dur":8.900},)"
                              "\n",
                      last = R"({"name":"end","ph":"i","ts":5.1})"
                             "\n]\n";
    const auto two = [](const std::string &one, const std::string &other) -> Bytes {
        return Made().all(one).byte(0).all(other);
    };
    return {two(clock("a", "1000") + event + last, clock("b", "5000000000") + event + last),
            two(clock("a", "1000") + event + last, clock("a", "7") + event),
            two(event + "{\"killed", event),
            two("no event\n" + event, event),
            two(clock("a", "9223372036854775807") + last,
                clock("b", "-9223372036854775808") + R"({"name":"x","ts":9223372036854775807.999})"
                                                     "\n]\n"),
            two("{}\n", ""),
            two("", "")};
}
