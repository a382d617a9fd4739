// SPDX-License-Identifier: GPL-3.0-or-later
// A log that is dropped: a failure is explained and what is advised is a click away, a start that served is measured, and what is
// no log is told.
#include "ui/views/diagnosis_dialog.h"
#include "tests/ui/support/accessible_names.h"
#include "tests/ui/support/grab.h"
#include "ui/models/plan_session.h"
#include "ui/settings/app_settings.h"
#include "ui/views/calibration_dialog.h"
#include "ui/views/notice_area.h"
#include "ui/views/plan_page.h"

#include <QComboBox>
#include <QFile>
#include <QLabel>
#include <QPushButton>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTemporaryDir>
#include <QtTest>
#include <memory>

using namespace headroom;
using namespace headroom::ui;

namespace {

constexpr int kTimeoutMs = 60000;

// As vLLM 0.21 prints the start of Qwen2.5-72B with TP=4, up to the sizing of its cache.
const QByteArray kStart =
    "INFO 05-01 10:00:00 [api_server.py:1] vLLM API server version 0.21.0\n"
    "INFO 05-01 10:00:01 [core.py:1] Initializing a V1 LLM engine (v0.21.0) with config: model='Qwen/Qwen2.5-72B-Instruct', "
    "tensor_parallel_size=4, pipeline_parallel_size=1, data_parallel_size=1, max_seq_len=32768, gpu_memory_utilization=0.9\n"
    "INFO 05-01 10:01:00 [gpu_model_runner.py:1] Model loading took 33.9 GiB and 50.0 seconds\n"
    "INFO 05-01 10:01:10 [gpu_worker.py:1] PyTorch activation peak memory takes 3.0GiB\n";
const QByteArray kServes = "INFO:     Application startup complete.\n";
const QByteArray kHeads =
    "INFO vLLM API server version 0.21.0\n"
    "ValueError: Total number of attention heads (64) must be divisible by tensor parallel size (6).\n";
const QByteArray kContext =
    "ValueError: The model's max seq len (32768) is larger than the maximum number of tokens that can be stored in KV cache "
    "(20480). Try increasing `gpu_memory_utilization` or decreasing `max_model_len`.\n";

}  // namespace

class DiagnosisDialogTest : public QObject {
  Q_OBJECT

  std::unique_ptr<QTemporaryDir> m_folder;
  std::unique_ptr<AppSettings> m_settings;
  std::unique_ptr<PlanSession> m_session;
  std::unique_ptr<PlanPage> m_page;

  void openStory(EngineKind engine) {
    QVERIFY(m_session->setMachine(QStringLiteral("6xA800-80GB")));
    auto* box = m_page->findChild<QComboBox*>(QStringLiteral("engine"));
    box->setCurrentIndex(box->findData(static_cast<int>(engine)));
    m_session->openModel(QStringLiteral("Qwen/Qwen2.5-72B-Instruct"));
    QTRY_VERIFY_WITH_TIMEOUT(m_session->report() && !m_session->isPlanning(), kTimeoutMs);
  }
  QString write(const char* name, const QByteArray& content) {
    QFile file(m_folder->filePath(QString::fromLatin1(name)));
    if (!file.open(QIODevice::WriteOnly) || file.write(content) != content.size()) qFatal("no room");
    return file.fileName();
  }
  template <class Dialog>
  Dialog* opened() {
    const bool there = QTest::qWaitFor([&] { return m_page->findChild<Dialog*>() != nullptr; }, kTimeoutMs);
    return there ? m_page->findChild<Dialog*>() : nullptr;
  }

 private slots:
  void init() {
    QTest::failOnWarning(QRegularExpression(QStringLiteral("^(?!This plugin does not support propagateSizeHints)")));
    QLocale::setDefault(QLocale::c());
    m_folder = std::make_unique<QTemporaryDir>();
    m_settings = std::make_unique<AppSettings>(m_folder->path());
    m_session = std::make_unique<PlanSession>(nullptr, m_settings->calibrationFile());
    m_page = std::make_unique<PlanPage>(*m_session, *m_settings);
    m_page->resize(1280, 760);
    m_page->show();
  }
  void cleanup() {
    m_page.reset();
    m_session.reset();
    m_settings.reset();
  }

  void aFailureIsExplainedAndItsFixIsOneClickAway() {
    openStory(EngineKind::Vllm);
    m_page->selectLayout(6, 1, 1);
    m_page->take(write("engine.log", kHeads));
    auto* dialog = opened<DiagnosisDialog>();
    QVERIFY(dialog);
    headroom::test::grabIfAsked(*dialog, QStringLiteral("diagnosis"));
    QCOMPARE(dialog->findChild<QLabel*>(QStringLiteral("diagnosisTitle"))->text(),
             QStringLiteral("The query heads do not divide by TP"));
    QVERIFY2(dialog->text().contains(QStringLiteral("64 / 6 = 10 remainder 4")), qPrintable(dialog->text()));
    QVERIFY2(dialog->text().contains(QStringLiteral("engine.log, a log of vLLM")), qPrintable(dialog->text()));
    QVERIFY(dialog->text().contains(QStringLiteral("Total number of attention heads (64)")));
    const QStringList nameless = headroom::test::namelessWidgets(*dialog);
    QVERIFY2(nameless.isEmpty(), qPrintable(nameless.join(QLatin1Char('\n'))));
    auto* fix = dialog->findChild<QPushButton*>(QStringLiteral("diagnosisFix0"));
    QVERIFY(fix);
    QCOMPARE(fix->text(), QStringLiteral("Show TP2 × PP3"));
    fix->click();
    QVERIFY(m_page->selectedLayout());
    QCOMPARE(m_page->selectedLayout()->tp, 2);
    QCOMPARE(m_page->selectedLayout()->pp, 3);
  }

