// Collectives in shared memory, while the other ranks write anything, anywhere and at any time into
// their parts of the window (lib/collectives/window).
// SPDX-License-Identifier: Apache-2.0
//
// One rank makes calls, whose buffers have exactly the bytes that they need. The other one or two
// are the input: which rank calls, then steps. Memory that they share is the transport's, in a
// second process. Where one of two ranks writes into the other's memory by the kernel, that memory
// is this process's own, so nothing says that it is where it is not.
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/host_services.h"

#include "collectives/call/call.h"
#include "collectives/window/window_allreduce.h"
#include "collectives/window/window_exchange.h"
#include "collectives/window/window_transfer.h"
#include "memory/shared_pages.h"

#include <optional>
#include <unistd.h>

using namespace dtrain;
using namespace dtrain::collectives;
using fuzz::Bytes;
using fuzz::Made;

namespace {

enum class Act : uint8_t { call, header, counter, poke, introduce, work, post, wait, end, count };
enum class Says : uint8_t { nothing, shares, gives_address, raw, count };

constexpr uint32_t ranks = 3;
constexpr uint8_t two = 192;              // the first byte, from here on: of two ranks
constexpr uint64_t area_bytes = 12 << 10; // chunks of 1 KiB
constexpr uint64_t exchange_bytes = 256;  // larger sums are no exchange
constexpr uint64_t shared_bytes = 512 << 10;
constexpr int most_acts = 100, most_calls = 12, most_by_kernel = 2;
constexpr uint64_t fingerprint = 0x5eed;

// What a process has of the engine.
struct Process {
    Process() : agent(services.clock, services.log), mesh(agent) {
        std::vector<std::unique_ptr<transport::Device>> devices;
        FUZZ_REQUIRE(agent.open() == DTRAIN_OK);
        FUZZ_REQUIRE(transport::Device::open(services.host, "shm", services.options, devices) ==
                     DTRAIN_OK);
        FUZZ_REQUIRE(agent.add_device(std::move(devices.at(0))) == DTRAIN_OK);
    }
    transport::Device &device() { return *agent.devices().front(); }

    fuzz::HostServices services;
    engine::Agent agent;
    engine::Mesh mesh;
};

// The rank that calls, and a process of the others with memory that it shares. They are connected
// once, for all inputs.
struct Pair {
    Pair() {
        const std::vector<std::vector<engine::PeerAddress>> addresses(
            ranks, {{others.device().name(), others.device().address()}});
        FUZZ_REQUIRE(own.mesh.prepare(addresses, nullptr) == DTRAIN_OK);
        dtrain_tp_win_t *window = nullptr;
        FUZZ_REQUIRE(others.device().ops().window_create(others.device().dev(), shared_bytes,
                                                         memory::sharing_members, 0, shared.handle,
                                                         &window) == DTRAIN_OK);
        shared.bytes = shared_bytes;
        for (uint32_t member = 0; member < ranks; member++)
            for (bool up = false; !up; progress())
                own.agent.locked([&] { up = own.mesh.is_up(member, 0); });
    }
    void progress() {
        own.agent.work();
        others.agent.work();
    }
    static Pair &get() {
        static Pair *const pair = new Pair; // threads of the process may outlive its end
        return *pair;
    }

    Process own, others;
    SharedBuffers shared;
};

class Rank final : engine::OperationListener {
  public:
    Rank(uint32_t rank, uint32_t size) : rank_(rank % size), size_(size) {
        uint8_t handle[transport::Device::max_blob];
        Process &own = pair_.own;
        own.agent.locked([&] {
            FUZZ_REQUIRE(Window::create(own.device(), size_, area_bytes, tp::Distance::near, handle,
                                        window_) == DTRAIN_OK);
        });
        peers_.emplace(own.device(), own.mesh, std::span(members_).first(size_), *window_, rank_,
                       KernelCopies::if_possible, false, own.services.log);
    }
    ~Rank() {
        end();
        pair_.own.agent.locked([&] {
            peers_.reset();
            introduced_.clear();
            window_.reset();
        });
    }
    void run(fuzz::Input &in) {
        for (int i = 0; i < most_acts && !in.empty() && !failed_; i++) {
            act(in);
            for (uint32_t q = 0; q < size_ && operation_ != nullptr; q++)
                (void)operation_->waits_for(q);
        }
    }

