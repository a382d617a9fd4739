// SPDX-License-Identifier: Apache-2.0
// Machines as users write them ("6xA800-80GB"), and this machine's memory as host devices.
#include "core/hardware/machine.h"

#include "core/hardware/local_gpus.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>

namespace headroom {
namespace {

constexpr int kMostGpus = 4096;

// "12345 kB" after "MemTotal:"; empty when the file lacks it.
std::optional<int64_t> installedKib() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  int64_t value = 0;
  while (file >> key >> value) {
    if (key == "MemTotal:") return value;
    std::getline(file, unit);
  }
  return std::nullopt;
}

std::optional<int64_t> limitIn(const std::string& path) {
  std::ifstream file(path);
  int64_t value = 0;
  if (file >> value && value > 0) return value;  // "max" is no number
  return std::nullopt;
}

// The tightest limit of this process's control group and its parents (v2, then v1).
std::optional<int64_t> groupLimit() {
  std::optional<int64_t> least;
  auto consider = [&](std::optional<int64_t> limit) {
    if (limit && (!least || *limit < *least)) least = limit;
  };
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const bool unified = line.rfind("0::", 0) == 0;
    const size_t memory = line.find(":memory:");
    if (!unified && memory == std::string::npos) continue;
    std::string path = unified ? line.substr(3) : line.substr(memory + 8);
    const std::string root = unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    const std::string file = unified ? "/memory.max" : "/memory.limit_in_bytes";
    while (true) {
      consider(limitIn(root + (path == "/" ? "" : path) + file));
      const size_t slash = path.rfind('/');
      if (path.empty() || slash == std::string::npos) break;
      path.resize(slash);
    }
  }
  return least;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

// Takes a whole number from the front of `text`; false when there is none. A number too large for an int is the largest one, so that
// the caller's bound refuses it as a number.
bool takeCount(std::string_view& text, int& count) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error == std::errc::invalid_argument || end == text.data()) return false;
  if (error == std::errc::result_out_of_range) count = *text.data() == '-' ? std::numeric_limits<int>::min() : std::numeric_limits<int>::max();
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

// Insertions, deletions and replacements between two names, for "did you mean".
size_t editDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

// Names of the catalog that are closest to what was written.
std::string nearestNames(std::string_view written) {
  const std::string wanted = lower(written);
  std::vector<std::pair<size_t, std::string>> ranked;
  for (const GpuSpec& spec : gpuCatalog()) {
    size_t distance = editDistance(wanted, lower(spec.name));
    if (lower(spec.name).find(wanted) != std::string::npos) distance = std::min<size_t>(distance, 1);
    for (const std::string& alias : spec.aliases) distance = std::min(distance, editDistance(wanted, lower(alias)));
    ranked.emplace_back(distance, spec.name);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string names;
  for (size_t i = 0; i < ranked.size() && i < 3; ++i) names += (i ? ", " : "") + ranked[i].second;
  return names;
}

Result<GpuSpec> gpuOf(std::string_view text, const std::string& where) {
  if (const GpuSpec* known = findGpu(text)) return *known;
  if (std::optional<Bytes> memory = parseMemory(text)) {
    constexpr Bytes kLeastMemory = 16_MiB;
    if (*memory < kLeastMemory)
      return failure(where, fmt::format("a GPU of {} bytes", memory->count()), "at least 16 MiB each", "write the unit: 24GiB");
    GpuSpec spec;
    spec.name = std::string(text);
    spec.memory = *memory;
    spec.source = "as given";
    spec.custom = true;
    // The link of the card that reports this very amount, if there is one.
    constexpr Bytes kSameCard = 64_MiB;
    for (const GpuSpec& known : gpuCatalog()) {
      const Bytes difference = known.memory - *memory;
      if (difference > kSameCard || -difference > kSameCard) continue;
      spec.link = known.link;
      spec.linkGBs = known.linkGBs;
      spec.source = "memory as given; link of " + known.name + ", which reports as much";
      break;
    }
    return spec;
  }
  return failure(where, fmt::format("\"{}\"", text), "a GPU of the catalog or a size such as 24GiB",
                 "nearest names: " + nearestNames(text));
}

}  // namespace

std::optional<Bytes> parseMemory(std::string_view text) {
  text = trimmed(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !(value > 0) || !std::isfinite(value)) return std::nullopt;
  const std::string unit = lower(trimmed(text.substr(static_cast<size_t>(end - text.data()))));
  double scale = 0;
  if (unit == "gib" || unit == "g") scale = 1024.0 * 1024.0 * 1024.0;
  if (unit == "mib" || unit == "m") scale = 1024.0 * 1024.0;
  if (unit == "tib") scale = 1024.0 * 1024.0 * 1024.0 * 1024.0;
  if (unit == "kib" || unit == "k") scale = 1024.0;
  if (unit == "b") scale = 1;
  if (unit == "gb") scale = 1e9;
  if (unit == "mb") scale = 1e6;
  if (unit == "kb") scale = 1e3;
  if (unit == "tb") scale = 1e12;
  const double bytes = std::floor(value * scale);
  if (bytes < 1 || bytes > 1e15) return std::nullopt;
  return Bytes(static_cast<int64_t>(bytes));
}

