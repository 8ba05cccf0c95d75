#include "tuner/fabric/qp.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

#include "tuner/fabric/verbs_error.hpp"

namespace rdmatune::fabric {
namespace {

/// Requests are asked for a completion at least this often, so that the queue never fills unseen.
constexpr std::uint64_t kSignalEvery = 32;
/// wr_id's highest bit: this completion counts in completed().
constexpr std::uint64_t kCounts = std::uint64_t{1} << 63;
/// Enough for a word of control; every known device that has inline data has this much.
constexpr std::uint32_t kInlineBytes = 64;
constexpr int kHopLimit = 64;
/// 0.64 ms; never used, since nothing here consumes receive requests, but it must be valid.
constexpr int kRnrTimer = 12;

}  // namespace

Result<RcQueue> RcQueue::create(const VerbsPort& port, int traffic_class, int service_level) {
    RcQueue out(port);
    out.traffic_class_ = traffic_class;
    out.service_level_ = service_level;
    std::random_device random;
    out.psn_ = random() & 0xffffff;
    errno = 0;
    out.completions_.reset(
        ibv_create_cq(port.context.get(), static_cast<int>(kDepth) + 1, nullptr, nullptr, 0));
    if (!out.completions_) return verbsError(port.label, "creating a completion queue", errno);
    if (Status status = out.createPair(); !status) return status.error();
    if (Status status = out.toInit(); !status) return status.error();
    return out;
}

Status RcQueue::createPair() {
    ibv_qp_init_attr attributes{};
    attributes.send_cq = completions_.get();
    attributes.recv_cq = completions_.get();
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap = {.max_send_wr = static_cast<std::uint32_t>(kDepth),
                      .max_recv_wr = 1,
                      .max_send_sge = 1,
                      .max_recv_sge = 1,
                      .max_inline_data = kInlineBytes};
    int failure = 0;
    // A device without inline data refuses to be asked for it.
    for (const std::uint32_t wanted : {kInlineBytes, 0U}) {
        attributes.cap.max_inline_data = wanted;
        errno = 0;
        queue_pair_.reset(ibv_create_qp(port_->domain.get(), &attributes));
        if (queue_pair_) {
            inline_bytes_ = attributes.cap.max_inline_data;
            return Done{};
        }
        failure = errno;
        if (failure != EINVAL && failure != ENOMEM) break;
    }
    return verbsError(port_->label, "creating a queue pair", failure);
}

Status RcQueue::toInit() {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.pkey_index = 0;
    attributes.port_num = static_cast<std::uint8_t>(port_->port);
    attributes.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    const int rc =
        ibv_modify_qp(queue_pair_.get(), &attributes,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (rc != 0) return verbsError(port_->label, "initialising a queue pair", rc);
    return Done{};
}

Status RcQueue::connect(const VerbsAddress& self, const VerbsAddress& peer) {
    self_ = self;
    peer_ = peer;
    peer_text_ = peer.describe();
    return toReady();
}

Status RcQueue::toReady() {
    ibv_qp_attr rtr{};
    rtr.qp_state = IBV_QPS_RTR;
    rtr.path_mtu = static_cast<ibv_mtu>(std::min(self_.mtu, peer_.mtu));
    rtr.dest_qp_num = peer_.qpn;
    rtr.rq_psn = peer_.psn;
    rtr.max_dest_rd_atomic = static_cast<std::uint8_t>(self_.rd_atomic);
    rtr.min_rnr_timer = kRnrTimer;
    rtr.ah_attr.port_num = static_cast<std::uint8_t>(port_->port);
    rtr.ah_attr.dlid = peer_.lid;
    rtr.ah_attr.sl = static_cast<std::uint8_t>(service_level_);
    if (port_->global_always || needsGlobalRoute(self_, peer_)) {
        rtr.ah_attr.is_global = 1;
        std::memcpy(rtr.ah_attr.grh.dgid.raw, peer_.gid.data(), peer_.gid.size());
        rtr.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(port_->gid_index);
        rtr.ah_attr.grh.hop_limit = kHopLimit;
        rtr.ah_attr.grh.traffic_class = static_cast<std::uint8_t>(traffic_class_);
    }
    const std::string where = port_->label + " to " + peer_text_;
    int rc = ibv_modify_qp(queue_pair_.get(), &rtr,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                               IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (rc != 0) return verbsError(where, "connecting (ready to receive)", rc);

    ibv_qp_attr rts{};
    rts.qp_state = IBV_QPS_RTS;
    rts.timeout = kAckTimeout;
    rts.retry_cnt = kRetries;
    rts.rnr_retry = kRetries - 1;  // 7 would mean for ever
    rts.sq_psn = psn_;
    rts.max_rd_atomic = static_cast<std::uint8_t>(std::min(self_.rd_atomic, peer_.rd_atomic));
    rc = ibv_modify_qp(queue_pair_.get(), &rts,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                           IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    if (rc != 0) return verbsError(where, "connecting (ready to send)", rc);
    return Done{};
}

Status RcQueue::reconnect() {
    ibv_qp_attr reset{};
    reset.qp_state = IBV_QPS_RESET;
    if (const int rc = ibv_modify_qp(queue_pair_.get(), &reset, IBV_QP_STATE); rc != 0)
        return verbsError(port_->label, "resetting a queue pair", rc);
    // Completions of flushed requests may still lie in the queue.
    std::array<ibv_wc, 16> done;
    while (ibv_poll_cq(completions_.get(), static_cast<int>(done.size()), done.data()) > 0) {
    }
    posted_ = retired_ = completed_ = since_signal_ = 0;
    last_status_ = IBV_WC_SUCCESS;
    if (Status status = toInit(); !status) return status;
    return toReady();
}

Status RcQueue::write(std::span<const Write> writes, bool signaled) {
    std::array<ibv_send_wr, 2> requests{};
    std::array<ibv_sge, 2> pieces{};
    const std::size_t count = std::min(writes.size(), requests.size());
    since_signal_ += count;
    for (std::size_t i = 0; i < count; ++i) {
        const Write& write = writes[i];
        const bool last = i + 1 == count;
        const bool counts = last && signaled;
        pieces[i] = {.addr = reinterpret_cast<std::uint64_t>(write.source),
                     .length = write.bytes,
                     .lkey = write.local_key};
        ibv_send_wr& request = requests[i];
        request.wr_id = (posted_ + i + 1) | (counts ? kCounts : 0);
        request.next = last ? nullptr : &requests[i + 1];
        request.sg_list = &pieces[i];
        request.num_sge = 1;
        request.opcode = IBV_WR_RDMA_WRITE;
        request.wr.rdma.remote_addr = write.target;
        request.wr.rdma.rkey = write.remote_key;
        if (!write.from_gpu && write.bytes <= inline_bytes_) request.send_flags |= IBV_SEND_INLINE;
        if (counts || (last && since_signal_ >= kSignalEvery)) {
            request.send_flags |= IBV_SEND_SIGNALED;
            since_signal_ = 0;
        }
    }
    ibv_send_wr* bad = nullptr;
    if (const int rc = ibv_post_send(queue_pair_.get(), requests.data(), &bad); rc != 0)
        return verbsError(port_->label + " to " + peer_text_, "posting a write", rc);
    posted_ += count;
    return Done{};
}

Status RcQueue::reap(std::string_view what) {
    std::array<ibv_wc, 16> done;
    for (;;) {
        const int count =
            ibv_poll_cq(completions_.get(), static_cast<int>(done.size()), done.data());
        if (count < 0) return verbsError(port_->label, "polling the completion queue", -count);
        for (const ibv_wc& one : std::span(done.data(), static_cast<std::size_t>(count))) {
            if (one.status != IBV_WC_SUCCESS) {
                last_status_ = one.status;
                return completionError(port_->label, peer_text_, what, one.status);
            }
            retired_ = std::max(retired_, one.wr_id & ~kCounts);
            if ((one.wr_id & kCounts) != 0) ++completed_;
        }
        if (count < static_cast<int>(done.size())) return Done{};
    }
}

}  // namespace rdmatune::fabric
