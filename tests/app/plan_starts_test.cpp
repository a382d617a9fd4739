// SPDX-License-Identifier: GPL-3.0-or-later
// Whatever the window offers for the local machine starts, and the engine takes the memory that was planned: each value of each
// option, and every layout that fits.
#include "core/launch/planner.h"
#include "core/model/tensor_inventory.h"
#include "ui/client/engine_session.h"
#include "ui/client/local_gpu_probe.h"
#include "ui/models/serve_arguments.h"
#include "ui/views/option_panel.h"

#include <QComboBox>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QtTest>

using namespace headroom;
using namespace headroom::ui;

namespace {

constexpr int kStartMs = 120'000;
const HostDeviceSettings kDevices{4, 128_MiB};

QByteArray layoutTag(const LayoutPlan& layout) {
  return QByteArray::number(layout.tp) + 'x' + QByteArray::number(layout.pp) + 'x' + QByteArray::number(layout.dp);
}

}  // namespace

class PlanStartsTest : public QObject {
  Q_OBJECT

  // Plans, starts and compares; empty when all is as planned.
  static QString started(const PlanOptions& options, const char* family, int tp, int pp, int dp,
                         const Machine& machine = hostMachine(kDevices)) {
    const QString path = QStringLiteral(HEADROOM_TEST_DATA "/models/") + QLatin1String(family);
    const auto model = openModel(path.toStdString());
    if (!model) return QString::fromStdString(model.error().message());
    const auto report = planModel(*model, machine, options);
    if (!report) return QString::fromStdString(report.error().message());
    const LayoutPlan* layout = report->find(tp, pp, dp);
    if (const QString obstacle = startObstacle(&*report, layout, &*model); !obstacle.isEmpty()) return obstacle;
    EngineSession session;
    QStringList log;
    connect(&session, &EngineSession::logLine, &session, [&](const QString& line) { log << line; });
    session.start(launchRequest(*report, *layout, *model, path, kDevices));
    const bool ended = QTest::qWaitFor(
        [&] { return session.phase() == SessionPhase::Ready || session.phase() == SessionPhase::Failed; }, kStartMs);
    if (!ended || !session.isReady()) return session.failureReason() + QLatin1Char('\n') + log.join(QLatin1Char('\n'));
    const EngineState state = *session.state();
    if (state.ranks.size() != layout->ranks.size()) return QStringLiteral("%1 ranks").arg(state.ranks.size());
    const char* kind = machine.isHostOnly() ? "cpu" : "cuda";
    for (size_t i = 0; i < state.ranks.size(); ++i) {
      if (!state.ranks[i].device.starts_with(kind))
        return QStringLiteral("rank %1 on %2").arg(i).arg(state.ranks[i].device.c_str());
      const RankPlan& plan = layout->ranks[i];
      const auto whole = [](const RankBytes& bytes) {
        return QString::fromStdString(std::to_string(bytes.weights.value_or(-1)) + "+" +
                                      std::to_string(bytes.kvCache.value_or(-1)) + "+" +
                                      std::to_string(bytes.activations.value_or(-1)));
      };
      const RankBytes promised{plan.weights->count(), plan.kvCache->count(), plan.activations->count(), {}};
      for (const RankBytes& found : {state.ranks[i].planned, state.ranks[i].allocated})
        if (whole(found) != whole(promised))
          return QStringLiteral("rank %1: found %2, planned %3 bytes of weights, KV cache and activations")
              .arg(i)
              .arg(whole(found), whole(promised));
    }
    return {};
  }

 private slots:
  void initTestCase() { qputenv("PATH", QByteArray(HEADROOM_BIN_DIR ":") + qgetenv("PATH")); }

  void everyTypeThatIsOffered_data() {
    QTest::addColumn<PlanOptions>("options");
    OptionPanel panel;
    const auto model = openModel(HEADROOM_TEST_DATA "/models/llama");
    QVERIFY(model);
    panel.setModel(*model);
    panel.setMachine(hostMachine(kDevices));
    for (const char* name : {"dtype", "kvDType"}) {
      auto* box = panel.findChild<QComboBox*>(QLatin1String(name));
      QVERIFY2(box && box->count() > 3, name);
      for (int i = 0; i < box->count(); ++i) {
        box->setCurrentIndex(i);
        QTest::addRow("%s %s", name, qPrintable(box->currentText())) << panel.options();
      }
      box->setCurrentIndex(0);
    }
  }
  void everyTypeThatIsOffered() {
    QFETCH(PlanOptions, options);
    options.maxModelLen = 64;
    QCOMPARE(started(options, "llama", 1, 2, 1), QString());
  }

  void everyLimit_data() {
    QTest::addColumn<PlanOptions>("options");
    PlanOptions options;
    options.maxModelLen = 48;
    QTest::newRow("length") << options;
    options.maxNumSeqs = 3;
    QTest::newRow("sequences") << options;
    options.maxNumBatchedTokens = 96;
    QTest::newRow("tokens of a step") << options;
    options.gpuMemoryUtilization = 0.37;
    QTest::newRow("share of memory") << options;
    options.enforceEager = true;
    options.concurrency = 3;
    options.inputLen = 20;
    options.outputLen = 10;
    QTest::newRow("load") << options;
  }
  void everyLimit() {
    QFETCH(PlanOptions, options);
    QCOMPARE(started(options, "qwen2", 2, 1, 1), QString());
  }