  private:
    bool operation_started(engine::Operation &) override { return true; }
    void operation_stalled(engine::Operation &) override {}
    void operation_ended(engine::Operation &operation) override {
        FUZZ_REQUIRE(&operation == operation_);
    }
    void operation_failed(engine::Operation &operation, const engine::Outcome &outcome,
                          const char *text) override {
        FUZZ_REQUIRE(outcome.status < 0 && outcome.peer < int32_t(size_));
        failed_ = true;
        operation.fail(pair_.own.agent, outcome, text);
    }

    uint32_t other(fuzz::Input &in) const { return (rank_ + 1 + in.byte() % (size_ - 1)) % size_; }
    uint64_t end_position() const { return call_.position + call_.ring_bytes; }

    void act(fuzz::Input &in) {
        switch (Act(in.byte() % uint8_t(Act::count))) {
        case Act::call: return call(in);
        case Act::header: return write_header(in);
        case Act::counter: return write_counter(in);
        case Act::poke: return poke(in);
        case Act::introduce: return introduce(in);
        case Act::work:
            for (int i = in.byte() % 16; i >= 0 && operation_ != nullptr; i--) work();
            return;
        case Act::post: return post();
        case Act::wait: pair_.own.services.clock.now += int64_t{in.byte()} * 10 * ms; return;
        default: return end();
        }
    }

    // A call of every kind, in the way that a communicator chooses.
    void call(fuzz::Input &in) {
        if (operation_ != nullptr || calls_ == most_calls) return;
        Call made{.kind = Kind(in.byte() % kind_count), .dtype = DTRAIN_I32, .op = DTRAIN_SUM};
        const uint8_t how = in.byte();
        const auto count = uint64_t{in.take<uint16_t>()} % 20'000;
        const bool rooted = made.kind == Kind::reduce || made.kind == Kind::broadcast ||
                            made.kind == Kind::gather || made.kind == Kind::scatter;
        made.root = rooted ? how % int(size_) : -1;
        made.count = made.kind == Kind::barrier ? 0 : count;
        made.ragged = (how & 16) != 0 && made.kind != Kind::alltoall;
        if (made.ragged) {
            for (uint32_t q = 0; q < size_; q++)
                counts_[q] = count / (q + 1), displs_[q] = count * q;
            made.count = 0;
            made.counts = counts_;
            if ((how & 32) != 0) made.displs = displs_;
        }
        // Nobody looks there before the buffers are made, for which the checked call says how long
        // they are.
        made.send = reinterpret_cast<const void *>(uintptr_t{1} << 32);
        made.recv = reinterpret_cast<void *>(uintptr_t{2} << 32);
        if (check_call(made, int32_t(rank_), int32_t(size_), call_.spec) != DTRAIN_OK) return;
        if (over_limit(call_.spec)) return;
        const bool in_place = (how & 64) != 0 && made.kind == Kind::allreduce;
        send_.assign(in_place ? 0 : input_bytes(call_.spec), 1);
        recv_.assign(output_bytes(call_.spec), 2);
        made.send = in_place ? recv_.data() : send_.data(), made.recv = recv_.data();
        if (check_call(made, int32_t(rank_), int32_t(size_), call_.spec) != DTRAIN_OK) return;
        call_.window = window_.get();
        call_.send = made.send, call_.recv = made.recv;
        call_.dtype = made.dtype, call_.op = made.op;
        call_.fingerprint = fingerprint;
        call_.result_bytes = recv_.size();
        SharedBuffers own; // its own buffers need not be found: the others are not there
        if ((how & 128) != 0) own.bytes = UINT64_MAX;
        begin(made.ragged, own);
    }
    bool over_limit(const CollectiveSpec &spec) {
        return typical_bytes(spec) >= 64 << 10 && ++by_kernel_ > most_by_kernel;
    }
    void begin(bool ragged, const SharedBuffers &own) {
        const CollectiveSpec &spec = call_.spec;
        const Window &window = *window_;
        if (WindowExchange::suits(spec, ragged, window, exchange_bytes)) {
            reserve(WindowExchange::block_bytes(spec), 1);
            operation_ = new (*request_) WindowExchange(request_, call_, *this, false);
        } else if (WindowAllreduce::suits(spec)) {
            reserve(WindowAllreduce::block_bytes(spec, window),
                    WindowAllreduce::blocks(spec, window));
            operation_ =
                new (*request_) WindowAllreduce(request_, call_, own, *peers_, *this, false);
        } else if (WindowTransfer::suits(spec, ragged)) {
            reserve(WindowTransfer::block_bytes(spec, window),
                    WindowTransfer::blocks(spec, window));
            operation_ =
                new (*request_) WindowTransfer(request_, call_, own, *peers_, *this, false);
        }
        if (operation_ != nullptr) operation_->time_limit_ns = 10 * second;
    }
    void reserve(uint64_t block_bytes, uint64_t blocks) {
        request_ = engine::Request::create(0, nullptr, true);
        call_.number = ++calls_;
        call_.position = window_->reserve(block_bytes, blocks);
        call_.ring_bytes = block_bytes * blocks;
    }

