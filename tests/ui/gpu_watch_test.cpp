// SPDX-License-Identifier: GPL-3.0-or-later
// GPUs without an engine: lines of readings, what a card does not tell, a machine without NVML, and the monitor page's table.
#include "ui/client/gpu_watch.h"
#include "ui/client/engine_session.h"
#include "ui/models/gpu_list_model.h"
#include "ui/settings/app_settings.h"
#include "ui/views/monitor_page.h"

#include <QAbstractItemModelTester>
#include <QFile>
#include <QLabel>
#include <QSignalSpy>
#include <QTableView>
#include <QTemporaryDir>
#include <QtTest>

using namespace headroom;
using namespace headroom::ui;

namespace {

const QByteArray kLine =
    R"({"schema":"headroom.gpu_readings/1","time":1.5,"driver":"580.1","gpus":[)"
    R"({"index":0,"name":"NVIDIA A800 80GB PCIe","total_bytes":85899345920,"used_bytes":42949672960,"processes":[{"pid":7,"used_bytes":null}],)"
    R"("gpu_utilization":0.97,"power_watts":251.4,"power_limit_watts":300.0,"temperature_celsius":61,"sm_clock_mhz":1410,"throttle_reasons":["power cap"]},)"
    R"({"index":1,"name":"NVIDIA T4","total_bytes":null,"used_bytes":null,"processes":[],"gpu_utilization":null,"power_watts":null,)"
    R"("power_limit_watts":null,"temperature_celsius":null,"sm_clock_mhz":null,"throttle_reasons":[]}]})";

}  // namespace

class GpuWatchTest : public QObject {
  Q_OBJECT

  QTemporaryDir m_folder;

  QString script(const QByteArray& body) {
    const QString path = m_folder.filePath(QStringLiteral("engine%1").arg(QDir(m_folder.path()).count()));
    QFile file(path);
    if (!file.open(QIODevice::WriteOnly)) return {};
    file.write("#!/bin/sh\n" + body + "\n");
    file.close();
    file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    return path;
  }

 private slots:
  void init() {
    QTest::failOnWarning(QRegularExpression(QStringLiteral("^(?!This plugin does not support propagateSizeHints)")));
  }

  void readsWhatIsToldAndLeavesTheRestUnknown() {
    const auto readings = parseGpuReadings(kLine);
    QVERIFY(readings);
    QCOMPARE(readings->size(), std::size_t(2));
    QCOMPARE(readings->at(0).usedBytes, std::optional<int64_t>(42949672960));
    QCOMPARE(readings->at(0).utilization, std::optional(0.97));
    QCOMPARE(readings->at(0).processes, std::optional(1));
    QVERIFY(!readings->at(1).powerWatts && !readings->at(1).totalBytes);
    QVERIFY(!parseGpuReadings("CUDA is off"));
    QVERIFY(!parseGpuReadings(R"({"gpus": 5})"));
    QVERIFY(!parseGpuReadings(R"({"gpus": [5]})"));
    QVERIFY(!parseGpuReadings("[[[["));
  }

  void theTableSaysUnknownInWords() {
    GpuListModel model;
    const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
    QLocale::setDefault(QLocale(QLocale::English, QLocale::UnitedStates));
    model.setReadings(*parseGpuReadings(kLine));
    QCOMPARE(model.index(0, GpuListModel::Memory).data().toString(), QStringLiteral("40.0 GiB of 80.0 GiB"));
    QCOMPARE(model.index(0, GpuListModel::Busy).data().toString(), QStringLiteral("97 %"));
    QCOMPARE(model.index(0, GpuListModel::Power).data().toString(), QStringLiteral("251 of 300 W"));
    QCOMPARE(model.index(0, GpuListModel::Slowed).data().toString(), QStringLiteral("power cap"));
    QCOMPARE(model.index(1, GpuListModel::Power).data().toString(), QStringLiteral("—"));
    QVERIFY(model.index(1, GpuListModel::Power).data(Qt::AccessibleTextRole).toString().contains(QStringLiteral("unknown")));
    model.setReadings({});
    QCOMPARE(model.rowCount(), 0);
  }

  void followsTheChildAndEndsIt() {
    GpuWatch watch;
    watch.setProgram(script("echo noise; while true; do echo '" + kLine + "'; sleep 0.05; done"));
    QSignalSpy changed(&watch, &GpuWatch::changed);
    watch.start();
    QTRY_VERIFY_WITH_TIMEOUT(changed.count() >= 2, 15000);
    QCOMPARE(watch.readings().size(), std::size_t(2));
    QVERIFY(watch.reason().isEmpty());
    watch.stop();
    QTRY_VERIFY(watch.readings().empty());
  }

  void aMachineWithoutNvmlSaysWhyOnTheMonitorPage() {
    AppSettings settings(m_folder.filePath(QStringLiteral("settings")));
    EngineSession session;
    MonitorPage page(session, settings);
    page.gpuWatch().setProgram(
        script("echo 'headroom-engine: NVML: found no libnvidia-ml.so.1, expected the NVIDIA driver' >&2; exit 3"));
    page.resize(1000, 700);
    page.show();
    auto* reason = page.findChild<QLabel*>(QStringLiteral("gpuReason"));
    QTRY_COMPARE_WITH_TIMEOUT(reason->text(), QStringLiteral("NVML: found no libnvidia-ml.so.1, expected the NVIDIA driver"),
                              15000);
    QVERIFY(!page.findChild<QTableView*>(QStringLiteral("gpuTable"))->isVisible());
    page.hide();
    page.gpuWatch().setProgram(script("echo '" + kLine + "'; sleep 60"));
    page.show();
    auto* table = page.findChild<QTableView*>(QStringLiteral("gpuTable"));
    QTRY_COMPARE_WITH_TIMEOUT(table->model()->rowCount(), 2, 15000);
    QVERIFY(table->isVisible());
  }
};

QTEST_MAIN(GpuWatchTest)
#include "gpu_watch_test.moc"
