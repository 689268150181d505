// A save whose calls of the disk are recorded, and the crashes in the middle of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "crash_check.h"

#include "crash/states.h"

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace dtrain::ps {

// The calls of a save, by who makes them: the worker, each server, the worker again.
struct SaveLog {
    std::vector<crash::DiskLog> turns;

    // Servers write side by side: their calls come in a random order, each server's in its own.
    crash::DiskLog merged(uint64_t seed) const {
        std::mt19937_64 random(seed);
        crash::DiskLog all = turns.front();
        std::vector<size_t> order; // of servers
        for (size_t s = 1; s + 1 < turns.size(); s++) order.insert(order.end(), turns[s].size(), s);
        std::shuffle(order.begin(), order.end(), random);
        std::vector<size_t> next(turns.size());
        for (size_t s : order) all.push_back(turns[s][next[s]++]);
        all.insert(all.end(), turns.back().begin(), turns.back().end());
        return all;
    }
};

struct Effort {
    crash::Extent extent;
    uint64_t seed;
    uint64_t one_in; // of the states, at random, is checked
};

class Scenario {
  public:
    using Change = std::function<crash::DiskLog(const crash::DiskLog &)>;

    // prepare() brings the folder into the state before the save; the tables then hold what will be
    // saved.
    Scenario(const CrashedJob &job,
             const std::function<void(Saver &, const StoredTables &)> &prepare)
        : job_(job) {
        crash::RecordingDisk disk;
        Saver saver(path(), disk, job.keep, 1);
        const StoredTables tables = job.all(job.servers);
        prepare(saver, tables);
        before_ = crash::read_tree(folder_.name);
        log_ = save(saver, disk, {tables.begin(), tables.begin() + ptrdiff_t(job.saved)}, job.step);
        after_ = crash::read_tree(folder_.name);
        // If nothing is lost, the model has what the disk has.
        assert_true(now(log_.merged(1)) == after_);
    }

    crash::DiskLog log(uint64_t seed) const { return log_.merged(seed); }

    // The power goes in the middle of the save, with these calls. What is not so then, or "".
    std::string lose_power(const crash::DiskLog &log, const Effort &effort,
                           crash::Counts &counts) const {
        CrashCheck check(job_);
        check.expect(before_);
        check.expect(after_);
        return check_states(log, 0, effort, check, counts);
    }
    // The saving processes are killed after the first `killed` calls. Others restore the newest
    // checkpoint and save it again; meanwhile, or later, the power goes. change(): of what these
    // others call, for planted faults.
    std::string lose_power_after_kill(
        const crash::DiskLog &first, size_t killed, const Effort &effort, crash::Counts &counts,
        const Change &change = [](const auto &same) { return same; }) const {
        crash::DiskLog log(first.begin(), first.begin() + ptrdiff_t(killed));
        const crash::Tree left = now(log);
        CrashCheck check(job_);
        check.expect(before_);
        check.expect(left);
        crash::write_tree(left, folder_.name);
        crash::RecordingDisk disk;
        Saver saver(path(), disk, job_.keep, 2);
        const StoredTables tables = job_.tables();
        Manifest at;
        if (saver.restore_any(tables, at) != DTRAIN_OK) return error_text();
        for (const crash::DiskCall &call :
             change(save(saver, disk, tables, at.step + 1).merged(effort.seed)))
            log.push_back(call);
        check.expect(crash::read_tree(folder_.name));
        return check_states(log, killed, effort, check, counts);
    }

  private:
    std::string path() const { return folder_.file("checkpoints"); }
    crash::Tree now(const crash::DiskLog &log) const {
        crash::DiskModel model(folder_.name, before_);
        for (const crash::DiskCall &call : log) model.apply(call);
        return model.now();
    }
    static SaveLog save(Saver &saver, crash::RecordingDisk &disk, const StoredTables &tables,
                        uint64_t step) {
        SaveLog log;
        disk.take();
        const auto note = [&] { log.turns.push_back(disk.take()); };
        if (saver.save(tables, step, note) != DTRAIN_OK) fail_msg("%s", error_text());
        note();
        return log;
    }
    std::string check_states(const crash::DiskLog &log, size_t from, const Effort &effort,
                             const CrashCheck &check, crash::Counts &counts) const {
        std::mt19937_64 random(effort.seed);
        const auto some = [&](const crash::Tree &tree, bool all_done) -> std::string {
            if (random() % effort.one_in != 0) return "";
            counts.checked++;
            return check(tree, all_done);
        };
        return crash::check_states(folder_.name, before_, log, from, effort.extent, effort.seed,
                                   some, counts);
    }

    CrashedJob job_;
    TemporaryFolder folder_{"/dev/shm"};
    crash::Tree before_, after_;
    SaveLog log_;
};

} // namespace dtrain::ps
