// The lines of a pasted `nvidia-smi topo -m`, before any meaning is given to them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/base/result.hpp"

namespace rdmatune {

/// One device's row; a terminal may have broken it into several lines.
struct MatrixRow {
    int line = 0;  ///< where it begins, counted from 1
    std::string label;
    std::vector<std::string> cells;  ///< one for each device column that the line reaches
    std::string cpus;                ///< "0-23,48-71"; empty when there is no such column
    std::string numa;
};

struct MatrixText {
    int header_line = 0;
    std::vector<std::string> columns;           ///< device columns: GPU0, ..., NIC0 or mlx5_0
    std::vector<MatrixRow> rows;                ///< in the text's order
    std::map<std::string, std::string> legend;  ///< "NIC0" -> "mlx5_0"
    std::vector<std::string> notes;             ///< what a person should be told
};

/// Whether a word of the matrix is "GPU" and a number.
[[nodiscard]] bool isGpuLabel(std::string_view word);

/// Finds header, rows and the NIC legend. Text around them (a shell prompt, the legend of the
/// terms) is skipped, and so is what srun, pdsh or a log put in front of every line. Lines that a
/// terminal broke are joined. A header that was lost is made from the rows. Errors name file and
/// line: no header, a row that is twice there, a word that is no distance.
[[nodiscard]] Result<MatrixText> parseMatrixText(std::string_view text, const std::string& name);

}  // namespace rdmatune
