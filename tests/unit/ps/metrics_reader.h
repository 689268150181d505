// Reads the text format of Prometheus, as far as servers write it, and finds what is wrong with it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
// gcc 12 finds that in its own <regex> under AddressSanitizer (its bug 105562).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <cstdint>
#include <map>
#include <optional>
#include <regex>
#include <sstream>
#include <string>

class MetricsReader {
  public:
    explicit MetricsReader(const std::string &text) {
        std::istringstream lines(text);
        for (std::string line; error_.empty() && std::getline(lines, line);)
            if (!read(line)) error_ = "not well-formed: " + line;
        if (error_.empty() && !described_.empty()) error_ = "no samples of " + described_;
    }
    const std::string &error() const { return error_; } // "" if there is none
    std::optional<uint64_t> value(const std::string &sample) const {
        const auto found = values_.find(sample);
        return found != values_.end() ? std::optional(found->second) : std::nullopt;
    }
    std::string type(const std::string &name) const {
        const auto found = types_.find(name);
        return found != types_.end() ? found->second : "";
    }

  private:
    bool read(const std::string &line) {
        static const std::regex help(R"(# HELP (dtrain_server_\w+) [A-Z].*\.)");
        static const std::regex type(R"(# TYPE (\w+) (counter|gauge|histogram))");
        static const std::regex sample(
            R"re((\w+)(\{\w+="(?:[^"\\]|\\.)*"(?:,\w+="(?:[^"\\]|\\.)*")*\}) (\d+))re");
        std::smatch parts;
        if (std::regex_match(line, parts, help)) {
            if (!described_.empty()) return false;
            described_ = parts[1];
            return types_.count(described_) == 0;
        }
        if (std::regex_match(line, parts, type)) {
            family_ = parts[1];
            const bool total = family_.ends_with("_total");
            if (family_ != described_ || (parts[2] == "counter") != total) return false;
            described_.clear();
            return types_.try_emplace(family_, parts[2]).second;
        }
        if (!described_.empty() || !std::regex_match(line, parts, sample)) return false;
        const std::string name = parts[1];
        const bool its = types_[family_] != "histogram"
                             ? name == family_
                             : name == family_ + "_bucket" || name == family_ + "_sum" ||
                                   name == family_ + "_count";
        return its && values_.try_emplace(name + parts[2].str(), std::stoull(parts[3])).second;
    }

    std::string error_, described_, family_; // the last HELP without a TYPE; the last TYPE
    std::map<std::string, std::string> types_;
    std::map<std::string, uint64_t> values_;
};
