// SPDX-License-Identifier: GPL-3.0-or-later
// A wish as a machine: the dialog finds what core's own search finds, in its order, prices decide the order, and what is chosen
// is planned.
#include "ui/views/wish_dialog.h"
#include "core/model/model_catalog.h"
#include "tests/ui/support/accessible_names.h"
#include "tests/ui/support/grab.h"
#include "ui/models/layout_text.h"
#include "ui/models/wish_model.h"
#include "ui/settings/app_settings.h"
#include "ui/views/option_panel.h"
#include "ui/views/plan_page.h"

#include <QAbstractItemModelTester>
#include <QDoubleSpinBox>
#include <QElapsedTimer>
#include <QLabel>
#include <QPushButton>
#include <QSignalSpy>
#include <QTableView>
#include <QTemporaryDir>
#include <QtTest>
#include <memory>

using namespace headroom;
using namespace headroom::ui;

namespace {
constexpr int kTimeoutMs = 120000;
const QString kModel = QStringLiteral("Qwen/Qwen2.5-72B-Instruct");
}  // namespace

class WishDialogTest : public QObject {
  Q_OBJECT

  std::unique_ptr<QTemporaryDir> m_folder;
  std::unique_ptr<AppSettings> m_settings;
  std::unique_ptr<PlanSession> m_session;

  void openVllm() {
    PlanOptions options;
    options.engine.kind = EngineKind::Vllm;
    options.maxModelLen = 8192;
    options.concurrency = 4;
    QVERIFY(m_session->setMachine(QStringLiteral("1xT4-16GB")));
    m_session->setOptions(options);
    m_session->openModel(kModel);
    QTRY_VERIFY_WITH_TIMEOUT(m_session->report(), kTimeoutMs);
  }
  // All cards are told.
  static void search(WishDialog& dialog) {
    QTRY_COMPARE_WITH_TIMEOUT(dialog.model().rowCount(), static_cast<int>(gpuCatalog().size()), kTimeoutMs);
  }

 private slots:
  void init() {
    QTest::failOnWarning(QRegularExpression(QStringLiteral("^(?!This plugin does not support propagateSizeHints)")));
    QLocale::setDefault(QLocale::c());
    m_folder = std::make_unique<QTemporaryDir>();
    m_settings = std::make_unique<AppSettings>(m_folder->path());
    m_session = std::make_unique<PlanSession>(nullptr, m_settings->calibrationFile());
  }
  void cleanup() {
    m_session.reset();
    m_settings.reset();
  }

  void findsWhatTheSearchOfTheWholeCatalogFinds() {
    openVllm();
    WishDialog dialog(*m_session, *m_settings);
    QAbstractItemModelTester tester(&dialog.model(), QAbstractItemModelTester::FailureReportingMode::QtTest);
    dialog.show();
    search(dialog);
    headroom::test::grabIfAsked(dialog, QStringLiteral("wish"));
    const auto model = openModel(kModel.toStdString());
    QVERIFY(model);
    const auto whole = searchMachines(*model, m_session->options(), {});
    QVERIFY(whole);
    QVERIFY(whole->answers.size() > 5);
    QCOMPARE(dialog.model().answers(), static_cast<int>(whole->answers.size()));
    for (int row = 0; row < dialog.model().answers(); ++row) {
      QCOMPARE(dialog.model().answerAt(row)->gpus, whole->answers[static_cast<size_t>(row)].gpus);
      QCOMPARE(dialog.model().answerAt(row)->tp, whole->answers[static_cast<size_t>(row)].tp);
    }
    // 145 GB of weights: one card only where it has more than that.
    const WishAnswer& best = *dialog.model().answerAt(0);
    QCOMPARE(best.count, 1);
    QVERIFY(best.memory.gib() > 145.4e9 / (1 << 30));
    // A card that cannot says so in a sentence, and cannot be taken.
    auto* table = dialog.findChild<QTableView*>(QStringLiteral("wishTable"));
    table->selectRow(dialog.model().rowCount() - 1);
    QVERIFY(!dialog.findChild<QPushButton*>(QStringLiteral("useMachine"))->isEnabled());
    QVERIFY(!dialog.findChild<QLabel*>(QStringLiteral("wishDetail"))->text().isEmpty());
    const QStringList nameless = headroom::test::namelessWidgets(dialog);
    QVERIFY2(nameless.isEmpty(), qPrintable(nameless.join(QLatin1Char('\n'))));
  }

