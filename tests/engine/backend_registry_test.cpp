// SPDX-License-Identifier: Apache-2.0
// Host devices are always found; when CUDA is off, one sentence says why.
#include "engine/device/backend_registry.h"

#include "engine/device/cuda/cuda_module.h"

#include <dlfcn.h>
#include <QtTest>

using namespace headroom;
using namespace headroom::engine;

namespace {

class BackendRegistryTest : public QObject {
  Q_OBJECT
 private slots:
  void hostDevicesShareTheMemory() {
    HostDeviceSettings settings;
    settings.count = 3;
    settings.memoryEach = 5_GiB;
    const FoundDevices found = findDevices(settings);
    QCOMPARE(found.host.size(), 3);
    QVERIFY(found.host.isLocal);
    for (int i = 0; i < 3; ++i) {
      QCOMPARE(found.host.gpus[static_cast<size_t>(i)].index, i);
      QCOMPARE(found.host.gpus[static_cast<size_t>(i)].totalMemory, 5_GiB);
      QVERIFY(found.host.gpus[static_cast<size_t>(i)].spec.hostDevice);
    }
  }

  void saysWhyCudaIsOff() {
    qputenv("HEADROOM_CUDA_MODULE", "/nonexistent/libheadroom_cuda.so");
    const std::string reason = findDevices({}).cudaOffReason;
    qunsetenv("HEADROOM_CUDA_MODULE");
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    QCOMPARE(reason, std::string(driver ? "CUDA is off: Headroom's CUDA module /nonexistent/libheadroom_cuda.so was not found; "
                                          "packaging/setup --cuda builds it."
                                        : "CUDA is off: the NVIDIA driver library libcuda.so.1 was not found."));
    if (driver) dlclose(driver);
    QVERIFY(findDevices({}).cuda.gpus.empty());
  }

  // A module of the test's own answers for the real one.
  void takesTheModulesWord_data() {
    QTest::addColumn<QByteArray>("abi");
    QTest::addColumn<int>("devices");
    QTest::addColumn<QString>("reason");
    const QByteArray same = QByteArray::number(kCudaAbi);
    QTest::newRow("another interface") << QByteArray("1") << 0
                                       << QString("speaks interface 1, the program asks for %1").arg(kCudaAbi);
    QTest::newRow("no device") << same << 0 << "no device";
    QTest::newRow("a device that does not answer") << same << -1 << "device 0 does not answer (it fell off the bus)";
    QTest::newRow("two devices") << same << 2 << "";
  }
  void takesTheModulesWord() {
    QFETCH(QByteArray, abi);
    QFETCH(int, devices);
    QFETCH(QString, reason);
    qputenv("HEADROOM_CUDA_MODULE", FAKE_CUDA_MODULE);
    qputenv("FAKE_CUDA_ABI", abi);
    qputenv("FAKE_CUDA_DEVICES", QByteArray::number(devices));
    const FoundDevices found = findDevices({});
    for (const char* name : {"HEADROOM_CUDA_MODULE", "FAKE_CUDA_ABI", "FAKE_CUDA_DEVICES"}) qunsetenv(name);
    QVERIFY2(QString::fromStdString(found.cudaOffReason).contains(reason), found.cudaOffReason.c_str());
    QCOMPARE(found.cudaModule != nullptr, devices == 2);
    QCOMPARE(found.cudaOffReason.empty(), devices == 2);
    QCOMPARE(found.cuda.size(), std::max(devices, 0));
    if (devices < 2) return;
    const MachineGpu& gpu = found.cuda.gpus[1];
    QCOMPARE(gpu.spec.name, std::string("Fake GPU"));
    QCOMPARE(gpu.totalMemory, 16_GiB);
    QCOMPARE(*gpu.usedByOthers, 1_GiB);
    QCOMPARE(*gpu.spec.computeCapability, 8.6);
    QVERIFY(!gpu.spec.bandwidthGBs.has_value());  // the driver does not tell
  }
};

}  // namespace

QTEST_APPLESS_MAIN(BackendRegistryTest)
#include "backend_registry_test.moc"
