// SPDX-License-Identifier: Apache-2.0
// Quantized checkpoints: what the engine holds of AWQ, GPTQ, compressed-tensors and FP8 weights is what their formats say, number
// by number. The files are packed here from known codes.
#include "engine/weights/held_weight_reader.h"
#include "core/model/held_weights.h"
#include "engine/device/cpu/block_formats.h"

#include <QTemporaryDir>
#include <QtTest>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

using namespace headroom;
using namespace headroom::engine;

namespace {

constexpr int64_t kOut = 64, kIn = 128, kGroup = 32, kGroups = kIn / kGroup;

// A safetensors file, tensor by tensor.
class Checkpoint {
 public:
  void add(const std::string& part, const char* dtype, std::vector<int64_t> shape, const void* data, size_t bytes) {
    m_header["model.layers.0.self_attn.q_proj." + part] = {
        {"dtype", dtype}, {"shape", shape}, {"data_offsets", {m_data.size(), m_data.size() + bytes}}};
    m_data.append(static_cast<const char*>(data), bytes);
  }
  template <class T>
  void add(const std::string& part, const char* dtype, std::vector<int64_t> shape, const std::vector<T>& data) {
    add(part, dtype, std::move(shape), data.data(), data.size() * sizeof(T));
  }
  ModelSource open(const nlohmann::json& quantization) {
    const nlohmann::json config = {{"architectures", {"LlamaForCausalLM"}},
                                   {"model_type", "llama"},
                                   {"hidden_size", kIn},
                                   {"intermediate_size", 128},
                                   {"num_hidden_layers", 1},
                                   {"num_attention_heads", 2},
                                   {"num_key_value_heads", 2},
                                   {"head_dim", kOut / 2},
                                   {"vocab_size", 32},
                                   {"max_position_embeddings", 64},
                                   {"rms_norm_eps", 1e-5},
                                   {"torch_dtype", "float16"},
                                   {"quantization_config", quantization}};
    std::ofstream(m_folder.filePath("config.json").toStdString()) << config;
    std::string header = m_header.dump();
    header.resize((header.size() + 7) / 8 * 8, ' ');
    const uint64_t size = header.size();
    std::ofstream file(m_folder.filePath("model.safetensors").toStdString(), std::ios::binary);
    file.write(reinterpret_cast<const char*>(&size), sizeof size) << header << m_data;
    file.close();
    Result<ModelSource> model = openModel(m_folder.path().toStdString());
    if (!model) qFatal("%s", model.error().message().c_str());
    return heldByEngine(std::move(*model));
  }

