// SPDX-License-Identifier: Apache-2.0
// Host devices are always found; when CUDA is off, one sentence says why.
#include "engine/device/backend_registry.h"

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
    QCOMPARE(reason, std::string(driver ? "CUDA is off: Headroom's CUDA module /nonexistent/libheadroom_cuda.so was not found."
                                        : "CUDA is off: the NVIDIA driver library libcuda.so.1 was not found."));
    if (driver) dlclose(driver);
    QVERIFY(findDevices({}).cuda.gpus.empty());
  }
};

}  // namespace

QTEST_APPLESS_MAIN(BackendRegistryTest)
#include "backend_registry_test.moc"
