// The ring of the shm transport: order, wrapping, and a peer that writes nonsense into its
// counters.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "shm/ring.h"

#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace {

using namespace dtrain::shm;

constexpr uint64_t capacity = 1024;

struct Fixture {
    std::unique_ptr<RingCounters> counters{new RingCounters{}};
    std::vector<std::byte> bytes{capacity};
    RingWriter writer{counters.get(), bytes.data(), capacity};
    RingReader reader{counters.get(), bytes.data(), capacity};
};

// Frames of random sizes: a length, then that many bytes counting up.
void write_frames(RingWriter &writer, std::mt19937 &random, int frames) {
    uint8_t next = 0;
    std::vector<uint8_t> data;
    while (frames-- > 0) {
        uint32_t len = static_cast<uint32_t>(random() % 300);
        data.resize(len);
        for (uint8_t &byte : data) byte = next++;
        while (!writer.has_room(ring_unit + len + ring_unit)) std::this_thread::yield();
        writer.write(&len, sizeof len);
        writer.pad();
        writer.write(data.data(), len);
        writer.pad();
        writer.publish();
    }
}

void read_frames(RingReader &reader, std::mt19937 &random, int frames) {
    uint8_t next = 0;
    std::vector<uint8_t> data;
    while (frames-- > 0) {
        uint32_t expected = static_cast<uint32_t>(random() % 300);
        while (reader.available() == 0) std::this_thread::yield();
        uint32_t len;
        reader.peek(len);
        assert_int_equal(len, expected);
        reader.advance(sizeof len);
        reader.pad();
        data.resize(len);
        reader.read(data.data(), len);
        reader.pad();
        for (uint8_t byte : data) assert_int_equal(byte, next++);
        reader.publish();
    }
    assert_true(reader.intact());
    assert_int_equal(reader.available(), 0);
}

void frames_arrive_in_order(void **) {
    Fixture ring;
    std::thread writer([&] {
        std::mt19937 random(1);
        write_frames(ring.writer, random, 20000);
    });
    std::mt19937 random(1);
    read_frames(ring.reader, random, 20000);
    writer.join();
    assert_true(ring.writer.intact());
}

void a_full_ring_has_no_room(void **) {
    Fixture ring;
    std::vector<uint8_t> data(capacity, 1);
    assert_true(ring.writer.has_room(capacity));
    ring.writer.write(data.data(), capacity);
    assert_int_equal(ring.reader.available(), 0); // not published
    ring.writer.publish();
    assert_int_equal(ring.reader.available(), capacity);
    assert_false(ring.writer.has_room(1));
    ring.reader.advance(ring_unit);
    assert_false(ring.writer.has_room(1)); // not published
    ring.reader.publish();
    assert_true(ring.writer.has_room(ring_unit));
    assert_false(ring.writer.has_room(ring_unit + 1));
}

void credit_is_counted(void **) {
    Fixture ring;
    ring.writer.charge(100);
    assert_int_equal(ring.writer.owed(), 100);
    ring.reader.release(60);
    ring.reader.publish();
    ring.writer.refresh();
    assert_int_equal(ring.writer.owed(), 40);
    assert_true(ring.writer.intact());
}

// What a reader may find in head after 512 bytes were written and 256 read.
void reader_disbelieves(void **) {
    for (uint64_t head : {uint64_t{0}, uint64_t{256}, uint64_t{500}, uint64_t{513},
                          256 + capacity + 16, ~uint64_t{0}, ~uint64_t{15}, uint64_t{1} << 63}) {
        Fixture ring;
        std::vector<uint8_t> data(512);
        ring.writer.write(data.data(), 512);
        ring.writer.publish();
        assert_int_equal(ring.reader.available(), 512);
        ring.reader.advance(256);
        ring.counters->head = head;
        ring.reader.refresh();
        assert_false(ring.reader.intact());
        assert_int_equal(ring.reader.left(), 256); // stays with what it knew
        ring.counters->head = 512;
        ring.reader.refresh();
        assert_false(ring.reader.intact()); // for good
    }
}

// What a writer may find in tail and released after it wrote 512 bytes, of which 256 were read, and
// is owed 100.
void writer_disbelieves(void **) {
    struct Lie {
        uint64_t tail, released;
    };
    for (Lie lie : {Lie{0, 0}, Lie{255, 0}, Lie{513, 0}, Lie{~uint64_t{0}, 0}, Lie{256, 101},
                    Lie{256, ~uint64_t{0}}}) {
        Fixture ring;
        std::vector<uint8_t> data(512);
        ring.writer.write(data.data(), 512);
        ring.writer.publish();
        ring.writer.charge(100);
        ring.counters->tail = 256;
        ring.writer.refresh();
        assert_true(ring.writer.intact());
        ring.counters->tail = lie.tail;
        ring.counters->released = lie.released;
        ring.writer.refresh();
        assert_false(ring.writer.intact());
        assert_int_equal(ring.writer.room(), capacity - 256);
        assert_int_equal(ring.writer.owed(), 100);
    }
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(frames_arrive_in_order), cmocka_unit_test(a_full_ring_has_no_room),
        cmocka_unit_test(credit_is_counted),      cmocka_unit_test(reader_disbelieves),
        cmocka_unit_test(writer_disbelieves),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
