// SPDX-License-Identifier: Apache-2.0
#include "core/layout/rules/engine_rules.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace headroom {

std::string_view engineName(EngineKind kind) {
  switch (kind) {
    case EngineKind::Headroom:
      return "headroom";
    case EngineKind::Vllm:
      return "vllm";
    case EngineKind::SgLang:
      return "sglang";
    case EngineKind::TensorRtLlm:
      return "tensorrt-llm";
    case EngineKind::LlamaCpp:
      return "llama.cpp";
    case EngineKind::LmDeploy:
      return "lmdeploy";
  }
  return "";
}

std::optional<EngineVersion> parseVersion(std::string_view text) {
  for (size_t at = 0; at < text.size(); ++at) {
    if (!std::isdigit(static_cast<unsigned char>(text[at]))) continue;
    EngineVersion version;
    const char* end = text.data() + text.size();
    auto next = std::from_chars(text.data() + at, end, version.major);
    const bool dotted =
        next.ec == std::errc() && next.ptr + 1 < end && *next.ptr == '.' && std::isdigit(static_cast<unsigned char>(next.ptr[1]));
    if (!dotted) {
      while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]))) ++at;
      continue;
    }
    next = std::from_chars(next.ptr + 1, end, version.minor);
    if (next.ec != std::errc()) return std::nullopt;
    if (next.ptr + 1 < end && *next.ptr == '.' && std::isdigit(static_cast<unsigned char>(next.ptr[1]))) {
      std::from_chars(next.ptr + 1, end, version.patch);
    }
    return version;
  }
  return std::nullopt;
}

const EngineRules& rulesOf(EngineKind kind) {
  switch (kind) {
    case EngineKind::Vllm:
      return vllmRules();
    case EngineKind::SgLang:
      return sgLangRules();
    case EngineKind::TensorRtLlm:
      return tensorRtRules();
    case EngineKind::LlamaCpp:
      return llamaCppRules();
    case EngineKind::LmDeploy:
      return lmDeployRules();
    case EngineKind::Headroom:
      break;
  }
  return headroomRules();
}

LayoutSizes EngineRules::sameVerdict(const RuleContext& context, LayoutSizes sizes) const {
  LayoutSizes same = sizes;
  same.pp = sizes.pp > context.model.config.layerCount() ? sizes.pp : std::min(sizes.pp, 2);
  same.dp = 1;
  return same;
}

std::vector<int> acceptedTpSizes(const EngineRules& rules, const RuleContext& context, int gpus) {
  std::vector<int> sizes;
  for (int tp = 1; tp <= gpus; ++tp) {
    if (!rules.check(context, {tp, 1, 1}).refusal) sizes.push_back(tp);
  }
  return sizes;
}

std::string divisionText(int64_t numerator, int64_t divisor) {
  return fmt::format("{} / {} = {} remainder {}", numerator, divisor, numerator / divisor, numerator % divisor);
}

}  // namespace headroom
