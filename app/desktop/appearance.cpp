// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/appearance.h"

#include "ui/settings/app_settings.h"
#include "ui/theme/theme.h"

#include <QApplication>
#include <QLibraryInfo>
#include <QLocale>

static void initTranslationResources() { Q_INIT_RESOURCE(translations); }

namespace headroom::app {

Appearance::Appearance(QApplication& application, ui::AppSettings& settings) : m_application(application), m_settings(settings) {
  initTranslationResources();
  applyTheme();
  applyLanguage();
  connect(&m_settings, &ui::AppSettings::themeChanged, this, &Appearance::applyTheme);
  connect(&m_settings, &ui::AppSettings::languageChanged, this, &Appearance::applyLanguage);
}

Appearance::~Appearance() {
  QCoreApplication::removeTranslator(&m_own);
  QCoreApplication::removeTranslator(&m_qt);
}

void Appearance::applyTheme() {
  const ui::ColorScheme system = ui::systemScheme();
  switch (m_settings.theme()) {
    case ui::ThemeChoice::System:
      ui::applyTheme(m_application, system);
      break;
    case ui::ThemeChoice::Light:
      ui::applyTheme(m_application, ui::ColorScheme::Light);
      break;
    case ui::ThemeChoice::Dark:
      ui::applyTheme(m_application, ui::ColorScheme::Dark);
      break;
  }
}

void Appearance::applyLanguage() {
  QString wanted = m_settings.language();
  const QLocale system = QLocale::system();
  if (wanted.isEmpty()) wanted = system.language() == QLocale::Chinese ? QStringLiteral("zh_CN") : QStringLiteral("en");
  const bool english = wanted != QLatin1String("zh_CN");
  m_language = english ? QStringLiteral("en") : wanted;
  // Numbers follow the language of the window; an English window keeps the region of an English system.
  QLocale::setDefault(!english                                ? QLocale(QLocale::Chinese, QLocale::China)
                      : system.language() == QLocale::English ? system
                                                              : QLocale(QLocale::English, QLocale::UnitedStates));
  QCoreApplication::removeTranslator(&m_own);
  QCoreApplication::removeTranslator(&m_qt);
  if (!english && m_qt.load(QStringLiteral("qtbase_zh_CN"), QLibraryInfo::path(QLibraryInfo::TranslationsPath)))
    QCoreApplication::installTranslator(&m_qt);
  // English has a file too: its plural forms.
  if (m_own.load(QStringLiteral(":/i18n/headroom_%1.qm").arg(m_language))) QCoreApplication::installTranslator(&m_own);
}

}  // namespace headroom::app
