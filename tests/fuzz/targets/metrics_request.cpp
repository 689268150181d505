// Requests of anybody to the metrics port of dtrain-server, and the file with its token.
// SPDX-License-Identifier: Apache-2.0
//
// Input: the length of the token's file, the file, then pieces of a request, each with its length.
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/quiet.h"

#include <sys/socket.h>
#include <sys/stat.h>

#define _Static_assert static_assert // as C++ calls it
extern "C" {
#include "tools/server/visitor.h"
}

using namespace dtrain;
using fuzz::Bytes;

namespace {

// By the head that a reader of all of it would see.
bool has_token(const std::string &head, const std::string &token) {
    const std::string wanted = "\r\nAuthorization: Bearer " + token + "\r\n";
    return head.find(wanted) != std::string::npos;
}

struct Port {
    explicit Port(const struct token *wanted) : token(wanted) {
        int ends[2];
        FUZZ_REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
        peer = ends[1];
        visitor_begin(&visitor, ends[0], 0);
    }
    ~Port() {
        visitor_end(&visitor);
        close(peer);
    }
    void say(const Bytes &piece) {
        if (piece.empty() || visitor.state == FREE) return;
        (void)!::send(peer, piece.data(), piece.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        visitor_go_on(&visitor, token);
        FUZZ_REQUIRE(visitor.head_length < sizeof visitor.head);
    }
    // The counters, or that there is no memory for them.
    void answer(bool some) {
        if (visitor.state != WAITING) return;
        struct text *text = nullptr;
        if (some) {
            text = static_cast<struct text *>(std::calloc(1, sizeof *text));
            text->bytes = strdup("dtrain_counter 1\n");
            text->length = std::strlen(text->bytes);
        }
        visitor_answer(&visitor, text);
        visitor_go_on(&visitor, token);
        FUZZ_REQUIRE(visitor.state == FREE);
    }
    std::string heard() const {
        char bytes[1024];
        const ssize_t n = recv(peer, bytes, sizeof bytes, MSG_DONTWAIT);
        return {bytes, size_t(std::max<ssize_t>(n, 0))};
    }

    const struct token *token;
    struct visitor visitor {};
    int peer = -1;
};

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static fuzz::MemoryFile file;
    static const bool closed = fchmod(file.fd(), 0600) == 0; // to others
    FUZZ_REQUIRE(closed);
    fuzz::Input in(data, size);
    const Bytes line = in.bytes(in.take<uint16_t>() % 2048);
    file.assign(line.data(), line.size());
    struct token token {};
    bool given = false;
    if (!line.empty()) {
        const fuzz::Quiet quiet;
        given = token_read(&token, file.path().c_str()) == 0;
    }
    if (!given) token.length = 0;
    FUZZ_REQUIRE(token.length < sizeof token.text);

    Port port(&token);
    std::string head;
    bool heard_all = false;
    while (!in.empty()) {
        const Bytes piece = in.bytes(1 + in.byte());
        if (port.visitor.state == READING) head.append(piece.begin(), piece.end());
        port.say(piece);
        port.answer(piece.size() % 2 == 1);
        heard_all |= port.visitor.state == FREE;
    }
    const std::string said = port.heard();
    const bool served = said.starts_with("HTTP/1.1 200");
    FUZZ_REQUIRE(!served || heard_all);
    // No metrics without the token. A text of several lines is no token that a head can hold.
    const std::string text(token.text, token.length);
    if (served && given && text.find_first_of(" \t\r\n") == std::string::npos) {
        FUZZ_REQUIRE(head.find(text) != std::string::npos);
    }
    // And none are kept from whoever sends it as its first header.
    const std::string exact = "GET /metrics HTTP/1.1\r\nAuthorization: Bearer " + text + "\r\n\r\n";
    if (given && head == exact && has_token(head, text) &&
        text.find_first_of(" \t\r\n") == std::string::npos)
        FUZZ_REQUIRE(served || said.starts_with("HTTP/1.1 503"));
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    const auto request = [](std::string_view line, std::initializer_list<std::string_view> pieces) {
        Made made;
        made.put(uint16_t(line.size())).all(line);
        for (const std::string_view piece : pieces) made.byte(uint8_t(piece.size() - 1)).all(piece);
        return Bytes(made);
    };
    std::vector<Bytes> out{
        request("", {"GET /metrics HTTP/1.1\r\n\r\n"}),
        request("", {"GET /metrics?a=b HTTP/1.1\r\n", "Host: a\r\n\r\n"}),
        request("", {"GET / HTTP/1.1\r\n\r\n"}),
        request("", {"PUT / HTTP/1.1\r\n\r\n"}),
        request("", {"GET /metr", "ics HTTP/1.1\r\nA", ": b\r\n\r", "\n"}),
        request("secret\n", {"GET /metrics HTTP/1.1\r\nAuthorization: Bearer secret\r\n\r\n"}),
        request("secret\r\n",
                {"GET /metrics HTTP/1.1\r\nA: b\r\naUTHORIZATION:bearer   secret \r\n\r\n"}),
        request("secret", {"GET /metrics HTTP/1.1\r\nAuthorization: Bearer secreT\r\n\r\n"}),
        request("secret", {"GET /metrics HTTP/1.1\r\nAuthorization: Basic secret\r\n",
                           "Authorization: Bearer secret\r\n\r\n"}),
        request("secret", {"GET /metrics HTTP/1.1\r\n\r\n"}),
        request("\n", {"GET /metrics HTTP/1.1\r\n\r\n"}),
        request(std::string(1500, 'x'), {"GET /metrics HTTP/1.1\r\n\r\n"})};
    Made longer; // than a head may be
    longer.put(uint16_t(0));
    for (int i = 0; i < 17; i++) longer.byte(255).all(std::string(256, 'x'));
    out.push_back(longer);
    return out;
}
