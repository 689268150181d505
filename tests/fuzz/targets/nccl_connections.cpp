// What another process says while NCCL's plugin listens to it or dials it, and after that: messages
// of any kind, in any order, with addresses that lead nowhere, and links that end.
// SPDX-License-Identifier: Apache-2.0
//
// The devices are the shm transport's, all in this process, where no address leads to another
// machine. Input: which side is real and how long it waits, then steps of the other one.
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/host_services.h"

#include "base/clock.h"
#include "nccl/dialer.h"
#include "nccl/listener.h"

#include <algorithm>
#include <array>
#include <optional>

using namespace dtrain;
using fuzz::Bytes;
using fuzz::Made;
using nccl::Rail;

namespace {

enum class Act : uint8_t {
    greet,
    welcome,
    ready,
    closed,
    data,
    raw,
    hang_up,
    work,
    receive,
    count
};
constexpr int most_acts = 60, most_rounds = 8;
constexpr int64_t long_enough = 3600 * second;
constexpr size_t room = 64; // of a receive

std::unique_ptr<transport::Device> open_device() {
    static fuzz::HostServices *const services = new fuzz::HostServices;
    std::vector<std::unique_ptr<transport::Device>> devices;
    FUZZ_REQUIRE(transport::Device::open(services->host, "shm", services->options, devices) ==
                 DTRAIN_OK);
    return std::move(devices.at(0));
}

Log &quiet_log() {
    static fuzz::HostServices services;
    return services.log;
}

class Sides {
  public:
    Sides(bool listens, int64_t patience_ns) {
        if (listens) {
            listener_.emplace(control_, rail_, quiet_log(), "own", patience_ns);
            uint8_t handle[nccl::handle_bytes];
            FUZZ_REQUIRE(listener_->open(handle) == DTRAIN_OK);
            FUZZ_REQUIRE(handle_.decode(handle) == DTRAIN_OK);
        } else {
            handle_.address = other_.device().address();
            handle_.listener = 5;
            dialer_.emplace(control_, rail_, handle_, "own",
                            monotonic_clock().now_ns() + patience_ns);
            attempt_ = dialer_->attempt();
            (void)dialer_->text();
        }
        const Rail::Lock lock = other_.lock();
        await(nccl::welcome_tag(attempt_), heard_);
    }
    // The connection ends before its peer does, which hears of it: otherwise it would wait.
    ~Sides() {
        rounds();
        comm_.reset();
        dialer_.reset();
        listener_.reset();
    }
    void run(fuzz::Input &in) {
        for (int i = 0; i < most_acts && !in.empty(); i++) act(in);
    }

  private:
    void act(fuzz::Input &in) {
        switch (Act(in.byte() % uint8_t(Act::count))) {
        case Act::greet: return greet(in);
        case Act::welcome: return welcome(in);
        case Act::ready: {
            const uint8_t how = in.byte();
            Bytes bytes = nccl::encode_ready(how % 4 == 3 ? 1 : 9);
            if (how % 4 == 2) bytes.pop_back();
            if (how % 4 == 1) bytes.push_back(0);
            return send(data_link_, rail_, nccl::ready_tag(number_), bytes);
        }
        case Act::closed:
            return send(data_link_, rail_, nccl::closed_tag(number_), Bytes(in.byte() % 4, 1));
        case Act::data: {
            const int tag = in.byte() % 2;
            return send(data_link_, rail_, nccl::data_tag(number_, tag), Bytes(in.byte(), 3));
        }
        case Act::raw: {
            static constexpr uint64_t kinds[] = {1, 2, uint64_t{2} << 30, uint64_t{3} << 30, 0};
            const uint64_t tag = kinds[in.byte() % std::size(kinds)] << 32 | in.byte();
            const bool control = in.byte() % 2 == 0;
            const Bytes bytes = in.bytes(in.byte());
            return control ? send(control_link_, control_, tag, bytes)
                           : send(data_link_, rail_, tag, bytes);
        }
        case Act::hang_up: return hang_up(in.byte() % 2 == 0 ? control_link_ : data_link_);
        case Act::receive: return receive(in.byte());
        default:
            for (int i = in.byte() % most_rounds; i >= 0; i--) round();
        }
    }

