// SPDX-License-Identifier: Apache-2.0
// What the quantization formats store for one linear weight. Layouts: AWQ and GPTQ as in AutoAWQ and AutoGPTQ, compressed-tensors
// (vllm-project), modelopt (NVIDIA), bitsandbytes, MLX, and the FP8 blocks of DeepSeek.
#include "core/model/inventory_builder.h"
#include "core/model/tensor_split.h"

#include <algorithm>

namespace headroom {

// How an axis of a stored tensor relates to the weight's: `axis` of the stored tensor holds 1/divisor as many elements.
struct StoredAxis {
  int axis = -1;  // -1: the tensor does not have this axis
  int64_t divisor = 1;
};

class QuantizedLinear {
 public:
  QuantizedLinear(InventoryBuilder& builder, const Linear& linear) : m_builder(builder), m_linear(linear) {
    m_weight.role = linear.role;
    m_weight.layer = linear.layer;
    m_weight.shape = {linear.out, linear.in};
    if (linear.role == TensorRole::Other) {
      m_weight.splitDim = linear.splitDim;
      m_weight.segments = linear.segments;
    } else if (!builder.m_unloaded) {
      expects(assignSplit(m_weight, builder.config()), "a formula's shape follows its configuration");
    }
  }

  void addPlain() {
    add("weight", m_builder.config().dtype, {m_linear.out, m_linear.in}, {0}, {1}, m_linear.out * m_linear.in, true);
  }

  void addQuantized() {
    const QuantizationConfig& format = *m_builder.config().quantization;
    if (format.method == "fp8" || format.method == "fbgemm_fp8") return addFp8(format);
    if (format.method == "awq") return addAwq(format);
    if (format.method == "gptq") return addGptq(format);
    if (format.method == "mlx") return addMlx(format);
    if (format.method == "bitsandbytes") return format.bits == 8 ? addInt8() : addNf4(format);
    if (format.method == "compressed-tensors") return addCompressed(format);
    if (format.method == "modelopt" || format.method == "modelopt_fp4") return addModelopt(format);
    addPlain();  // mxfp4 is for experts; unknown methods are warned about
  }

 private:
  int64_t logical() const { return m_linear.out * m_linear.in; }
  int64_t group(const QuantizationConfig& format) const { return format.groupSize > 0 ? format.groupSize : m_linear.in; }

  void add(const char* suffix, DType dtype, std::vector<int64_t> shape, StoredAxis outAxis, StoredAxis inAxis,
           std::optional<int64_t> logical, bool isWeight = false) {
    TensorEntry entry;
    entry.name = m_linear.module + "." + suffix;
    entry.role = isWeight && !m_builder.m_unloaded ? m_linear.role : TensorRole::Other;
    entry.layer = m_linear.layer;
    entry.dtype = dtype;
    entry.loaded = !m_builder.m_unloaded;
    const StoredAxis& split = m_weight.splitDim == 0 ? outAxis : inAxis;
    if (m_weight.splitDim >= 0 && entry.loaded && split.axis >= 0) {
      entry.splitDim = split.axis;
      bool whole = true;
      for (SplitSegment segment : m_weight.segments) {
        whole = whole && segment.elements % split.divisor == 0;
        segment.granule = split.divisor;
        segment.weightElements = segment.elements;
        segment.weightElementsPerUnit = segment.elementsPerUnit;
        segment.elements = ceilDiv(segment.elements, split.divisor);
        segment.elementsPerUnit = std::max<int64_t>(1, segment.elementsPerUnit / split.divisor);
        entry.segments.push_back(segment);
      }
      int64_t sum = 0;
      for (const auto& segment : entry.segments) sum += segment.elements;
      const bool follows = sum == shape[static_cast<size_t>(split.axis)];
      if (!whole || !follows) entry.splitDim = -1;
      if (!follows) entry.segments.clear();
    }
    int64_t copies = 1;
    if (m_linear.experts > 0) {
      copies = m_linear.experts;
      shape.insert(shape.begin(), copies);
      if (entry.splitDim >= 0) ++entry.splitDim;
    }
    entry.shape = std::move(shape);
    if (logical && *logical * copies != entry.elements()) entry.logicalParameters = *logical * copies;
    m_builder.m_inventory.tensors.push_back(std::move(entry));
  }

  // DeepSeek V4: FP4 experts in blocks of 32, the rest FP8 in tiles, scales of one byte each.
  void addFp4Mixture(const QuantizationConfig& format) {
    const bool expert = m_linear.experts > 0;
    const int64_t rows = expert || format.weightBlock.size() != 2 ? 1 : format.weightBlock[0];
    const int64_t columns = expert || format.weightBlock.size() != 2 ? 32 : format.weightBlock[1];
    const bool even = (m_linear.out * m_linear.in) % 2 == 0;
    add("weight", expert && even ? DType::F4E2M1 : DType::F8E4M3, {m_linear.out, m_linear.in}, {0}, {1}, logical(), true);
    add("scale", DType::F8E8M0, {ceilDiv(m_linear.out, rows), ceilDiv(m_linear.in, columns)}, {0, rows}, {1, columns}, 0);
  }