Bytes hostMemory() {
  const std::optional<int64_t> installed = installedKib(), limit = groupLimit();
  const int64_t bytes = installed ? *installed * 1024 : 0;
  if (limit && (bytes == 0 || *limit < bytes)) return Bytes(*limit);
  return Bytes(bytes);
}

bool Machine::isHostOnly() const {
  return !gpus.empty() && std::all_of(gpus.begin(), gpus.end(), [](const MachineGpu& gpu) { return gpu.spec.hostDevice; });
}

Machine hostMachine(const HostDeviceSettings& settings) {
  Machine machine;
  machine.description = "local";
  machine.isLocal = true;
  const int count = std::max(1, settings.count);
  const Bytes each = settings.memoryEach ? *settings.memoryEach : Bytes(hostMemory().count() / 2 / count);
  for (int index = 0; index < count; ++index) {
    MachineGpu gpu;
    gpu.index = index;
    gpu.spec.name = "host device";
    gpu.spec.architecture = "CPU";
    gpu.spec.memory = each;
    gpu.spec.link = LinkKind::HostMemory;
    gpu.spec.source = "a share of this machine's memory";
    gpu.spec.hostDevice = true;
    gpu.totalMemory = each;
    machine.gpus.push_back(std::move(gpu));
  }
  return machine;
}

bool meansLocalGpus(std::string_view text) { return lower(trimmed(text)) == "local"; }

Result<Machine> parseMachine(std::string_view text, const HostDeviceSettings& settings, const std::vector<MachineGpu>& localGpus) {
  const std::string where = fmt::format("GPUs \"{}\"", text);
  const std::string forms = "local, host, 6xA800-80GB, 2x24GiB,1x48GiB or 2n8xH100-80GB";
  if (trimmed(text).empty()) return failure("GPUs", "nothing", forms);
  if (meansLocalGpus(text) && !localGpus.empty()) return gpuMachine(localGpus);
  if (meansLocalGpus(text) || lower(trimmed(text)) == "host") return hostMachine(settings);

  Machine machine;
  machine.description = std::string(trimmed(text));
  machine.nodes = 0;
  int sharedNode = -1;  // items without a node count stand in one node
  for (std::string_view rest = text; !rest.empty();) {
    const size_t comma = rest.find(',');
    std::string_view item = trimmed(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    if (item.empty() || (comma != std::string_view::npos && rest.empty())) return failure(where, "an empty item", forms);

    int nodes = 1, count = 1;
    bool ownNodes = false;
    if (!findGpu(item) && !parseMemory(item)) {  // names such as "3090" start with digits too
      std::string_view left = item;
      int number = 0;
      bool read = takeCount(left, number);
      left = trimmed(left);
      if (read && !left.empty() && (left.front() == 'n' || left.front() == 'N')) {
        nodes = number;
        ownNodes = true;
        left.remove_prefix(1);
        read = takeCount(left, number);
        left = trimmed(left);
        if (!read) return failure(where, fmt::format("\"{}\"", item), "GPUs a node, as in 2n8xH100-80GB");
      }
      if (read && !left.empty() && (left.front() == 'x' || left.front() == 'X' || left.front() == '*')) {
        count = number;
        item = trimmed(left.substr(1));
      } else if (ownNodes || (read && left.empty())) {
        return failure(where, fmt::format("\"{}\"", item), forms);
      }
    }
    if (nodes < 1 || count < 1 || nodes > kMostGpus || count > kMostGpus ||
        static_cast<int64_t>(nodes) * count + machine.size() > kMostGpus) {
      return failure(where, fmt::format("{} x {} GPUs", nodes, count), fmt::format("1 to {}", kMostGpus));
    }
    Result<GpuSpec> spec = gpuOf(item, where);
    if (!spec) return tl::unexpected(spec.error());
    for (int node = 0; node < nodes; ++node) {
      int at = sharedNode;
      if (ownNodes || at < 0) at = machine.nodes++;
      if (!ownNodes) sharedNode = at;
      for (int i = 0; i < count; ++i) machine.gpus.push_back({machine.size(), at, *spec, spec->memory, std::nullopt});
    }
  }
  return machine;
}

}  // namespace headroom