    // An address of the other side, or one that leads nowhere or is none.
    Bytes address(uint8_t how) const {
        Bytes out = other_.device().address();
        if (how % 8 == 1) out.back() = uint8_t(out.back() + 1); // nobody has this name
        if (how % 8 == 2) out.clear();
        if (how % 8 == 3) out.resize(500);
        if (how % 8 == 4) out[0]++;
        return out;
    }
    void greet(fuzz::Input &in) {
        const uint8_t how = in.byte(), where = in.byte();
        nccl::Hello hello;
        hello.attempt = attempt_;
        hello.transport = how % 4 == 1 ? "tcp" : "shm";
        hello.who = "other";
        hello.control = address(where);
        hello.data = address(where / 8);
        Bytes bytes = hello.encode();
        if (how % 4 == 2) change(bytes, in);
        if (how % 4 == 3) bytes.resize(nccl::most_message_bytes + in.byte());
        send(control_link_, control_, nccl::hello_tag(handle_.listener), bytes);
    }
    void welcome(fuzz::Input &in) {
        const uint8_t how = in.byte();
        nccl::Welcome welcome;
        welcome.status = how % 4 == 1 ? DTRAIN_ERR_CONFIG : DTRAIN_OK;
        welcome.number = number_ = 77;
        welcome.text = welcome.who = "other";
        welcome.data = address(in.byte());
        Bytes bytes = welcome.encode();
        if (how % 4 == 2) change(bytes, in);
        if (how % 4 == 3) bytes.resize(nccl::most_message_bytes + in.byte());
        send(control_link_, control_, nccl::welcome_tag(attempt_), bytes);
    }
    static void change(Bytes &bytes, fuzz::Input &in) {
        const uint8_t at = in.byte();
        bytes[at % bytes.size()] = uint8_t(bytes[at % bytes.size()] ^ in.byte());
    }

    void send(nccl::Link *&link, Rail &to, uint64_t tag, const Bytes &bytes) {
        {
            const Rail::Lock lock = other_.lock();
            if (link == nullptr) (void)other_.connect(to.device().address(), link);
        }
        for (int i = 0; i < most_rounds && link->state == nccl::Link::State::connecting; i++)
            round();
        const Rail::Lock lock = other_.lock();
        nccl::Operation *sent = nullptr;
        if (other_.send_copy(*link, tag, bytes, sent) == DTRAIN_OK) other_.release(sent);
    }
    void hang_up(nccl::Link *&link) {
        const Rail::Lock lock = other_.lock();
        if (link != nullptr) other_.disconnect(std::exchange(link, nullptr));
    }
    void await(uint64_t tag, nccl::Operation *&operation) {
        FUZZ_REQUIRE(other_.receive_some(tag, nccl::most_message_bytes, operation) == DTRAIN_OK);
    }
    // What the real side answers tells the number of its end.
    void hear() {
        if (!heard_->done) return;
        nccl::Welcome welcome;
        if (listener_ && heard_->status == DTRAIN_OK) {
            FUZZ_REQUIRE(welcome.decode(heard_->buffer.data(), heard_->bytes));
            FUZZ_REQUIRE(welcome.status == DTRAIN_OK || !welcome.text.empty());
            number_ = welcome.number;
        }
        other_.release(std::exchange(heard_, nullptr));
        await(nccl::welcome_tag(attempt_), heard_);
    }

    void round() {
        {
            const Rail::Lock lock = other_.lock();
            FUZZ_REQUIRE(other_.progress() == DTRAIN_OK);
            hear();
        }
        std::unique_ptr<nccl::Comm> made;
        if (listener_) {
            const Status s = listener_->step(made);
            FUZZ_REQUIRE(s == DTRAIN_OK || s == DTRAIN_ERR_TIMEOUT);
        } else if (dialer_ && dialer_->step(made) != DTRAIN_OK) {
            FUZZ_REQUIRE(*error_text() != 0 && made == nullptr);
            dialer_.reset(); // as NCCL does
        }
        if (made != nullptr && comm_ == nullptr) {
            comm_ = std::move(made);
            dialer_.reset();
        }
        test();
    }
    void rounds() {
        for (int i = 0; i < most_rounds; i++) round();
    }

