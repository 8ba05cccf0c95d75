// What crosses from a user's process to the plugin, from srun to the nodes, and into `rdma-tune
// task`.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "spank/text.hpp"
#include "tuner/binding/agreement.hpp"
#include "tuner/fabric/hostlist.hpp"
#include "tuner/task/report.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace rdmatune;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    (void)spank::parseMeasured(text);
    (void)spank::shownLines(text, 20);
    if (const auto reply = spank::parseTaskReply(text))
        for (const auto& [name, value] : reply->set)
            for (const char c : name + value)
                if (static_cast<unsigned char>(c) < 32) std::abort();
    if (const auto note = spank::StepNote::parse(text))
        if (spank::StepNote::parse(note->str()) != note) std::abort();
    if (const auto agreed = Agreement::parse(text))
        if (Agreement::parse(agreed->str()) != agreed) std::abort();
    if (size < 256) (void)fabric::expandHosts(text);
    if (const auto input = parseTaskInput(text)) (void)reportFromJson(input->report);
    (void)reportFromJson(text);
    return 0;
}
