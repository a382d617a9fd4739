// SPDX-License-Identifier: Apache-2.0
// Packed weights and linear layers in the emulation, each format against the CPU's readers of stored blocks (block_formats) and
// double precision.
#include "engine/device/cuda/kernels/packed_weight.h"

#include "tests/engine/cuda_kernels_packed_support.h"

using namespace headroom;
using namespace headroom::engine;
using namespace headroom::engine::cuda;
using namespace headroom::engine::cuda::test;

namespace {

class CudaKernelsPackedWeightTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void planesTakeNoMoreThanBlocks() {
    for (const Format& format : kFormats) {
      const int64_t in = format.block * 3, rowBytes = packedRowBytes(format.format, in);
      if (format.dtype != DType::F32) {
        QCOMPARE(rowBytes, storageBytes(format.dtype, in).count());
        QCOMPARE(packedLayout(format.format, 17, in).bytes, 17 * rowBytes);
      } else {
        QCOMPARE(packedLayout(format.format, 17, in).bytes, 17 * in * (format.format == WeightFormat::Int4 ? 4 : 8) / 8);
      }
    }
  }

  void dequantizes_data() { formats(); }
  // Whole and partial groups of rows, whole and partial runs of columns; rows packed in pieces, in any order.
  void dequantizes() {
    QFETCH(int, index);
    const Format& format = kFormats[index];
    for (const auto& [out, blocks] : {std::pair<int64_t, int64_t>{1, 1}, {16, 2}, {37, 3}, {19, 5}}) {
      Gpu gpu;
      StoredMatrix stored(format, out, blocks * format.block, 7);
      const PackedWeight weight = stored.pack(gpu, {{out / 2, out}, {0, out / 2}});
      for (DType type : {DType::F32, DType::F16, DType::BF16}) {
        Matrix result(out, stored.in, type, 1);
        const TensorView device = result.upload(gpu);
        dequantizeRows(gpu.stream, device, weight, 0);
        result.download(gpu, device);
        compare(
            result, [&](int64_t r, int64_t c) { return stored.values.at(r, c); }, tolerance(type), 1e-3);
      }
      QCOMPARE(gpu.report(), QString());
    }
  }

  void embeds() {
    Gpu gpu;
    StoredMatrix stored(kFormats[0], 21, 96, 3);
    const PackedWeight table = stored.pack(gpu, {{0, 21}});
    Matrix out(4, 96, DType::BF16, 1);
    const TensorView device = out.upload(gpu);
    embedPacked(gpu.stream, device, table, gpu.indices({100, 120, 99, 121}), 100);
    out.download(gpu, device);
    compare(
        out, [&](int64_t r, int64_t c) { return r == 0   ? stored.values.at(0, c)
                                                : r == 1 ? stored.values.at(20, c)
                                                         : 0.0f; },
        0x1p-8, 1e-3);
    QCOMPARE(gpu.report(), QString());
  }
};

}  // namespace

QTEST_APPLESS_MAIN(CudaKernelsPackedWeightTest)
#include "cuda_kernels_packed_weight_test.moc"