    // What another rank says of its call: of this one, of a later one, or of any.
    void write_header(fuzz::Input &in) {
        const uint32_t q = other(in);
        const uint8_t which = in.byte();
        const uint64_t number = which == 255 ? in.take<uint64_t>() : calls_ + which % 8;
        Header &header = window_->flags(q).header(number);
        header.fingerprint = which % 64 == 63 ? fingerprint + 1 : fingerprint;
        Offer offer;
        switch (Says(in.byte() % uint8_t(Says::count))) {
        case Says::shares:
            offer.shared = pair_.shared;
            offer.shared.send = uint64_t{in.take<uint16_t>()} * 16;
            offer.shared.recv = in.byte() < 250 ? 0 : in.take<uint64_t>();
            break;
        case Says::gives_address: // a copy that fails takes 200 ms, to see whether the process ends
            offer.address = reinterpret_cast<uintptr_t>(remote().data());
            break;
        case Says::raw: {
            const Bytes bytes = in.bytes(sizeof offer);
            std::ranges::copy(bytes, reinterpret_cast<uint8_t *>(&offer));
            if (size_ == 2) offer.address = reinterpret_cast<uintptr_t>(remote().data());
            break;
        }
        default: break;
        }
        std::memcpy(header.data, &offer, sizeof offer);
        header.number.store(number);
    }
    static Bytes &remote() { // as long as what any call may read
        static Bytes memory(shared_bytes, 7);
        return memory;
    }
    void write_counter(fuzz::Input &in) {
        RankFlags &flags = window_->flags(other(in));
        const uint8_t which = in.byte(), how = in.byte();
        const uint64_t value = how == 255 ? in.take<uint64_t>() : end_position() - how;
        Counter *const all[] = {&flags.copied, &flags.reduced, &flags.released, &flags.given_up};
        if (which == 255) // as one that has done its part
            for (Counter *counter : {&flags.copied, &flags.reduced, &flags.released})
                counter->value.store(value);
        else
            all[which % std::size(all)]->value.store(which % std::size(all) == 3 ? how : value);
    }
    void poke(fuzz::Input &in) {
        const uint32_t q = other(in);
        const auto at = in.take<uint16_t>();
        const auto value = in.take<uint64_t>();
        if (size_ == 2 && at < sizeof(RankFlags::headers)) return; // an address
        if (at < sizeof(RankFlags))
            std::memcpy(reinterpret_cast<uint8_t *>(&window_->flags(q)) + at / 8 * 8, &value,
                        sizeof value);
        else
            std::memcpy(window_->at(q, at / 8 * 8), &value, sizeof value);
    }
    // As the other ranks do when they make the window, or not quite.
    void introduce(fuzz::Input &in) {
        const uint8_t how = in.byte();
        introduced_.clear();
        for (uint32_t q = 0; q < size_; q++) {
            if (q == rank_) continue;
            introduced_.push_back(std::make_unique<PeerProcesses>(*window_, size_, q, true));
            Introduction &one = window_->flags(q).introduction;
            if (how % 4 == 1) one.process = 0;
            if (how % 4 == 2)
                one.address = how < 128 ? 8 : window_->flags(rank_).introduction.address;
            if (how % 4 == 3) one.nonce[1]++;
        }
    }

