// SPDX-License-Identifier: GPL-3.0-or-later
// headroom as a process: help without a display, and one line with status 2 for what it cannot take.
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>

class DesktopCommandTest : public QObject {
  Q_OBJECT

  struct Ended {
    int status = -1;
    QByteArray output, errors;
  };

  static Ended run(const QStringList& arguments, bool display) {
    QProcess process;
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"}) environment.remove(QLatin1String(name));
    if (display) environment.insert(QStringLiteral("QT_QPA_PLATFORM"), QStringLiteral("offscreen"));
    const QTemporaryDir runtime;  // for this user alone, as Qt wants it
    environment.insert(QStringLiteral("XDG_RUNTIME_DIR"), runtime.path());
    process.setProcessEnvironment(environment);
    process.start(QStringLiteral(HEADROOM_BIN_DIR "/headroom"), arguments);
    if (!process.waitForFinished(30000)) return {};
    if (process.exitStatus() != QProcess::NormalExit) return {1000, {}, process.readAllStandardError()};
    return {process.exitCode(), process.readAllStandardOutput(), process.readAllStandardError()};
  }

 private slots:
  void helpAndVersionNeedNoDisplay() {
    const Ended help = run({QStringLiteral("--help")}, false);
    QCOMPARE(help.status, 0);
    QVERIFY(help.output.contains("MODEL"));
    const Ended version = run({QStringLiteral("--version")}, false);
    QCOMPARE(version.status, 0);
    QVERIFY(version.output.startsWith("headroom "));
  }

  void aMissingDisplayIsOneLine() {
    const Ended ended = run({}, false);
    QCOMPARE(ended.status, 2);
    QCOMPARE(ended.errors.count('\n'), 1);
    QVERIFY2(ended.errors.contains("DISPLAY") && ended.errors.contains("headroom-engine"), ended.errors.constData());
  }

  void badArgumentsAreOneLine_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::newRow("unknown option") << QStringList{QStringLiteral("--bogus")};
    QTest::newRow("two models") << QStringList{QStringLiteral("a"), QStringLiteral("b")};
  }
  void badArgumentsAreOneLine() {
    QFETCH(QStringList, arguments);
    const Ended ended = run(arguments, true);
    QCOMPARE(ended.status, 2);
    QVERIFY2(ended.errors.startsWith("headroom: "), ended.errors.constData());
  }
};

QTEST_GUILESS_MAIN(DesktopCommandTest)
#include "desktop_command_test.moc"
