// Input of dtrain-run: lists of hosts, hostfiles and the output of --discovery, frames of an agent
// on another host, and the recipe of a process.
// SPDX-License-Identifier: Apache-2.0
//
// Input: which of them, then the text or the bytes; frames come in pieces.
#include "tests/fuzz/fuzz.h"

extern "C" {
#include "tools/run/channel.h"
#include "tools/run/host_list.h"
#include "tools/run/recipe.h"
}

#include <fcntl.h>
#include <set>
#include <unistd.h>

using namespace dtrain;
using fuzz::Bytes;

namespace {

enum class What : uint8_t { list, file, frames, recipe, count };
constexpr std::string_view greeting = "dtrain agent\n";

void check_hosts(const host_list_t &hosts) {
    std::set<std::string> names;
    int slots = 0;
    for (int i = 0; i < hosts.count; i++) {
        const std::string name = hosts.entries[i].name;
        FUZZ_REQUIRE(!name.empty() && name[0] != '-'); // ssh takes it for no option
        FUZZ_REQUIRE(name.find_first_of(" \t\n'\"\\$;&|<>()`") == std::string::npos);
        FUZZ_REQUIRE(names.insert(name).second && hosts.entries[i].slots > 0);
        slots += hosts.entries[i].slots;
    }
    FUZZ_REQUIRE(hosts.count <= MAX_HOSTS && slots == hosts.slots && slots <= MAX_SLOTS);
}

void read_list(const std::string &text) {
    host_list_t hosts{};
    if (host_list_add(&hosts, "--hosts", text.c_str()) != 0) FUZZ_REQUIRE(hosts.why[0] != 0);
    check_hosts(hosts);
    host_list_free(&hosts);
}

void read_file(Bytes text) {
    if (text.empty()) return;
    host_list_t hosts{};
    FILE *file = fmemopen(text.data(), text.size(), "r");
    FUZZ_REQUIRE(file != nullptr);
    if (host_list_parse(&hosts, file, "hostfile") != 0) FUZZ_REQUIRE(hosts.why[0] != 0);
    std::fclose(file);
    check_hosts(hosts);
    host_list_free(&hosts);
}

// As the launcher does: what stands before the greeting is of the shell there.
void read_frames(fuzz::Input &in) {
    int pipes[2][2];
    FUZZ_REQUIRE(pipe2(pipes[0], O_CLOEXEC) == 0 && pipe2(pipes[1], O_CLOEXEC) == 0);
    channel_t channel;
    channel_open(&channel, pipes[0][0], pipes[1][1]);
    const std::string text(greeting);
    bool greeted = false;
    for (int pieces = 0; !in.empty() && pieces < 64; pieces++) {
        const Bytes piece = in.bytes(1 + in.byte());
        if (piece.empty() || channel.from < 0) break; // it sends no frames
        FUZZ_REQUIRE(write(pipes[0][1], piece.data(), piece.size()) == ssize_t(piece.size()));
        if (!channel_read(&channel)) break;
        greeted = greeted || channel_skip(&channel, text.c_str());
        frame_t frame;
        while (greeted && channel_next(&channel, &frame)) {
            FUZZ_REQUIRE(frame.length <= FRAME_BYTES);
            const Bytes copy(frame.bytes, frame.bytes + frame.length); // all of it can be read
            int32_t numbers[2];
            FUZZ_REQUIRE(frame_numbers(&frame, 2, numbers) == (frame.length >= 8));
            channel_send(&channel, frame.kind, frame.process, copy.data(), copy.size());
            (void)channel_flush(&channel);
        }
    }
    channel_close(&channel);
    close(pipes[0][1]);
    close(pipes[1][0]);
}

void read_recipe(const Bytes &bytes) {
    recipe_t recipe, again;
    const char *from = reinterpret_cast<const char *>(bytes.data());
    if (recipe_unpack(&recipe, from, bytes.size())) {
        size_t size = 0;
        char *packed = recipe_pack(&recipe, &size);
        FUZZ_REQUIRE(recipe_unpack(&again, packed, size));
        FUZZ_REQUIRE(again.arguments.count == recipe.arguments.count &&
                     again.variables.count == recipe.variables.count);
        recipe_free(&again);
        std::free(packed);
    }
    recipe_free(&recipe);
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz::Input in(data, size);
    switch (What(in.byte() % uint8_t(What::count))) {
    case What::list: {
        const Bytes text = in.rest();
        read_list({text.begin(), text.end()});
        break;
    }
    case What::file: read_file(in.rest()); break;
    case What::frames: read_frames(in); break;
    default: read_recipe(in.rest());
    }
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    std::vector<Bytes> out;
    const auto add = [&](What what, std::string_view text) {
        out.push_back(Made().byte(uint8_t(what)).all(text));
    };
    for (const char *text : {"a,b:2,user@c:3", "[fd00::1]:2,[fd00::2],fd00::3", "a:0", "a,a:4096",
                             "-oProxyCommand=x", "a b", "[fd00::1]x", "a:x", "a:4097"})
        add(What::list, text);
    for (const char *text : {"# all\na:2\nb slots=3\n\n c  # the last\n", "a slots=1 slots=2\n",
                             "a max_slots=3\n", "a:1 slots=2\n", "a\0b\n"})
        add(What::file, text);
    Made frames;
    frames.byte(uint8_t(What::frames));
    const auto piece = [&](const Bytes &bytes) {
        frames.byte(uint8_t(bytes.size() - 1)).all(bytes);
    };
    piece(bytes_of("Welcome!\n"));
    piece(bytes_of(greeting));
    piece(Made()
              .put(uint32_t{FRAME_HELLO})
              .put(uint32_t{0})
              .put(uint32_t{3})
              .byte(1)
              .byte(2)
              .byte(3));
    piece(Made().put(uint32_t{FRAME_ENDED}).put(uint32_t{7}).put(uint32_t{8}).put(uint64_t{1}));
    piece(Made().put(uint32_t{FRAME_OUTPUT}).put(uint32_t{7}).put(uint32_t{9}));
    piece(Bytes(9, 'x'));
    piece(Made().put(uint32_t{FRAME_OUTPUT}).put(uint32_t{7}).put(uint32_t{1u << 20}));
    out.push_back(frames);
    recipe_t recipe{};
    texts_add(&recipe.arguments, "program");
    texts_add(&recipe.arguments, "argument");
    recipe_set_number(&recipe, "DTRAIN_RANK", 3);
    recipe_set_number(&recipe, "DTRAIN_RANK", 4);
    recipe_set(&recipe, "DTRAIN_SIZE", nullptr);
    size_t size = 0;
    char *packed = recipe_pack(&recipe, &size);
    add(What::recipe, {packed, size});
    add(What::recipe, {packed, size - 1});
    std::free(packed);
    recipe_free(&recipe);
    add(What::recipe, {"1\0/tmp\0009\0program\0", 18});
    return out;
}
