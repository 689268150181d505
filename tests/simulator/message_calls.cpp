// SPDX-License-Identifier: Apache-2.0
#include "message_calls.h"

#include "program_memory.h"

#include <algorithm>
#include <numeric>

namespace dtrain::simulator {
namespace {

// Operations in flight, waited for in another order on each rank.
class InFlight {
  public:
    explicit InFlight(const Here &here) : here_(here) {}
    InFlight(const InFlight &) = delete;
    ~InFlight() {
        for (dtrain_request_t *request : requests_) dtrain_request_free(request);
    }
    dtrain_request_t **next() { return &requests_.emplace_back(); }
    bool posted(dtrain_status_t status, const char *call) {
        return good_ = good_ && here_.check(status, call);
    }
    bool wait(const char *call) {
        constexpr size_t stride =
            97; // a prime number above all counts, so it comes to each of them
        if (requests_.size() >= stride) fail_life("too many letters");
        here_.caller.begin();
        for (size_t i = 0; i < requests_.size(); i++) {
            dtrain_request_t *const request =
                requests_[(i * stride + size_t(here_.rank())) % requests_.size()];
            if (request != nullptr)
                good_ = here_.check(dtrain_request_wait(request, -1), call) && good_;
        }
        return good_;
    }

  private:
    const Here &here_;
    std::vector<dtrain_request_t *> requests_;
    bool good_ = true;
};

struct Letter {
    uint32_t tag;
    size_t count;
};
// The second waits for anybody; the first and the third keep their order.
constexpr uint32_t of_one = 100, of_anybody = 101;

void check_letter(const Here &here, const Data<int32_t> &got, int number, size_t count) {
    const auto from = std::ranges::find(here.caller.members, got[0] / 10);
    const bool good =
        from != here.caller.members.end() && got[0] % 10 == number &&
        std::all_of(got.begin(), got.begin() + long(count), [&](int32_t x) { return x == got[0]; });
    if (!good)
        fail_life("process %d: letter %d begins with %d", here.caller.process, number, got[0]);
}

} // namespace

bool exchange_mail(const Here &here, size_t count) {
    const std::vector<int> &members = here.caller.members;
    const size_t others = members.size() - 1;
    const Letter letters[] = {{of_one, count}, {of_anybody, count / 2 + 1}, {of_one, 3}};
    constexpr int kinds = std::size(letters);
    std::vector<Data<int32_t>> out, in;
    for (int k = 0; k < kinds; k++)
        out.emplace_back(letters[k].count, here.caller.process * 10 + k);
    for (size_t i = 0; i < others * kinds; i++) in.emplace_back(letters[i % kinds].count, -1);
    InFlight flight(here);
    here.caller.begin();
    bool good = true;
    const auto peer = [&](size_t i) { return int((size_t(here.rank()) + 1 + i) % members.size()); };
    const auto receive = [&](size_t i) {
        for (int k = 0; k < kinds && good; k++) {
            Data<int32_t> &into = in[i * kinds + size_t(k)];
            const int from = letters[k].tag == of_anybody ? DTRAIN_ANY_RANK : peer(i);
            good = flight.posted(dtrain_recv(here.comm, into.data(), into.size(), DTRAIN_I32, from,
                                             letters[k].tag, nullptr, flight.next()),
                                 "posting a receive");
        }
    };
    for (size_t i = 0; i < others / 2; i++) receive(i); // the others come unexpected
    for (size_t i = 0; i < others && good; i++)
        for (int k = 0; k < kinds && good; k++)
            good = flight.posted(dtrain_send(here.comm, out[size_t(k)].data(),
                                             out[size_t(k)].size(), DTRAIN_I32, peer(i),
                                             letters[k].tag, nullptr, flight.next()),
                                 "posting a send");
    for (size_t i = others / 2; i < others; i++) receive(i);
    if (!flight.wait("mail")) return false;
    std::vector<int> seen;
    for (size_t i = 0; i < in.size(); i++) {
        const int kind = int(i % kinds);
        check_letter(here, in[i], kind, letters[kind].count);
        if (letters[kind].tag == of_anybody)
            seen.push_back(in[i][0] / 10);
        else if (in[i][0] / 10 != members[size_t(peer(i / kinds))])
            fail_life("process %d: a letter of process %d came as another's", here.caller.process,
                      in[i][0] / 10);
    }
    std::ranges::sort(seen);
    if (std::ranges::adjacent_find(seen) != seen.end())
        fail_life("process %d: a letter came twice", here.caller.process);
    return true;
}

// What is sent once a receive is out of time belongs to the next one.
bool receive_too_early(const Here &here, size_t count) {
    constexpr uint32_t tag = 79;
    Caller &caller = here.caller;
    const auto size = int(caller.members.size());
    const int from = (here.rank() + 1) % size, to = (here.rank() + size - 1) % size;
    dtrain_op_params_t params;
    DTRAIN_INIT(&params);
    params.timeout_ns = 20 * ms;
    Data<int32_t> into(count, -1);
    const Data<int32_t> out(count, caller.process);
    caller.begin();
    const dtrain_status_t status =
        dtrain_recv(here.comm, into.data(), count, DTRAIN_I32, from, tag, &params, nullptr);
    if (status == DTRAIN_OK || into[0] != -1)
        fail_life("process %d: a receive of nothing has %d", caller.process, into[0]);
    if (status != DTRAIN_ERR_TIMEOUT) return here.check(status, "recv of what is not sent yet");
    caller.begin();
    if (!here.check(dtrain_barrier(here.comm, nullptr, nullptr), "barrier")) return false;
    InFlight flight(here);
    caller.begin();
    const bool good = flight.posted(dtrain_send(here.comm, out.data(), count, DTRAIN_I32, to, tag,
                                                nullptr, flight.next()),
                                    "posting a send") &&
                      flight.posted(dtrain_recv(here.comm, into.data(), count, DTRAIN_I32, from,
                                                tag, nullptr, flight.next()),
                                    "posting a receive");
    if (!flight.wait("recv once more") || !good) return false;
    if (std::ranges::count(into, caller.members[size_t(from)]) != long(count))
        fail_life("process %d: what is received once more is wrong", caller.process);
    return true;
}

bool mix_calls(const Here &here, size_t count) {
    Caller &caller = here.caller;
    const auto size = int(caller.members.size());
    const int next = (here.rank() + 1) % size, before = (here.rank() + size - 1) % size;
    Data<int64_t> sums(count, caller.process), all(size_t(size), -1);
    Data<int32_t> in(count / 2 + 1, -1);
    const Data<int32_t> out(in.size(), caller.process);
    const int64_t own = caller.process;
    InFlight flight(here);
    caller.begin();
    const bool good =
        flight.posted(dtrain_recv(here.comm, in.data(), in.size(), DTRAIN_I32, before, 80, nullptr,
                                  flight.next()),
                      "posting a receive") &&
        flight.posted(dtrain_allreduce(here.comm, sums.data(), sums.data(), count, DTRAIN_I64,
                                       DTRAIN_SUM, nullptr, flight.next()),
                      "posting allreduce") &&
        flight.posted(dtrain_send(here.comm, out.data(), out.size(), DTRAIN_I32, next, 80, nullptr,
                                  flight.next()),
                      "posting a send") &&
        flight.posted(
            dtrain_allgather(here.comm, &own, all.data(), 1, DTRAIN_I64, nullptr, flight.next()),
            "posting allgather") &&
        flight.posted(dtrain_barrier(here.comm, nullptr, flight.next()), "posting a barrier");
    if (!flight.wait("mixed calls") || !good) return false;
    const std::vector<int> &members = caller.members;
    const int64_t sum = std::accumulate(members.begin(), members.end(), int64_t{0});
    if (std::ranges::count(sums, sum) != long(count) ||
        std::ranges::count(in, members[size_t(before)]) != long(in.size()) ||
        !std::ranges::equal(all, members))
        fail_life("process %d: a result of mixed calls is wrong", caller.process);
    return true;
}

} // namespace dtrain::simulator
