// SPDX-License-Identifier: Apache-2.0
// What NVML tells is read with its units; what it does not tell stays unknown; without it there is a reason.
#include "engine/device/nvml_reader.h"

#include <QtTest>

using namespace headroom;
using namespace headroom::engine;

class NvmlReaderTest : public QObject {
  Q_OBJECT
 private slots:
  void cleanup() {
    qunsetenv("HEADROOM_EMULATED_GPUS");
    qunsetenv("HEADROOM_EMULATED_FAULT");
  }
  void saysWhyItIsNotThere() {
    const auto reader = NvmlReader::open("/nonexistent/libnvidia-ml.so.1");
    QVERIFY(!reader);
    QVERIFY2(reader.error().message().starts_with("NVML: found no /nonexistent/libnvidia-ml.so.1"),
             reader.error().message().c_str());
    qputenv("HEADROOM_EMULATED_FAULT", "nvml");
    const auto broken = NvmlReader::open(NVML_EMULATED);
    QVERIFY(!broken);
    QVERIFY2(broken.error().message().find("result 9 of nvmlInit_v2") != std::string::npos, broken.error().message().c_str());
  }
  void readsUnits() {
    qputenv("HEADROOM_EMULATED_GPUS", "2");
    const auto reader = NvmlReader::open(NVML_EMULATED);
    QVERIFY(reader.has_value());
    QCOMPARE((*reader)->deviceCount(), 2);
    QCOMPARE((*reader)->driverVersion(), std::string("580.00"));
    const GpuReading gpu = (*reader)->read(0);
    QCOMPARE(gpu.name, std::string("Emulated GPU"));
    QCOMPARE(*gpu.usedMemory, 1_GiB);
    QCOMPARE(*gpu.powerWatts, 250.5);
    QCOMPARE(*gpu.gpuUtilization, 0.75);
    QCOMPARE(*gpu.memoryUtilization, 0.0);  // told, and zero
    QCOMPARE(*gpu.temperatureCelsius, 61.0);
    QCOMPARE(gpu.throttleReasons, std::vector<std::string>{"power cap"});
    QCOMPARE(gpu.processes.size(), size_t{2});
    QCOMPARE(*gpu.processes[0].used, 512_MiB);
    QVERIFY(!gpu.processes[1].used);
    QCOMPARE(gpuPathName(*(*reader)->path(0, 1)), std::string("the host bridge"));
  }
  void unknownIsNotZero() {
    qputenv("HEADROOM_EMULATED_GPUS", "2");
    const auto reader = NvmlReader::open(NVML_EMULATED);
    QVERIFY(reader.has_value());
    const GpuReading gpu = (*reader)->read(1);
    QCOMPARE(*gpu.totalMemory, 4_GiB);
    QVERIFY(!gpu.powerWatts && !gpu.gpuUtilization && !gpu.temperatureCelsius && !gpu.smClockMHz && !gpu.eccErrors && !gpu.mig &&
            !gpu.nvlinks);
    QVERIFY(gpu.processes.empty());
    QVERIFY(!(*reader)->read(7).totalMemory);
  }
};

QTEST_APPLESS_MAIN(NvmlReaderTest)
#include "nvml_reader_test.moc"
