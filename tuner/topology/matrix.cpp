// A pasted `nvidia-smi topo -m` as a Node: distances without addresses.
#include <algorithm>
#include <map>
#include <set>

#include "tuner/base/text.hpp"
#include "tuner/topology/complete.hpp"
#include "tuner/topology/formats.hpp"
#include "tuner/topology/matrix_text.hpp"

namespace rdmatune {
namespace {

Distance cellDistance(std::string_view cell) {
    if (cell == "SOC") return Distance::Sys;  // what drivers before 2017 called it
    return parseDistance(cell).value_or(Distance::Unknown);
}

/// The device's own name where the legend or the column tells it.
LinkLayer layerByName(std::string_view name) {
    // rdma-core names devices by protocol: ibp177s0f0, rocep80s0. mlx5_0 tells nothing.
    if (name.starts_with("roce")) return LinkLayer::Ethernet;
    if (name.starts_with("ibp") || name.starts_with("ibs")) return LinkLayer::InfiniBand;
    return LinkLayer::Unknown;
}

class Builder {
  public:
    Builder(const MatrixText& matrix, const std::string& name) : matrix_(matrix), name_(name) {
        for (const MatrixRow& row : matrix.rows) rows_.emplace(row.label, &row);
        for (std::size_t i = 0; i < matrix.columns.size(); ++i) column_[matrix.columns[i]] = i;
    }

    Result<Node> build() {
        node_.source = TopologySource::TopoMatrix;
        node_.notes = matrix_.notes;
        std::vector<std::string> gpus;
        std::vector<std::string> nics;
        for (const std::string& column : matrix_.columns)
            (isGpuLabel(column) ? gpus : nics).push_back(column);
        // Columns come in numbers' order, but a paste may have lost the first ones.
        for (const std::string& label : gpus)
            if (Status status = addGpu(label); !status) return status.error();
        for (const std::string& label : nics) addNic(label);
        for (const std::string& gpu : gpus) {
            std::vector<Distance> row;
            for (const std::string& nic : nics) row.push_back(distance(gpu, nic));
            node_.distance.push_back(std::move(row));
        }
        placeByDistance();
        noteGaps(gpus, nics);
        for (const Gpu& gpu : node_.gpus) node_.cpus = node_.cpus | gpu.cpus;
        std::ranges::sort(node_.numa, {}, &NumaNode::os_index);
        noteFlat(node_, false);
        return std::move(node_);
    }

  private:
    Status addGpu(const std::string& label) {
        Gpu gpu;
        gpu.index = static_cast<int>(node_.gpus.size());
        const auto it = rows_.find(label);
        if (it == rows_.end()) {
            missing_rows_.push_back(label);
        } else {
            const MatrixRow& row = *it->second;
            const bool told = !row.cpus.empty() && row.cpus != "N/A";
            const auto cpus = CpuSet::parse(told ? row.cpus : "");
            if (!cpus)
                return Error{name_ + ':' + std::to_string(row.line) + ": \"" + row.cpus +
                             "\" is no CPU list; expected one such as 0-23,96-119"};
            gpu.cpus = *cpus;
            gpu.numa = parseInt<int>(row.numa).value_or(-1);
            if (gpu.numa < -1) gpu.numa = -1;
            addNuma(gpu);
        }
        const auto index = parseInt<int>(std::string_view(label).substr(3));
        if (index != gpu.index) renumbered_ = true;
        node_.gpus.push_back(std::move(gpu));
        return Done{};
    }

    void addNuma(const Gpu& gpu) {
        if (gpu.numa < 0) return;
        const auto it = std::ranges::find(node_.numa, gpu.numa, &NumaNode::os_index);
        if (it == node_.numa.end())
            node_.numa.push_back({gpu.numa, -1, gpu.cpus});
        else
            it->cpus = it->cpus | gpu.cpus;
    }

    void addNic(const std::string& label) {
        Hca hca;
        const auto it = matrix_.legend.find(label);
        hca.name = it == matrix_.legend.end() ? label : it->second;
        if (it == matrix_.legend.end() && label.starts_with("NIC")) unnamed_ = true;
        hca.link_layer = layerByName(hca.name);
        hca.is_bond = hca.name.find("_bond_") != std::string::npos;
        node_.hcas.push_back(std::move(hca));
    }

