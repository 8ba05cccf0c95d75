// The words of a pasted text's lines, without what terminals, mails and web pages add to them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rdmatune {

struct MatrixLine {
    int number = 0;  ///< counted from 1
    std::vector<std::string> words;
};

/// All lines that have words. Dropped: colour codes, also those that lost their escape character
/// on the way ("[4m"), "#" comments, quote marks and table bars at any place, every kind of blank
/// that Unicode has. A text whose line ends were written as "\n" (a log's JSON) is taken apart.
[[nodiscard]] std::vector<MatrixLine> matrixLines(std::string_view text);

}  // namespace rdmatune
