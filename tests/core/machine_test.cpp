// SPDX-License-Identifier: Apache-2.0
// Machines as people write them, and this machine as host devices.
#include "core/hardware/machine.h"

#include <QtTest>

using namespace headroom;

class MachineTest : public QObject {
  Q_OBJECT
 private slots:
  void readsAmountsOfMemory() {
    QCOMPARE(*parseMemory("1536KiB"), Bytes(1536 * 1024));
    QCOMPARE(*parseMemory("1.5 MiB"), Bytes(1536 * 1024));
    QCOMPARE(*parseMemory("250kB"), Bytes(250000));
    QCOMPARE(*parseMemory("1700000B"), Bytes(1700000));
    for (const char* text : {"1536", "0.5B", "KiB", "1 XiB"}) QVERIFY2(!parseMemory(text), text);
  }

  void readsEveryForm_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<int>("gpus");
    QTest::addColumn<int>("nodes");
    QTest::addColumn<double>("firstGib");
    QTest::addColumn<double>("lastGib");
    QTest::newRow("catalog") << "6xA800-80GB" << 6 << 1 << 79.25 << 79.25;
    QTest::newRow("one") << "RTX 3090" << 1 << 1 << 23.58 << 23.58;
    QTest::newRow("digits in the name") << "2x3090" << 2 << 1 << 23.58 << 23.58;
    QTest::newRow("custom and mixed") << "2x24GiB,1x48GiB" << 3 << 1 << 24.0 << 48.0;
    QTest::newRow("decimals") << "1x79.19GiB" << 1 << 1 << 79.19 << 79.19;
    QTest::newRow("decimal unit") << "1x24GB" << 1 << 1 << 24e9 / (1 << 30) << 24e9 / (1 << 30);
    QTest::newRow("nodes") << "2n8xH100-80GB" << 16 << 2 << 79.19 << 79.19;
    QTest::newRow("nodes and a spare") << "2n2xH100,1xA100" << 5 << 3 << 79.19 << 79.25;
    QTest::newRow("spaces") << " 2 x 24GiB " << 2 << 1 << 24.0 << 24.0;
  }
  void readsEveryForm() {
    QFETCH(QString, text);
    QFETCH(int, gpus);
    QFETCH(int, nodes);
    QFETCH(double, firstGib);
    QFETCH(double, lastGib);
    const auto machine = parseMachine(text.toStdString());
    QVERIFY2(machine.has_value(), machine ? "" : machine.error().message().c_str());
    QCOMPARE(machine->size(), gpus);
    QCOMPARE(machine->nodes, nodes);
    QVERIFY(!machine->isLocal);
    QVERIFY(std::abs(machine->gpus.front().totalMemory.gib() - firstGib) < 0.01);
    QVERIFY(std::abs(machine->gpus.back().totalMemory.gib() - lastGib) < 0.01);
    for (int i = 0; i < gpus; ++i) QCOMPARE(machine->gpus[i].index, i);
    QCOMPARE(machine->gpus.back().node, nodes - 1);
  }

  void refusesWithTheNearestNames() {
    const auto machine = parseMachine("6xA80-80GB");
    QVERIFY(!machine);
    const std::string message = machine.error().message();
    QVERIFY2(message.find("A80-80GB") != std::string::npos && message.find("A800-80GB") != std::string::npos, message.c_str());
  }

  void refusesNonsense_data() {
    QTest::addColumn<QString>("text");
    for (const char* text : {"", "0xA100", "-1xA100", "2x", "x", "5", "2n", "2nxH100", "6xA800-80GB,", ",", "99999999999xA100",
                             "5000xA100", "1x0GiB", "1x-3GiB", "1xNaNGiB", "1x1e300GiB", "2n3000xH100", "1x15MiB", "6x0.0000001GiB", "\xff\xfe"}) {
      QTest::newRow(text) << QString::fromLatin1(text);
    }
  }
  void refusesNonsense() {
    QFETCH(QString, text);
    const auto machine = parseMachine(text.toStdString());
    QVERIFY(!machine);
    QVERIFY(!machine.error().message().empty());
  }

  void refusesACountBeyondAnInteger() {
    const auto machine = parseMachine("99999999999xA100-80GB");
    QVERIFY(!machine);
    const std::string message = machine.error().message();
    QVERIFY2(message.find("1 to") != std::string::npos, message.c_str());
  }

  void hostDevicesShareHalfTheMemory() {
    const Bytes all = hostMemory();
    QVERIFY(all > 256_MiB);
    const Machine machine = hostMachine();
    QVERIFY(machine.isLocal);
    QCOMPARE(machine.size(), 6);
    QCOMPARE(machine.gpus[5].totalMemory.count(), all.count() / 2 / 6);
    QVERIFY(machine.gpus[0].spec.hostDevice);
    QVERIFY(!machine.gpus[0].spec.computeCapability);
    const auto asked = parseMachine("local", {3, 4_GiB});
    QCOMPARE(asked->size(), 3);
    QCOMPARE(asked->gpus[2].totalMemory, 4_GiB);
  }
};

QTEST_GUILESS_MAIN(MachineTest)
#include "machine_test.moc"
