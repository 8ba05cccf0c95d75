#include "tuner/topology/matrix_text.hpp"

#include <algorithm>
#include <cctype>
#include <set>

#include "tuner/base/cpu_set.hpp"
#include "tuner/base/text.hpp"
#include "tuner/topology/pci_kind.hpp"

namespace rdmatune {
namespace {

enum class Trailer { Cpus, Numa, Other };

/// Drops "ESC [ ... letter", with which nvidia-smi underlines its header.
std::string withoutColours(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\x1b') {
            out += text[i];
            continue;
        }
        if (i + 1 < text.size() && text[i + 1] == '[') {
            i += 2;
            while (i < text.size() && (text[i] < '@' || text[i] > '~')) ++i;
        }
    }
    return out;
}

std::vector<std::string> words(std::string_view line) {
    std::vector<std::string> out;
    std::string word;
    for (const char c : line) {
        if (c == ' ' || c == '\t' || c == '\r') {
            if (!word.empty()) out.push_back(std::move(word));
            word.clear();
        } else {
            word += c;
        }
    }
    if (!word.empty()) out.push_back(std::move(word));
    return out;
}

bool isNumbered(std::string_view word, std::string_view prefix) {
    return word.size() > prefix.size() && word.starts_with(prefix) &&
           std::ranges::all_of(word.substr(prefix.size()),
                               [](char c) { return c >= '0' && c <= '9'; });
}

/// X, PIX ... SYS, NV18, and what old or other versions print.
bool isCell(std::string_view word) {
    static const std::set<std::string_view> kWords = {"X",   "PIX", "PXB", "PHB", "NODE",
                                                      "SYS", "SOC", "NV",  "NVB", "N/A",
                                                      "-",   "ERR", "C2C", "PSB"};
    return kWords.contains(word) || isNumbered(word, "NV") || isNumbered(word, "XGMI");
}

/// A device's name as rdma-core or the kernel gives it: what old versions print as a column.
bool isDeviceName(std::string_view word) {
    return !word.empty() && std::ranges::all_of(word, [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
    });
}

/// Splits a header into device columns and what stands behind them; false for any other line.
bool parseHeader(const std::vector<std::string>& line, std::vector<std::string>& columns,
                 std::vector<Trailer>& trailers) {
    columns.clear();
    trailers.clear();
    std::size_t i = 0;
    for (; i < line.size() && line[i] != "CPU" && line[i] != "NUMA" && line[i] != "GPU"; ++i) {
        if (isCell(line[i]) || !isDeviceName(line[i])) return false;
        columns.push_back(line[i]);
    }
    if (columns.empty() || std::ranges::none_of(columns, isGpuLabel)) return false;
    for (; i < line.size(); ++i) {
        if (line[i] == "CPU") trailers.push_back(Trailer::Cpus);
        if (line[i] == "NUMA" && i > 0 && line[i - 1] != "GPU") trailers.push_back(Trailer::Numa);
        if (line[i] == "GPU") trailers.push_back(Trailer::Other);  // "GPU NUMA ID"
    }
    return true;
}

/// A row's words behind its device cells. A header that was cut may announce fewer than come:
/// nvidia-smi's order is CPU affinity, then NUMA affinity.
void readTrailers(const std::vector<std::string>& line, std::size_t from,
                  std::vector<Trailer> trailers, MatrixRow& row) {
    if (trailers.empty()) trailers.push_back(Trailer::Cpus);
    if (trailers.size() == 1 && trailers[0] == Trailer::Cpus) trailers.push_back(Trailer::Numa);
    for (std::size_t i = 0; i < trailers.size() && from + i < line.size(); ++i) {
        if (trailers[i] == Trailer::Cpus) row.cpus = line[from + i];
        if (trailers[i] == Trailer::Numa) row.numa = line[from + i];
    }
}

class Parser {
  public:
    Parser(std::string_view text, const std::string& name)
        : text_(withoutColours(text)), name_(name) {}

