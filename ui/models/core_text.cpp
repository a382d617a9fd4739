// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/core_text.h"

#include <QCoreApplication>
#include <QHash>
#include <QRegularExpression>
#include <algorithm>
#include <optional>
#include <vector>

namespace headroom::ui {
namespace {

constexpr int kDeepest = 6;

struct Template {
  const char* source = nullptr;
  QRegularExpression pattern;  // invalid to begin with: made when the text's ends fit
  QString begin, end;          // what stands before the first and behind the last place
  std::vector<int> places;     // numbers of the places, in their order
  qsizetype fixed = 0;         // letters that do not vary
};

QStringList piecesOf(const QString& source, std::vector<int>& places) {
  QStringList pieces;
  static const QRegularExpression place(QStringLiteral("%([1-9])"));
  qsizetype from = 0;
  for (auto matches = place.globalMatch(source); matches.hasNext();) {
    const QRegularExpressionMatch match = matches.next();
    pieces << source.mid(from, match.capturedStart() - from);
    places.push_back(match.captured(1).toInt());
    from = match.capturedEnd();
  }
  return pieces << source.mid(from);
}

// Without places by their text; with places the most telling first.
struct Table {
  QHash<QString, const char*> whole;
  std::vector<Template> templates;

  Table() {
    std::vector<const char*> sources(coreTemplates().begin(), coreTemplates().end());
    sources.insert(sources.end(), diagnosisTemplates().begin(), diagnosisTemplates().end());
    for (const char* source : sources) {
      const QString text = QString::fromUtf8(source);
      Template made;
      made.source = source;
      const QStringList pieces = piecesOf(text, made.places);
      if (made.places.empty()) {
        whole.insert(text, source);
        continue;
      }
      QString pattern;
      for (qsizetype i = 0; i < pieces.size(); ++i) {
        if (i > 0) pattern += QStringLiteral("(.+?)");
        pattern += QRegularExpression::escape(pieces[i]);
        made.fixed += pieces[i].size();
      }
      made.begin = pieces.first();
      made.end = pieces.last();
      made.pattern = QRegularExpression(QStringLiteral("\\A%1\\z").arg(pattern), QRegularExpression::DotMatchesEverythingOption);
      templates.push_back(std::move(made));
    }
    std::stable_sort(templates.begin(), templates.end(), [](const Template& a, const Template& b) { return a.fixed > b.fixed; });
  }
};

const Table& table() {
  static const Table made;
  return made;
}

std::optional<QString> translated(const QString& english, int depth) {
  const Table& known = table();
  if (const auto found = known.whole.find(english); found != known.whole.end())
    return QCoreApplication::translate("Core", found.value());
  if (depth > kDeepest) return std::nullopt;
  for (const Template& each : known.templates) {
    if (english.size() <= each.fixed || !english.startsWith(each.begin) || !english.endsWith(each.end)) continue;
    const QRegularExpressionMatch match = each.pattern.match(english);
    if (!match.hasMatch()) continue;
    QStringList values(10);
    for (size_t i = 0; i < each.places.size(); ++i) {
      const QString part = match.captured(static_cast<int>(i) + 1);
      values[each.places[i]] = translated(part, depth + 1).value_or(part);
    }
    // Only the places of the template are filled, not what a value may contain.
    std::vector<int> places;
    const QStringList pieces = piecesOf(QCoreApplication::translate("Core", each.source), places);
    QString text = pieces.first();
    for (size_t i = 0; i < places.size(); ++i) text += values[places[i]] + pieces[static_cast<qsizetype>(i) + 1];
    return text;
  }
  return std::nullopt;
}

// Parts that a semicolon joins may be sentences of their own.
QString textOf(const QString& english) {
  if (const auto text = translated(english, 0)) return *text;
  const qsizetype semicolon = english.indexOf(QLatin1String("; "));
  if (semicolon < 0) return english;
  return textOf(english.left(semicolon)) + english.mid(semicolon, 2) + textOf(english.mid(semicolon + 2));
}

}  // namespace

QString coreText(const std::string& english) {
  return textOf(QString::fromUtf8(english.data(), static_cast<qsizetype>(english.size())));
}

bool hasTemplate(const std::string& english) {
  return translated(QString::fromUtf8(english.data(), static_cast<qsizetype>(english.size())), 0).has_value();
}

QString errorText(const Error& error) {
  const QString where = coreText(error.where), found = coreText(error.found), expected = coreText(error.expected),
                next = coreText(error.next);
  QString text = where;
  const auto append = [&](const QString& separator, const QString& part) {
    if (part.isEmpty()) return;
    if (!text.isEmpty()) text += separator;
    text += part;
  };
  append(QStringLiteral(": "), found.isEmpty() ? QString() : QCoreApplication::translate("Headroom", "found %1").arg(found));
  append(found.isEmpty() ? QStringLiteral(": ")
                         : QCoreApplication::translate("Headroom", ", ", "between what was found and what was expected"),
         expected.isEmpty() ? QString() : QCoreApplication::translate("Headroom", "expected %1").arg(expected));
  append(QStringLiteral("; "), next);
  return text;
}

}  // namespace headroom::ui