 private:
  QTemporaryDir m_folder;
  nlohmann::json m_header = nlohmann::json::object();
  std::string m_data;
};

struct Truth {
  std::vector<int> codes = std::vector<int>(kOut * kIn), zeros = std::vector<int>(kOut * kGroups);
  std::vector<float> scales = std::vector<float>(kOut * kGroups);  // numbers that half precision and bfloat16 hold
  std::vector<int> groups = std::vector<int>(kIn);
  Truth(int most, unsigned seed) {
    std::mt19937 random(seed);
    for (int& code : codes) code = static_cast<int>(random() % static_cast<unsigned>(most + 1));
    for (int& zero : zeros) zero = 1 + static_cast<int>(random() % static_cast<unsigned>(most));
    for (float& scale : scales) scale = std::ldexp(static_cast<float>(1 + random() % 7), -9);
    for (int64_t i = 0; i < kIn; ++i) groups[static_cast<size_t>(i)] = static_cast<int>(i / kGroup);
  }
  int& code(int64_t o, int64_t i) { return codes[static_cast<size_t>(o * kIn + i)]; }
  int& zero(int64_t o, int64_t g) { return zeros[static_cast<size_t>(o * kGroups + g)]; }
  float& scale(int64_t o, int64_t g) { return scales[static_cast<size_t>(o * kGroups + g)]; }
  float value(int64_t o, int64_t i) {
    const int64_t g = groups[static_cast<size_t>(i)];
    return static_cast<float>(code(o, i) - zero(o, g)) * scale(o, g);
  }
  std::vector<uint16_t> halfScalesByGroup() {
    std::vector<uint16_t> made;
    for (int64_t g = 0; g < kGroups; ++g)
      for (int64_t o = 0; o < kOut; ++o) made.push_back(cpu::floatToF16(scale(o, g)));
    return made;
  }
  std::vector<uint16_t> bfloatScales() const {
    std::vector<uint16_t> made;
    for (float scale : scales) made.push_back(cpu::floatToBf16(scale));
    return made;
  }
};

class HeldWeightReaderTest : public QObject {
  Q_OBJECT
 private slots:
  void awqAndGptq_data() {
    QTest::addColumn<bool>("awq");
    QTest::addColumn<bool>("activationOrder");
    QTest::newRow("AWQ") << true << false;
    QTest::newRow("GPTQ") << false << false;
    QTest::newRow("GPTQ in activation order") << false << true;
  }
  void awqAndGptq() {
    QFETCH(bool, awq);
    QFETCH(bool, activationOrder);
    Truth truth(15, 1);
    if (activationOrder) std::shuffle(truth.groups.begin(), truth.groups.end(), std::mt19937(2));
    constexpr int kAwqOrder[] = {0, 2, 4, 6, 1, 3, 5, 7};  // output of nibble i
    std::vector<uint32_t> codes, zeros;
    const int64_t lines = awq ? kIn : kIn / 8, words = awq ? kOut / 8 : kOut;
    for (int64_t line = 0; line < lines; ++line) {
      for (int64_t column = 0; column < words; ++column) {
        uint32_t word = 0;
        for (int n = 0; n < 8; ++n)
          word |= static_cast<uint32_t>(awq ? truth.code(8 * column + kAwqOrder[n], line) : truth.code(column, 8 * line + n))
                  << (4 * n);
        codes.push_back(word);
      }
    }
    for (int64_t g = 0; g < kGroups; ++g) {
      for (int64_t column = 0; column < kOut / 8; ++column) {
        uint32_t word = 0;
        for (int n = 0; n < 8; ++n)
          word |= static_cast<uint32_t>(awq ? truth.zero(8 * column + kAwqOrder[n], g) : truth.zero(8 * column + n, g) - 1)
                  << (4 * n);
        zeros.push_back(word);
      }
    }
    Checkpoint files;
    files.add("qweight", "I32", {lines, words}, codes);
    files.add("qzeros", "I32", {kGroups, kOut / 8}, zeros);
    files.add("scales", "F16", {kGroups, kOut}, truth.halfScalesByGroup());
    if (!awq) files.add("g_idx", "I32", {kIn}, truth.groups);
    compare(files.open({{"quant_method", awq ? "awq" : "gptq"},
                        {"bits", 4},
                        {"group_size", kGroup},
                        {"desc_act", activationOrder},
                        {"sym", false},
                        {"zero_point", true},
                        {"version", "gemm"}}),
            activationOrder ? DType::BF16 : DType::Q5_0, truth);
  }

  void compressedTensors_data() {
    QTest::addColumn<int>("bits");
    QTest::newRow("4 bits") << 4;
    QTest::newRow("8 bits") << 8;
  }
  void compressedTensors() {
    QFETCH(int, bits);
    Truth truth((1 << bits) - 1, 3);
    std::fill(truth.zeros.begin(), truth.zeros.end(), 1 << (bits - 1));
    std::vector<uint32_t> codes;
    const int64_t perWord = 32 / bits;
    for (int64_t o = 0; o < kOut; ++o) {
      for (int64_t word = 0; word < kIn / perWord; ++word) {
        uint32_t packed = 0;
        for (int64_t n = 0; n < perWord; ++n) packed |= static_cast<uint32_t>(truth.code(o, word * perWord + n)) << (bits * n);
        codes.push_back(packed);
      }
    }
    Checkpoint files;
    files.add("weight_packed", "I32", {kOut, kIn / perWord}, codes);
    files.add("weight_scale", "BF16", {kOut, kGroups}, truth.bfloatScales());
    files.add("weight_shape", "I64", {2}, std::vector<int64_t>{kOut, kIn});
    compare(files.open(groupsOf(
                "pack-quantized",
                {{"num_bits", bits}, {"type", "int"}, {"strategy", "group"}, {"group_size", kGroup}, {"symmetric", true}})),
            bits == 4 ? DType::Q4_0 : DType::Q8_0, truth);
  }

