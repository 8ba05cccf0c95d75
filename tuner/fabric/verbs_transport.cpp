// Verbs over the rails of a request.
#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <deque>

#include "tuner/base/text.hpp"
#include "tuner/binding/agreement.hpp"
#include "tuner/fabric/transport.hpp"
#include "tuner/fabric/verbs_error.hpp"
#include "tuner/fabric/verbs_link.hpp"
#include "tuner/fabric/verbs_rail.hpp"

namespace rdmatune::fabric {
namespace {

constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

/// How GPU memory was reached on the rails so far.
struct GpuWay {
    ProfileGdr gdr = ProfileGdr::NotTried;
    std::string reason;
};

/// Gives the rail a stream buffer in GPU memory; false (with why in `way`) where that cannot be.
bool streamOnGpu(VerbsRail& rail, const Result<CudaDriver>& driver,
                 const VerbsRequest::Rail& wanted, GpuWay& way) {
    const auto no = [&](const std::string& why) {
        // One rail without GPUDirect RDMA is what a collective would run into: it decides.
        way.gdr = ProfileGdr::No;
        way.reason = why;
        return false;
    };
    if (!driver) return no(driver.error().message);
    if (wanted.gpu_pci.empty()) return no(rail.port.label + ": no GPU belongs to this HCA");
    Result<GpuBuffer> buffer = GpuBuffer::allocate(*driver, wanted.gpu_pci, 2 * kStreamHalf);
    if (!buffer) return no(buffer.error().message);
    Result<GpuRegistration> registered = registerGpuMemory(*buffer, rail.port.domain.get());
    if (!registered) return no(rail.port.label + ": " + registered.error().message);
    rail.gpu.emplace(std::move(buffer.value()));
    rail.stream = std::move(registered->region);
    if (way.gdr != ProfileGdr::No && way.gdr != ProfileGdr::Peermem) {
        way.gdr = registered->by_dmabuf ? ProfileGdr::Dmabuf : ProfileGdr::Peermem;
        way.reason = registered->reason;
    }
    return true;
}

Status streamOnHost(VerbsRail& rail) {
    rail.host = HostBuffer(2 * kStreamHalf);
    if (rail.host.data() == nullptr) return Error{rail.port.label + ": out of memory"};
    errno = 0;
    rail.stream.reset(
        ibv_reg_mr(rail.port.domain.get(), rail.host.data(), rail.host.size(), kAccess));
    if (!rail.stream) return verbsError(rail.port.label, "registering memory", errno);
    return Done{};
}

class VerbsTransport final : public Transport {
  public:
    VerbsTransport(std::deque<VerbsRail> rails, GpuWay way)
        : rails_(std::move(rails)), way_(std::move(way)) {}

    ProfileTransport kind() const override {
        return rails_.front().port.hca.link_layer == LinkLayer::Ethernet
                   ? ProfileTransport::Roce
                   : ProfileTransport::InfiniBand;
    }
    ProfileGdr gdr() const override { return way_.gdr; }
    std::string gdrReason() const override { return way_.reason; }
    int rails() const override { return static_cast<int>(rails_.size()); }
    std::string railName(int rail) const override { return at(rail).port.name; }
    std::string railIdentity(int rail) const override {
        const VerbsPort& port = at(rail).port;
        const bool ethernet = port.hca.link_layer == LinkLayer::Ethernet;
        return fmt::format("{}:{}",
                           !ethernet      ? "IB"
                           : port.roce_v1 ? "RoCEv1"
                                          : "RoCEv2",
                           subnetOf(port.hca));
    }
    double railNominalGbs(int rail) const override { return at(rail).port.rate_gbs; }
    Result<std::unique_ptr<Link>> open(int rail) override {
        if (rail < 0 || rail >= rails()) return Error{fmt::format("there is no rail {}", rail)};
        return VerbsLink::create(at(rail));
    }

  private:
    const VerbsRail& at(int rail) const { return rails_[static_cast<std::size_t>(rail)]; }
    std::deque<VerbsRail> rails_;  // links hold references to its elements
    GpuWay way_;
};

}  // namespace

void takeNcclSettings(VerbsRequest& request) {
    const auto take = [](const char* name, int most, int& out) {
        const char* text = std::getenv(name);
        const auto value = text != nullptr ? parseInt<int>(trim(text)) : std::nullopt;
        if (value && *value >= 0 && *value <= most) out = *value;
    };
    take("NCCL_IB_GID_INDEX", 255, request.gid_index);
    take("NCCL_IB_TC", 255, request.traffic_class);
    take("NCCL_IB_SL", 15, request.service_level);
}

Result<std::unique_ptr<Transport>> makeVerbsTransport(const VerbsRequest& request,
                                                      std::vector<std::string>& skipped) {
    if (request.rails.empty()) return Error{"verbs: no HCA was named"};
    const Result<CudaDriver> driver =
        request.use_gpu_memory ? loadCudaDriver() : Result<CudaDriver>(Error{"not asked for"});
    std::deque<VerbsRail> rails;
    std::vector<std::string> failures;
    GpuWay way;
    for (const VerbsRequest::Rail& wanted : request.rails) {
        Result<VerbsPort> port = openVerbsPort(wanted.hca, wanted.port, request.gid_index);
        if (!port) {
            failures.push_back(port.error().message);
            continue;
        }
        VerbsRail rail;
        rail.port = std::move(port.value());
        rail.traffic_class = request.traffic_class;
        rail.service_level = request.service_level;
        rail.messages = request.messages;
        if (!request.use_gpu_memory || !streamOnGpu(rail, driver, wanted, way))
            if (Status status = streamOnHost(rail); !status) {
                failures.push_back(status.error().message);
                continue;
            }
        rails.push_back(std::move(rail));
    }
    if (rails.empty()) return Error{joinAlike(failures)};
    skipped.insert(skipped.end(), failures.begin(), failures.end());
    return std::unique_ptr<Transport>(
        std::make_unique<VerbsTransport>(std::move(rails), std::move(way)));
}

}  // namespace rdmatune::fabric
