// The timeline's parts: ring, lanes, text, file.
// SPDX-License-Identifier: Apache-2.0
#include "check.h"
#include "temporary_folder.h"
#include "trace/timeline.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace dtrain;
using namespace dtrain::trace;

namespace {

std::string read(const std::string &path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
}

size_t count(const std::string &text, const std::string &what) {
    size_t n = 0;
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) n++;
    return n;
}

void ring_drops_when_full_and_goes_on(void **) {
    Ring ring(4);
    Record record;
    assert_false(ring.take(record));
    for (uint64_t lap = 0; lap < 3; lap++) {
        for (uint64_t i = 0; i < 6; i++) assert_int_equal(ring.put({.bytes = 10 * lap + i}), i < 4);
        assert_int_equal(ring.dropped(), 2 * (lap + 1));
        for (uint64_t i = 0; i < 4; i++) {
            assert_true(ring.take(record));
            assert_int_equal(record.bytes, 10 * lap + i);
        }
        assert_false(ring.take(record));
    }
}

// Every record is taken whole and once, or counted as dropped.
void ring_with_many_threads(void **) {
    constexpr uint64_t threads = 4, each = 20000;
    Ring ring(256);
    std::vector<std::thread> putting;
    std::atomic<uint64_t> put{0};
    for (uint64_t t = 0; t < threads; t++)
        putting.emplace_back([&, t] {
            for (uint64_t i = 1; i <= each; i++)
                put += ring.put({.begin_ns = int64_t(i), .bytes = t, .call = i});
        });
    std::vector<uint64_t> last(threads);
    uint64_t taken = 0;
    Record record;
    auto take_all = [&] {
        while (ring.take(record)) {
            taken++;
            assert_int_equal(record.begin_ns, record.call);
            assert_true(record.call > last[record.bytes]); // of one thread, in order
            last[record.bytes] = record.call;
        }
    };
    while (taken + ring.dropped() < threads * each) take_all();
    for (std::thread &thread : putting) thread.join();
    assert_int_equal(taken, put.load());
    assert_int_equal(taken + ring.dropped(), threads * each);
}

void what_overlaps_lies_on_lanes_of_its_own(void **) {
    Lanes lanes;
    assert_int_equal(lanes.place(0, 10), 0);
    assert_int_equal(lanes.place(5, 15), 1);
    assert_int_equal(lanes.place(10, 20), 0);
    assert_int_equal(lanes.place(14, 21), 2);
    assert_int_equal(lanes.place(15, 22), 1);
    for (int i = 0; i < 100; i++) assert_true(lanes.place(0, 100) < Lanes::most);
}

void text_is_escaped(void **) {
    struct {
        const char *text, *wanted;
    } cases[] = {
        {"plain", "\"plain\""},
        {"a\"b\\c\n\x01", "\"a\\\"b\\\\c\\u000a\\u0001\""},
        {"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\""},
        {"\xff\xc3-\xc0\xaf\xed\xa0\x80", "\"\?\?-\?\?\?\?\?\""},
        {"\xe2\x82", "\"\?\?\""}};
    for (auto &c : cases) {
        std::string out;
        append_quoted(out, c.text);
        assert_string_equal(out.c_str(), c.wanted);
    }
}

void one_record(void **) {
    std::string out;
    append_record(out,
                  {.begin_ns = 1234567,
                   .end_ns = 1235072,
                   .name = "send",
                   .bytes = 9,
                   .call = 3,
                   .group = 2,
                   .peer = 1,
                   .track = Track::steps},
                  7, 101);
    assert_string_equal(
        out.c_str(), "{\"ph\":\"X\",\"name\":\"send\",\"pid\":7,\"tid\":101,\"ts\":1234.567,"
                     "\"dur\":0.505,\"args\":{\"bytes\":9,\"comm\":2,\"call\":3,\"peer\":1}},\n");
}

void file_names(void **) {
    assert_string_equal(Timeline::file_name("a/b", 3).c_str(), "a/b.3.json");
    assert_string_equal(Timeline::file_name("a%r/b.trace", 12).c_str(), "a12/b.trace");
}

void what_did_not_fit_is_counted_in_the_file(void **) {
    TemporaryFolder folder;
    Log log;
    Timeline timeline(log);
    std::string path = folder.file("t.5.json");
    assert_false(timeline.on());
    assert_int_equal(timeline.stop(), DTRAIN_ERR_STATE);
    Timeline::Params params = {.path = folder.file("t"), .rank = 5, .host = "h"};
    assert_int_equal(timeline.start(params), DTRAIN_OK);
    assert_true(timeline.on());
    assert_int_equal(timeline.start(params), DTRAIN_ERR_STATE);
    for (int i = 0; i < 70000; i++) timeline.record({.name = "x"});
    assert_int_equal(timeline.write_out(), 65536);
    std::string text = read(path);
    assert_int_equal(count(text, "\"name\":\"x\""), 65536);
    assert_int_equal(count(text, "\"records\":4464}"), 1);
    timeline.record({.name = "late"});
    assert_int_equal(timeline.stop(), DTRAIN_OK);
    assert_false(timeline.on());
    text = read(path);
    assert_int_equal(count(text, "\"late\""), 1);
    assert_string_equal(text.substr(text.size() - 5).c_str(), "}}\n]\n");
    // The next file begins anew.
    assert_int_equal(timeline.start(params), DTRAIN_OK);
    assert_int_equal(timeline.stop(), DTRAIN_OK);
    assert_int_equal(count(read(path), "\"records\":0}"), 1);
}

void collect(void *to, int32_t level, const char *line) {
    assert_int_equal(level, DTRAIN_LOG_WARN);
    static_cast<std::vector<std::string> *>(to)->push_back(line);
}

// Links are not followed, so not one to /dev/full: a file may have so many bytes.
void full_disk_ends_it_with_one_warning(void **) {
    TemporaryFolder folder;
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit before{};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const rlimit small = {64 << 10, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    Log log;
    std::vector<std::string> lines;
    log.set_sink(collect, &lines);
    Timeline timeline(log);
    assert_int_equal(timeline.start({.path = folder.file("t"), .host = ""}), DTRAIN_OK);
    for (int i = 0; i < 60000; i++) timeline.record({.name = "x"});
    timeline.write_out();
    assert_false(timeline.on());
    timeline.record({.name = "x"});
    assert_int_equal(timeline.write_out(), 0);
    assert_int_equal(lines.size(), 1);
    assert_non_null(strstr(lines[0].c_str(), "t.0.json\" ends here: File too large"));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

void names_are_bounded(void **) {
    Log log;
    Timeline timeline(log);
    const char *first = timeline.intern("name 0");
    for (size_t i = 0; i < Timeline::max_names; i++) timeline.intern("name " + std::to_string(i));
    assert_string_equal(timeline.intern("one more"), "...");
    assert_ptr_equal(timeline.intern("name 0"), first);
    assert_string_equal(first, "name 0");
}

} // namespace

int main() {
    const CMUnitTest tests[] = {
        cmocka_unit_test(ring_drops_when_full_and_goes_on),
        cmocka_unit_test(ring_with_many_threads),
        cmocka_unit_test(what_overlaps_lies_on_lanes_of_its_own),
        cmocka_unit_test(text_is_escaped),
        cmocka_unit_test(one_record),
        cmocka_unit_test(file_names),
        cmocka_unit_test(what_did_not_fit_is_counted_in_the_file),
        cmocka_unit_test(full_disk_ends_it_with_one_warning),
        cmocka_unit_test(names_are_bounded),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
