// A server's values change while TCP sends them: each number arrives as it was at some moment.
// SPDX-License-Identifier: Apache-2.0
#include "conformance.h"

#include <algorithm>
#include <dlfcn.h>
#include <sys/socket.h>

extern "C" const dtrain_tp_plugin_t dtrain_tp_plugin_tcp;

namespace dtrain::test {
namespace {

constexpr size_t words = 1 << 17;
constexpr size_t most = 30'011; // bytes that the socket takes at once: no multiple of a word

bool takes_little = false;

// All bytes of a word are equal, and others with each call.
void change(Bytes &data, uint8_t &byte) { std::ranges::fill(data, ++byte); }

void a_word_arrives_whole(void **) {
    Pair pair;
    Bytes sent(8 * words), got(8 * words);
    uint8_t byte = 0;
    change(sent, byte);
    takes_little = true;
    pair.b.recv(1, got, 1);
    pair.a.send(pair.to_b, 1, sent, 1);
    int changes = 0;
    assert_true(drive(pair.both(), [&] {
        change(sent, byte);
        changes++;
        return pair.b.take(DTRAIN_TP_RECV, 1);
    }));
    takes_little = false;
    size_t different = 0;
    for (size_t i = 0; i < words; i++) {
        const uint8_t *word = &got[8 * i];
        assert_true(std::all_of(word, word + 8, [&](uint8_t one) { return one == word[0]; }));
        different += i > 0 && word[0] != word[-1];
    }
    assert_true(changes > 2);
    assert_true(different > 0); // else the case shows nothing
}

// The frame that has begun is completed by a copy.
void a_send_can_be_withdrawn_within_a_word(void **) {
    constexpr size_t length = 8 * words;
    for (int rounds = 1; rounds < 20; rounds++) {
        Pair pair;
        const Bytes sent = pattern(length, 1), more = pattern(100, 2);
        Bytes got(length), got_more(100);
        takes_little = true;
        pair.b.recv(1, got, 1);
        pair.b.recv(2, got_more, 2);
        pair.a.send(pair.to_b, 1, sent, 1);
        drive_rounds(pair.both(), rounds);
        ops().withdraw(pair.a.dev, 1);
        pair.a.send(pair.to_b, 2, more, 2);
        await_ok(pair.both(), pair.b, DTRAIN_TP_RECV, 2);
        assert_true(got_more == more);
        drive_rounds(pair.both(), 100);
        takes_little = false;
        for (Node *node : pair.both()) assert_int_equal(node->count(DTRAIN_TP_PEER_LOST), 0);
    }
}

} // namespace
} // namespace dtrain::test

// As a socket whose buffer is full.
extern "C" ssize_t sendmsg(int fd, const msghdr *message, int flags) {
    static const auto real = reinterpret_cast<decltype(&sendmsg)>(dlsym(RTLD_NEXT, "sendmsg"));
    if (!dtrain::test::takes_little) return real(fd, message, flags);
    msghdr some = *message;
    std::vector<iovec> pieces(message->msg_iov, message->msg_iov + message->msg_iovlen);
    size_t room = dtrain::test::most;
    for (iovec &piece : pieces) {
        piece.iov_len = std::min(piece.iov_len, room);
        room -= piece.iov_len;
    }
    some.msg_iov = pieces.data();
    return real(fd, &some, flags);
}

int main() {
    using namespace dtrain::test;
    subject.plugin = &dtrain_tp_plugin_tcp;
    const CMUnitTest tests[] = {cmocka_unit_test(a_word_arrives_whole),
                                cmocka_unit_test(a_send_can_be_withdrawn_within_a_word)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
