// SPDX-License-Identifier: Apache-2.0
// Holds the arrows of the house plan: app -> ui -> core, app -> engine -> core; ui and engine never include each other; core knows neither Qt
// nor the network; every source file names its licence.
#include <QDirIterator>
#include <QtTest>

namespace {

struct Folder {
  QString name;
  QStringList mayInclude;  // first parts of project includes
  bool qt;
};

const QList<Folder> kFolders = {
    {"core", {"core"}, false},
    {"engine", {"core", "engine"}, false},
    {"ui", {"core", "ui"}, true},
    {"app/engine", {"core", "engine", "app"}, false},
    {"app/desktop", {"core", "ui", "app"}, true},
};

// Inside core: a folder includes itself and those named.
const QMap<QString, QStringList> kCoreArrows = {
    {"model", {"model"}},
    {"hardware", {"hardware", "model"}},
    {"protocol", {"protocol"}},
    {"layout", {"layout", "hardware", "model"}},
    {"memory", {"memory", "layout", "hardware", "model"}},
    {"performance", {"performance", "memory", "layout", "hardware", "model"}},
    {"diagnosis", {"diagnosis"}},
    {"launch", {"launch", "performance", "memory", "layout", "hardware", "model"}},
};

QStringList sourcesOf(const QString& folder) {
  QStringList found;
  QDirIterator iterator(QStringLiteral(HEADROOM_SOURCE_DIR "/") + folder, {"*.h", "*.cpp", "*.cu"}, QDir::Files, QDirIterator::Subdirectories);
  while (iterator.hasNext()) found << iterator.next();
  return found;
}

QStringList includesOf(const QString& path) {
  QFile file(path);
  if (!file.open(QIODevice::ReadOnly)) return {"(unreadable)"};
  static const QRegularExpression pattern(QStringLiteral("^\\s*#\\s*include\\s*[\"<]([^\">]+)[\">]"), QRegularExpression::MultilineOption);
  QStringList found;
  auto matches = pattern.globalMatch(QString::fromUtf8(file.readAll()));
  while (matches.hasNext()) found << matches.next().captured(1);
  return found;
}

const QStringList kProjectFolders = {"core", "engine", "ui", "app"};

}  // namespace

class IncludeArrowsTest : public QObject {
  Q_OBJECT
 private slots:
  void foldersIncludeOnlyWhatTheyMay() {
    QStringList wrong;
    for (const Folder& folder : kFolders) {
      const QStringList sources = sourcesOf(folder.name);
      QVERIFY2(!sources.isEmpty(), qPrintable(folder.name));
      for (const QString& source : sources) {
        for (const QString& include : includesOf(source)) {
          const QString first = include.section('/', 0, 0);
          if (kProjectFolders.contains(first) && include.contains('/') && !folder.mayInclude.contains(first)) wrong << source + " includes " + include;
          const bool isQt = include.startsWith("Qt") || QRegularExpression("^Q[A-Z]").match(include).hasMatch();
          if (isQt && !folder.qt) wrong << source + " includes " + include;
        }
      }
    }
    QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join('\n')));
  }

  void coreFoldersPointOneWay() {
    QStringList wrong;
    for (auto folder = kCoreArrows.begin(); folder != kCoreArrows.end(); ++folder) {
      for (const QString& source : sourcesOf("core/" + folder.key())) {
        for (const QString& include : includesOf(source)) {
          if (!include.startsWith("core/") || include.count('/') < 2) continue;
          if (!folder.value().contains(include.section('/', 1, 1))) wrong << source + " includes " + include;
        }
      }
    }
    QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join('\n')));
  }

  void theWindowReachesAnEngineOnlyThroughItsClient() {
    QStringList wrong;
    for (const QString& folder : {QStringLiteral("ui/charts"), QStringLiteral("ui/views"), QStringLiteral("ui/models"), QStringLiteral("ui/theme")}) {
      for (const QString& source : sourcesOf(folder)) {
        for (const QString& include : includesOf(source)) {
          if (include.startsWith("QNetwork") || include == "QProcess" || include.startsWith("QTcp")) wrong << source + " includes " + include;
        }
      }
    }
    QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join('\n')));
  }

  void everySourceNamesItsLicence() {
    QStringList wrong;
    const QMap<QString, QString> licences = {{"core", "Apache-2.0"},        {"engine", "Apache-2.0"},     {"app/engine", "Apache-2.0"}, {"tests/core", "Apache-2.0"},
                                             {"tests/engine", "Apache-2.0"}, {"ui", "GPL-3.0-or-later"}, {"app/desktop", "GPL-3.0-or-later"},
                                             {"tests/ui", "GPL-3.0-or-later"}};
    for (auto folder = licences.begin(); folder != licences.end(); ++folder) {
      for (const QString& source : sourcesOf(folder.key())) {
        QFile file(source);
        QVERIFY(file.open(QIODevice::ReadOnly));
        if (QString::fromUtf8(file.readLine()).trimmed() != "// SPDX-License-Identifier: " + folder.value()) wrong << source;
      }
    }
    QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join('\n')));
  }
};

QTEST_GUILESS_MAIN(IncludeArrowsTest)
#include "include_arrows_test.moc"
