// CRC-32 as in Ethernet, gzip and PNG: reflected polynomial 0xedb88320, initial value and final
// exclusive-or all ones (IEEE 802.3, clause 3.2.9). Bit by bit: a profile is 2 KB at most.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rdmatune {

[[nodiscard]] inline std::uint32_t crc32(const char* bytes, std::size_t length) {
    std::uint32_t crc = 0xffffffffU;
    for (std::size_t i = 0; i < length; ++i) {
        crc ^= static_cast<unsigned char>(bytes[i]);
        for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xedb88320U & (0U - (crc & 1U)));
    }
    return ~crc;
}

}  // namespace rdmatune
