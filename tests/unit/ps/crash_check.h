// What must hold of a folder of checkpoints after a crash in the middle of a save.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "saver.h"

#include "crash/recording_disk.h"
#include "crash/tree.h"
#include "memory_disk.h"
#include "ps/checkpoint/row_file.h"
#include "ps/checkpoint/shard_file.h"
#include "ps/storage/gradual_copy.h"
#include "temporary_folder.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace dtrain::ps {

// All that a table on one server has, as it would write it.
inline std::string bytes_of(const StoredTable &table) {
    MemoryDisk disk;
    const std::unique_ptr<Image> image = table.parts[0]->begin_image();
    while (image->copy->advance(1 << 20) == GradualCopy::State::going) {
    }
    const RowImage *rows = image->as_rows();
    const Status s = rows != nullptr ? write_rows(disk, "", table.name, {}, *rows)
                                     : write_shard(disk, "", table.name, {}, *image->as_shard());
    assert_int_equal(s, DTRAIN_OK);
    table.parts[0]->end(*image->copy);
    return disk.written;
}

// The checkpoints of a folder by Manifest::id: the bytes of all tables that each has.
using Contents = std::map<uint64_t, std::string>;

// The tables of a job and how it saves them.
struct CrashedJob {
    uint32_t servers, keep;
    std::function<StoredTables(uint32_t servers)> all; // makes new, empty tables
    size_t saved;                                      // how many of these it saves
    uint64_t step;                                     // of the save in which it crashes
    // This save replaces a checkpoint, so one before that may be the newest for a moment.
    bool rolls_back = false;

    StoredTables tables() const {
        StoredTables made = all(servers);
        made.resize(saved);
        return made;
    }
    uint64_t last_step() const { return step + 2; } // of the saves after the crash
};

class CrashCheck {
  public:
    explicit CrashCheck(const CrashedJob &job) : job_(job) {}

    // Notes what is in a folder with these files before the save, and after it (if it was done
    // twice, after each). At last: and which files there are after the saves that follow.
    void expect(const crash::Tree &tree) {
        crash::write_tree(tree, scratch_.name);
        Contents contents;
        uint64_t newest = 0, last = 0;
        std::string why = look(contents, newest);
        if (why.empty()) why = go_on(last);
        if (!why.empty()) fail_msg("%s", why.c_str());
        if (newest_.empty()) first_ = must_stay_ = contents;
        must_stay_ = common(must_stay_, contents);
        last_ = contents;
        known_.merge(contents);
        newest_.push_back(newest);
        files_ = files_of(scratch_.name);
    }
    // What is not so in a folder with these files, or "".
    std::string operator()(const crash::Tree &tree, bool all_done) const {
        crash::write_tree(tree, scratch_.name);
        return check(all_done);
    }

  private:
    std::string path() const { return scratch_.file("checkpoints"); }
    static Contents common(const Contents &a, const Contents &b) {
        Contents both;
        for (const auto &[id, bytes] : a)
            if (b.contains(id)) both[id] = bytes;
        return both;
    }
    // Of any lineage: if nothing was saved before, the next job begins one.
    static std::set<std::string> files_of(const std::string &path) {
        std::set<std::string> files;
        for (const auto &[name, content] : crash::read_tree(path))
            files.insert(name.substr(0, name.find("/lineage-")));
        return files;
    }
    // Restores each complete checkpoint. newest: of the job's tables; 0: none.
    std::string look(Contents &contents, uint64_t &newest) const {
        crash::RecordingDisk disk;
        Saver reader(path(), disk, job_.keep, 1);
        std::vector<Manifest> all;
        if (reader.list(all) != DTRAIN_OK) return error_text();
        for (const Manifest &manifest : all) {
            std::string &bytes = contents[manifest.id];
            for (const auto &table : job_.all(1)) {
                if (manifest.find(table->name) == nullptr) continue;
                if (reader.read(*table, manifest) != DTRAIN_OK) return error_text();
                bytes += bytes_of(*table);
            }
        }
        Manifest chosen;
        if (reader.restore_any(job_.tables(), chosen) != DTRAIN_OK) return error_text();
        newest = chosen.id;
        return "";
    }
    bool may_be_newest(uint64_t id, bool all_done) const {
        if (id == newest_.back()) return true;
        return !all_done && (std::find(newest_.begin(), newest_.end(), id) != newest_.end() ||
                             (job_.rolls_back && first_.contains(id)));
    }
    std::string check(bool all_done) const {
        Contents contents;
        uint64_t newest = 0, last = 0;
        if (std::string why = look(contents, newest); !why.empty()) return why;
        for (const auto &[id, bytes] : contents)
            if (!known_.contains(id) || known_.at(id) != bytes) return "another content";
        for (const auto &[id, bytes] : all_done ? last_ : must_stay_)
            if (!contents.contains(id)) return "a checkpoint that is kept is gone";
        if (!may_be_newest(newest, all_done))
            return all_done ? "what was saved is not the newest" : "another one is the newest";
        const std::string saved = newest == 0 ? "" : contents.at(newest);
        if (std::string why = go_on(last); !why.empty()) return "the next save: " + why;
        contents.clear();
        if (std::string why = look(contents, newest); !why.empty()) return why;
        if (newest != last) return "the next save is not the newest";
        if (!saved.empty() && contents.at(last) != saved)
            return "the next save has another content";
        for (const std::string &file : files_of(scratch_.name))
            if (!files_.contains(file)) return "it stays: " + crash::tail_of(file);
        return "";
    }
    // Another job restores the newest checkpoint and saves up to the last step.
    std::string go_on(uint64_t &last) const {
        crash::RecordingDisk disk;
        Saver saver(path(), disk, job_.keep, 2);
        const StoredTables tables = job_.tables();
        Manifest at;
        if (saver.restore_any(tables, at) != DTRAIN_OK) return error_text();
        for (uint64_t step = at.step + 1; step <= job_.last_step(); step++)
            if (saver.save(tables, step) != DTRAIN_OK) return error_text();
        if (saver.restore(tables, at) != DTRAIN_OK) return error_text();
        last = at.id;
        return "";
    }

    CrashedJob job_;
    Contents first_, last_, known_, must_stay_;
    std::vector<uint64_t> newest_; // that may be; the last one: what was saved
    std::set<std::string> files_;  // after the saves that follow
    TemporaryFolder scratch_{"/dev/shm"};
};

} // namespace dtrain::ps