    [[nodiscard]] std::optional<Distance> cell(const std::string& row,
                                               const std::string& column) const {
        const auto it = rows_.find(row);
        if (it == rows_.end()) return std::nullopt;
        const std::size_t at = column_.at(column);
        if (at >= it->second->cells.size()) return std::nullopt;
        const Distance distance = cellDistance(it->second->cells[at]);
        if (distance == Distance::Unknown) return std::nullopt;
        return distance;
    }

    /// From the GPU's row, else, the matrix being symmetric, from the NIC's.
    Distance distance(const std::string& gpu, const std::string& nic) {
        const auto forth = cell(gpu, nic);
        const auto back = cell(nic, gpu);
        if (forth && back && *forth != *back)
            node_.notes.push_back(gpu + " and " + nic + " are " + std::string(toString(*forth)) +
                                  " in one row and " + std::string(toString(*back)) +
                                  " in the other; the first is used.");
        if (!forth && back) mirrored_.insert(gpu);
        return forth ? *forth : back.value_or(Distance::Unknown);
    }

    /// A NIC has no NUMA column: it is where the nearest GPU is that reaches it without leaving its
    /// node. A GPU whose row is lost is, in turn, where its NIC is.
    void placeByDistance() {
        for (std::size_t h = 0; h < node_.hcas.size(); ++h) {
            Distance nearest = Distance::Sys;
            for (std::size_t g = 0; g < node_.gpus.size(); ++g) {
                if (node_.distance[g][h] >= nearest || node_.gpus[g].numa < 0) continue;
                nearest = node_.distance[g][h];
                node_.hcas[h].numa = node_.gpus[g].numa;
            }
        }
        for (std::size_t g = 0; g < node_.gpus.size(); ++g) {
            Gpu& gpu = node_.gpus[g];
            for (std::size_t h = 0; h < node_.hcas.size() && gpu.numa < 0; ++h)
                if (node_.distance[g][h] < Distance::Sys) gpu.numa = node_.hcas[h].numa;
            const auto numa = std::ranges::find(node_.numa, gpu.numa, &NumaNode::os_index);
            if (gpu.cpus.empty() && numa != node_.numa.end()) gpu.cpus = numa->cpus;
        }
    }

    void noteGaps(const std::vector<std::string>& gpus, const std::vector<std::string>& nics) {
        std::vector<std::string> unknown;
        for (std::size_t g = 0; g < gpus.size(); ++g)
            if (std::ranges::find(node_.distance[g], Distance::Unknown) != node_.distance[g].end())
                unknown.push_back(gpus[g]);
        if (!mirrored_.empty())
            node_.notes.push_back(
                "The row(s) of " + join(mirrored_, ", ") +
                " are cut or missing; their distances are taken from the NICs' rows.");
        if (!unknown.empty())
            node_.notes.push_back("Distances of " + join(unknown, ", ") +
                                  " to some NICs are not in the text and not known.");
        if (!missing_rows_.empty())
            node_.notes.push_back("The CPUs of " + join(missing_rows_, ", ") +
                                  " are not in the text.");
        if (renumbered_)
            node_.notes.emplace_back(
                "The text does not begin with GPU0 or leaves some out: indices here count from 0 "
                "in "
                "the text's order.");
        if (unnamed_)
            node_.notes.emplace_back(
                "The NIC legend is missing or partial: NICs without an entry keep the matrix's "
                "names.");
        if (nics.empty()) node_.notes.emplace_back("The matrix has no NIC columns.");
        for (const auto& [label, device] : matrix_.legend)
            if (!column_.contains(label))
                node_.notes.push_back(device + " (" + label +
                                      ") is in the legend but not in the matrix and is left out.");
    }

    const MatrixText& matrix_;
    const std::string& name_;
    Node node_;
    std::map<std::string, const MatrixRow*> rows_;
    std::map<std::string, std::size_t> column_;
    std::set<std::string> mirrored_;
    std::vector<std::string> missing_rows_;
    bool renumbered_ = false;
    bool unnamed_ = false;
};

}  // namespace

Result<Node> readTopoMatrix(std::string_view text, const std::string& name) {
    const Result<MatrixText> matrix = parseMatrixText(text, name);
    if (!matrix) return matrix.error();
    return Builder(*matrix, name).build();
}

}  // namespace rdmatune
