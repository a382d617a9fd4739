// SPDX-License-Identifier: GPL-3.0-or-later
// Appearance: applies theme and language of the settings to the whole program, now and whenever they change. GUI thread only.
#pragma once

#include <QObject>
#include <QString>
#include <QTranslator>

class QApplication;

namespace headroom::ui {
class AppSettings;
}

namespace headroom::app {

class Appearance : public QObject {
  Q_OBJECT

 public:
  Appearance(QApplication& application, ui::AppSettings& settings);
  ~Appearance() override;

  // Language in use: "en" or "zh_CN".
  QString language() const { return m_language; }

 private:
  void applyLanguage();
  void applyTheme();

  QApplication& m_application;
  ui::AppSettings& m_settings;
  QTranslator m_own, m_qt;
  QString m_language;
};

}  // namespace headroom::app
