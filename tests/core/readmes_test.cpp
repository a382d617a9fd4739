// SPDX-License-Identifier: Apache-2.0
// Holds READMEs to the code: each folder with sources has one that names each of its files, is linked from the one above it, and
// names no file, folder or identifier that is not there.
#include <QDirIterator>
#include <QtTest>

namespace {

const QDir kRoot(QStringLiteral(HEADROOM_SOURCE_DIR));
const QStringList kTopFolders = {"core", "engine", "ui", "app", "tests", "packaging", "resources"};
const QStringList kSources = {"*.h", "*.cpp", "*.cu", "*.cuh"};

// Paths from the root of all files in the top folders whose names fit.
QStringList filesNamed(const QStringList& names) {
  QStringList found;
  for (const QString& folder : kTopFolders) {
    QDirIterator iterator(kRoot.filePath(folder), names, QDir::Files, QDirIterator::Subdirectories);
    while (iterator.hasNext()) found << kRoot.relativeFilePath(iterator.next());
  }
  return found;
}

QString textOf(const QString& path) {
  QFile file(kRoot.filePath(path));
  return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
}

QString folderOf(const QString& path) { return path.contains('/') ? path.section('/', 0, -2) : QString(); }

QStringList readmes() { return QStringList{"README.md"} + filesNamed({"README.md"}); }

// What stands between backticks; whole blocks of commands and output are left out.
QStringList codeOf(QString text) {
  static const QRegularExpression block(QStringLiteral("```.*?```"), QRegularExpression::DotMatchesEverythingOption);
  static const QRegularExpression span(QStringLiteral("`([^`]+)`"));
  QStringList code;
  for (auto matches = span.globalMatch(text.remove(block)); matches.hasNext();) code << matches.next().captured(1);
  return code;
}

// Every word of the sources and build files, and the names of these files.
QSet<QString> wordsOfTheSources() {
  static const QRegularExpression word(QStringLiteral("\\w+"));
  QSet<QString> words;
  const auto add = [&](const QString& text) {
    for (auto matches = word.globalMatch(text); matches.hasNext();) words.insert(matches.next().captured());
  };
  for (const QString& file : filesNamed(kSources + QStringList{"*.py", "*.sh", "*.cmake", "CMakeLists.txt"})) {
    add(file);
    add(textOf(file));
  }
  for (const char* name : {"run", "test", "setup", "screenshots", "cuda-resources"})
    add(textOf(QStringLiteral("packaging/") + name));
  return words;
}

}  // namespace

class ReadmesTest : public QObject {
  Q_OBJECT
 private slots:
  void everyFileIsNamedInItsFolder() {
    QStringList files = filesNamed(kSources);
    for (const QString& file : filesNamed({"*"}))
      if (file.startsWith("packaging/") && !file.endsWith("README.md")) files << file;
    QVERIFY(files.size() > 400);
    QStringList wrong;
    for (const QString& file : files) {
      const QString readme = folderOf(file) + "/README.md", stem = QFileInfo(file).completeBaseName();
      const QRegularExpression name(QStringLiteral("(?<!\\w)%1(?!\\w)").arg(QRegularExpression::escape(stem)));
      if (codeOf(textOf(readme)).filter(name).isEmpty())
        wrong << readme + " lacks `" + stem + "`: name the file and what it owns";
    }
    wrong.removeDuplicates();
    QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join('\n')));
  }

  void everyReadmeIsLinkedFromTheOneAbove() {
    QStringList wrong;
    for (const QString& readme : readmes()) {
      if (readme == "README.md") continue;
      QString above = folderOf(folderOf(readme));
      while (!above.isEmpty() && !QFileInfo::exists(kRoot.filePath(above + "/README.md"))) above = folderOf(above);
      const QString upper = above.isEmpty() ? QStringLiteral("README.md") : above + "/README.md";
      const QString link = QDir("/" + above).relativeFilePath("/" + readme);
      if (!textOf(upper).contains("](" + link + ")")) wrong << upper + " has no link to " + link;
    }
    QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join('\n')));
  }

  void whatTheyLinkToIsThere() {
    static const QRegularExpression link(QStringLiteral("\\]\\(([^)#]+)\\)"));
    QStringList wrong;
    int links = 0;
    for (const QString& readme : readmes()) {
      for (auto matches = link.globalMatch(textOf(readme)); matches.hasNext();) {
        const QString target = matches.next().captured(1);
        if (target.contains("://")) continue;
        ++links;
        if (!QFileInfo(kRoot.filePath(readme)).dir().exists(target)) wrong << readme + " links to " + target;
      }
    }
    QVERIFY(links > 50);
    QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join('\n')));
  }

  // By its name, or by the end of its path. A name with capitals stands for many ("NAME_command.cpp").
  void filesThatTheyNameAreThere() {
    static const QRegularExpression name(QStringLiteral("(?<![\\w>*])[a-z][\\w/-]*\\.(?:h|cpp|cu|cuh|py|sh)\\b"));
    const QStringList files = filesNamed(kSources + QStringList{"*.py", "*.sh"});
    QStringList wrong;
    int names = 0;
    for (const QString& readme : readmes()) {
      for (const QString& code : codeOf(textOf(readme))) {
        for (auto matches = name.globalMatch(code); matches.hasNext();) {
          const QString file = matches.next().captured();
          ++names;
          const bool isThere =
              std::any_of(files.begin(), files.end(), [&](const QString& path) { return ("/" + path).endsWith("/" + file); });
          if (!isThere) wrong << readme + " names `" + file + "`";
        }
      }
    }
    QVERIFY(names > 100);
    QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join('\n')));
  }

  // Names with a capital inside, as types, functions and fields have, and variables of the environment.
  void namesThatTheyGiveAreInTheSources() {
    static const QRegularExpression name(QStringLiteral("\\b(?:[A-Za-z]\\w*[a-z][A-Z]\\w*|HEADROOM_\\w+)\\b"));
    const QSet<QString> words = wordsOfTheSources();
    QStringList wrong;
    int names = 0;
    for (const QString& readme : readmes()) {
      for (const QString& code : codeOf(textOf(readme))) {
        for (auto matches = name.globalMatch(code); matches.hasNext();) {
          ++names;
          const QString found = matches.next().captured();
          if (!words.contains(found)) wrong << readme + " names `" + found + "`, which no source has";
        }
      }
    }
    QVERIFY(names > 400);
    QVERIFY2(wrong.isEmpty(), qPrintable(wrong.join('\n')));
  }
};

QTEST_GUILESS_MAIN(ReadmesTest)
#include "readmes_test.moc"
