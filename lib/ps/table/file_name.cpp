// Escapes the names of tables for files.
// SPDX-License-Identifier: Apache-2.0
#include "ps/table/file_name.h"

#include <cstdio>

namespace dtrain::ps {

std::string escaped(const std::string &name) {
    std::string text;
    for (char c : name) {
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '_' || c == '-' || c == '.';
        char hex[4];
        std::snprintf(hex, sizeof hex, "%%%02X", static_cast<unsigned char>(c));
        if (plain)
            text += c;
        else
            text += hex;
    }
    return text;
}

} // namespace dtrain::ps