  void addFp8(const QuantizationConfig& format) {
    if (m_builder.keys().has("expert_dtype")) return addFp4Mixture(format);
    add("weight", DType::F8E4M3, {m_linear.out, m_linear.in}, {0}, {1}, logical(), true);
    if (format.weightBlock.size() == 2) {
      const int64_t rows = format.weightBlock[0], columns = format.weightBlock[1];
      add("weight_scale_inv", DType::F32, {ceilDiv(m_linear.out, rows), ceilDiv(m_linear.in, columns)}, {0, rows}, {1, columns},
          std::nullopt);
      return;
    }
    add("weight_scale_inv", DType::F32, {}, {}, {}, 0);
    if (format.raw.is_object() && format.raw.value("activation_scheme", nlohmann::json()) == "static")
      add("activation_scale", DType::F32, {}, {}, {}, 0);
  }

  void addAwq(const QuantizationConfig& format) {
    const int64_t packed = 32 / std::max(1, format.bits == 0 ? 4 : format.bits), groups = ceilDiv(m_linear.in, group(format));
    add("qweight", DType::I32, {m_linear.in, ceilDiv(m_linear.out, packed)}, {1, packed}, {0}, logical(), true);
    add("qzeros", DType::I32, {groups, ceilDiv(m_linear.out, packed)}, {1, packed}, {0, group(format)}, 0);
    add("scales", DType::F16, {groups, m_linear.out}, {1}, {0, group(format)}, 0);
  }

  void addGptq(const QuantizationConfig& format) {
    const int64_t bits = format.bits == 0 ? 4 : format.bits, groups = ceilDiv(m_linear.in, group(format));
    // Three bits are packed 32 to 3 words, the others evenly.
    add("qweight", DType::I32, {ceilDiv(m_linear.in * bits, 32), m_linear.out}, {1}, {0, std::max<int64_t>(1, 32 / bits)},
        logical(), true);
    add("qzeros", DType::I32, {groups, ceilDiv(m_linear.out * bits, 32)}, {1, std::max<int64_t>(1, 32 / bits)},
        {0, group(format)}, 0);
    add("scales", DType::F16, {groups, m_linear.out}, {1}, {0, group(format)}, 0);
    add("g_idx", DType::I32, {m_linear.in}, {}, {0}, 0);
  }

  void addMlx(const QuantizationConfig& format) {
    const int64_t bits = format.bits == 0 ? 4 : format.bits, groups = ceilDiv(m_linear.in, group(format));
    add("weight", DType::I32, {m_linear.out, ceilDiv(m_linear.in * bits, 32)}, {0}, {1, std::max<int64_t>(1, 32 / bits)},
        logical(), true);
    for (const char* name : {"scales", "biases"})
      add(name, m_builder.config().dtype, {m_linear.out, groups}, {0}, {1, group(format)}, 0);
  }

  void addInt8() {
    add("weight", DType::I8, {m_linear.out, m_linear.in}, {0}, {1}, logical(), true);
    add("SCB", DType::F32, {m_linear.out}, {0}, {}, 0);
    add("weight_format", DType::U8, {}, {}, {}, 0);
  }

  // Blocks of 64 weights; with double quantization their maxima are bytes in blocks of 256.
  void addNf4(const QuantizationConfig& format) {
    const int64_t blocks = ceilDiv(logical(), 64);
    add("weight", DType::U8, {ceilDiv(logical(), 2), 1}, {}, {}, logical(), true);
    const bool nested = format.raw.is_object() && format.raw.value("bnb_4bit_use_double_quant", nlohmann::json()) == true;
    add("weight.absmax", nested ? DType::U8 : DType::F32, {blocks}, {}, {}, 0);
    add("weight.quant_map", DType::F32, {16}, {}, {}, 0);
    if (nested) add("weight.nested_absmax", DType::F32, {ceilDiv(blocks, 256)}, {}, {}, 0);
    if (nested) add("weight.nested_quant_map", DType::F32, {256}, {}, {}, 0);
    add("weight.quant_state.bitsandbytes__nf4", DType::U8, {stateTextBytes(nested)}, {}, {}, 0);
  }

  // bitsandbytes keeps the rest of a matrix's state as JSON text. The mean of the maxima in it is a number of some 19 characters.
  int64_t stateTextBytes(bool nested) const {
    const DType dtype = m_builder.config().dtype;
    const char* name = dtype == DType::BF16 ? "bfloat16" : dtype == DType::F32 ? "float32" : "float16";
    std::string text = fmt::format(R"({{"quant_type": "nf4", "blocksize": 64, "dtype": "{}", "shape": [{}, {}]}})", name,
                                   m_linear.out, m_linear.in);
    constexpr int64_t kMeanCharacters = 19;
    const std::string_view more = R"(, "nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": )";
    return static_cast<int64_t>(text.size()) + (nested ? static_cast<int64_t>(more.size()) + kMeanCharacters : 0);
  }

