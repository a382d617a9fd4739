// SPDX-License-Identifier: GPL-3.0-or-later
// headroom [MODEL]: the desktop. Bad arguments end with status 2; everything else is told in the window.
#include "app/desktop/appearance.h"
#include "app/desktop/main_window.h"
#include "ui/settings/app_settings.h"
#include "ui/theme/icons.h"

#include <QApplication>
#include <QCommandLineParser>
#include <QDir>
#include <QFileInfo>
#include <cstdio>

int main(int argc, char** argv) {
  QApplication application(argc, argv);
  QCoreApplication::setApplicationName(QStringLiteral("headroom"));
  QCoreApplication::setApplicationVersion(QStringLiteral(HEADROOM_VERSION));
  QGuiApplication::setApplicationDisplayName(QStringLiteral("Headroom"));
  QGuiApplication::setDesktopFileName(QStringLiteral("org.headroom.Headroom"));
  headroom::ui::AppSettings settings;
  const headroom::app::Appearance appearance(application, settings);
  QGuiApplication::setWindowIcon(headroom::ui::applicationIcon());

  QCommandLineParser parser;
  parser.setApplicationDescription(
      QCoreApplication::translate("main", "Plans, starts and watches language models on your own GPUs."));
  parser.addHelpOption();
  parser.addVersionOption();
  parser.addPositionalArgument(
      QStringLiteral("model"),
      QCoreApplication::translate("main", "A config.json, a model folder, a GGUF file or a name of the catalog."),
      QStringLiteral("[MODEL]"));
  if (!parser.parse(QCoreApplication::arguments())) {
    std::fprintf(stderr, "headroom: %s\n", qPrintable(parser.errorText()));
    return 2;
  }
  if (parser.isSet(QStringLiteral("help"))) parser.showHelp(0);
  if (parser.isSet(QStringLiteral("version"))) parser.showVersion();
  const QStringList models = parser.positionalArguments();
  if (models.size() > 1) {
    std::fprintf(stderr, "headroom: found %lld models, expected one\n", static_cast<long long>(models.size()));
    return 2;
  }

  headroom::app::MainWindow window(settings);
  window.show();
  if (!models.isEmpty()) {
    // Paths are kept absolute, so that the list of recent models works from anywhere.
    const QFileInfo file(models.first());
    window.openModel(file.exists() ? QDir::cleanPath(file.absoluteFilePath()) : models.first());
  }
  return QApplication::exec();
}