    void work() {
        if (posted_) {
            pair_.progress();
            if (request_->done()) done();
            return;
        }
        switch (operation_->step()) {
        case WindowOperation::Step::done:
            operation_->dispose();
            request_->complete({.bytes = call_.result_bytes});
            return done();
        case WindowOperation::Step::idle:
        case WindowOperation::Step::moved: return;
        default: return post();
        }
    }
    void post() {
        if (operation_ == nullptr || std::exchange(posted_, true)) return;
        pair_.own.agent.post(operation_, true);
        if (request_->done()) done();
    }
    // Buffers that are freed show who uses them after that.
    void done() {
        Bytes().swap(send_);
        Bytes().swap(recv_);
        request_->release();
        operation_ = nullptr;
        posted_ = false;
    }
    void end() {
        if (operation_ == nullptr) return;
        post();
        if (operation_ == nullptr) return;
        failed_ = true;
        pair_.own.agent.locked([&] {
            operation_->unable(pair_.own.agent, DTRAIN_ERR_NO_MEMORY, "the input has ended");
        });
        FUZZ_REQUIRE(request_->done());
        done();
    }

    static constexpr uint32_t members_[ranks] = {0, 1, 2};
    Pair &pair_ = Pair::get();
    const uint32_t rank_, size_;
    std::unique_ptr<Window> window_;
    std::vector<std::unique_ptr<PeerProcesses>> introduced_;
    std::optional<PeerMemory> peers_;
    WindowCall call_;
    WindowOperation *operation_ = nullptr;
    engine::Request *request_ = nullptr;
    Bytes send_, recv_;
    uint64_t counts_[ranks], displs_[ranks];
    uint64_t calls_ = 0;
    int by_kernel_ = 0;
    bool posted_ = false, failed_ = false;
};

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz::Input in(data, size);
    const uint8_t first = in.byte();
    Rank(first % ranks, first < two ? ranks : 2).run(in);
    return 0;
}

namespace {

Made &begin(Made &made, Kind kind, uint8_t how, uint16_t count) {
    return made.byte(uint8_t(Act::call)).byte(uint8_t(kind)).byte(how).put(count);
}
void work(Made &made, uint8_t times = 15) { made.byte(uint8_t(Act::work)).byte(times); }
Made &header(Made &made, uint8_t who, Says says, uint8_t which = 0) {
    return made.byte(uint8_t(Act::header)).byte(who).byte(which).byte(uint8_t(says));
}
// One that has done its part.
void counters(Made &made, uint8_t who) {
    made.byte(uint8_t(Act::counter)).byte(who).byte(255).byte(0);
}
void shares(Made &made, uint8_t who) { header(made, who, Says::shares).put(uint16_t(4)).byte(0); }

} // namespace