    Result<MatrixText> parse() {
        int number = 0;
        for (const std::string_view raw : split(text_, '\n')) {
            ++number;
            const std::vector<std::string> line = words(raw.substr(0, raw.find('#')));
            if (line.empty()) continue;
            if (Status status = parseLine(line, number); !status) return status.error();
        }
        if (matrix_.header_line == 0)
            return Error{name_ + ": no header line such as \"GPU0 GPU1 NIC0 CPU Affinity\" was " +
                         "found; expected the output of `nvidia-smi topo -m`, hwloc XML, NCCL "
                         "topology XML or the JSON of `rdma-tune topo --json`"};
        if (matrix_.rows.empty()) return problem(matrix_.header_line, "no rows follow this header");
        return std::move(matrix_);
    }

  private:
    [[nodiscard]] Error problem(int line, const std::string& what) const {
        return Error{name_ + ':' + std::to_string(line) + ": " + what};
    }

    Status parseLine(const std::vector<std::string>& line, int number) {
        if (line.size() >= 2 && line[1] == "Legend:" && line[0] == "NIC") {
            in_legend_ = true;
            return Done{};
        }
        if (in_legend_) {
            readLegend(line);
            return Done{};
        }
        if (matrix_.header_line == 0) {
            if (parseHeader(line, matrix_.columns, trailers_)) {
                matrix_.header_line = number;
                return checkColumns(number);
            }
            return Done{};
        }
        if (line[0] == "Legend:") after_rows_ = true;  // the terms; the NICs' may still come
        return after_rows_ ? Status(Done{}) : parseRow(line, number);
    }

    Status checkColumns(int number) {
        std::set<std::string_view> seen;
        for (const std::string& column : matrix_.columns)
            if (!seen.insert(column).second)
                return problem(number, "the column " + column + " is there twice");
        return Done{};
    }

    Status parseRow(const std::vector<std::string>& line, int number) {
        const auto& columns = matrix_.columns;
        if (std::ranges::find(columns, line[0]) == columns.end()) {
            if (line.size() > 1 && isCell(line[1]))
                return problem(number,
                               "the row \"" + printable(line[0]) + "\" has no column of that name");
            return Done{};  // a shell prompt, a remark
        }
        for (const MatrixRow& other : matrix_.rows)
            if (other.label == line[0])
                return problem(number, "the row " + line[0] + " is there twice, first in line " +
                                           std::to_string(other.line));
        MatrixRow row;
        row.line = number;
        row.label = line[0];
        std::size_t i = 1;
        for (; i < line.size() && row.cells.size() < columns.size(); ++i) {
            if (!isCell(line[i]))
                return problem(number, "\"" + printable(line[i]) +
                                           "\" stands where a distance to " +
                                           columns[row.cells.size()] +
                                           " should: expected X, PIX, PXB, PHB, NODE, SYS or NV#");
            row.cells.push_back(line[i]);
        }
        readTrailers(line, i, trailers_, row);
        matrix_.rows.push_back(std::move(row));
        return Done{};
    }

    /// "NIC0: mlx5_0"; anything else (a remark that the legend was cut) is no entry.
    void readLegend(const std::vector<std::string>& line) {
        if (line.size() < 2 || !line[0].ends_with(':') || !isDeviceName(line[1])) return;
        const std::string label = line[0].substr(0, line[0].size() - 1);
        if (isDeviceName(label)) matrix_.legend.emplace(label, line[1]);
    }

    std::string text_;
    const std::string& name_;
    MatrixText matrix_;
    std::vector<Trailer> trailers_;
    bool in_legend_ = false;
    bool after_rows_ = false;
};

}  // namespace

bool isGpuLabel(std::string_view word) {
    return isNumbered(word, "GPU");
}

Result<MatrixText> parseMatrixText(std::string_view text, const std::string& name) {
    return Parser(text, name).parse();
}

}  // namespace rdmatune
