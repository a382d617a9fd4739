// SPDX-License-Identifier: GPL-3.0-or-later
// No text of the window lacks its Chinese: the sources are searched again and compared with the kept translation.
#include <QDir>
#include <QFile>
#include <QLibraryInfo>
#include <QProcess>
#include <QTemporaryDir>
#include <QXmlStreamReader>
#include <QtTest>
#include <map>

class TranslationsTest : public QObject {
  Q_OBJECT

  struct Message {
    QString context, source;
    QStringList translations;
    bool finished = true;
  };

  static QList<Message> read(const QString& path) {
    QFile file(path);
    QList<Message> messages;
    if (!file.open(QIODevice::ReadOnly)) return messages;
    QXmlStreamReader xml(&file);
    Message message;
    QString context;
    while (!xml.atEnd()) {
      const auto token = xml.readNext();
      if (token == QXmlStreamReader::StartElement) {
        if (xml.name() == QLatin1String("name")) context = xml.readElementText();
        if (xml.name() == QLatin1String("message")) message = Message{context, {}, {}, true};
        if (xml.name() == QLatin1String("source")) message.source = xml.readElementText();
        if (xml.name() == QLatin1String("translation")) {
          message.finished = xml.attributes().value(QLatin1String("type")).isEmpty();
          QString text;
          while (!(xml.readNext() == QXmlStreamReader::EndElement && xml.name() == QLatin1String("translation"))) {
            if (xml.isCharacters()) text += xml.text();
            if (xml.isStartElement() && xml.name() == QLatin1String("numerusform")) message.translations << xml.readElementText();
            if (xml.atEnd()) break;
          }
          if (message.translations.isEmpty()) message.translations << text;
        }
      } else if (token == QXmlStreamReader::EndElement && xml.name() == QLatin1String("message")) {
        messages << message;
      }
    }
    return messages;
  }

  static QStringList placesOf(QString text) {
    QStringList places;
    auto match = QRegularExpression(QStringLiteral("%(L?\\d|n)")).globalMatch(text);
    while (match.hasNext()) places << match.next().captured();
    places.sort();
    return places;
  }

 private slots:
  void init() { QTest::failOnWarning(QRegularExpression(QStringLiteral(".*"))); }

  void everySourceTextHasItsChinese() {
    const QString lupdate = QLibraryInfo::path(QLibraryInfo::BinariesPath) + QStringLiteral("/lupdate");
    if (!QFile::exists(lupdate)) QSKIP("lupdate is not installed (qt6-l10n-tools)");
    QTemporaryDir folder;
    const QString found = folder.filePath(QStringLiteral("found.ts"));
    QProcess process;
    process.setWorkingDirectory(QStringLiteral(HEADROOM_SOURCE_DIR));
    process.setProcessChannelMode(QProcess::MergedChannels);
    process.start(lupdate, {"-silent", "-I", ".", "-locations", "none", "ui", "app/desktop", "-ts", found});
    QVERIFY(process.waitForFinished(120000));
    QCOMPARE(process.exitCode(), 0);
    std::map<std::pair<QString, QString>, Message> known;
    for (const Message& message : read(QStringLiteral(HEADROOM_SOURCE_DIR "/resources/translations/headroom_zh_CN.ts")))
      known[{message.context, message.source}] = message;
    const QList<Message> wanted = read(found);
    QVERIFY(wanted.size() > 100);
    QStringList missing;
    for (const Message& message : wanted) {
      const auto entry = known.find({message.context, message.source});
      if (entry == known.end() || !entry->second.finished || entry->second.translations.contains(QString()))
        missing << message.context + QStringLiteral(": ") + message.source;
    }
    QVERIFY2(missing.isEmpty(), qPrintable(missing.join(QLatin1Char('\n'))));
  }

  void translationsKeepEveryPlaceholder() {
    for (const char* language : {"zh_CN", "en"}) {
      const auto messages =
          read(QStringLiteral(HEADROOM_SOURCE_DIR "/resources/translations/headroom_%1.ts").arg(QLatin1String(language)));
      QVERIFY(!messages.isEmpty());
      for (const Message& message : messages)
        for (const QString& translation : message.translations)
          QVERIFY2(placesOf(message.source) == placesOf(translation),
                   qPrintable(message.source + QStringLiteral(" / ") + translation));
    }
  }
};

QTEST_GUILESS_MAIN(TranslationsTest)
#include "translations_test.moc"
