// SPDX-License-Identifier: Apache-2.0
// Layouts as JSON: what `plan --format json` prints and `serve --layout` reads.
#include "core/layout/parallel_layout.h"

namespace headroom {
namespace {

using nlohmann::json;

json rangeJson(Range range) { return json::array({range.begin, range.end}); }

// The integer under `key`, or an Error that names it.
Result<int64_t> integerAt(const json& object, const char* key, const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) {
    return failure(where, found == object.end() ? fmt::format("no \"{}\"", key) : fmt::format("\"{}\": {}", key, found->dump()),
                   "an integer");
  }
  return found->get<int64_t>();
}

Result<int> sizeAt(const json& object, const char* key, const std::string& where, int low, int high) {
  Result<int64_t> value = integerAt(object, key, where);
  if (!value) return tl::unexpected(value.error());
  if (*value < low || *value > high)
    return failure(where, fmt::format("\"{}\": {}", key, *value), fmt::format("{} to {}", low, high));
  return static_cast<int>(*value);
}

Result<Range> rangeAt(const json& object, const char* key, const std::string& where) {
  const auto found = object.find(key);
  const bool good = found != object.end() && found->is_array() && found->size() == 2 && (*found)[0].is_number_integer() &&
                    (*found)[1].is_number_integer() && (*found)[0].get<int64_t>() >= 0 &&
                    (*found)[0].get<int64_t>() <= (*found)[1].get<int64_t>();
  if (!good) {
    return failure(where, found == object.end() ? fmt::format("no \"{}\"", key) : fmt::format("\"{}\": {}", key, found->dump()),
                   "[begin, end) as two integers");
  }
  return Range{(*found)[0].get<int64_t>(), (*found)[1].get<int64_t>()};
}

Status readRank(const json& entry, const std::string& where, ParallelLayout& layout, std::vector<bool>& seen) {
  if (!entry.is_object()) return failure(where, entry.dump().substr(0, 40), "an object");
  Result<int> replica = sizeAt(entry, "replica", where, 0, layout.dp - 1);
  if (!replica) return tl::unexpected(replica.error());
  Result<int> stage = sizeAt(entry, "stage", where, 0, layout.pp - 1);
  if (!stage) return tl::unexpected(stage.error());
  Result<int> tpRank = sizeAt(entry, "tp_rank", where, 0, layout.tp - 1);
  if (!tpRank) return tl::unexpected(tpRank.error());
  Result<int> gpu = sizeAt(entry, "gpu", where, 0, 1 << 20);
  if (!gpu) return tl::unexpected(gpu.error());
  const int index = (*replica * layout.pp + *stage) * layout.tp + *tpRank;
  if (seen[index])
    return failure(where, fmt::format("replica {} stage {} tp_rank {} twice", *replica, *stage, *tpRank), "each rank once");
  seen[index] = true;

  RankSlice& slice = layout.ranks[index];
  slice.rank = index;
  slice.replica = *replica;
  slice.stage = *stage;
  slice.tpRank = *tpRank;
  slice.gpu = *gpu;
  slice.embeds = *stage == 0;
  slice.projects = *stage == layout.pp - 1;
  const std::pair<const char*, Range*> ranges[] = {{"layers", &slice.layers},    {"q_heads", &slice.qHeads},
                                                   {"kv_heads", &slice.kvHeads}, {"mlp_columns", &slice.mlpColumns},
                                                   {"experts", &slice.experts},  {"vocabulary", &slice.vocabulary}};
  for (const auto& [key, range] : ranges) {
    Result<Range> value = rangeAt(entry, key, where);
    if (!value) return tl::unexpected(value.error());
    *range = *value;
  }
  if (entry.contains("column_granule")) {
    Result<int> granule = sizeAt(entry, "column_granule", where, 1, 1 << 20);
    if (!granule) return tl::unexpected(granule.error());
    slice.columnGranule = *granule;
  }
  return {};
}

}  // namespace

json layoutToJson(const ParallelLayout& layout) {
  json ranks = json::array();
  for (const RankSlice& rank : layout.ranks) {
    ranks.push_back({{"gpu", rank.gpu},
                     {"replica", rank.replica},
                     {"stage", rank.stage},
                     {"tp_rank", rank.tpRank},
                     {"layers", rangeJson(rank.layers)},
                     {"q_heads", rangeJson(rank.qHeads)},
                     {"kv_heads", rangeJson(rank.kvHeads)},
                     {"mlp_columns", rangeJson(rank.mlpColumns)},
                     {"experts", rangeJson(rank.experts)},
                     {"vocabulary", rangeJson(rank.vocabulary)},
                     {"column_granule", rank.columnGranule}});
  }
  return {{"tp", layout.tp},
          {"pp", layout.pp},
          {"dp", layout.dp},
          {"split", layout.even ? "even" : "uneven"},
          {"ranks", std::move(ranks)}};
}

Result<ParallelLayout> layoutFromJson(const json& document, const std::string& where) {
  if (!document.is_object()) return failure(where, "JSON that is no object", "a layout as `plan --format json` prints it");
  if (document.contains("layouts") && document["layouts"].is_array()) {
    const json recommended = document.value("recommended", json());
    if (!recommended.is_object()) {
      return failure(where, "a plan without a recommended layout", "one layout", "save one entry of its \"layouts\" alone");
    }
    for (const json& entry : document["layouts"]) {
      auto same = [&](const char* key) {
        return entry.is_object() && entry.value(key, json()) == recommended.value(key, json(0));
      };
      if (same("tp") && same("pp") && same("dp")) return layoutFromJson(entry, where);
    }
    return failure(where, "a recommended layout that is not in the list", "one of \"layouts\"");
  }
  constexpr int kMostRanks = 4096;
  ParallelLayout layout;
  for (auto [key, size] : {std::pair{"tp", &layout.tp}, std::pair{"pp", &layout.pp}, std::pair{"dp", &layout.dp}}) {
    Result<int> value = sizeAt(document, key, where, 1, kMostRanks);
    if (!value) return tl::unexpected(value.error());
    *size = *value;
  }
  const int64_t world = static_cast<int64_t>(layout.tp) * layout.pp * layout.dp;
  if (world > kMostRanks) return failure(where, fmt::format("{} ranks", world), fmt::format("at most {}", kMostRanks));
  const auto ranks = document.find("ranks");
  if (ranks == document.end() || !ranks->is_array() || static_cast<int64_t>(ranks->size()) != world) {
    return failure(
        where,
        ranks == document.end() || !ranks->is_array() ? std::string("no \"ranks\"") : fmt::format("{} ranks", ranks->size()),
        fmt::format("{} (TP {} x PP {} x DP {})", world, layout.tp, layout.pp, layout.dp),
        "layouts that an engine refuses have no ranks");
  }
  layout.even = document.value("split", json("even")) != "uneven";
  layout.ranks.resize(world);
  std::vector<bool> seen(world, false);
  for (size_t i = 0; i < ranks->size(); ++i) {
    if (Status read = readRank((*ranks)[i], fmt::format("{}: ranks[{}]", where, i), layout, seen); !read)
      return tl::unexpected(read.error());
  }
  return layout;
}

}  // namespace headroom
