// What the NCCL tuner costs: a call per collective, and once per communicator.
#include <benchmark/benchmark.h>

#include <cstdlib>

#include "tests/unit/model/cases.hpp"
#include "tuner/nccl/communicator.hpp"

namespace rdmatune {
namespace {

using model::Collective;
using model::Table;

void useProfile(std::uint32_t nodes) {
    char text[kProfileTextMax];
    if (formatProfile(model::profileOf(nodes, 12, 40, 50), text, sizeof text) != 0)
        setenv("RDMA_TUNE_PROFILE", text, 1);
}

void getCollInfo(benchmark::State& state, Collective what) {
    useProfile(16);
    nccl::Communicator* const communicator = nccl::open(128, 16, nullptr, nullptr, nullptr);
    const auto bytes = static_cast<std::size_t>(state.range(0));
    const Table own = model::tableOf(model::shapeOf({128, 16}, 8, 50), what, bytes);
    for (auto _ : state) {
        Table table = own;
        nccl::priceTable(communicator, static_cast<int>(what), bytes, 1,
                         reinterpret_cast<float**>(table.data()), model::kAlgorithms,
                         model::kProtocols);
        benchmark::DoNotOptimize(table);
    }
    nccl::close(communicator);
}
BENCHMARK_CAPTURE(getCollInfo, allreduce, Collective::AllReduce)
    ->Arg(1 << 10)
    ->Arg(1 << 20)
    ->Arg(3 << 25);
BENCHMARK_CAPTURE(getCollInfo, allgather, Collective::AllGather)->Arg(1 << 20);
BENCHMARK_CAPTURE(getCollInfo, broadcast, Collective::Broadcast)->Arg(1 << 20);

void standAside(benchmark::State& state) {
    Table table;
    for (auto _ : state) {
        nccl::priceTable(nullptr, 4, 1 << 20, 1, reinterpret_cast<float**>(table.data()), 7, 3);
        benchmark::DoNotOptimize(table);
    }
}
BENCHMARK(standAside);

void init(benchmark::State& state) {
    useProfile(16);
    for (auto _ : state) {
        nccl::Communicator* const communicator = nccl::open(128, 16, nullptr, nullptr, nullptr);
        benchmark::DoNotOptimize(communicator);
        nccl::close(communicator);
    }
}
BENCHMARK(init)->Unit(benchmark::kMicrosecond);

void parse(benchmark::State& state) {
    char text[kProfileTextMax];
    if (formatProfile(model::profileOf(16, 12, 40, 50), text, sizeof text) == 0) return;
    FabricProfile profile;
    for (auto _ : state) benchmark::DoNotOptimize(parseProfile(text, profile));
}
BENCHMARK(parse)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace rdmatune

BENCHMARK_MAIN();
