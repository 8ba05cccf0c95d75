#include "tuner/topology/read.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "tuner/base/text.hpp"
#include "tuner/topology/formats.hpp"

namespace rdmatune {
namespace {

/// Large enough for the XML of any machine (a few MB at the very most).
constexpr std::size_t kLargestFile = std::size_t{64} << 20;

constexpr const char* kExpected =
    "expected hwloc XML (lstopo FILE.xml), NCCL topology XML (NCCL_TOPO_DUMP_FILE), the output of "
    "`nvidia-smi topo -m`, or `rdma-tune topo --json`";

/// Skips one "<!-- -->", "<? ?>" or "<! >" at the start; false when there is none, or no end.
bool skipMarkup(std::string_view& text) {
    constexpr std::pair<std::string_view, std::string_view> kSkipped[] = {
        {"<!--", "-->"}, {"<?", "?>"}, {"<!", ">"}};
    for (const auto& [open, close] : kSkipped) {
        if (!text.starts_with(open)) continue;
        const auto end = text.find(close, open.size());
        if (end == std::string_view::npos) return false;
        text = text.substr(end + close.size());
        return true;
    }
    return false;
}

/// The name of an XML text's first element; empty when there is none.
std::string_view rootElement(std::string_view text) {
    text = trim(text);
    while (skipMarkup(text)) text = trim(text);
    if (!text.starts_with('<')) return {};
    text.remove_prefix(1);
    return text.substr(0, text.find_first_of(" \t\r\n/>"));
}

}  // namespace

Result<Node> readTopologyText(std::string_view text, const std::string& name) {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"))
        return Error{name + ": UTF-16 text; save it as UTF-8 (`iconv -f utf-16 -t utf-8`)"};
    const std::string_view body = trim(text);
    if (body.empty()) return Error{name + ": the file is empty; " + kExpected};
    if (body.starts_with('{')) return nodeFromJson(text, name);
    if (!body.starts_with('<')) return readTopoMatrix(text, name);
    const std::string_view root = rootElement(body);
    if (root == "topology") return readHwlocXml(text, name);
    if (root == "system") return readNcclXml(text, name);
    return Error{name +
                 ": an XML file whose first element is neither <topology> (hwloc) nor "
                 "<system> (NCCL); " +
                 kExpected};
}

Result<Node> readTopologyFile(const std::string& path) {
    std::error_code error;
    if (std::filesystem::is_directory(path, error))
        return Error{path + ": this is a directory; " + kExpected};
    std::ifstream file(path, std::ios::binary);
    if (!file) return Error{path + ": cannot be opened: " + std::strerror(errno)};
    std::string text;
    std::array<char, 65536> chunk{};
    while (file.read(chunk.data(), chunk.size()) || file.gcount() > 0) {
        text.append(chunk.data(), static_cast<std::size_t>(file.gcount()));
        if (text.size() > kLargestFile) return Error{path + ": larger than 64 MB; " + kExpected};
    }
    if (file.bad()) return Error{path + ": cannot be read: " + std::strerror(errno)};
    return readTopologyText(text, path);
}

}  // namespace rdmatune
