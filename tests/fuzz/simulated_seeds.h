// Whole jobs for the seeds of the control protocol's target: lost processes, groups, cuts, lies and
// next generations.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tests/fuzz/simulated_job.h"

namespace dtrain::fuzz {

inline Made &add(Made &made, Happens what, std::initializer_list<uint8_t> fields = {}) {
    return made.byte(uint8_t(what)).all(fields);
}
inline void wait(Made &made, uint8_t tenths) { add(made, Happens::time, {tenths, 1}); }

// A job that has joined; shape: workers - 1, and 4 for a server, 128: elastic.
inline Made joined(uint8_t shape) {
    Made made;
    made.byte(128).byte(shape);
    add(made, Happens::start_all);
    wait(made, 10);
    return made;
}

inline void add_simulated(std::vector<Bytes> &out) {
    for (const uint8_t shape : {2, 7, 130, 135}) {
        const uint8_t last = uint8_t(shape % 4);
        for (const Happens lost : {Happens::crash, Happens::stop, Happens::leave})
            for (const uint8_t who : {uint8_t{0}, last}) { // the others shrink the group
                Made made = joined(shape);
                add(made, lost, {who});
                if (lost != Happens::stop) made.byte(0);
                wait(made, 20);
                for (uint8_t n = 0; n <= last; n++) add(made, Happens::group, {n, 0, 15, 200, 0});
                wait(made, 30);
                if (lost == Happens::stop) add(made, Happens::resume, {who});
                wait(made, 20);
                out.push_back(made);
            }
        Made groups = joined(shape); // two at once, one of which not all ask for
        for (uint8_t n = 0; n <= last; n++) add(groups, Happens::group, {n, 1, 7, 100, 0});
        for (uint8_t n = 0; n < last; n++) add(groups, Happens::group, {n, 1, 7, 50, 1});
        wait(groups, 30);
        for (uint8_t n = 0; n <= last; n++) add(groups, Happens::calls, {n, 7, 1, 8});
        wait(groups, 2);
        for (uint8_t n = 0; n <= last; n++) add(groups, Happens::calls, {n, 7, 3, uint8_t(n)});
        add(groups, Happens::relay, {0, last, 1, 1, 2, 3, 4, 5, 6, 7, 8});
        wait(groups, 10);
        out.push_back(groups);
        Made cuts = joined(shape); // one way, then both, longer than a timeout
        add(cuts, Happens::cut, {0, last});
        wait(cuts, 30);
        add(cuts, Happens::heal, {0, last});
        for (uint8_t n = 1; n <= last; n++)
            add(cuts, Happens::cut, {0, n}), add(cuts, Happens::cut, {n, 0});
        wait(cuts, 40);
        for (uint8_t n = 1; n <= last; n++)
            add(cuts, Happens::heal, {0, n}), add(cuts, Happens::heal, {n, 0});
        wait(cuts, 40);
        out.push_back(cuts);
        Made late; // rank 0 comes last, and a process twice
        late.byte(128).byte(shape);
        for (uint8_t n = last; n > 0; n--) add(late, Happens::start, {n}), wait(late, 3);
        add(late, Happens::crash, {last, 0});
        wait(late, 5);
        add(late, Happens::restart, {last});
        add(late, Happens::start_all);
        wait(late, 120);
        out.push_back(late);
        for (uint8_t kind = 0; kind < std::variant_size_v<wire::Message>; kind++) {
            Made lies = joined(shape);
            for (const uint8_t who : {uint8_t{0}, last}) {
                add(lies, Happens::lie, {who, 1, kind, 3, 1, 2, 0, 1, 0, 0, 0, 0});
                wait(lies, 5);
            }
            out.push_back(lies);
        }
    }
    for (const uint8_t how : {0, 1, 8, 128})
        for (const bool coordinator_dies : {false, true}) { // the next generation, with newcomers
            Made made = joined(135);
            for (const uint8_t role : {0, 0, 1}) add(made, Happens::come, {0, role});
            wait(made, 5);
            for (uint8_t n = 0; n <= 3; n++) {
                add(made, Happens::reform, {n, 15, 200, uint8_t(n == 1 ? how : 0)});
                if (coordinator_dies && n == 2) add(made, Happens::crash, {0, 1});
            }
            wait(made, 40);
            add(made, Happens::leave, {2, 1});
            wait(made, 20);
            out.push_back(made);
        }
}

} // namespace dtrain::fuzz