    // On the connection that was made; a message may be longer than there is room.
    void receive(uint8_t tag) {
        if (comm_ == nullptr || request_ != nullptr || given_up_) return;
        const nccl::Buffer buffer{into_.data(), into_.size(), tag % 2, nullptr};
        given_up_ = comm_->post({&buffer, 1}, request_) != DTRAIN_OK;
    }
    void test() {
        if (request_ == nullptr || given_up_) return;
        bool done = false;
        int bytes = 0;
        given_up_ = comm_->test(*request_, done, &bytes) != DTRAIN_OK;
        if (!done) return;
        FUZZ_REQUIRE(bytes >= 0 && size_t(bytes) <= room);
        request_ = nullptr;
    }

    Bytes into_ = Bytes(room); // before what writes to it
    Rail other_{open_device()}, control_{open_device()}, rail_{open_device()};
    std::optional<nccl::Listener> listener_;
    std::optional<nccl::Dialer> dialer_;
    std::unique_ptr<nccl::Comm> comm_;
    nccl::Request *request_ = nullptr;
    bool given_up_ = false;
    nccl::Handle handle_;
    uint32_t attempt_ = 3, number_ = 0; // the number of the real side's end
    nccl::Link *control_link_ = nullptr, *data_link_ = nullptr;
    nccl::Operation *heard_ = nullptr;
};

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz::Input in(data, size);
    const uint8_t how = in.byte();
    Sides((how & 1) == 0, (how & 2) == 0 ? long_enough : 1).run(in);
    return 0;
}

std::vector<Bytes> fuzz::seeds() {
    std::vector<Bytes> out;
    const auto work = [](Made &made) { made.byte(uint8_t(Act::work)).byte(7); };
    const auto greet = [&](Made &made, uint8_t how = 0, uint8_t where = 0) {
        made.byte(uint8_t(Act::greet)).byte(how).byte(where);
        if (how % 4 == 2) made.byte(1).byte(0xff);
        if (how % 4 == 3) made.byte(1);
        for (int i = 0; i < 3; i++) work(made);
    };
    const auto welcome = [&](Made &made, uint8_t how = 0, uint8_t where = 0) {
        work(made);
        made.byte(uint8_t(Act::welcome)).byte(how).byte(where);
        if (how % 4 == 2) made.byte(0).byte(0xff);
        if (how % 4 == 3) made.byte(1);
        for (int i = 0; i < 3; i++) work(made);
    };
    for (const uint8_t ready : {0, 1, 2, 3}) { // accepted; messages that fit, and one that does not
        Made made;
        made.byte(0);
        greet(made);
        made.byte(uint8_t(Act::ready)).byte(ready);
        for (int i = 0; i < 2; i++) work(made);
        for (const uint8_t length : {20, 200}) {
            made.byte(uint8_t(Act::receive)).byte(0);
            made.byte(uint8_t(Act::data)).byte(0).byte(length);
            work(made);
        }
        made.byte(uint8_t(Act::closed)).byte(1);
        work(made);
        out.push_back(made);
    }
    for (const uint8_t how : {1, 2, 3}) { // refused, and no greetings
        Made made;
        made.byte(0);
        greet(made, how);
        greet(made);
        out.push_back(made);
    }
    for (const uint8_t where : {1, 2, 3, 4, 8, 16, 24, 32}) { // addresses
        Made made;
        made.byte(0);
        greet(made, 0, where);
        greet(made);
        out.push_back(made);
        Made dialed;
        dialed.byte(1);
        welcome(dialed, 0, where / 8 + where);
        out.push_back(dialed);
    }
    for (const uint8_t which : {0, 1}) { // ends in between
        Made made;
        made.byte(0);
        greet(made);
        made.byte(uint8_t(Act::data)).byte(0).byte(5).byte(uint8_t(Act::hang_up)).byte(which);
        work(made);
        work(made);
        out.push_back(made);
    }
    for (const uint8_t how : {0, 1, 2, 3}) { // dialed
        Made made;
        made.byte(1);
        welcome(made, how);
        work(made);
        made.byte(uint8_t(Act::closed)).byte(1);
        made.byte(uint8_t(Act::hang_up)).byte(0).byte(uint8_t(Act::hang_up)).byte(1);
        work(made);
        out.push_back(made);
    }
    for (const uint8_t late : {2, 3}) {
        Made made;
        made.byte(late);
        work(made);
        made.byte(uint8_t(Act::raw)).byte(0).byte(9).byte(0).byte(3).all(Bytes(3, 7));
        made.byte(uint8_t(Act::raw)).byte(4).byte(9).byte(1).byte(3).all(Bytes(3, 7));
        work(made);
        out.push_back(made);
    }
    return out;
}
