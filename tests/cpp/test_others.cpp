// dtrain.hpp: groups, gradient queues, compression, graphs, memory, records.
// SPDX-License-Identifier: Apache-2.0
#include "ranks.hpp"
#include "temporary_folder.h"

#include <algorithm>
#include <fstream>
#include <iterator>

using namespace dtrain;
using namespace std::chrono_literals;

namespace {

void test_groups(void **) {
    run(3, 0, [](const Context &, const Communicator &comm) {
        const auto odd = comm.split(comm.rank() == 1 ? -1 : 0, -comm.rank());
        REQUIRE(bool(odd) == (comm.rank() != 1));
        if (odd) REQUIRE(odd->size() == 2 && odd->rank() == (comm.rank() == 2 ? 0 : 1));
        const auto pair = comm.subset(std::vector<int32_t>{2, 0});
        if (pair) REQUIRE(pair->rank() == (comm.rank() == 2 ? 0 : 1));
        const Communicator same = comm.duplicate();
        REQUIRE(same.rank() == comm.rank() && same.failed().empty());
        same.check();
    });
}

void test_gradients(void **) {
    run(2, 0, [](const Context &, const Communicator &comm) {
        const Gradients gradients =
            comm.gradients(GradientsParams().cycle(1ms).stall_warn(FOREVER));
        std::vector<float> a{1, 2}, b{4, float(comm.rank())};
        std::vector<Request> requests;
        const bool first = comm.rank() == 0;
        requests.push_back(gradients.start().submit(first ? "a" : "b", first ? a : b));
        requests.push_back(gradients.start().submit(first ? "b" : "a", first ? b : a));
        wait_all(requests);
        REQUIRE(a[1] == 2 && b[1] == 0.5f);
        const Result last = gradients.join();
        REQUIRE(last.peer >= 0 && gradients.stats().tensors == 2);
    });
}

void test_compression(void **) {
    run(2, 0, [](const Context &, const Communicator &comm) {
        const Compressor compressor =
            comm.compressor(CompressorParams(Compression::BF16, 8).feedback(false));
        std::vector<float> x(8, float(comm.rank()));
        compressor.allreduce(x, Op::SUM);
        REQUIRE(x[7] == 1);
        compressor.reset();
        REQUIRE(compressor.stats().operations == 1);
        THROWS(InvalidError, "8 f32, not 3 f32", compressor.allreduce(Output(x.data(), 3)));
    });
}

void test_graphs(void **) {
    run(3, 0, [](const Context &, const Communicator &comm) {
        const Graph ring = comm.graph(Topology::RING);
        REQUIRE(ring.in_neighbors().size() == 2 && ring.out_neighbors().size() == 2);
        double x[1] = {double(comm.rank())}, all[2];
        ring.allgather(x, all);
        ring.average(x);
        REQUIRE(x[0] > 0.99 && x[0] < 1.01 && ring.self_weight() > 0.3 &&
                ring.spectral_gap() > 0.9);
        const int next = (comm.rank() + 1) % 3;
        const Graph own = comm.graph(GraphParams({{next, 0.75}}, 0.25));
        REQUIRE(own.in_neighbors().begin()->first == next && own.self_weight() == 0.25);
    });
}

void test_memory(void **) {
    run(2, 0, [](const Context &context, const Communicator &comm) {
        const Memory memory = context.allocate(4096);
        const Span<float> x = memory.view<float>();
        x[0] = 1;
        comm.allreduce(x);
        REQUIRE(x.size() == 1024 && x[0] == 2);
        std::vector<float> mine(1024, 1);
        const Memory registered = context.register_memory(mine.data(), 4096);
        comm.allreduce(mine);
        REQUIRE(mine[5] == 2);
    });
}

void test_records(void **) {
    const TemporaryFolder folder;
    const std::string path = folder.file("records");
    RecordWriter writer(path);
    writer.append("one");
    writer.append("three");
    writer.close();
    RecordReader reader({path});
    REQUIRE(reader.next()->size() == 3);
    REQUIRE(reader.next()->size() == 5 && !reader.next());
    reader.rewind();
    REQUIRE(reader.next()->data()[0] == std::byte('o'));
    THROWS(NotFoundError, "nowhere", RecordReader({"/nowhere"}));
}

std::string text_of(const std::string &path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

void test_timeline(void **) {
    const TemporaryFolder folder;
    const Context context(test_options());
    const Communicator comm = context.join("env", JoinParams().size(1));
    THROWS(StateError, "", context.stop_timeline());
    THROWS(IoError, "", context.start_timeline(folder.name + "/none/line"));
    context.start_timeline(folder.name + "/line%r");
    THROWS(StateError, "", context.start_timeline(folder.name + "/second"));
    context.mark_timeline("epoch 7");
    comm.barrier();
    context.stop_timeline();
    REQUIRE(text_of(folder.name + "/line0").find("epoch 7") != std::string::npos);
}

void test_what_is_described(void **) {
    const Context context(test_options().set("accelerators", "none"));
    THROWS(UnsupportedError, "", context.allocate_on_device(16));
    THROWS(NotFoundError, "", context.device_stats(99));
    THROWS(UnsupportedError, "", context.device_stats(0)); // those that are built in do not count
    const std::vector<OptionInfo> options = describe_options();
    const auto timeout = std::find_if(options.begin(), options.end(), [](const OptionInfo &one) {
        return one.key == "op.timeout";
    });
    REQUIRE(timeout != options.end() && !timeout->initial.empty() && !timeout->about.empty());
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(test_groups),      cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_compression), cmocka_unit_test(test_graphs),
        cmocka_unit_test(test_memory),      cmocka_unit_test(test_records),
        cmocka_unit_test(test_timeline),    cmocka_unit_test(test_what_is_described)};
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
