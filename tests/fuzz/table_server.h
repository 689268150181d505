// A parameter server and its workers, for the target of the table protocol.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/table_functions.h"
#include "tests/fuzz/table_tables.h"

#include "device/kernels.h"
#include "ps/server/server.h"
#include "ps/table/table_wire.h"

#include <deque>
#include <sys/stat.h>

namespace dtrain::fuzz {

using namespace dtrain::ps;

enum class Act : uint8_t { create, create_raw, request, raw, pack, archived, leave, lose, count };
inline constexpr uint32_t workers = 2;
inline constexpr uint64_t least_limit = 64 << 10;
inline constexpr size_t most_kept_answers = 40;
enum Has : uint8_t {
    restricted = 1,
    no_archive = 2,
    other_server = 4,
    slow_workers = 8,
    heritage = 16
};

// Worker 0 of tables "t*" may create and pull, worker 1 also push.
inline constexpr std::string_view pulls = "a-token-of-some-length",
                                  pushes = "another-token-as-long";

inline std::string proofs_of(uint32_t worker) {
    std::string out;
    for (const std::string_view token : {pulls, pushes}) {
        const protection::TokenProof proof = protection::prove(token, {0, worker, "t"});
        if (worker == 1 || token == pulls)
            out.append(reinterpret_cast<const char *>(proof.data()), proof.size());
    }
    return out;
}

inline const Access &lists() {
    static const Access *const all = [] {
        static MemoryFile file;
        const std::string text =
            "t* create,pull " + std::string(pulls) + "\nt* push " + std::string(pushes) + "\n";
        FUZZ_REQUIRE(fchmod(file.fd(), 0600) == 0);
        file.assign(reinterpret_cast<const uint8_t *>(text.data()), text.size());
        auto *access = new Access;
        FUZZ_REQUIRE(Access::read(file.path(), *access) == DTRAIN_OK);
        return access;
    }();
    return *all;
}

// Files that are read and written some time later, or not at all.
struct Shelf final : Archive {
    Status start(std::unique_ptr<ArchiveJob> job) override {
        if (jobs.size() >= 4) return fail(DTRAIN_ERR_LIMIT, "the disk is busy");
        jobs.push_back(std::move(job));
        return DTRAIN_OK;
    }
    std::deque<std::unique_ptr<ArchiveJob>> jobs;
};

struct TableServer {
    TableServer(uint64_t bytes, uint8_t what)
        : limit(bytes), has(what), server({.index = 0,
                                           .servers = what & other_server ? 2u : 1u,
                                           .workers = workers,
                                           .memory_limit = bytes,
                                           .archive = what & no_archive ? nullptr : &shelf,
                                           .functions = &table_functions(),
                                           .peer_limit = 64 << 10,
                                           .access = what & restricted ? &lists() : nullptr}) {}

    // The server keeps no pointer to the payload, so it is freed at once.
    void say(uint32_t worker, const RequestHeader &header, const Bytes &payload) {
        std::unique_ptr<uint8_t[]> exact; // aligned; of exactly its size
        const void *at = nullptr;
        if (!payload.empty()) {
            exact.reset(new uint8_t[payload.size()]);
            std::copy(payload.begin(), payload.end(), exact.get());
            at = exact.get();
        }
        for (const bool rows : {false, true}) server.prefetch(header, at, payload.size(), rows);
        server.on_request(worker, header, at, payload.size(), out);
        check();
    }
    void check() {
        for (const Response &response : out) {
            const ResponseHeader &header = response.header;
            FUZZ_REQUIRE(response.worker < workers && uint16_t(header.reason) <= last_reason);
            FUZZ_REQUIRE(header.magic == protocol_magic && header.reserved == 0);
            char text[max_told + 1];
            if (is_failure(header.reason))
                describe(header.reason, header.numbers, response.worker, text, sizeof text);
            // Every byte of it can be read.
            const auto *bytes = static_cast<const uint8_t *>(response.payload);
            volatile uint8_t last = 0;
            for (uint64_t i = 0; i < response.bytes; i++) last = bytes[i];
            (void)last;
        }
        // Workers that are slow to take their answers make the server hold them.
        for (Response &response : out)
            if (has & slow_workers) kept.push_back(std::move(response));
        while (kept.size() > most_kept_answers) kept.pop_front();
        out.clear();
        FUZZ_REQUIRE(server.memory_used() <= limit);
    }

    const uint64_t limit;
    const uint8_t has;
    Shelf shelf;
    Server server;
    Responses out;
    std::deque<Response> kept;
    TableParams params[4]; // by table number
    uint64_t next[workers][4]{};
};

inline uint64_t payload_size(const TableParams &params, const RequestHeader &header) {
    const uint64_t count = header.count % 4096;
    if (!has_trait(header.kind, Trait::sends)) return 0;
    const bool rows = has_trait(header.kind, Trait::rows);
    const uint64_t keys = rows ? count * sizeof(uint64_t) : 0;
    if (rows && !has_trait(header.kind, Trait::carries)) return keys;
    const uint64_t numbers = rows ? count * params.dim : count;
    const bool state = has_trait(header.kind, Trait::state);
    return keys + numbers * device::dtype_size(state ? params.dtype : wire_dtype_of(params));
}

} // namespace dtrain::fuzz