  void addCompressed(const QuantizationConfig& format) {
    const std::string name = format.raw.is_object() && format.raw.contains("format") && format.raw["format"].is_string()
                                 ? format.raw["format"].get<std::string>()
                                 : "";
    const DType scale = m_builder.config().dtype;
    if (name == "pack-quantized") {
      const int64_t packed = 32 / std::max(1, format.bits == 0 ? 4 : format.bits);
      add("weight_packed", DType::I32, {m_linear.out, ceilDiv(m_linear.in, packed)}, {0}, {1, packed}, logical(), true);
      add("weight_scale", scale, {m_linear.out, ceilDiv(m_linear.in, group(format))}, {0}, {1, group(format)}, 0);
      if (!format.symmetric)
        add("weight_zero_point", DType::I32, {ceilDiv(m_linear.out, packed), ceilDiv(m_linear.in, group(format))}, {0, packed},
            {1, group(format)}, 0);
      add("weight_shape", DType::I64, {2}, {}, {}, 0);
    } else if (name == "nvfp4-pack-quantized") {
      add("weight_packed", DType::U8, {m_linear.out, ceilDiv(m_linear.in, 2)}, {0}, {1, 2}, logical(), true);
      add("weight_scale", DType::F8E4M3, {m_linear.out, ceilDiv(m_linear.in, 16)}, {0}, {1, 16}, 0);
      add("weight_global_scale", DType::F32, {1}, {}, {}, 0);
      add("input_global_scale", DType::F32, {1}, {}, {}, 0);
    } else {
      add("weight", name == "int-quantized" ? DType::I8 : DType::F8E4M3, {m_linear.out, m_linear.in}, {0}, {1}, logical(), true);
      // One scale for each output or for the whole tensor; static activations bring one too.
      const nlohmann::json weights = firstGroup(format, "weights"), inputs = firstGroup(format, "input_activations");
      if (weights.value("strategy", nlohmann::json()) == "tensor")
        add("weight_scale", scale, {1}, {}, {}, 0);
      else
        add("weight_scale", scale, {m_linear.out, 1}, {0}, {}, 0);
      if (name == "int-quantized" && !format.symmetric) add("weight_zero_point", DType::I8, {m_linear.out, 1}, {0}, {}, 0);
      if (inputs.value("dynamic", nlohmann::json()) == false) add("input_scale", scale, {1}, {}, {}, 0);
    }
  }

  // What the first of a compressed-tensors configuration's groups says of `part`; an empty object where it says nothing.
  static nlohmann::json firstGroup(const QuantizationConfig& format, const char* part) {
    const nlohmann::json none = nlohmann::json::object();
    if (!format.raw.is_object() || !format.raw.contains("config_groups")) return none;
    const nlohmann::json& groups = format.raw["config_groups"];
    if (!groups.is_object() || groups.empty() || !groups.begin()->is_object() || !groups.begin()->contains(part)) return none;
    const nlohmann::json& found = (*groups.begin())[part];
    return found.is_object() ? found : none;
  }

  void addModelopt(const QuantizationConfig& format) {
    if (format.bits == 4) {
      add("weight", DType::U8, {m_linear.out, ceilDiv(m_linear.in, 2)}, {0}, {1, 2}, logical(), true);
      add("weight_scale", DType::F8E4M3, {m_linear.out, ceilDiv(m_linear.in, 16)}, {0}, {1, 16}, 0);
      add("weight_scale_2", DType::F32, {}, {}, {}, 0);
    } else {
      add("weight", DType::F8E4M3, {m_linear.out, m_linear.in}, {0}, {1}, logical(), true);
      add("weight_scale", DType::F32, {}, {}, {}, 0);
    }
    add("input_scale", DType::F32, {}, {}, {}, 0);
  }

  InventoryBuilder& m_builder;
  const Linear& m_linear;
  TensorEntry m_weight;  // for its split only
};

void InventoryBuilder::linear(Linear linear) {
  QuantizedLinear stored(*this, linear);
  if (isQuantized(linear.module))
    stored.addQuantized();
  else
    stored.addPlain();
  if (!linear.bias) return;
  TensorEntry& entry = tensor(TensorRole::Other, linear.module + ".bias", {linear.out}, linear.layer);
  if (m_unloaded) return;
  entry.role = linear.biasRole;
  if (linear.biasRole == TensorRole::Other && linear.splitDim == 0) {
    entry.splitDim = 0;
    entry.segments = linear.segments;
  } else {
    expects(assignSplit(entry, m_config), "a formula's shape follows its configuration");
  }
}

}  // namespace headroom
