// A secret that is read from a file lies in memory that no core file has, and nowhere else: neither
// while the job runs nor afterwards.
// SPDX-License-Identifier: Apache-2.0
#include "contract/processes.h"

#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <sys/random.h>

namespace {

constexpr size_t secret_bytes = 48;
constexpr uint8_t mask = 0x5a; // so that the pattern to look for is not found itself

struct Area {
    uint64_t begin = 0, end = 0;
    bool readable = false, hidden = false; // hidden: left out of core files
};

std::vector<Area> areas() {
    std::vector<Area> all;
    std::ifstream smaps("/proc/self/smaps");
    for (std::string line; std::getline(smaps, line);) {
        Area area;
        char dash = 0;
        std::string access;
        std::istringstream words(line);
        if (words >> std::hex >> area.begin >> dash >> area.end >> access && dash == '-') {
            area.readable = access[0] == 'r' && line.find("[v") == std::string::npos; // vdso, vvar
            all.push_back(area);
        } else if (line.rfind("VmFlags:", 0) == 0) {
            all.back().hidden = line.find(" dd") != std::string::npos;
        }
    }
    return all;
}

// How often the secret lies in areas that are hidden, or that are not.
int copies(const uint8_t (&masked)[secret_bytes], bool hidden) {
    static uint8_t buffer[secret_bytes + (1 << 20)]; // what came before, and the next piece
    constexpr size_t piece = sizeof buffer - secret_bytes;
    const int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    REQUIRE(memory >= 0);
    const auto is_secret = [](uint8_t byte, uint8_t pattern) { return (byte ^ mask) == pattern; };
    int found = 0;
    for (const Area &area : areas()) {
        if (!area.readable || area.hidden != hidden) continue;
        std::fill_n(buffer, secret_bytes, 0);
        for (uint64_t at = area.begin; at < area.end; at += piece) {
            const ssize_t n = pread(memory, buffer + secret_bytes,
                                    std::min<uint64_t>(area.end - at, piece), off_t(at));
            if (n <= 0) break;
            uint8_t *const end = buffer + secret_bytes + n;
            for (uint8_t *place = buffer;; place++, found++) {
                place = std::search(place, end, masked, masked + secret_bytes, is_secret);
                if (place == end) break;
            }
            std::copy(end - secret_bytes, end, buffer);
            buffer[0] = 0; // so that one that has been counted is not found again
        }
    }
    explicit_bzero(buffer, sizeof buffer);
    close(memory);
    return found;
}

void it_lies_in_hidden_memory_only(void **) {
    TemporaryFolder folder;
    const std::string path = folder.file("secret");
    uint8_t masked[secret_bytes];
    {
        uint8_t plain[secret_bytes];
        REQUIRE(getrandom(plain, sizeof plain, 0) == ssize_t(sizeof plain));
        for (uint8_t &byte : plain) byte = uint8_t('a' + byte % 26);
        const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        REQUIRE(file >= 0 && write(file, plain, sizeof plain) == ssize_t(sizeof plain));
        close(file);
        for (size_t i = 0; i < sizeof plain; i++) masked[i] = plain[i] ^ mask;
        explicit_bzero(plain, sizeof plain);
    }
    const ranks::Options options = {
        {"secret.file", path.c_str()}, {"transports", "tcp"}, {"protection", "encrypted"}};
    processes::Job job;
    job.start(2, [&](int rank) {
        REQUIRE(copies(masked, false) == 0);
        dtrain_context_t *context = ranks::make_context(options);
        dtrain_comm_t *comm = processes::join(job, context, rank, 2);
        int64_t one = 1;
        OK(dtrain_allreduce(comm, &one, &one, 1, DTRAIN_I64, DTRAIN_SUM, nullptr, nullptr));
        REQUIRE(one == 2);
        REQUIRE(copies(masked, false) == 0);
        REQUIRE(copies(masked, true) > 0); // it would be found
        OK(dtrain_barrier(comm, nullptr, nullptr));
        OK(dtrain_comm_destroy(comm));
        OK(dtrain_context_destroy(context));
        REQUIRE(copies(masked, false) == 0 && copies(masked, true) == 0);
    });
    job.expect_good_ends();
}

} // namespace

int main() {
    const CMUnitTest tests[] = {cmocka_unit_test(it_lies_in_hidden_memory_only)};
    return cmocka_run_group_tests_name("secret_memory", tests, nullptr, nullptr);
}
