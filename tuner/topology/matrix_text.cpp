#include "tuner/topology/matrix_text.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <span>

#include "tuner/base/text.hpp"
#include "tuner/topology/matrix_words.hpp"
#include "tuner/topology/pci_kind.hpp"

namespace rdmatune {
namespace {

enum class Trailer { Cpus, Numa, Other };

using Words = std::span<const std::string>;

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

/// Whether these words are a row's: a device, then a distance.
bool isRow(Words words) {
    return words.size() > 1 && isDeviceName(words[0]) && !isCell(words[0]) && isCell(words[1]);
}

/// The device columns at the start, first GPUs, then NICs; empty where no header begins.
std::vector<std::string> headerColumns(Words words) {
    std::vector<std::string> columns;
    for (const std::string& word : words) {
        if (word == "CPU" || word == "NUMA" || word == "GPU") break;
        const bool gpu_after_nic =
            isGpuLabel(word) && !columns.empty() && !isGpuLabel(columns.back());
        if (isCell(word) || !isDeviceName(word) || gpu_after_nic) return {};
        if (columns.empty() && !isGpuLabel(word)) return {};
        columns.push_back(word);
    }
    return columns;
}

/// What stands behind the device columns.
std::vector<Trailer> headerTrailers(Words words) {
    std::vector<Trailer> out;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (words[i] == "CPU") out.push_back(Trailer::Cpus);
        if (words[i] == "NUMA" && (i == 0 || words[i - 1] != "GPU")) out.push_back(Trailer::Numa);
        if (words[i] == "GPU") out.push_back(Trailer::Other);  // "GPU NUMA ID"
    }
    return out;
}

/// A row's words behind its device cells. A header that was cut may announce fewer than come:
/// nvidia-smi's order is CPU affinity, then NUMA affinity.
void readTrailers(Words words, std::vector<Trailer> trailers, MatrixRow& row) {
    if (trailers.empty()) trailers.push_back(Trailer::Cpus);
    if (trailers.size() == 1 && trailers[0] == Trailer::Cpus) trailers.push_back(Trailer::Numa);
    for (std::size_t i = 0; i < trailers.size() && i < words.size(); ++i) {
        if (trailers[i] == Trailer::Cpus) row.cpus = words[i];
        if (trailers[i] == Trailer::Numa) row.numa = words[i];
    }
}

class Parser {
  public:
    Parser(std::string_view text, const std::string& name)
        : lines_(matrixLines(text)), name_(name) {}

    Result<MatrixText> parse() {
        if (!findHeader() && !headerFromRows()) {
            if (isAmds())
                return Error{name_ +
                             ": rocm-smi's and amd-smi's topology shows no NICs; save the "
                             "machine with `lstopo --whole-io FILE.xml` instead"};
            if (const int line = lonelyHeader())
                return problem(line,
                               "no rows with distances (X, PIX, SYS, NV18 ...) follow this header");
            return Error{name_ + ": no header line such as \"GPU0 GPU1 NIC0 CPU Affinity\" was " +
                         "found; expected the output of `nvidia-smi topo -m`, hwloc XML, NCCL "
                         "topology XML or the JSON of `rdma-tune topo --json`"};
        }
        std::set<std::string_view> seen;
        for (const std::string& column : matrix_.columns)
            if (!seen.insert(column).second)
                return problem(matrix_.header_line, "the column " + column + " is there twice");
        for (; at_ < lines_.size(); ++at_)
            if (Status status = readLine(); !status) return status.error();
        if (Status status = finishRow(); !status) return status.error();
        return std::move(matrix_);
    }

  private:
    [[nodiscard]] Error problem(int line, const std::string& what) const {
        return Error{name_ + ':' + std::to_string(line) + ": " + what};
    }

    /// A line's words behind what was put in front of all lines ("node7:", a time stamp).
    [[nodiscard]] Words wordsAt(std::size_t line) const {
        const Words words(lines_[line].words);
        return words.subspan(std::min(skip_, words.size()));
    }