  void everyLayout_data() {
    QTest::addColumn<int>("tp");
    QTest::addColumn<int>("pp");
    QTest::addColumn<int>("dp");
    const auto model = openModel(HEADROOM_TEST_DATA "/models/mistral");
    QVERIFY(model);
    PlanOptions options;
    options.maxModelLen = 64;
    const auto report = planModel(*model, hostMachine(kDevices), options);
    QVERIFY(report);
    int rows = 0;
    for (const LayoutPlan& layout : report->layouts) {
      if (layout.verdict == Verdict::Invalid || layout.verdict == Verdict::DoesNotFit) continue;
      QTest::newRow(layoutTag(layout)) << layout.tp << layout.pp << layout.dp;
      ++rows;
    }
    QVERIFY(rows >= 5);
  }
  void everyLayout() {
    QFETCH(int, tp);
    QFETCH(int, pp);
    QFETCH(int, dp);
    PlanOptions options;
    options.maxModelLen = 64;
    QCOMPARE(started(options, "mistral", tp, pp, dp), QString());
  }

  // The window's way to this machine's GPUs, on emulated ones: found by the program, planned, started.
  void gpusOfThisMachine_data() {
    QTest::addColumn<PlanOptions>("options");
    QTest::addColumn<int>("tp");
    QTest::addColumn<int>("pp");
    QTest::addColumn<int>("dp");
    PlanOptions options;
    options.maxModelLen = 64;
    options.maxNumSeqs = 4;
    options.maxNumBatchedTokens = 64;
    QTest::newRow("TP2 x PP1") << options << 2 << 1 << 1;
    options.enforceEager = true;
    QTest::newRow("TP1 x PP2 without graphs") << options << 1 << 2 << 1;
    options.kvCacheDType = DType::F8E4M3;
    QTest::newRow("two replicas with a cache of 8-bit floats") << options << 1 << 1 << 2;
    options.gpuMemoryUtilization = 0.4;
    options.dtype = DType::F16;
    QTest::newRow("uneven ranks, a share of the memory") << options << 3 << 1 << 1;
    options.gpuMemoryUtilization = 1.0;
    options.enforceEager = false;
    QTest::newRow("all of the memory") << options << 2 << 1 << 1;
  }
  void gpusOfThisMachine() {
#ifndef CUDA_EMULATED
    QSKIP("emulated CUDA devices are not built here (a sanitizer is on, or libboost-context is missing)");
#else
    QFETCH(PlanOptions, options);
    QFETCH(int, tp);
    QFETCH(int, pp);
    QFETCH(int, dp);
    qputenv("HEADROOM_CUDA_MODULE", CUDA_EMULATED);
    qputenv("HEADROOM_EMULATED_GPUS", "3");
    qputenv("HEADROOM_EMULATED_MEMORY", "1024");
    const auto clean = qScopeGuard([] {
      for (const char* name : {"HEADROOM_CUDA_MODULE", "HEADROOM_EMULATED_GPUS", "HEADROOM_EMULATED_MEMORY"}) qunsetenv(name);
    });
    LocalGpuProbe probe;
    LocalGpus found;
    connect(&probe, &LocalGpuProbe::found, &probe, [&](const LocalGpus& gpus) { found = gpus; });
    QSignalSpy told(&probe, &LocalGpuProbe::found);
    probe.start();
    QTRY_COMPARE_WITH_TIMEOUT(told.size(), 1, kStartMs);
    QVERIFY2(found.gpus.size() == 3, found.offReason.c_str());
    QCOMPARE(found.gpus[2].totalMemory, 1_GiB);
    QCOMPARE(started(options, "llama", tp, pp, dp, *parseMachine("local", {}, found.gpus)), QString());
#endif
  }

  void saysWhyThereAreNoGpus() {
    qputenv("HEADROOM_CUDA_MODULE", "/nonexistent/module.so");
    LocalGpuProbe probe;
    std::vector<LocalGpus> found;
    connect(&probe, &LocalGpuProbe::found, &probe, [&](const LocalGpus& gpus) { found.push_back(gpus); });
    probe.start();
    QTRY_COMPARE_WITH_TIMEOUT(found.size(), size_t{1}, kStartMs);
    qunsetenv("HEADROOM_CUDA_MODULE");
    QVERIFY(found[0].gpus.empty());
    QVERIFY2(found[0].offReason.starts_with("CUDA is off: "), found[0].offReason.c_str());
    probe.setProgram(QStringLiteral("/nonexistent/headroom-engine"));
    probe.start();
    QTRY_COMPARE(found.size(), size_t{2});
    QCOMPARE(found[1].offReason, std::string("CUDA is off: headroom-engine could not be started."));
    // A driver that hangs.
    QTemporaryDir folder;
    QFile script(folder.filePath(QStringLiteral("hangs")));
    QVERIFY(script.open(QIODevice::WriteOnly) && script.write("#!/bin/sh\nexec sleep 600\n") > 0);
    script.close();
    script.setPermissions(QFile::ReadOwner | QFile::ExeOwner);
    probe.setProgram(script.fileName());
    probe.setTimeoutMs(100);
    probe.start();
    QTRY_COMPARE(found.size(), size_t{3});
    QCOMPARE(found[2].offReason, std::string("CUDA is off: the driver gave no answer in time."));
  }
};

QTEST_MAIN(PlanStartsTest)
#include "plan_starts_test.moc"
