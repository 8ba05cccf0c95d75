// What the readers of hwloc's and NCCL's XML share. Only for the .cpp files that include tinyxml2.
#pragma once

#include <tinyxml2.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tuner/base/result.hpp"
#include "tuner/topology/pci_kind.hpp"

namespace rdmatune {

/// An attribute's text, empty when there is no such attribute.
[[nodiscard]] inline std::string_view attribute(const tinyxml2::XMLElement& element,
                                                const char* name) {
    const char* value = element.Attribute(name);
    return value == nullptr ? std::string_view() : std::string_view(value);
}

/// A whole hexadecimal number with or without "0x".
[[nodiscard]] inline std::optional<std::uint64_t> parseHex(std::string_view text) {
    if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size())
        return std::nullopt;
    return value;
}

/// "FILE:LINE: <element> what".
[[nodiscard]] inline Error xmlProblem(const std::string& file, const tinyxml2::XMLElement& element,
                                      const std::string& what) {
    return Error{file + ':' + std::to_string(element.GetLineNum()) + ": <" +
                 printable(element.Name()) + "> " + what};
}

/// Parses `text` into `document` and gives its first element, which must be called `root`.
/// Elements nested deeper than tinyxml2's limit (100) are refused, so that readers may recurse.
[[nodiscard]] inline Result<const tinyxml2::XMLElement*> parseXml(tinyxml2::XMLDocument& document,
                                                                  std::string_view text,
                                                                  const std::string& file,
                                                                  const std::string& root) {
    if (document.Parse(text.data(), text.size()) != tinyxml2::XML_SUCCESS)
        return Error{file + ':' + std::to_string(document.ErrorLineNum()) +
                     ": not well-formed XML (" + document.ErrorName() + "); expected a whole <" +
                     root + "> file"};
    const tinyxml2::XMLElement* element = document.RootElement();
    if (element == nullptr || element->Name() != root)
        return Error{file + ": the first element is not <" + root + '>'};
    return element;
}

}  // namespace rdmatune