    /// The first line that begins with a GPU and is followed by a row. It may be broken: then the
    /// lines up to the first row continue it.
    bool findHeader() {
        constexpr std::size_t kMostSkipped = 4;  // "2026-03-01 10:11:12 node7 :"
        constexpr std::size_t kMostPieces = 12;  // 20 devices in lines of 20 characters
        for (std::size_t i = 0; i < lines_.size(); ++i)
            for (skip_ = 0; skip_ < kMostSkipped && skip_ < lines_[i].words.size(); ++skip_) {
                if (!isGpuLabel(lines_[i].words[skip_])) continue;
                std::vector<std::string> header;
                for (std::size_t j = i; j < lines_.size() && j < i + kMostPieces; ++j) {
                    if (otherTag(i, j)) continue;
                    const Words words = wordsAt(j);
                    if (j > i && isRow(words)) {
                        if (!takeHeader(header)) break;
                        matrix_.header_line = lines_[i].number;
                        setTag(i, j);
                        at_ = j;
                        return true;
                    }
                    if (j > i && headerColumns(words).size() == words.size() &&
                        isGpuLabel(words.empty() ? "" : words[0]) && words[0] == header[0])
                        break;  // the same header once more
                    header.insert(header.end(), words.begin(), words.end());
                }
                break;
            }
        skip_ = 0;
        return false;
    }

    /// `rocm-smi --showtopo` and `amd-smi topology`.
    [[nodiscard]] bool isAmds() const {
        return std::ranges::any_of(lines_, [](const MatrixLine& line) {
            const std::string words = join(line.words, " ");
            return words.find("ROCm System Management") != std::string::npos ||
                   words.find("between two GPUs") != std::string::npos ||
                   words.starts_with("WEIGHT TABLE");
        });
    }

    /// The number of a line that is a header without rows; 0: none.
    [[nodiscard]] int lonelyHeader() const {
        for (const MatrixLine& line : lines_) {
            const auto columns = headerColumns(line.words);
            if (columns.size() > 1 && (isGpuLabel(columns[1]) || isNumbered(columns[1], "NIC")))
                return line.number;
        }
        return 0;
    }

    bool takeHeader(const std::vector<std::string>& header) {
        matrix_.columns = headerColumns(header);
        trailers_ = headerTrailers(Words(header).subspan(matrix_.columns.size()));
        return !matrix_.columns.empty();
    }

    /// Whether two lines are of different tasks or nodes, by a tag such as "0:" or "node7:".
    [[nodiscard]] bool otherTag(std::size_t a, std::size_t b) const {
        if (skip_ == 0 || lines_[b].words.empty()) return false;
        const std::string& mine = lines_[a].words[0];
        return mine.ends_with(':') && lines_[b].words[0] != mine;
    }

    void setTag(std::size_t header, std::size_t row) {
        if (skip_ == 0 || lines_[header].words[0] != lines_[row].words[0]) return;
        tag_ = lines_[header].words[0];
    }

    /// From rows alone: each has its X where its own column is, and GPUs count up.
    bool headerFromRows() {
        std::size_t width = 0;
        std::vector<std::string> columns;
        for (std::size_t i = 0; i < lines_.size(); ++i) {
            const Words words(lines_[i].words);
            if (!isRow(words)) continue;
            const Words rest = words.subspan(1);
            const auto end = std::ranges::find_if_not(rest, isCell);
            const Words cells = rest.first(static_cast<std::size_t>(end - rest.begin()));
            const auto self = std::ranges::find(cells, "X");
            if (width == 0) {
                width = cells.size();
                columns.resize(width);
                at_ = i;
                matrix_.header_line = lines_[i].number;
            }
            if (cells.size() != width || self == cells.end()) return false;
            columns[static_cast<std::size_t>(self - cells.begin())] = words[0];
        }
        if (width < 2 || !nameLostGpus(columns)) return false;
        matrix_.columns = std::move(columns);
        matrix_.notes.emplace_back(
            "The header line is missing: the columns are taken from the rows.");
        return true;
    }

    /// Rows may be lost with the header: the first GPUs' names follow from the first one's.
    static bool nameLostGpus(std::vector<std::string>& columns) {
        for (std::size_t i = columns.size(); i-- > 0;)
            if (columns[i].empty()) {
                const bool next_is_gpu = i + 1 < columns.size() && isGpuLabel(columns[i + 1]);
                const auto next = next_is_gpu
                                      ? parseInt<int>(std::string_view(columns[i + 1]).substr(3))
                                      : std::nullopt;
                if (!next || *next < 1) return false;
                columns[i] = "GPU" + std::to_string(*next - 1);
            }
        return isGpuLabel(columns.front());
    }

