// SPDX-License-Identifier: GPL-3.0-or-later
// What-if machines as rows: the text that core reads, several nodes, mixed cards, and the dialog that edits them.
#include "ui/views/machine_dialog.h"
#include "ui/models/machine_rows.h"
#include "ui/views/log_slider.h"

#include <QAbstractItemModelTester>
#include <QDialogButtonBox>
#include <QLabel>
#include <QPushButton>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTableView>
#include <QtTest>

using namespace headroom;
using namespace headroom::ui;

class MachineDialogTest : public QObject {
  Q_OBJECT

 private slots:
  void init() {
    QTest::failOnWarning(QRegularExpression(QStringLiteral("^(?!This plugin does not support propagateSizeHints)")));
  }

  void rowsAndTextSayTheSameMachine_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<int>("rows");
    QTest::newRow("one kind") << "6xA800-80GB" << 1;
    QTest::newRow("mixed cards in one machine") << "2x24GiB,1x48GiB" << 2;
    QTest::newRow("two nodes of eight") << "2n8xH100-80GB-SXM" << 1;
    QTest::newRow("unlike nodes") << "2n8xH100-80GB-SXM,1n4xA800-80GB" << 2;
  }
  void rowsAndTextSayTheSameMachine() {
    QFETCH(QString, text);
    QFETCH(int, rows);
    const auto machine = parseMachine(text.toStdString());
    QVERIFY(machine);
    const std::vector<MachineRow> read = machineRows(*machine);
    QCOMPARE(static_cast<int>(read.size()), rows);
    const auto again = parseMachine(machineText(read).toStdString());
    QVERIFY2(again, qPrintable(machineText(read)));
    QCOMPARE(again->size(), machine->size());
    QCOMPARE(again->nodes, machine->nodes);
    for (int gpu = 0; gpu < machine->size(); ++gpu) {
      QCOMPARE(again->gpus[gpu].node, machine->gpus[gpu].node);
      QCOMPARE(again->gpus[gpu].totalMemory.count(), machine->gpus[gpu].totalMemory.count());
    }
  }

  void theModelKeepsTheRulesOfModels() {
    MachineRows rows;
    const QAbstractItemModelTester tester(&rows, QAbstractItemModelTester::FailureReportingMode::QtTest);
    rows.setRows({{0, 2, QStringLiteral("24GiB")}});
    rows.addRow({2, 8, QStringLiteral("H100-80GB-SXM")});
    QVERIFY(rows.setData(rows.index(0, MachineRows::Count), 4, Qt::EditRole));
    QVERIFY(!rows.setData(rows.index(0, MachineRows::Memory), 4, Qt::EditRole));
    QCOMPARE(machineText(rows.rows()), QStringLiteral("4x24GiB,2n8xH100-80GB-SXM"));
    rows.removeRowAt(0);
    QCOMPARE(rows.rowCount(), 1);
    // A card that nobody knows has no memory, not none.
    QVERIFY(rows.setData(rows.index(0, MachineRows::Card), QStringLiteral("A9000"), Qt::EditRole));
    QCOMPARE(rows.index(0, MachineRows::Memory).data().toString(), QStringLiteral("—"));
  }

  void theDialogTellsWhatItCannotReadAndHandsOverTheRest() {
    const auto machine = parseMachine("2x24GiB,1x48GiB");
    QVERIFY(machine);
    MachineDialog dialog(*machine);
    auto* table = dialog.findChild<QTableView*>(QStringLiteral("machineTable"));
    auto* problem = dialog.findChild<QLabel*>(QStringLiteral("machineDialogProblem"));
    auto* ok = dialog.findChild<QDialogButtonBox*>()->button(QDialogButtonBox::Ok);
    QSignalSpy chosen(&dialog, &MachineDialog::machineChosen);
    table->model()->setData(table->model()->index(1, MachineRows::Card), QStringLiteral("A9000"));
    QVERIFY2(problem->text().contains(QStringLiteral("A9000")), qPrintable(problem->text()));
    QVERIFY(!ok->isEnabled());
    table->model()->setData(table->model()->index(1, MachineRows::Card), QStringLiteral("A100-40GB-SXM"));
    QVERIFY(problem->text().isEmpty());
    dialog.findChild<QPushButton*>(QStringLiteral("addMachineRow"))->click();
    dialog.findChild<QPushButton*>(QStringLiteral("removeMachineRow"))->click();
    ok->click();
    QCOMPARE(chosen.count(), 1);
    QCOMPARE(chosen.first().first().toString(), QStringLiteral("2x24GiB,1xA100-40GB-SXM"));
  }

  void slidersMultiply() {
    QCOMPARE(logStepValue(0, 512, 32768, 8, 64), 512);
    QCOMPARE(logStepValue(8, 512, 32768, 8, 64), 1024);
    QCOMPARE(logStepValue(48, 512, 32768, 8, 64), 32768);
    QCOMPARE(logStepValue(60, 512, 32768, 8, 64), 32768);
    for (int step = 0; step <= 48; ++step) {
      const int value = logStepValue(step, 512, 32768, 8, 64);
      QCOMPARE(value % 64, 0);
      QVERIFY(std::abs(logStepOf(value, 512, 32768, 8) - step) <= 1);
    }
    QSpinBox box;
    box.setRange(0, 1 << 20);
    LogSlider slider(box, 512, 32768, 8, 64, nullptr);
    slider.setDefaultValue(8192);
    QCOMPARE(slider.value(), 32);
    slider.setValue(8);
    QCOMPARE(box.value(), 1024);
    box.setValue(2048);
    QCOMPARE(slider.value(), 16);
  }
};

QTEST_MAIN(MachineDialogTest)
#include "machine_dialog_test.moc"