  void aSpeedThatIsWishedIsKeptByEveryAnswerAndItsBandIsTold() {
    openVllm();
    WishDialog dialog(*m_session, *m_settings);
    search(dialog);
    dialog.findChild<QDoubleSpinBox*>(QStringLiteral("wishEach"))->setValue(40);
    // The answers to the earlier wish cannot be taken any more.
    QCOMPARE(dialog.model().rowCount(), 0);
    QVERIFY(!dialog.findChild<QPushButton*>(QStringLiteral("useMachine"))->isEnabled());
    search(dialog);
    for (int row = 0; row < dialog.model().answers(); ++row) {
      const WishAnswer& answer = *dialog.model().answerAt(row);
      QVERIFY2(answer.predicted.itlMs && *answer.predicted.itlMs <= 1000.0 / 40 + 1e-9, answer.gpus.c_str());
      QVERIFY(dialog.model().sentence(row).contains(QStringLiteral("± %1 %").arg(qRound(*answer.predicted.itlError * 100))));
    }
    QVERIFY(dialog.model().answers() > 0);
  }

  void writtenPricesDecideTheOrderAndAreKept() {
    openVllm();
    {
      WishDialog dialog(*m_session, *m_settings);
      search(dialog);
      // The last of the machines becomes the cheapest.
      const int last = dialog.model().answers() - 1;
      const std::string gpus = dialog.model().answerAt(last)->gpus;
      const int count = dialog.model().answerAt(last)->count;
      const QModelIndex price = dialog.model().index(last, WishModel::CardPrice);
      QVERIFY(!dialog.model().setData(price, QStringLiteral("much"), Qt::EditRole));
      QVERIFY(dialog.model().setData(price, 0.5, Qt::EditRole));
      QTRY_COMPARE(dialog.model().answerAt(0)->gpus, gpus);
      QCOMPARE(dialog.model().answerAt(0)->price, std::optional(0.5 * count));
      QVERIFY(!dialog.model().answerAt(1)->price);
    }
    WishDialog again(*m_session, *m_settings);
    search(again);
    QVERIFY(again.model().answerAt(0)->price);
    QCOMPARE(*again.model().answerAt(0)->price, 0.5 * again.model().answerAt(0)->count);
  }

  void aPlanDoesNotWaitForTheSearch() {
    openVllm();
    QSignalSpy ended(m_session.get(), &PlanSession::wishEnded), ready(m_session.get(), &PlanSession::planReady);
    auto dialog = std::make_unique<WishDialog>(*m_session, *m_settings);
    PlanOptions options = m_session->options();
    options.concurrency = 7;
    m_session->setOptions(options);
    QTRY_COMPARE_WITH_TIMEOUT(ready.count(), 1, kTimeoutMs);
    QCOMPARE(ended.count(), 0);
    // A dialog that is closed ends its search.
    dialog.reset();
    QTest::qWait(300);
    QCOMPARE(ended.count(), 0);
  }

  void theAnswerBecomesTheMachineThatIsPlanned() {
    auto page = std::make_unique<PlanPage>(*m_session, *m_settings);
    page->resize(1280, 760);
    page->show();
    openVllm();
    page->openWish();
    auto* dialog = page->findChild<WishDialog*>();
    QVERIFY(dialog);
    dialog->findChild<QSpinBox*>(QStringLiteral("wishContext"))->setValue(16384);
    dialog->findChild<QSpinBox*>(QStringLiteral("wishConcurrency"))->setValue(8);
    dialog->findChild<QSpinBox*>(QStringLiteral("wishMostGpus"))->setValue(4);
    search(*dialog);
    int row = 0;
    while (dialog->model().answerAt(row) && dialog->model().answerAt(row)->count < 2) ++row;
    QVERIFY(dialog->model().answerAt(row));
    const WishAnswer answer = *dialog->model().answerAt(row);
    dialog->findChild<QTableView*>(QStringLiteral("wishTable"))->selectRow(row);
    dialog->findChild<QPushButton*>(QStringLiteral("useMachine"))->click();
    QTRY_VERIFY_WITH_TIMEOUT(m_session->report() && m_session->report()->machine.size() == answer.count, kTimeoutMs);
    QCOMPARE(m_session->machineText(), fromCore(answer.gpus));
    QCOMPARE(m_settings->machine(), fromCore(answer.gpus));
    QCOMPARE(m_session->report()->options.maxModelLen, int64_t(16384));
    QCOMPARE(m_session->report()->options.concurrency, int64_t(8));
    const LayoutPlan* layout = page->selectedLayout();
    QVERIFY(layout);
    QCOMPARE(layout->tp, answer.tp);
    QCOMPARE(layout->pp, answer.pp);
    QVERIFY(layout->verdict == Verdict::Fits || layout->verdict == Verdict::Tight);
    QCOMPARE(layout->predicted.itlMs, answer.predicted.itlMs);
    page.reset();
  }
};

QTEST_MAIN(WishDialogTest)
#include "wish_dialog_test.moc"
