// Tables of documents that are generated from descriptors. With DTRAIN_TEST_WRITE=1, as in
// ./dev generate, they are written.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "check.h"

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

inline std::string upper(std::string name) {
    for (char &c : name) c = char(std::toupper(c));
    return name;
}

// heading: the table's first two lines, which no other table of the page has.
inline void expect_table(const std::string &page, const std::string &heading,
                         const std::string &rows) {
    const std::string path = SOURCE_FOLDER "/" + page;
    std::stringstream read;
    read << std::ifstream(path).rdbuf();
    std::string text = read.str();
    const size_t begin = text.find(heading), end = text.find("\n\n", begin) + 1;
    if (begin == std::string::npos) fail_msg("%s has no table %s", page.c_str(), heading.c_str());
    if (text.substr(begin, end - begin) == heading + rows) return;
    if (std::getenv("DTRAIN_TEST_WRITE") == nullptr)
        fail_msg("%s: a table is not what the descriptors say: run ./dev generate", page.c_str());
    std::ofstream(path) << text.replace(begin, end - begin, heading + rows);
}