  // Zero points of their own. pack_to_int32 of compressed-tensors 0.20 packs -8 … 7 down the outputs as 76543210 fedcba98.
  void compressedTensorsWithZeroPoints_data() {
    QTest::addColumn<QString>("form");
    QTest::addColumn<int>("bits");
    QTest::addColumn<DType>("held");
    QTest::newRow("4 bits in groups") << "packed" << 4 << DType::Q5_0;
    QTest::newRow("8 bits in groups") << "packed" << 8 << DType::BF16;
    QTest::newRow("4 bits in groups, zero points as bytes") << "bytes" << 4 << DType::Q5_0;
    QTest::newRow("4 bits, groups in activation order") << "ordered" << 4 << DType::BF16;
    QTest::newRow("8 bits as bytes, one for each output") << "channel" << 8 << DType::BF16;
  }
  void compressedTensorsWithZeroPoints() {
    QFETCH(QString, form);
    QFETCH(int, bits);
    QFETCH(DType, held);
    Truth truth((1 << bits) - 1, 6);
    const int64_t perWord = 32 / bits;
    const int middle = 1 << (bits - 1);
    Checkpoint files;
    nlohmann::json weights = {
        {"num_bits", bits}, {"type", "int"}, {"strategy", "group"}, {"group_size", kGroup}, {"symmetric", false}};
    if (form == "channel") {
      weights["strategy"] = "channel";
      weights["group_size"] = nullptr;
      std::vector<int8_t> codes, zeros;
      std::vector<uint16_t> scales;
      for (int64_t o = 0; o < kOut; ++o) {
        for (int64_t g = 1; g < kGroups; ++g) truth.zero(o, g) = truth.zero(o, 0), truth.scale(o, g) = truth.scale(o, 0);
        for (int64_t i = 0; i < kIn; ++i) codes.push_back(static_cast<int8_t>(truth.code(o, i) - middle));
        zeros.push_back(static_cast<int8_t>(truth.zero(o, 0) - middle));
        scales.push_back(cpu::floatToBf16(truth.scale(o, 0)));
      }
      files.add("weight", "I8", {kOut, kIn}, codes);
      files.add("weight_scale", "BF16", {kOut, 1}, scales);
      files.add("weight_zero_point", "I8", {kOut, 1}, zeros);
      return compare(files.open(groupsOf("int-quantized", weights)), held, truth);
    }
    if (form == "ordered") {
      weights["actorder"] = "group";
      std::shuffle(truth.groups.begin(), truth.groups.end(), std::mt19937(7));
      files.add("weight_g_idx", "I32", {kIn}, truth.groups);
    }
    std::vector<uint32_t> codes, zeros;
    for (int64_t o = 0; o < kOut; ++o)
      for (int64_t word = 0; word < kIn / perWord; ++word) {
        uint32_t packed = 0;
        for (int64_t n = 0; n < perWord; ++n) packed |= static_cast<uint32_t>(truth.code(o, word * perWord + n)) << (bits * n);
        codes.push_back(packed);
      }
    for (int64_t line = 0; line < kOut / perWord; ++line)
      for (int64_t g = 0; g < kGroups; ++g) {
        uint32_t packed = 0;
        for (int64_t n = 0; n < perWord; ++n) packed |= static_cast<uint32_t>(truth.zero(line * perWord + n, g)) << (bits * n);
        zeros.push_back(packed);
      }
    files.add("weight_packed", "I32", {kOut, kIn / perWord}, codes);
    files.add("weight_scale", "BF16", {kOut, kGroups}, truth.bfloatScales());
    files.add("weight_shape", "I64", {2}, std::vector<int64_t>{kOut, kIn});
    if (form == "bytes") {
      std::vector<int8_t> bytes;
      for (int zero : truth.zeros) bytes.push_back(static_cast<int8_t>(zero - middle));
      files.add("weight_zero_point", "I8", {kOut, kGroups}, bytes);
    } else {
      files.add("weight_zero_point", "I32", {kOut / perWord, kGroups}, zeros);
    }
    const ModelSource model = files.open(groupsOf("pack-quantized", weights));
    for (const TensorEntry& tensor : model.inventory.tensors)
      QVERIFY2(!tensor.loaded || tensor.role == TensorRole::Q, tensor.name.c_str());
    compare(model, held, truth);
  }

  void fp8InTiles() {
    constexpr int64_t kTileRows = 16;
    std::mt19937 random(4);
    std::vector<uint8_t> codes(kOut * kIn);
    for (uint8_t& code : codes) code = static_cast<uint8_t>(random() % 127 | (random() % 2) << 7);
    std::vector<float> scales;
    for (int64_t i = 0; i < kOut / kTileRows * kGroups; ++i) scales.push_back(0.01f * static_cast<float>(1 + random() % 50));
    Checkpoint files;
    files.add("weight", "F8_E4M3", {kOut, kIn}, codes);
    files.add("weight_scale_inv", "F32", {kOut / kTileRows, kGroups}, scales);
    const ModelSource model =
        files.open({{"quant_method", "fp8"}, {"weight_block_size", {kTileRows, kGroup}}, {"activation_scheme", "dynamic"}});
    read(model, DType::BF16, [&](int64_t o, int64_t i) {
      const int code = codes[static_cast<size_t>(o * kIn + i)], exponent = code >> 3 & 15, fraction = code & 7;
      const double size = exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10);
      return static_cast<float>(code & 128 ? -size : size) * scales[static_cast<size_t>(o / kTileRows * kGroups + i / kGroup)];
    });
  }

