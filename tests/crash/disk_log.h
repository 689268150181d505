// A record of the calls that change a disk or make changes durable.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace crash {

struct DiskCall {
    // create also empties a file that exists; `other` changes the disk in a way that the model
    // (disk_model.h) does not know.
    enum class Kind {
        create,
        write,
        sync,
        close,
        rename,
        link,
        remove,
        make_folder,
        remove_folder,
        sync_folder,
        other
    };
    Kind kind;
    int file = -1;        // create, write, sync, close: numbers the opened file
    std::string path, to; // absolute; `to` of rename and link
    std::string data;     // of write, which appends
};
using DiskLog = std::vector<DiskCall>;

inline bool syncs(const DiskCall &call) {
    return call.kind == DiskCall::Kind::sync || call.kind == DiskCall::Kind::sync_folder;
}

// "dir/name", for messages.
inline std::string tail_of(const std::string &path) {
    size_t slash = path.rfind('/');
    if (slash != 0 && slash != std::string::npos) slash = path.rfind('/', slash - 1);
    return slash == std::string::npos ? path : path.substr(slash + 1);
}

inline std::string describe(const DiskCall &call) {
    static constexpr const char *names[] = {"create",        "write",       "sync",   "close",
                                            "rename",        "link",        "remove", "make_folder",
                                            "remove_folder", "sync_folder", "other"};
    return std::string(names[size_t(call.kind)]) + " " + tail_of(call.path);
}

} // namespace crash