    Status readLine() {
        if (!tag_.empty() && lines_[at_].words[0] != tag_) return Done{};
        const Words words = wordsAt(at_);
        if (words.empty()) return Done{};
        if (secondMatrix(words)) {
            at_ = lines_.size();
            return finishRow();
        }
        if (words.size() >= 2 && words[0] == "NIC" && words[1] == "Legend:") {
            in_legend_ = true;
            return finishRow();
        }
        if (in_legend_) {
            readLegend(words);
            return Done{};
        }
        if (words[0] == "Legend:") after_rows_ = true;  // the terms; the NICs' may still come
        if (after_rows_) return finishRow();
        return readRowPiece(words);
    }

    /// Another node's matrix in the same paste: only the first is of interest.
    bool secondMatrix(Words words) {
        if (words.size() < 2 || words[0] != matrix_.columns[0] || !isGpuLabel(words[0]) ||
            isCell(words[1]) || headerColumns(words).empty())
            return false;
        matrix_.notes.push_back("A second matrix begins in line " +
                                std::to_string(lines_[at_].number) + "; it is not used.");
        return true;
    }

    Status readRowPiece(Words words) {
        const auto& columns = matrix_.columns;
        const bool begins = std::ranges::find(columns, words[0]) != columns.end();
        if (!begins && open_ && continues(words)) {
            open_words_.insert(open_words_.end(), words.begin(), words.end());
            return Done{};
        }
        if (Status status = finishRow(); !status) return status;
        if (begins) {
            open_ = true;
            open_line_ = lines_[at_].number;
            open_words_.assign(words.begin(), words.end());
        } else if (isRow(words)) {
            return problem(lines_[at_].number,
                           "the row \"" + printable(words[0]) + "\" has no column of that name");
        }
        return Done{};  // a shell prompt, a remark
    }

    /// Whether a line is the rest of a row that a terminal broke.
    [[nodiscard]] bool continues(Words words) const {
        if (open_words_.size() <= matrix_.columns.size()) return isCell(words[0]);
        const bool digits = std::isdigit(static_cast<unsigned char>(words[0][0])) != 0;
        return open_words_.size() <= matrix_.columns.size() + trailers_.size() &&
               (digits || words[0] == "N/A");
    }

    /// Makes a row of the words that were collected for it.
    Status finishRow() {
        if (!open_) return Done{};
        open_ = false;
        const auto& columns = matrix_.columns;
        MatrixRow row;
        row.line = open_line_;
        row.label = open_words_[0];
        for (const MatrixRow& other : matrix_.rows)
            if (other.label == row.label)
                return problem(row.line, "the row " + row.label +
                                             " is there twice, first in line " +
                                             std::to_string(other.line));
        std::size_t i = 1;
        for (; i < open_words_.size() && row.cells.size() < columns.size(); ++i) {
            if (!isCell(open_words_[i]))
                return problem(row.line,
                               "\"" + printable(open_words_[i]) + "\" stands where a distance to " +
                                   columns[row.cells.size()] +
                                   " should: expected X, PIX, PXB, PHB, NODE, SYS or NV#");
            row.cells.push_back(open_words_[i]);
        }
        readTrailers(Words(open_words_).subspan(i), trailers_, row);
        matrix_.rows.push_back(std::move(row));
        return Done{};
    }

    /// "NIC0: mlx5_0"; anything else (a remark that the legend was cut) is no entry.
    void readLegend(Words words) {
        if (words.size() < 2 || !words[0].ends_with(':') || !isDeviceName(words[1])) return;
        const std::string label = words[0].substr(0, words[0].size() - 1);
        if (isDeviceName(label)) matrix_.legend.emplace(label, words[1]);
    }

    std::vector<MatrixLine> lines_;
    const std::string& name_;
    MatrixText matrix_;
    std::vector<Trailer> trailers_;
    std::size_t at_ = 0;    ///< the line that is read
    std::size_t skip_ = 0;  ///< words in front of every line
    std::string tag_;       ///< the first of these words, where all lines of one node have it
    bool open_ = false;     ///< whether a row is being collected
    int open_line_ = 0;
    std::vector<std::string> open_words_;
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
