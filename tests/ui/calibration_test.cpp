// SPDX-License-Identifier: GPL-3.0-or-later
// A start-up log that is dropped on the window: predicted beside measured, kept for the next plan, refused when it is another
// model's or no log at all.
#include "ui/models/calibration.h"
#include "core/model/model_catalog.h"
#include "ui/models/plan_session.h"
#include "ui/views/calibration_dialog.h"

#include <QFile>
#include <QPushButton>
#include <QSignalSpy>
#include <QTableWidget>
#include <QTemporaryDir>
#include <QtTest>

using namespace headroom;
using namespace headroom::ui;

class CalibrationTest : public QObject {
  Q_OBJECT

  // A start of Qwen2.5-72B with TP=4 as vLLM 0.21 prints it; weights per GPU: 145.4 GB over four.
  static QByteArray log(double weightsGib, double activationsGib) {
    return QByteArray(
               "INFO 05-01 10:00:00 [api_server.py:1] vLLM API server version 0.21.0\n"
               "INFO 05-01 10:00:01 [core.py:1] Initializing a V1 LLM engine (v0.21.0) with config: "
               "model='Qwen/Qwen2.5-72B-Instruct', tensor_parallel_size=4, pipeline_parallel_size=1, "
               "data_parallel_size=1, max_seq_len=32768, gpu_memory_utilization=0.9\n"
               "INFO 05-01 10:01:00 [gpu_model_runner.py:1] Model loading took ") +
           QByteArray::number(weightsGib) +
           " GiB and 50.0 seconds\nINFO 05-01 10:01:10 [gpu_worker.py:1] PyTorch activation peak memory takes " +
           QByteArray::number(activationsGib) + "GiB\n";
  }

 private slots:
  void init() {
    QTest::failOnWarning(QRegularExpression(QStringLiteral("^(?!This plugin does not support propagateSizeHints)")));
  }

  void aLogStandsBesideItsPlan() {
    const auto model = openModel("Qwen/Qwen2.5-72B-Instruct");
    const auto machine = parseMachine("6xA800-80GB");
    QVERIFY(model && machine);
    const auto read = calibrate(log(33.9, 3.0).toStdString(), "start.log", *model, *machine, {});
    QVERIFY2(read, read ? "" : read.error().message().c_str());
    QCOMPARE(read->tp, 4);
    QCOMPARE(read->log.engine.kind, EngineKind::Vllm);
    bool weights = false;
    for (const MeasuredTerm& term : read->terms)
      if (term.name == "weights") {
        weights = true;
        QVERIFY(term.predicted && term.measured);
        QVERIFY(std::abs(*term.measured / (33.9 * 1024 * 1024 * 1024) - 1) < 1e-6);
        QVERIFY(std::abs(*term.predicted / *term.measured - 1) < 0.01);
      }
    QVERIFY(weights);
    QVERIFY(read->correction);
  }

  void anotherModelsLogIsRefused() {
    const auto model = openModel("Qwen/Qwen2.5-7B-Instruct");
    const auto machine = parseMachine("6xA800-80GB");
    QVERIFY(model && machine);
    const auto read = calibrate(log(33.9, 3.0).toStdString(), "start.log", *model, *machine, {});
    QVERIFY(!read);
    QVERIFY(read.error().next.find("another model") != std::string::npos);
  }

  void whatIsKeptChangesTheNextPlanAndCanBeForgotten() {
    QTemporaryDir folder;
    const QString store = folder.filePath(QStringLiteral("deep/calibration.json"));
    QFile file(folder.filePath(QStringLiteral("start.log")));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(log(33.9, 9.0));
    file.close();
    PlanSession session(nullptr, store);
    QSignalSpy read(&session, &PlanSession::logRead), failed(&session, &PlanSession::logFailed);
    session.readLog(file.fileName());
    // No model yet: a start that only measures has nothing to stand beside.
    QTRY_COMPARE_WITH_TIMEOUT(failed.count(), 1, 60000);
    QVERIFY(session.setMachine(QStringLiteral("6xA800-80GB")));
    PlanOptions options;
    options.engine = *parseEngine("vllm@0.21");
    session.setOptions(options);
    session.openModel(QStringLiteral("Qwen/Qwen2.5-72B-Instruct"));
    QTRY_VERIFY_WITH_TIMEOUT(session.report(), 60000);
    const Bytes before = *session.report()->find(4, 1, 1)->headroom;
    session.readLog(file.fileName());
    QTRY_COMPARE_WITH_TIMEOUT(read.count(), 1, 60000);
    const auto reading = read.first().first().value<LogReading>();
    QVERIFY(reading.calibration && !reading.failed());
    const Calibration& calibration = *reading.calibration;
    QVERIFY(session.keep(calibration));
    QTRY_VERIFY_WITH_TIMEOUT(session.report(), 60000);
    const LayoutPlan* after = session.report()->find(4, 1, 1);
    QVERIFY(*after->headroom < before);
    QCOMPARE(after->memoryProvenance, Provenance::MeasuredHere);
    // Another session of the same file knows it too; forgetting takes it away, and the plan is what it was.
    const CalibrationStore known(store);
    QCOMPARE(known.corrections(session.machine(), options.engine).size(), std::size_t(1));
    QVERIFY(session.forget());
    QTRY_VERIFY_WITH_TIMEOUT(session.report(), 60000);
    QCOMPARE(*session.report()->find(4, 1, 1)->headroom, before);
    QCOMPARE(session.report()->find(4, 1, 1)->memoryProvenance, Provenance::Modelled);
    QVERIFY(known.corrections(session.machine(), options.engine).empty());
  }

  void noLogIsToldWithoutALoss() {
    QTemporaryDir folder;
    PlanSession session(nullptr, folder.filePath(QStringLiteral("calibration.json")));
    session.openModel(QStringLiteral("Qwen/Qwen2.5-72B-Instruct"));
    QTRY_VERIFY_WITH_TIMEOUT(session.report(), 60000);
    QSignalSpy failed(&session, &PlanSession::logFailed);
    session.readLog(folder.filePath(QStringLiteral("absent.log")));
    QTRY_COMPARE(failed.count(), 1);
    QFile file(folder.filePath(QStringLiteral("noise.log")));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(QByteArray(100000, '\xff'));
    file.close();
    session.readLog(file.fileName());
    QTRY_COMPARE(failed.count(), 2);
    QVERIFY(failed.last().first().toString().contains(QStringLiteral("noise.log")));
    QVERIFY(session.report());
  }

  void theDialogShowsEachTermAndOffersToKeepIt() {
    const auto model = openModel("Qwen/Qwen2.5-72B-Instruct");
    const auto machine = parseMachine("6xA800-80GB");
    auto read = calibrate(log(33.9, 3.0).toStdString(), "start.log", *model, *machine, {});
    QVERIFY(read);
    const auto terms = static_cast<int>(read->terms.size());
    CalibrationDialog dialog(std::move(*read));
    QSignalSpy kept(&dialog, &CalibrationDialog::kept);
    auto* table = dialog.findChild<QTableWidget*>(QStringLiteral("calibrationTable"));
    QCOMPARE(table->rowCount(), terms);
    QVERIFY(table->item(0, 2)->text().contains(QStringLiteral("33.9")));
    dialog.findChild<QPushButton*>(QStringLiteral("keepCalibration"))->click();
    QCOMPARE(kept.count(), 1);
  }
};

QTEST_MAIN(CalibrationTest)
#include "calibration_test.moc"
