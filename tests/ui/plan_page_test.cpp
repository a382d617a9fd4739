// SPDX-License-Identifier: GPL-3.0-or-later
// The planner page with the real planner: the story of six 80 GB GPUs, live options, the keyboard, and bad input.
#include "ui/views/plan_page.h"
#include "ui/charts/context_chart.h"
#include "ui/models/layout_grid_model.h"
#include "ui/models/layout_text.h"
#include "ui/models/plan_session.h"
#include "ui/settings/app_settings.h"
#include "ui/views/catalog_dialog.h"
#include "ui/views/details_panel.h"
#include "ui/views/layout_grid_view.h"
#include "ui/views/machine_bar.h"
#include "ui/views/notice_area.h"
#include "ui/views/option_panel.h"

#include <QAbstractItemModelTester>
#include <QCheckBox>
#include <QComboBox>
#include <QDropEvent>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QMimeData>
#include <QPushButton>
#include <QRadioButton>
#include <QScrollBar>
#include <QSignalSpy>
#include <QSlider>
#include <QSpinBox>
#include <QTableView>
#include <QTemporaryDir>
#include <QtTest>
#include <cstdio>
#include <map>
#include <memory>
#include <set>

using namespace headroom;
using namespace headroom::ui;

namespace {
constexpr int kPlanTimeoutMs = 60000;
const QString kStoryModel = QStringLiteral("Qwen/Qwen2.5-72B-Instruct");
}  // namespace

class PlanPageTest : public QObject {
  Q_OBJECT

  std::unique_ptr<QTemporaryDir> m_folder;
  std::unique_ptr<AppSettings> m_settings;
  std::unique_ptr<PlanSession> m_session;
  std::unique_ptr<PlanPage> m_page;

  template <class T>
  T* part(const char* name) {
    return m_page->findChild<T*>(QString::fromLatin1(name));
  }

  void write(const QString& name, const QByteArray& content) {
    QFile file(m_folder->filePath(name));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(content);
  }

  QString reason(int tp, int pp) { return m_page->gridModel().indexOf(tp, pp).data(Qt::AccessibleTextRole).toString(); }
  Verdict verdict(int tp, int pp) {
    return static_cast<Verdict>(m_page->gridModel().indexOf(tp, pp).data(LayoutGridModel::VerdictRole).toInt());
  }

  void openStory(int engine) {
    m_page->machineBar().machineRequested(QStringLiteral("6xA800-80GB"));
    auto* box = part<QComboBox>("engine");
    box->setCurrentIndex(box->findData(engine));
    m_session->openModel(kStoryModel);
    QTRY_VERIFY_WITH_TIMEOUT(m_session->report() && !m_session->isPlanning(), kPlanTimeoutMs);
  }