std::vector<Bytes> fuzz::seeds() {
    std::vector<Bytes> out;
    for (uint8_t kind = 0; kind < kind_count; kind++) { // by exchange, pipeline and directly
        for (const uint16_t count : {5, 300, 9000}) {
            Made made;
            made.byte(kind % ranks);
            for (const uint8_t how : {0, 129, 18, 178}) {
                begin(made, Kind(kind), how, count);
                work(made, 2);
                for (const uint8_t who : {0, 1}) {
                    if (how == 129)
                        shares(made, who);
                    else
                        header(made, who, Says::nothing);
                    work(made, 1);
                    counters(made, who);
                    work(made);
                }
                for (int i = 0; i < 4; i++) work(made);
                made.byte(uint8_t(Act::post));
                for (int i = 0; i < 4; i++) work(made);
            }
            out.push_back(made);
        }
    }
    for (const Kind kind : {Kind::allgather, Kind::alltoall}) // by the kernel, in reach or not
        for (const uint8_t introduced : {0, 1, 2, 3}) {
            Made made;
            made.byte(0).byte(uint8_t(Act::introduce)).byte(introduced);
            begin(made, kind, 0, 17'000);
            work(made, 2);
            for (const uint8_t who : {0, 1}) header(made, who, Says::gives_address);
            for (int i = 0; i < 6; i++) work(made);
            for (const uint8_t who : {0, 1}) counters(made, who);
            for (int i = 0; i < 2; i++) work(made);
            out.push_back(made);
        }
    for (const Kind kind : {Kind::broadcast, Kind::scatter, Kind::gather}) // both of two copy
        for (const uint8_t root : {0, 1}) {
            Made made;
            made.byte(two).byte(uint8_t(Act::introduce)).byte(0);
            for (int i = 0; i < 2; i++) {
                begin(made, kind, root, 17'000);
                work(made, 2);
                header(made, 0, Says::gives_address);
                work(made);
                counters(made, 0);
                if (i == 1) made.byte(uint8_t(Act::post));
                for (int k = 0; k < 2; k++) work(made);
            }
            out.push_back(made);
        }
    Made many; // a header is used again, once all have read it
    many.byte(1);
    for (int i = 0; i < 11; i++) {
        begin(many, Kind::allreduce, 0, 5);
        work(many, 2);
        if (i > 8) counters(many, 0);
        for (const uint8_t who : {0, 1}) header(many, who, Says::nothing);
        work(many, 3);
    }
    out.push_back(many);
    Made ahead; // who only gives, as far as headers go
    ahead.byte(1);
    for (int i = 0; i < 8; i++) {
        begin(ahead, Kind::broadcast, 1, 5);
        work(ahead, 2);
    }
    for (const uint8_t who : {0, 1}) header(ahead, who, Says::nothing, 1);
    work(ahead, 2);
    ahead.byte(uint8_t(Act::end));
    out.push_back(ahead);
    Made far; // an offer that changes once it has been looked at
    far.byte(0);
    begin(far, Kind::allreduce, 128, 3000);
    work(far, 2);
    shares(far, 0);
    work(far, 1);
    header(far, 0, Says::shares).put(uint16_t(4)).byte(255).put(uint64_t{1} << 40);
    shares(far, 1);
    for (int i = 0; i < 4; i++) work(far);
    out.push_back(far);
    Made late; // nobody comes, and one has given up
    late.byte(1);
    begin(late, Kind::allreduce, 128, 3000);
    work(late, 2);
    for (const uint8_t who : {0, 1}) shares(late, who);
    late.byte(uint8_t(Act::counter)).byte(0).byte(3).byte(1).byte(uint8_t(Act::post));
    work(late);
    for (int i = 0; i < 5; i++) {
        late.byte(uint8_t(Act::wait)).byte(250);
        for (int k = 0; k < 5; k++) work(late);
    }
    out.push_back(late);
    Made differs;
    differs.byte(2);
    begin(differs, Kind::allgather, 0, 3000);
    header(differs, 0, Says::raw, 63).all(Bytes(sizeof(Offer), 0xff));
    header(differs, 1, Says::nothing, 63);
    for (int i = 0; i < 4; i++) work(differs);
    out.push_back(differs);
    return out;
}
