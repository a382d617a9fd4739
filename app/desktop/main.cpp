// SPDX-License-Identifier: GPL-3.0-or-later
// headroom [MODEL]: the desktop. Bad arguments and a missing display end with status 2; everything else is told in the window.
#include "app/desktop/appearance.h"
#include "app/desktop/main_window.h"
#include "ui/settings/app_settings.h"
#include "ui/theme/icons.h"

#include <QApplication>
#include <QCommandLineParser>
#include <QDir>
#include <QFileInfo>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace {

void nameProgram() {
  QCoreApplication::setApplicationName(QStringLiteral("headroom"));
  QCoreApplication::setApplicationVersion(QStringLiteral(HEADROOM_VERSION));
}

// Help and version need no display.
bool asksForText(int argc, char** argv) {
  for (int index = 1; index < argc; ++index) {
    const std::string_view argument = argv[index];
    if (argument == "-h" || argument == "--help" || argument == "-v" || argument == "--version") return true;
  }
  return false;
}

// Qt aborts without a display; this says so first. A platform that was asked for by name needs none of these.
bool hasDisplay(int argc, char** argv) {
  for (int index = 1; index < argc; ++index)
    if (std::strcmp(argv[index], "-platform") == 0) return true;
  return !qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM") || !qEnvironmentVariableIsEmpty("DISPLAY") ||
         !qEnvironmentVariableIsEmpty("WAYLAND_DISPLAY");
}

// Exits for help, version and bad arguments; else the models that were named.
QStringList readArguments(const QStringList& arguments) {
  QCommandLineParser parser;
  parser.setApplicationDescription(
      QCoreApplication::translate("main", "Plans, starts and watches language models on your own GPUs."));
  parser.addHelpOption();
  parser.addVersionOption();
  parser.addPositionalArgument(
      QStringLiteral("model"),
      QCoreApplication::translate("main", "A config.json, a model folder, a GGUF file or a name of the catalog."),
      QStringLiteral("[MODEL]"));
  if (!parser.parse(arguments)) {
    std::fprintf(stderr, "headroom: %s\n", qPrintable(parser.errorText()));
    std::exit(2);
  }
  if (parser.isSet(QStringLiteral("help"))) parser.showHelp(0);
  if (parser.isSet(QStringLiteral("version"))) parser.showVersion();
  const QStringList models = parser.positionalArguments();
  if (models.size() > 1) {
    std::fprintf(stderr, "headroom: found %lld models, expected one\n", static_cast<long long>(models.size()));
    std::exit(2);
  }
  return models;
}

}  // namespace

int main(int argc, char** argv) {
  if (asksForText(argc, argv)) {
    const QCoreApplication application(argc, argv);
    nameProgram();
    readArguments(QCoreApplication::arguments());
    return 0;
  }
  if (!hasDisplay(argc, argv)) {
    std::fprintf(stderr,
                 "headroom: found neither DISPLAY nor WAYLAND_DISPLAY, expected a desktop session; without a window, "
                 "headroom-engine plans and serves in the terminal\n");
    return 2;
  }
  QApplication application(argc, argv);
  nameProgram();
  QGuiApplication::setApplicationDisplayName(QStringLiteral("Headroom"));
  QGuiApplication::setDesktopFileName(QStringLiteral("org.headroom.Headroom"));
  headroom::ui::AppSettings settings;
  const headroom::app::Appearance appearance(application, settings);
  QGuiApplication::setWindowIcon(headroom::ui::applicationIcon());
  const QStringList models = readArguments(QCoreApplication::arguments());

  headroom::app::MainWindow window(settings);
  window.show();
  if (!models.isEmpty()) {
    // Paths are kept absolute, so that the list of recent models works from anywhere.
    const QFileInfo file(models.first());
    window.openModel(file.exists() ? QDir::cleanPath(file.absoluteFilePath()) : models.first());
  }
  return QApplication::exec();
}