 private slots:
  void init() {
    // The offscreen platform cannot hand size hints on and says so.
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

  void vllmRefusesSixWayTensorParallelBeforeAnythingLoads() {
    openStory(static_cast<int>(EngineKind::Vllm));
    QCOMPARE(verdict(6, 1), Verdict::Invalid);
    QCOMPARE(m_page->gridModel().indexOf(6, 1).data(Qt::DisplayRole).toString(), QStringLiteral("64 heads / 6"));
    QVERIFY(reason(6, 1).contains(QStringLiteral("64")));
    // 145 GB of BF16 weights over six GPUs of 79 GiB: about 22.6 GiB each.
    QCOMPARE(verdict(2, 3), Verdict::Fits);
    const LayoutPlan* layout = m_session->report()->find(2, 3, 1);
    QVERIFY(layout && layout->headroom && layout->kvTokens);
    QVERIFY(layout->headroom->gib() > 20 && layout->headroom->gib() < 60);
    QCOMPARE(layout->ranks.size(), size_t(6));
    QCOMPARE(verdict(4, 1), Verdict::Fits);
    // Every layout up to six GPUs is shown, none beyond.
    for (int tp = 1; tp <= 6; ++tp)
      for (int pp = 1; pp <= 6; ++pp)
        QCOMPARE(m_page->gridModel().indexOf(tp, pp).data(LayoutGridModel::VerdictRole).isValid(), tp * pp <= 6);
  }

  void headroomsOwnEngineRunsSixWaysUnevenly() {
    openStory(static_cast<int>(EngineKind::Headroom));
    QVERIFY(verdict(6, 1) != Verdict::Invalid);
    QVERIFY(m_page->gridModel().indexOf(6, 1).data(LayoutGridModel::UnevenRole).toBool());
    QVERIFY(!m_page->gridModel().indexOf(2, 3).data(LayoutGridModel::UnevenRole).toBool());
  }

  void headroomsOwnEngineCanDoWithoutGraphs() {
    openStory(static_cast<int>(EngineKind::Headroom));
    const auto graphs = [this] { return m_session->report()->find(4, 1, 1)->ranks.front().graphs.value_or(Bytes()).count(); };
    QVERIFY(graphs() > 0);
    auto* eager = part<QCheckBox>("enforceEager");
    QVERIFY(eager->isEnabled());
    eager->click();
    QTRY_VERIFY_WITH_TIMEOUT(m_session->report() && !m_session->isPlanning(), kPlanTimeoutMs);
    QCOMPARE(graphs(), int64_t{0});
  }

  // Each engine is offered the cache types that it takes on these devices, and the plan is made with the chosen one.
  void cacheTypesAreTheEnginesOwn() {
    const auto offered = [this] {
      QStringList types;
      for (int i = 0; i < part<QComboBox>("kvDType")->count(); ++i)
        if (const QVariant type = part<QComboBox>("kvDType")->itemData(i); type.isValid())
          types << QString::fromUtf8(dtypeName(static_cast<DType>(type.toInt())).data());
      return types.join(QLatin1Char(' '));
    };
    openStory(static_cast<int>(EngineKind::Headroom));
    QCOMPARE(offered(), QStringLiteral("float32 float16 bfloat16 float8_e4m3 float8_e5m2"));
    const int64_t before = *m_session->report()->kvBytesPerToken;
    auto* box = part<QComboBox>("kvDType");
    box->setCurrentIndex(box->findData(static_cast<int>(DType::F8E5M2)));
    QTRY_VERIFY_WITH_TIMEOUT(m_session->report() && !m_session->isPlanning(), kPlanTimeoutMs);
    QCOMPARE(*m_session->report()->kvBytesPerToken * 2, before);
    auto* engine = part<QComboBox>("engine");
    engine->setCurrentIndex(engine->findData(static_cast<int>(EngineKind::LlamaCpp)));
    QCOMPARE(offered(), QStringLiteral("float32 float16 bfloat16 Q8_0 Q4_1 Q4_0"));
    engine->setCurrentIndex(engine->findData(static_cast<int>(EngineKind::Vllm)));
    QCOMPARE(offered(), QStringLiteral("bfloat16 float16 float8_e4m3 float8_e5m2"));
    // int8 runs on host devices alone: it goes with them, and the plan is made without it.
    engine->setCurrentIndex(engine->findData(static_cast<int>(EngineKind::Headroom)));
    m_page->machineBar().machineRequested(QStringLiteral("local"));
    QVERIFY2(offered().endsWith(QStringLiteral(" int8")), qPrintable(offered()));
    box->setCurrentIndex(box->findData(static_cast<int>(DType::I8)));
    m_page->machineBar().machineRequested(QStringLiteral("6xA800-80GB"));
    QCOMPARE(offered(), QStringLiteral("float32 float16 bfloat16 float8_e4m3 float8_e5m2"));
    QTRY_VERIFY_WITH_TIMEOUT(m_session->report() && !m_session->isPlanning(), kPlanTimeoutMs);
    QCOMPARE(*m_session->report()->kvBytesPerToken, before);
  }

  // GPUs of this machine come before its processor, which stays a choice; without any, the bar says why.
  void thisMachinesGpusComeFirst() {
    openStory(static_cast<int>(EngineKind::Headroom));
    const auto planned = [this](const char* text) {
      if (text) m_page->machineBar().machineRequested(QString::fromLatin1(text));
      return QTest::qWaitFor([this] { return m_session->report() && !m_session->isPlanning(); }, kPlanTimeoutMs);
    };
    LocalGpus gpus;
    gpus.offReason = "CUDA is off: the NVIDIA driver library libcuda.so.1 was not found.";
    m_session->setLocalGpus(gpus);
    QVERIFY(planned("local"));
    QVERIFY(m_session->report()->machine.isHostOnly());
    QVERIFY(!part<QRadioButton>("thisProcessor")->isVisibleTo(m_page.get()) && part<QRadioButton>("thisMachine")->isChecked());
    QVERIFY(part<QLabel>("machineSummary")->text().contains(QStringLiteral("libcuda.so.1")));
    gpus.offReason.clear();
    for (int i = 0; i < 2; ++i)
      gpus.gpus.push_back(localGpu(i, "NVIDIA L40S", 8.9, std::nullopt, Bytes(47'810'936'832), 500_MiB));
    m_session->setLocalGpus(gpus);
    QVERIFY(planned(nullptr));
    QCOMPARE(m_session->report()->machine.size(), 2);
    QVERIFY(m_session->report()->machine.isLocal && !m_session->report()->machine.isHostOnly());
    QVERIFY(part<QRadioButton>("thisMachine")->isChecked() && part<QRadioButton>("thisProcessor")->isVisibleTo(m_page.get()));
    QVERIFY(part<QLabel>("machineSummary")->text().contains(QStringLiteral("NVIDIA L40S")));
    part<QRadioButton>("thisProcessor")->click();
    QVERIFY(planned(nullptr));
    QVERIFY(m_session->report()->machine.isHostOnly() && part<QRadioButton>("thisProcessor")->isChecked());
    part<QRadioButton>("thisMachine")->click();
    QVERIFY(planned(nullptr));
    QVERIFY(!m_session->report()->machine.isHostOnly() && part<QRadioButton>("thisMachine")->isChecked());
    // What is not known yet is not planned for.
    m_session->awaitLocalGpus();
    m_session->refresh();
    QTRY_VERIFY_WITH_TIMEOUT(!m_session->isOpening(), kPlanTimeoutMs);
    QVERIFY(!QTest::qWaitFor([this] { return m_session->report() != nullptr; }, 200));
    QVERIFY(m_session->setMachine(QStringLiteral("2x24GiB")));
    QVERIFY(planned(nullptr));
  }

  void detailsExplainTheSelectedCell() {
    openStory(static_cast<int>(EngineKind::Vllm));
    m_page->selectLayout(6, 1, 1);
    QCOMPARE(part<QLabel>("detailsTitle")->text(), QStringLiteral("TP6 × PP1"));
    QVERIFY(part<QLabel>("reasons")->text().contains(QStringLiteral("64")));
    QVERIFY(m_page->details().commandText().isEmpty());
    m_page->selectLayout(2, 3, 1);
    const QString command = m_page->details().commandText();
    QVERIFY2(command.contains(QStringLiteral("--tensor-parallel-size 2")) &&
                 command.contains(QStringLiteral("--pipeline-parallel-size 3")),
             qPrintable(command));
    QCOMPARE(part<QTableView>("memoryTable")->model()->rowCount(), 6);
    QVERIFY(!part<QWidget>("memoryBars")->accessibleDescription().isEmpty());
  }

  void aChangedOptionPlansAgainAndKeepsTheSelection() {
    openStory(static_cast<int>(EngineKind::Vllm));
    m_page->selectLayout(2, 3, 1);
    const Bytes before = *m_page->selectedLayout()->headroom;
    part<QSpinBox>("contextLength")->setValue(8192);
    // The plan for the old options is gone at once.
    QVERIFY(!m_session->report());
    QVERIFY(!m_page->selectedLayout());
    QTRY_VERIFY_WITH_TIMEOUT(m_session->report(), kPlanTimeoutMs);
    QCOMPARE(m_session->report()->options.maxModelLen, 8192);
    part<QSpinBox>("concurrency")->setValue(64);
    QTRY_VERIFY_WITH_TIMEOUT(m_session->report(), kPlanTimeoutMs);
    const LayoutPlan* layout = m_page->selectedLayout();
    QVERIFY(layout && layout->tp == 2 && layout->pp == 3);
    // 64 requests of 8192 tokens need more cache than one of the default length.
    QVERIFY(*layout->headroom < before);
  }

  void onlyTheLatestOfManyChangesIsShown() {
    openStory(static_cast<int>(EngineKind::Vllm));
    QSignalSpy ready(m_session.get(), &PlanSession::planReady);
    auto* concurrency = part<QSpinBox>("concurrency");
    for (int requests = 2; requests <= 30; ++requests) concurrency->setValue(requests);
    QTRY_VERIFY_WITH_TIMEOUT(m_session->report(), kPlanTimeoutMs);
    QCOMPARE(ready.count(), 1);
    QCOMPARE(m_session->report()->options.concurrency, 30);
  }

  void keyboardReachesEveryCell() {
    openStory(static_cast<int>(EngineKind::Vllm));
    LayoutGridView& grid = m_page->gridView();
    grid.setFocus();
    m_page->selectLayout(1, 1, 1);
    QTest::keyClick(&grid, Qt::Key_Right);
    QCOMPARE(grid.currentIndex(), m_page->gridModel().indexOf(2, 1));
    QTest::keyClick(&grid, Qt::Key_Down);
    QCOMPARE(grid.currentIndex(), m_page->gridModel().indexOf(2, 2));
    QTest::keyClick(&grid, Qt::Key_End);
    QCOMPARE(grid.currentIndex(), m_page->gridModel().indexOf(3, 2));
    QTest::keyClick(&grid, Qt::Key_Home);
    QCOMPARE(grid.currentIndex(), m_page->gridModel().indexOf(1, 2));
    QSignalSpy activated(&grid, &LayoutGridView::layoutActivated);
    QTest::keyClick(&grid, Qt::Key_Return);
    QCOMPARE(activated.count(), 1);
    QCOMPARE(part<QLabel>("detailsTitle")->text(), QStringLiteral("TP1 × PP2"));
  }

  void aClickSelectsACell() {
    openStory(static_cast<int>(EngineKind::Vllm));
    LayoutGridView& grid = m_page->gridView();
    QTest::mouseClick(grid.viewport(), Qt::LeftButton, {}, grid.visualRect(m_page->gridModel().indexOf(4, 1)).center());
    QVERIFY(m_page->selectedLayout());
    QCOMPARE(m_page->selectedLayout()->tp, 4);
  }

  void replicasAreTheThirdAxis() {
    openStory(static_cast<int>(EngineKind::Vllm));
    auto* replicas = part<QComboBox>("replicas");
    QCOMPARE(replicas->count(), 6);
    replicas->setCurrentIndex(1);
    emit replicas->activated(1);
    QCOMPARE(m_page->gridModel().rowCount(), 3);
    QVERIFY(m_page->selectedLayout());
    QCOMPARE(m_page->selectedLayout()->dp, 2);
  }

  void aFixIsOneClickAway() {
    openStory(static_cast<int>(EngineKind::Vllm));
    m_page->selectLayout(6, 1, 1);
    auto* fix = part<QPushButton>("fix0");
    QVERIFY(fix);
    QCOMPARE(fix->text(), QStringLiteral("Show TP2 × PP3"));
    fix->click();
    QVERIFY(m_page->selectedLayout());
    QCOMPARE(m_page->selectedLayout()->tp, 2);
    QCOMPARE(m_page->selectedLayout()->pp, 3);
    // A context that fits is set where it belongs, and planned at once.
    FixAction action;
    action.maxModelLen = 4096;
    emit m_page->details().fixRequested(action);
    QCOMPARE(part<QSpinBox>("contextLength")->value(), 4096);
    QTRY_VERIFY_WITH_TIMEOUT(m_session->report(), kPlanTimeoutMs);
    QCOMPARE(m_session->report()->options.maxModelLen, int64_t(4096));
  }

  // Pickers say what the machine is, or nothing: of several kinds of card there is no one kind and number.
  void pickersFollowAMachineOfOneKind() {
    auto* card = part<QComboBox>("gpuCard");
    auto* count = part<QSpinBox>("gpuCount");
    QVERIFY(m_session->setMachine(QStringLiteral("6xA800-80GB")));
    QCOMPARE(card->currentText(), QStringLiteral("A800-80GB"));
    QCOMPARE(count->value(), 6);
    QVERIFY(m_session->setMachine(QStringLiteral("2xRTX 4090,1xA800-80GB")));
    QCOMPARE(card->currentIndex(), -1);
    QVERIFY(!count->isEnabled());
    card->setCurrentIndex(card->findText(QStringLiteral("T4-16GB")));
    emit card->activated(card->currentIndex());
    QCOMPARE(m_session->machineText(), QStringLiteral("3xT4-16GB"));
    QVERIFY(count->isEnabled());
  }

  void anotherMachineShowsItsOwnRecommendationUnlessALayoutWasChosen() {
    openStory(static_cast<int>(EngineKind::Vllm));
    const auto recommended = [this] {
      return FixAction::Sizes{m_session->report()->recommended->tp, m_session->report()->recommended->pp,
                              m_session->report()->recommended->dp};
    };
    const auto selected = [this] {
      return FixAction::Sizes{m_page->selectedLayout()->tp, m_page->selectedLayout()->pp, m_page->selectedLayout()->dp};
    };
    const auto plan = [this](const char* machine) {
      m_page->machineBar().machineRequested(QString::fromLatin1(machine));
      QTRY_VERIFY_WITH_TIMEOUT(m_session->report() && !m_session->isPlanning(), kPlanTimeoutMs);
    };
    plan("8xH100-80GB-SXM");
    QVERIFY(selected() == recommended());
    plan("2xH200-141GB");
    QVERIFY(selected() == recommended());
    m_page->selectLayout(1, 2, 1);
    plan("4xA800-80GB");
    QVERIFY((selected() == FixAction::Sizes{1, 2, 1}));
  }

  void memoryAgainstContextAndEnginesSideBySide() {
    openStory(static_cast<int>(EngineKind::Vllm));
    m_page->selectLayout(4, 1, 1);
    m_page->showTab(PlanPage::ContextTab);
    const ContextCurve& curve = m_page->findChild<ContextChart*>(QStringLiteral("contextChart"))->curve();
    QVERIFY(curve.points.size() > 3);
    QCOMPARE(curve.asked, std::optional<int64_t>(32768));
    for (size_t i = 1; i < curve.points.size(); ++i) {
      QVERIFY(curve.points[i].tokens > curve.points[i - 1].tokens);
      QVERIFY(curve.points[i].kvCache >= curve.points[i - 1].kvCache);
    }
    QVERIFY(!part<QWidget>("contextChart")->accessibleDescription().isEmpty());
    m_page->showTab(PlanPage::EnginesTab);
    auto* table = part<QTableView>("engineTable");
    QTRY_VERIFY_WITH_TIMEOUT(table->model()->rowCount() >= 5, kPlanTimeoutMs);
    QAbstractItemModelTester tester(table->model(), QAbstractItemModelTester::FailureReportingMode::QtTest);
    int headroomRow = -1;
    for (int row = 0; row < table->model()->rowCount(); ++row)
      if (table->model()->index(row, 0).data().toString().startsWith(QStringLiteral("Headroom"))) headroomRow = row;
    QVERIFY(headroomRow >= 0);
    table->selectRow(headroomRow);
    part<QPushButton>("useEngine")->click();
    QTRY_VERIFY_WITH_TIMEOUT(m_session->report() && m_session->report()->options.engine.kind == EngineKind::Headroom,
                             kPlanTimeoutMs);
  }

  void everyEngineNamesItsVersions() {
    const std::map<EngineKind, QString> newest{{EngineKind::Vllm, QStringLiteral("0.32")},
                                               {EngineKind::SgLang, QStringLiteral("0.5.9")},
                                               {EngineKind::TensorRtLlm, QStringLiteral("1.0")},
                                               {EngineKind::LmDeploy, QStringLiteral("0.16")}};
    openStory(static_cast<int>(EngineKind::Vllm));
    auto* engine = part<QComboBox>("engine");
    auto* version = part<QComboBox>("engineVersion");
    QCOMPARE(engine->count(), 6);
    for (int row = 0; row < engine->count(); ++row) {
      engine->setCurrentIndex(row);
      const auto kind = static_cast<EngineKind>(engine->currentData().toInt());
      const auto known = newest.find(kind);
      QCOMPARE(version->isEnabled(), known != newest.end());
      QTRY_VERIFY_WITH_TIMEOUT(m_session->report() && !m_session->isPlanning(), kPlanTimeoutMs);
      QCOMPARE(m_session->report()->options.engine.kind, kind);
      if (known == newest.end()) continue;
      // What is offered first is what is planned when nothing is chosen.
      QCOMPARE(version->itemText(0), known->second);
      QCOMPARE(fromCore(m_session->report()->options.engine.version), known->second);
      const QString placeholder = version->lineEdit()->placeholderText();
      QVERIFY(placeholder.contains(known->second));
      QVERIFY2(version->fontMetrics().horizontalAdvance(placeholder) < version->lineEdit()->width(), qPrintable(placeholder));
    }
  }

  void everyPredictedFigureSaysHowSureItIs() {
    openStory(static_cast<int>(EngineKind::Vllm));
    m_page->selectLayout(4, 1, 1);
    const Prediction& predicted = m_page->selectedLayout()->predicted;
    QVERIFY(predicted.itlError && predicted.ttftError);
    const auto shownBands = [this] {
      QStringList bands;
      for (const QLabel* label : m_page->details().findChildren<QLabel*>(QStringLiteral("band")))
        if (label->isVisible()) bands << label->text();
      return bands;
    };
    // One request's rate and time between tokens by one band, prompts by the other.
    const QString tokens = QStringLiteral("± %1 %").arg(qRound(*predicted.itlError * 100)),
                  prompts = QStringLiteral("± %1 %").arg(qRound(*predicted.ttftError * 100));
    QCOMPARE(shownBands(), (QStringList{tokens, tokens, prompts, prompts}));
    // Cards without figures have no speed, and no band of it.
    m_page->machineBar().machineRequested(QStringLiteral("6x80GiB"));
    QTRY_VERIFY_WITH_TIMEOUT(m_session->report() && !m_session->isPlanning(), kPlanTimeoutMs);
    QVERIFY(m_page->selectedLayout());
    QVERIFY(!m_page->selectedLayout()->predicted.itlMs);
    QCOMPARE(shownBands(), QStringList());
  }

  void everyNodeHasItsCommand() {
    m_page->machineBar().machineRequested(QStringLiteral("2n8xH100-80GB-SXM"));
    auto* box = part<QComboBox>("engine");
    box->setCurrentIndex(box->findData(static_cast<int>(EngineKind::Vllm)));
    m_session->openModel(kStoryModel);
    QTRY_VERIFY_WITH_TIMEOUT(m_session->report() && !m_session->isPlanning(), kPlanTimeoutMs);
    m_page->selectLayout(8, 2, 1);
    auto* form = part<QComboBox>("commandForm");
    for (int node = 0; node < 2; ++node) {
      const int row = form->findData(QStringLiteral("node %1").arg(node));
      QVERIFY(row >= 0);
      form->setCurrentIndex(row);
      emit form->activated(row);
      QVERIFY2(m_page->details().commandText().contains(QStringLiteral("--node-rank %1").arg(node)),
               qPrintable(m_page->details().commandText()));
    }
    m_page->selectLayout(8, 1, 1);
    QCOMPARE(form->findData(QStringLiteral("node 0")), -1);
  }

  void allColumnsOfTheEnginesAreSeenAndTheChosenOneIsExplained() {
    m_page->resize(1290, 700);  // what a screen of 1366 x 768 leaves
    openStory(static_cast<int>(EngineKind::Vllm));
    m_page->showTab(PlanPage::EnginesTab);
    auto* table = part<QTableView>("engineTable");
    QTRY_VERIFY_WITH_TIMEOUT(table->model()->rowCount() >= 6, kPlanTimeoutMs);
    QTRY_VERIFY2(!table->horizontalScrollBar()->isVisible(), qPrintable(QString::number(table->horizontalHeader()->length())));
    // A wider window leaves no empty strip at the right.
    for (const int width : {1290, 1900}) {
      m_page->resize(width, 700);
      QTRY_VERIFY2(
          table->horizontalHeader()->length() == table->viewport()->width(),
          qPrintable(QStringLiteral("%1 of %2").arg(table->horizontalHeader()->length()).arg(table->viewport()->width())));
    }
    table->selectRow(1);
    const QString detail = part<QLabel>("engineDetail")->text();
    QVERIFY2(detail.contains(QStringLiteral("± 18 %")) && detail.contains(QStringLiteral("TP=4")), qPrintable(detail));
  }

  void tabFollowsTheOptionsFromTopToBottom() {
    openStory(static_cast<int>(EngineKind::Vllm));
    const QWidget& panel = m_page->optionPanel();
    int before = -1;
    QStringList seen;
    QWidget* widget = part<QComboBox>("engine");
    do {
      const bool own = widget->parentWidget() == &panel && widget->isVisible() && (widget->focusPolicy() & Qt::TabFocus);
      if (own) {
        seen << widget->objectName();
        QVERIFY2(widget->y() >= before, qPrintable(seen.join(QLatin1Char(' '))));
        before = widget->y();
      }
      widget = widget->nextInFocusChain();
    } while (widget != part<QComboBox>("engine"));
    QVERIFY(seen.indexOf(QStringLiteral("contextSlider")) == seen.indexOf(QStringLiteral("contextLength")) + 1);
    QVERIFY(seen.size() > 12);
  }

  void theChosenCellOfALargeGridIsInView() {
    m_page->machineBar().machineRequested(QStringLiteral("2n8xH200-141GB-SXM"));
    auto* box = part<QComboBox>("engine");
    box->setCurrentIndex(box->findData(static_cast<int>(EngineKind::Vllm)));
    m_session->openModel(QStringLiteral("deepseek-ai/DeepSeek-R1"));
    QTRY_VERIFY_WITH_TIMEOUT(m_session->report() && !m_session->isPlanning(), kPlanTimeoutMs);
    LayoutGridView& grid = m_page->gridView();
    for (const auto& [tp, pp] : {std::pair(16, 1), std::pair(1, 16), std::pair(1, 1)}) {
      m_page->selectLayout(tp, pp, 1);
      QTRY_VERIFY(grid.viewport()->rect().contains(grid.visualRect(grid.currentIndex())));
    }
  }

  void aDraggedSliderPlansTheLastOfItsSteps() {
    openStory(static_cast<int>(EngineKind::Vllm));
    auto* slider = part<QSlider>("contextSlider");
    slider->setSliderDown(true);
    for (int step = slider->minimum(); step <= slider->maximum(); ++step) slider->setValue(step);
    slider->setValue(slider->minimum());
    slider->setSliderDown(false);
    QCOMPARE(part<QSpinBox>("contextLength")->value(), 512);
    QTRY_VERIFY_WITH_TIMEOUT(m_session->report() && !m_session->isPlanning(), kPlanTimeoutMs);
    QCOMPARE(m_session->report()->options.maxModelLen, int64_t(512));
  }

  // What is dragged changes texts: no widget of the page is made or deleted while the plan says the same of the layout, so that
  // the window keeps pace with the hand.
  void aDraggedSliderKeepsTheWidgets() {
    openStory(static_cast<int>(EngineKind::Vllm));
    m_page->selectLayout(2, 3, 1);
    auto* slider = part<QSlider>("contextSlider");
    const auto widgets = [this] {
      const QList<QWidget*> all = m_page->findChildren<QWidget*>();
      return std::set<QWidget*>(all.begin(), all.end());
    };
    const std::set<QWidget*> before = widgets();
    QVERIFY(before.size() > 100);
    std::set<QString> capacities;
    slider->setSliderDown(true);
    for (int step = slider->minimum(); step <= slider->maximum(); step += 7) {
      slider->setValue(step);
      QTRY_VERIFY_WITH_TIMEOUT(m_session->report() && !m_session->isPlanning(), kPlanTimeoutMs);
      QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
      QVERIFY(widgets() == before);
      for (const QLabel* label : m_page->details().findChildren<QLabel*>())
        if (label->isVisible() && label->text().startsWith(QStringLiteral("Requests of "))) capacities.insert(label->text());
    }
    slider->setSliderDown(false);
    QVERIFY(capacities.size() > 3);  // and they followed
  }

  // Planning is done beside the window's thread, and steps that another step has overtaken are not planned to the end.
  void theWindowGoesOnWhileItPlans() {
    openStory(static_cast<int>(EngineKind::Vllm));
    auto* slider = part<QSlider>("contextSlider");
    QSignalSpy started(m_session.get(), &PlanSession::planningStarted), ready(m_session.get(), &PlanSession::planReady);
    slider->setSliderDown(true);
    for (int step = slider->minimum(); step <= slider->maximum(); ++step) {
      slider->setValue(step);
      QVERIFY(!m_session->report());  // nothing was planned in this thread
    }
    slider->setSliderDown(false);
    const auto asked = started.count();
    QVERIFY(asked > 20);
    QCOMPARE(ready.count(), 0);
    QTRY_VERIFY_WITH_TIMEOUT(m_session->report() && !m_session->isPlanning(), kPlanTimeoutMs);
    QCOMPARE(started.count(), asked);
    QCOMPARE(ready.count(), 1);  // of the last step alone
  }

  void badInputIsToldInPlaceAndNothingIsLost_data() {
    QTest::addColumn<QString>("name");
    QTest::addColumn<QByteArray>("content");
    QTest::newRow("missing") << QStringLiteral("absent/config.json") << QByteArray();
    QTest::newRow("not JSON") << QStringLiteral("config.json") << QByteArray("<html>404</html>");
    QTest::newRow("wrong type") << QStringLiteral("config.json")
                                << QByteArray(
                                       "{\"model_type\": \"llama\", \"hidden_size\": \"large\", \"num_hidden_layers\": [3]}");
    QTest::newRow("hostile numbers")
        << QStringLiteral("config.json")
        << QByteArray(
               "{\"model_type\": \"llama\", \"architectures\": [\"LlamaForCausalLM\"], \"hidden_size\": -1, "
               "\"num_hidden_layers\": 1000000000000, \"num_attention_heads\": 0}");
    QTest::newRow("a bomb of brackets") << QStringLiteral("config.json") << QByteArray(1000000, '[');
    QTest::newRow("no bytes") << QStringLiteral("config.json") << QByteArray();
    QTest::newRow("truncated GGUF") << QStringLiteral("cut.gguf") << QByteArray("GGUF\x03\0\0\0", 8);
  }
  void badInputIsToldInPlaceAndNothingIsLost() {
    QFETCH(QString, name);
    QFETCH(QByteArray, content);
    openStory(static_cast<int>(EngineKind::Vllm));
    if (!name.contains(QLatin1Char('/'))) write(name, content);
    QSignalSpy failed(m_session.get(), &PlanSession::openFailed);
    m_session->openModel(m_folder->filePath(name));
    QTRY_COMPARE_WITH_TIMEOUT(failed.count(), 1, kPlanTimeoutMs);
    const QString text = m_page->notices().text(QStringLiteral("open"));
    QVERIFY2(text.contains(name.section(QLatin1Char('/'), 0, 0)), qPrintable(text));
    QCOMPARE(m_session->modelArgument(), kStoryModel);
    QVERIFY(m_session->report());
    // A good model takes the message away.
    m_session->openModel(kStoryModel);
    QTRY_VERIFY_WITH_TIMEOUT(m_page->notices().text(QStringLiteral("open")).isEmpty(), kPlanTimeoutMs);
  }

  void aNameThatIsNoTextIsToldAndNotCalledMissing() {
    const QByteArray name = QFile::encodeName(m_folder->path()) + "/caf\xe9.gguf";
    FILE* file = std::fopen(name.constData(), "w");
    QVERIFY(file);
    std::fclose(file);
    QSignalSpy failed(m_session.get(), &PlanSession::openFailed);
    m_session->openModel(QFile::decodeName(name));
    QTRY_COMPARE_WITH_TIMEOUT(failed.count(), 1, kPlanTimeoutMs);
    QVERIFY(!m_session->isOpening());
    QCOMPARE(std::remove(name.constData()), 0);  // QTemporaryDir cannot name it
    QVERIFY2(m_page->notices().text(QStringLiteral("open")).contains(QStringLiteral("UTF-8")),
             qPrintable(m_page->notices().text(QStringLiteral("open"))));
  }

  void gpusThatCannotBeReadGetALineBeneathTheField() {
    openStory(static_cast<int>(EngineKind::Vllm));
    auto* text = part<QLineEdit>("machineText");
    text->clear();
    QTest::keyClicks(text, QStringLiteral("6xA9000"));
    QTest::keyClick(text, Qt::Key_Return);
    QVERIFY(m_page->machineBar().problem().contains(QStringLiteral("A9000")));
    QCOMPARE(m_session->machine().size(), 6);
    text->clear();
    QTest::keyClicks(text, QStringLiteral("2x24GiB,1x48GiB"));
    QTest::keyClick(text, Qt::Key_Return);
    QVERIFY(m_page->machineBar().problem().isEmpty());
    QCOMPARE(m_session->machine().size(), 3);
    QTRY_VERIFY_WITH_TIMEOUT(m_session->report(), kPlanTimeoutMs);
    QCOMPARE(m_page->gridModel().columnCount(), 3);
  }

  void aDroppedFolderIsOpened() {
    const QString folder = m_folder->filePath(QStringLiteral("empty"));
    QDir().mkpath(folder);
    QSignalSpy failed(m_session.get(), &PlanSession::openFailed);
    QMimeData mime;
    mime.setUrls({QUrl::fromLocalFile(folder)});
    struct DropTarget : PlanPage {
      using PlanPage::dropEvent;
      using PlanPage::PlanPage;
    };
    DropTarget page(*m_session, *m_settings);
    QDropEvent drop(QPointF(5, 5), Qt::CopyAction, &mime, Qt::LeftButton, Qt::NoModifier);
    page.dropEvent(&drop);
    QTRY_COMPARE_WITH_TIMEOUT(failed.count(), 1, kPlanTimeoutMs);
    QVERIFY(m_page->notices().text(QStringLiteral("open")).contains(QStringLiteral("empty")));
  }

  void theCatalogFindsWordsInAnyOrder() {
    CatalogDialog dialog;
    QSignalSpy chosen(&dialog, &CatalogDialog::modelChosen);
    auto* search = dialog.findChild<QLineEdit*>(QStringLiteral("catalogSearch"));
    QTest::keyClicks(search, QStringLiteral("72b instruct qwen2.5"));
    QVERIFY(dialog.findChild<QTableView*>(QStringLiteral("catalogTable"))->model()->rowCount() >= 1);
    QTest::keyClick(search, Qt::Key_Return);
    QCOMPARE(chosen.count(), 1);
    QCOMPARE(chosen.first().first().toString(), kStoryModel);
  }
};

QTEST_MAIN(PlanPageTest)
#include "plan_page_test.moc"