  void tellsWhatIsMissing() {
    Checkpoint files;
    files.add("weight_packed", "I32", {kOut, kIn / 8}, std::vector<uint32_t>(kOut * kIn / 8));
    const ModelSource model =
        files.open(groupsOf("pack-quantized", {{"num_bits", 4}, {"group_size", kGroup}, {"symmetric", true}}));
    TensorReader reader(model.weightFiles);
    HeldWeightReader held(model, reader);
    const Status status =
        held.read(*heldQ(model), {{0, kOut}}, {{0, kIn}}, [](int64_t, int64_t, DType, const void*) -> Status { return {}; });
    QVERIFY(!status);
    QVERIFY(status.error().message().find("no scales") != std::string::npos);

    Checkpoint asymmetric;
    asymmetric.add("weight_packed", "I32", {kOut, kIn / 8}, std::vector<uint32_t>(kOut * kIn / 8));
    asymmetric.add("weight_scale", "BF16", {kOut, kGroups}, std::vector<uint16_t>(kOut * kGroups, 0x3f80));
    const ModelSource zeroless =
        asymmetric.open(groupsOf("pack-quantized", {{"num_bits", 4}, {"group_size", kGroup}, {"symmetric", false}}));
    TensorReader other(zeroless.weightFiles);
    HeldWeightReader heldToo(zeroless, other);
    const Status zeros = heldToo.read(*heldQ(zeroless), {{0, kOut}}, {{0, kIn}},
                                      [](int64_t, int64_t, DType, const void*) -> Status { return {}; });
    QVERIFY(!zeros);
    QVERIFY(zeros.error().message().find("no weight_zero_point") != std::string::npos);
  }

 private:
  static nlohmann::json groupsOf(const char* format, const nlohmann::json& weights) {
    return {{"quant_method", "compressed-tensors"}, {"format", format}, {"config_groups", {{"group_0", {{"weights", weights}}}}}};
  }
  static void compare(const ModelSource& model, DType dtype, Truth& truth) {
    read(model, dtype, [&](int64_t o, int64_t i) { return truth.value(o, i); });
  }
  // The entry that the engine loads; the stored codes stay listed beside it.
  static const TensorEntry* heldQ(const ModelSource& model) {
    for (const TensorEntry& tensor : model.inventory.tensors)
      if (tensor.loaded && tensor.role == TensorRole::Q) return &tensor;
    return nullptr;
  }
  // Two ranges of rows and one of columns, as a tensor-parallel rank reads them.
  template <class Value>
  static void read(const ModelSource& model, DType dtype, const Value& value) {
    const TensorEntry* entry = heldQ(model);
    QVERIFY(entry != nullptr);
    QCOMPARE(entry->dtype, dtype);
    QCOMPARE(entry->shape, (std::vector<int64_t>{kOut, kIn}));
    TensorReader reader(model.weightFiles);
    HeldWeightReader held(model, reader);
    QVERIFY(held.reads(*entry));
    std::vector<int64_t> rows;
    for (int64_t o = 5; o < 19; ++o) rows.push_back(o);
    for (int64_t o = 32; o < kOut; ++o) rows.push_back(o);
    int64_t next = 0;
    const Status status =
        held.read(*entry, {{5, 19}, {32, kOut}}, {{32, 96}}, [&](int64_t first, int64_t count, DType found, const void* data) {
          if (first != next) qFatal("rows out of order");
          std::vector<float> floats(static_cast<size_t>(count) * 64);
          for (int64_t r = 0; r < count; ++r)
            cpu::toFloats(found, static_cast<const std::byte*>(data) + r * storageBytes(found, 64).count(), 64,
                          floats.data() + r * 64);
          for (int64_t r = 0; r < count; ++r)
            for (int64_t c = 0; c < 64; ++c)
              if (floats[static_cast<size_t>(r * 64 + c)] != value(rows[static_cast<size_t>(first + r)], 32 + c)) ++wrong();
          next += count;
          return Status();
        });
    QVERIFY2(status.has_value(), status ? "" : status.error().message().c_str());
    QCOMPARE(next, static_cast<int64_t>(rows.size()));
    QCOMPARE(std::exchange(wrong(), 0), 0);
  }
  static int& wrong() {
    static int count = 0;
    return count;
  }
};

}  // namespace

QTEST_APPLESS_MAIN(HeldWeightReaderTest)
#include "held_weight_reader_test.moc"
