// SPDX-License-Identifier: Apache-2.0
// The GPU catalog: well-formed, found by the names people use, figures as the vendor and the driver give them.
#include "core/hardware/machine.h"

#include <QtTest>
#include <set>

using namespace headroom;

class GpuCatalogTest : public QObject {
  Q_OBJECT
 private slots:
  void everyRowIsSound() {
    std::set<std::string> names;
    QVERIFY(gpuCatalog().size() > 60);
    for (const GpuSpec& spec : gpuCatalog()) {
      QVERIFY2(names.insert(spec.name).second, spec.name.c_str());
      QVERIFY2(!spec.source.empty() && !spec.architecture.empty(), spec.name.c_str());
      QVERIFY2(spec.memory >= 6_GiB && spec.memory <= 300_GiB, spec.name.c_str());
      QVERIFY2(spec.bandwidthGBs && *spec.bandwidthGBs >= 200 && *spec.bandwidthGBs <= 8000, spec.name.c_str());
      QVERIFY2(spec.computeCapability && *spec.computeCapability >= 6.0, spec.name.c_str());
      QVERIFY2(spec.year && *spec.year >= 2016, spec.name.c_str());
      // bfloat16 arithmetic came with compute capability 8.0, FP8 with 8.9.
      if (*spec.computeCapability < 8.0) QVERIFY2(!spec.bf16Tflops, spec.name.c_str());
      if (*spec.computeCapability < 8.9) QVERIFY2(!spec.fp8Tflops, spec.name.c_str());
      if (spec.fp8Tflops && spec.bf16Tflops) QVERIFY2(*spec.fp8Tflops >= *spec.bf16Tflops * 1.9, spec.name.c_str());
      if (spec.link == LinkKind::Pcie && spec.linkGBs) QVERIFY2(*spec.linkGBs <= 64, spec.name.c_str());
      QCOMPARE(findGpu(spec.name), &spec);
      for (const std::string& alias : spec.aliases) QVERIFY2(findGpu(alias) == &spec, alias.c_str());
    }
  }

  void namesAreFound_data() {
    QTest::addColumn<QString>("written");
    QTest::addColumn<QString>("name");
    QTest::newRow("case") << "a800-80gb"
                          << "A800-80GB";
    QTest::newRow("spaces") << "NVIDIA GeForce RTX 4090"
                            << "RTX 4090";
    QTest::newRow("short") << "3090"
                           << "RTX 3090";
    QTest::newRow("driver") << "NVIDIA A100-SXM4-80GB"
                            << "A100-80GB-SXM";
    QTest::newRow("remark") << "H100 (80 GB class)"
                            << "H100-80GB-SXM";
    QTest::newRow("tesla") << "Tesla T4"
                           << "T4-16GB";
  }
  void namesAreFound() {
    QFETCH(QString, written);
    QFETCH(QString, name);
    const GpuSpec* spec = findGpu(written.toStdString());
    QVERIFY(spec);
    QCOMPARE(QString::fromStdString(spec->name), name);
  }

  void figuresOfKnownCards() {
    const GpuSpec* h100 = findGpu("H100-80GB-SXM");
    QVERIFY(std::abs(h100->memory.gib() - 79.19) < 0.01);  // what start-up logs report
    QCOMPARE(*h100->bandwidthGBs, 3350.0);
    QCOMPARE(*h100->bf16Tflops, 989.0);
    const GpuSpec* l4 = findGpu("L4");
    QCOMPARE(*l4->bandwidthGBs, 300.0);
    QVERIFY(!findGpu("RTX PRO 4000")->bf16Tflops);  // not published in dense terms: unknown, not 0
    QVERIFY(!findGpu("no such card"));
    QVERIFY(!findGpu(""));
  }
};

QTEST_GUILESS_MAIN(GpuCatalogTest)
#include "gpu_catalog_test.moc"
