// Answers of a launcher on the socket of PMI.
// SPDX-License-Identifier: Apache-2.0
//
// Input: whether this process is the first, how often it passes a text, then what the launcher
// says. An '@' stands for the answer that is due.
#include "tests/fuzz/fuzz.h"

#include "cluster/exchange/hex.h"
#include "cluster/exchange/pmi.h"

#include <sys/socket.h>
#include <unistd.h>

using namespace dtrain;
using namespace dtrain::cluster;
using fuzz::Bytes;

namespace {

constexpr const char *answers[] = {"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n",
                                   "cmd=my_kvsname kvsname=space\n",
                                   "cmd=put_result rc=0 msg=success\n",
                                   "cmd=barrier_out\n",
                                   "cmd=get_result rc=0 value=x61\n",
                                   "cmd=barrier_out\n",
                                   "cmd=get_result rc=0 msg=success value=x6263\n",
                                   "cmd=finalize_ack\n"};

// The answers in the place of '@'; the first process gets one to its `put`, too.
std::string said(const std::string &text, bool first) {
    std::string out;
    size_t next = 0;
    for (const char c : text) {
        if (c != '@' || next == std::size(answers)) {
            out += c;
            continue;
        }
        if (!first && next == 2) next++;
        out += answers[next++];
    }
    return out;
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz::Input in(data, size);
    const uint8_t how = in.byte();
    const bool first = how % 2 == 1;
    const Bytes rest = in.rest();
    const std::string all = said({rest.begin(), rest.end()}, first);
    int ends[2];
    FUZZ_REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    const ssize_t sent = ::send(ends[1], all.data(), all.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    FUZZ_REQUIRE(sent == ssize_t(all.size()) || all.empty());
    if (how < 128) (void)shutdown(ends[1], SHUT_WR); // else it is silent from now on
    {
        Pmi pmi(ends[0]);
        Status before = DTRAIN_OK;
        for (int round = 0; round < 1 + how / 2 % 3; round++) {
            std::string text = "place";
            const Status s = pmi.pass(first, text, 0);
            FUZZ_REQUIRE(before == DTRAIN_OK || s != DTRAIN_OK); // what is broken stays so
            std::string again;
            FUZZ_REQUIRE(s != DTRAIN_OK || (from_hex(to_hex(text), again) && again == text));
            before = s;
        }
    }
    close(ends[0]);
    close(ends[1]);
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    std::vector<Bytes> out;
    for (const uint8_t how : {0, 1, 2, 3})
        out.push_back(Made().byte(how).all(std::string_view("@@@@@@@@")));
    for (const char *text :
         {"", "@", "@@", "@@@@", "cmd=response_to_init rc=-1\n", "@cmd=my_kvsname\n",
          "@@cmd=barrier_out\ncmd=get_result rc=0 value=y61\n",
          "@@cmd=barrier_out\ncmd=get_result rc=0 value=x6\n",
          "@@cmd=barrier_out\ncmd=get_result rc=0 value=x6G\n", "no line"})
        out.push_back(Made().byte(2).all(std::string_view(text)));
    out.push_back(Made().byte(128).all(std::string_view("@@")));
    out.push_back(Made().byte(0).all(std::string(4100, 'x')));
    return out;
}
