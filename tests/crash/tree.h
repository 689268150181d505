// What is in a folder: taken from a disk, and put on one.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>

namespace crash {

// By path below the folder: the content of a file; nothing: a folder.
using Tree = std::map<std::string, std::optional<std::string>>;

inline Tree read_tree(const std::string &root) {
    Tree tree;
    for (const auto &entry : std::filesystem::recursive_directory_iterator(root)) {
        auto &content = tree[entry.path().lexically_relative(root).string()];
        if (entry.is_directory()) continue;
        std::ifstream in(entry.path(), std::ios::binary);
        content.emplace(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
    return tree;
}

// Differs for different trees, unless two of a hundred thousand meet in 64 bits.
inline size_t fingerprint(const Tree &tree) {
    std::string all;
    for (const auto &[path, content] : tree) {
        all += path + '\0';
        all += content ? std::to_string(content->size()) + ':' + *content : "/";
    }
    return std::hash<std::string>()(all);
}

// Replaces what is in the folder.
inline void write_tree(const Tree &tree, const std::string &root) {
    for (const auto &entry : std::filesystem::directory_iterator(root))
        std::filesystem::remove_all(entry.path());
    for (const auto &[path, content] : tree) // a folder comes before what is in it
        if (content)
            std::ofstream(root + "/" + path, std::ios::binary) << *content;
        else
            std::filesystem::create_directory(root + "/" + path);
}

} // namespace crash
