#include <infiniband/verbs.h>

#include <cerrno>
#include <memory>
#include <string_view>

#include "tuner/gpudirect/gdr_read.hpp"

namespace rdmatune {

DmabufProbe probeDmabuf(const std::string& name) {
    int count = 0;
    const std::unique_ptr<ibv_device*, void (*)(ibv_device**)> list(ibv_get_device_list(&count),
                                                                    &ibv_free_device_list);
    if (!list) return DmabufProbe::NotTried;
    ibv_device* found = nullptr;
    for (int i = 0; i < count; ++i) {
        ibv_device* device = list.get()[i];
        if (name == std::string_view(ibv_get_device_name(device))) found = device;
    }
    if (found == nullptr) return DmabufProbe::NotTried;
    const std::unique_ptr<ibv_context, int (*)(ibv_context*)> context(ibv_open_device(found),
                                                                      &ibv_close_device);
    if (!context) return DmabufProbe::NotTried;
    const std::unique_ptr<ibv_pd, int (*)(ibv_pd*)> domain(ibv_alloc_pd(context.get()),
                                                           &ibv_dealloc_pd);
    if (!domain) return DmabufProbe::NotTried;
    // Without support the call ends before the descriptor is looked at (EOPNOTSUPP, or
    // EPROTONOSUPPORT from an old kernel interface); with it, -1 is found not to be one (EBADF).
    errno = 0;
    ibv_mr* region = ibv_reg_dmabuf_mr(domain.get(), 0, 0, 0, -1, 0);
    const int error = errno;
    if (region != nullptr) ibv_dereg_mr(region);
    return region == nullptr && (error == EOPNOTSUPP || error == EPROTONOSUPPORT)
               ? DmabufProbe::NotSupported
               : DmabufProbe::Supported;
}

}  // namespace rdmatune