  void adviceIsForTheEngineThatWroteTheLog() {
    openStory(EngineKind::Headroom);
    m_page->take(write("engine.txt", kStart + kContext));
    auto* dialog = opened<DiagnosisDialog>();
    QVERIFY(dialog);
    auto* fix = dialog->findChild<QPushButton*>(QStringLiteral("diagnosisFix0"));
    QVERIFY(fix);
    QCOMPARE(fix->text(), QStringLiteral("Context of 20480 tokens"));
    fix->click();
    QTRY_VERIFY_WITH_TIMEOUT(m_session->report() && !m_session->isPlanning(), kTimeoutMs);
    QCOMPARE(m_session->report()->options.engine.kind, EngineKind::Vllm);
    QCOMPARE(m_page->findChild<QSpinBox*>(QStringLiteral("contextLength"))->value(), 20480);
  }

  void aShareOfTheMemoryAndACacheTypeCanBeApplied() {
    openStory(EngineKind::Vllm);
    m_page->take(write("free.log",
                       "vllm\nValueError: Free memory on device (20.71/23.65 GiB) on startup is less than desired GPU memory "
                       "utilization (0.9, 21.28 GiB).\n"));
    auto* dialog = opened<DiagnosisDialog>();
    QVERIFY(dialog);
    auto* fix = dialog->findChild<QPushButton*>(QStringLiteral("diagnosisFix0"));
    QVERIFY(fix);
    QCOMPARE(fix->text(), QStringLiteral("Use 87 % of the memory"));
    fix->click();
    QCOMPARE(m_page->findChild<QSpinBox*>(QStringLiteral("utilization"))->value(), 87);
    QTRY_VERIFY(!m_page->findChild<DiagnosisDialog*>());
    m_page->take(write("context.log", "vllm\n" + kContext));
    dialog = opened<DiagnosisDialog>();
    QVERIFY(dialog);
    QPushButton* cache = nullptr;
    for (auto* button : dialog->findChildren<QPushButton*>())
      if (button->text().startsWith(QStringLiteral("KV cache as"))) cache = button;
    QVERIFY(cache);
    cache->click();
    QTRY_VERIFY_WITH_TIMEOUT(m_session->report() && !m_session->isPlanning(), kTimeoutMs);
    QCOMPARE(m_session->report()->options.kvCacheDType, DType::F8E4M3);
  }

  void aLogWithoutAModelIsExplainedToo() {
    m_page->take(write("noname", kHeads));
    auto* dialog = opened<DiagnosisDialog>();
    QVERIFY(dialog);
    QVERIFY(!dialog->findChild<QPushButton*>(QStringLiteral("diagnosisFix0")));
    QVERIFY(!dialog->findChild<QPushButton*>(QStringLiteral("showMeasured"))->isVisible());
  }

  void aStartThatServedIsMeasuredAndItsProblemsAreOffered() {
    openStory(EngineKind::Vllm);
    m_page->take(write("start.log", kStart + "ERROR NCCL error: unhandled system error\n" + kServes));
    auto* measured = opened<CalibrationDialog>();
    QVERIFY(measured);
    QVERIFY(!m_page->findChild<DiagnosisDialog*>());
    auto* problems = measured->findChild<QPushButton*>(QStringLiteral("showProblems"));
    QVERIFY(problems->isVisible());
    problems->click();
    QVERIFY(opened<DiagnosisDialog>());
  }

  void aFailedStartIsExplainedAndWhatItMeasuredIsOffered() {
    openStory(EngineKind::Vllm);
    m_page->take(write("start.log", kStart + kContext));
    auto* dialog = opened<DiagnosisDialog>();
    QVERIFY(dialog);
    QVERIFY(!m_page->findChild<CalibrationDialog*>());
    dialog->findChild<QPushButton*>(QStringLiteral("showMeasured"))->click();
    QVERIFY(opened<CalibrationDialog>());
  }

  void whatIsNoLogIsToldInPlace() {
    openStory(EngineKind::Vllm);
    m_page->take(write("notes.txt", "buy bread\n"));
    QTRY_VERIFY_WITH_TIMEOUT(m_page->notices().text(QStringLiteral("log")).contains(QStringLiteral("notes.txt")), kTimeoutMs);
    QVERIFY(!m_page->findChild<DiagnosisDialog*>());
    QVERIFY(m_session->report());
  }

  void aLongLogIsReadAtItsEndAndLinesAreCounted() {
    QFile file(m_folder->filePath(QStringLiteral("long.log")));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(kStart);
    const QByteArray line = QByteArray(1023, '.') + '\n';
    int lines = static_cast<int>(kStart.count('\n'));
    for (int i = 0; i < 70 * 1024; ++i, ++lines) file.write(line);
    file.write(kHeads);
    file.close();
    const auto machine = parseMachine("6xA800-80GB");
    QVERIFY(machine);
    QFile read(file.fileName());
    const auto reading = headroom::ui::readLog(read, nullptr, *machine, {});
    QVERIFY(reading);
    QCOMPARE(reading->diagnosis.findings.size(), size_t(1));
    QCOMPARE(reading->diagnosis.findings.front().line, lines + 2);
    QCOMPARE(reading->diagnosis.lines, lines + 2);
    QVERIFY(reading->failed());
  }
};

QTEST_MAIN(DiagnosisDialogTest)
#include "diagnosis_dialog_test.moc"
