// A disk that may lose, at a crash, any of the changes that were not synced.
// SPDX-License-Identifier: Apache-2.0
//
// A file's changes are durable once the file was synced, a folder's (of names) once the folder was.
// Until then each of these is pending, and a crash keeps or loses it independently of all others:
//   - the part of a write that lies in one sector of 512 bytes;
//   - a file's growth to the end of such a part, where bytes that were lost read as zeros;
//   - the emptying of a file;
//   - the change of names by one call: create, rename (both names at once), link, remove,
//     make_folder, remove_folder.
// So a name may be durable before the content of its file, and a file may have any mixture of old
// sectors, new ones and zeros. Changes of one name or sector that are kept take effect in order.
#pragma once
#include "crash/disk_log.h"
#include "crash/tree.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace crash {

class DiskModel {
  public:
    static constexpr size_t sector = 512;

    // root: the folder, which is durable as it is.
    DiskModel(std::string root, const Tree &tree) : root_(std::move(root)) {
        add_node(true, "");
        for (const auto &[path, content] : tree) {
            const auto [folder, name] = place_of(root_ + "/" + path);
            const size_t node = add_node(!content.has_value(), content.value_or(""));
            nodes_[folder].names[name] = now_[folder].names[name] = node;
        }
    }

    size_t pending() const { return changes_.size(); }

    void apply(const DiskCall &call) {
        using Kind = DiskCall::Kind;
        switch (call.kind) {
        case Kind::create: return create(call);
        case Kind::write: return write(opened_.at(call.file), call.data);
        case Kind::sync: return sync(opened_.at(call.file));
        case Kind::close: opened_.erase(call.file); return;
        case Kind::rename: return rename(call);
        case Kind::link: return change_names(call.to, node_at(call.path));
        case Kind::make_folder: return change_names(call.path, add_node(true, ""));
        case Kind::remove:
        case Kind::remove_folder: return change_names(call.path, std::nullopt);
        case Kind::sync_folder: return sync(node_at(call.path));
        case Kind::other: throw std::logic_error("the model does not know it: " + call.path);
        }
    }

    // What the disk has after a crash that keeps these pending changes.
    Tree after_crash(const std::vector<bool> &kept) const {
        std::vector<Node> nodes = nodes_;
        for (size_t i = 0; i < changes_.size(); i++)
            if (kept[i]) changes_[i].make(nodes);
        return tree_of(nodes);
    }
    Tree now() const { return tree_of(now_); }

  private:
    struct Node { // a file or a folder
        bool is_folder = false;
        std::string bytes;                   // of a file; what is beyond its size counts not
        size_t size = 0;                     // of a file
        std::map<std::string, size_t> names; // of a folder
    };
    struct Change {
        size_t node;
        enum class Kind { data, growth, emptying, names } kind;
        size_t at = 0;    // data: its place; growth: the size
        std::string data; // data
        std::vector<std::pair<std::string, std::optional<size_t>>> names = {};

        void make(std::vector<Node> &nodes) const {
            Node &to = nodes[node];
            if (kind == Kind::emptying) to.bytes.clear(), to.size = 0;
            if (kind == Kind::growth) to.size = std::max(to.size, at);
            if (kind == Kind::data) {
                to.bytes.resize(std::max(to.bytes.size(), at + data.size()));
                to.bytes.replace(at, data.size(), data);
            }
            for (const auto &[name, target] : names)
                if (target)
                    to.names[name] = *target;
                else
                    to.names.erase(name);
        }
    };

    size_t add_node(bool is_folder, const std::string &content) {
        for (std::vector<Node> *nodes : {&nodes_, &now_})
            nodes->push_back({is_folder, content, content.size(), {}});
        return nodes_.size() - 1;
    }
    // The folder's node and the name in it.
    std::pair<size_t, std::string> place_of(const std::string &path) const {
        const size_t slash = path.rfind('/');
        return {node_at(path.substr(0, slash)), path.substr(slash + 1)};
    }
    size_t node_at(const std::string &path) const {
        if (path == root_) return 0;
        const auto [folder, name] = place_of(path);
        return now_[folder].names.at(name);
    }
    void add(Change change) {
        change.make(now_);
        changes_.push_back(std::move(change));
    }
    void change_names(const std::string &path, std::optional<size_t> target) {
        const auto [folder, name] = place_of(path);
        add({folder, Change::Kind::names, 0, {}, {{name, target}}});
    }
    void create(const DiskCall &call) {
        const auto [folder, name] = place_of(call.path);
        const auto there = now_[folder].names.find(name);
        if (there == now_[folder].names.end()) {
            opened_[call.file] = add_node(false, "");
            return change_names(call.path, opened_[call.file]);
        }
        opened_[call.file] = there->second;
        if (now_[there->second].size > 0) add({there->second, Change::Kind::emptying, 0, {}});
    }
    void write(size_t node, const std::string &data) {
        for (size_t done = 0; done < data.size();) {
            const size_t at = now_[node].size;
            const size_t bytes = std::min(data.size() - done, sector - at % sector);
            add({node, Change::Kind::growth, at + bytes, {}});
            add({node, Change::Kind::data, at, data.substr(done, bytes)});
            done += bytes;
        }
    }
    void rename(const DiskCall &call) {
        const auto [folder, from] = place_of(call.path);
        const auto [other, to] = place_of(call.to);
        if (folder != other) throw std::logic_error("the model moves nothing between folders");
        add({folder,
             Change::Kind::names,
             0,
             {},
             {{from, std::nullopt}, {to, now_[folder].names.at(from)}}});
    }
    void sync(size_t node) {
        for (const Change &change : changes_)
            if (change.node == node) change.make(nodes_);
        std::erase_if(changes_, [&](const Change &change) { return change.node == node; });
    }

    Tree tree_of(const std::vector<Node> &nodes) const {
        Tree tree;
        put(nodes, 0, "", tree);
        return tree;
    }
    static void put(const std::vector<Node> &nodes, size_t folder, const std::string &path,
                    Tree &tree) {
        for (const auto &[name, node] : nodes[folder].names) {
            auto &content = tree[path + name];
            if (nodes[node].is_folder) {
                put(nodes, node, path + name + "/", tree);
                continue;
            }
            content = nodes[node].bytes;
            content->resize(nodes[node].size);
        }
    }

    std::string root_;
    std::vector<Node> nodes_, now_; // as is durable, and as the running system sees it
    std::vector<Change> changes_;   // pending, in order
    std::map<int, size_t> opened_;  // by number of the opened file
};

} // namespace crash
