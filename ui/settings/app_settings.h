// SPDX-License-Identifier: GPL-3.0-or-later
// What the user chose and what the window remembers. Choices go to XDG_CONFIG_HOME/headroom/settings.ini, window state and
// history to XDG_STATE_HOME/headroom/state.ini, prices of cards to the file of core/hardware/price_list. Passed by constructor;
// two may live side by side in a test. GUI thread only.
#pragma once

#include "core/hardware/machine.h"

#include <QByteArray>
#include <QObject>
#include <QSettings>
#include <QString>
#include <QStringList>
#include <filesystem>

namespace headroom::ui {

enum class ThemeChoice { System, Light, Dark };

class AppSettings : public QObject {
  Q_OBJECT

 public:
  static constexpr int kMostRecentModels = 12;
  static constexpr int kDefaultChartWindowSeconds = 300;

  // The user's own files.
  explicit AppSettings(QObject* parent = nullptr);
  // Both files inside `folder`: tests, and runs that must leave no trace.
  explicit AppSettings(const QString& folder, QObject* parent = nullptr);

  // "en", "zh_CN"; empty follows the system.
  QString language() const;
  void setLanguage(const QString& language);

  ThemeChoice theme() const;
  void setTheme(ThemeChoice theme);

  // Newest first; paths and catalog names as openModel takes them.
  QStringList recentModels() const;
  void addRecentModel(const QString& model);
  void removeRecentModel(const QString& model);
  void clearRecentModels();

  HostDeviceSettings hostDevices() const;
  void setHostDevices(const HostDeviceSettings& devices);

  // Text form of the machine that was planned for last: "local", "6xA800-80GB".
  QString machine() const;
  void setMachine(const QString& machine);

  // What one card costs, in the person's own unit; 0: not written. Kept where the command line keeps prices too.
  double gpuPrice(const QString& card) const;
  void setGpuPrice(const QString& card, double price);

  // How much time the live charts show.
  int chartWindowSeconds() const;
  void setChartWindowSeconds(int seconds);

  QByteArray windowGeometry() const;
  void setWindowGeometry(const QByteArray& geometry);
  QByteArray windowState() const;  // tool bars and docks of the main window
  void setWindowState(const QByteArray& state);
  // Sizes of a splitter or header, by its object name.
  QByteArray viewState(const QString& name) const;
  void setViewState(const QString& name, const QByteArray& state);
  // Where measurements of this machine are kept; empty: where the command line keeps them too.
  QString calibrationFile() const { return m_folder.isEmpty() ? QString() : m_folder + QStringLiteral("/calibration.json"); }
  // The file that could not be written; empty when all could.
  QString unsavedFile() const { return m_unsaved; }

 signals:
  void languageChanged();
  void themeChanged();
  void recentModelsChanged();
  void hostDevicesChanged();
  void chartWindowChanged(int seconds);
  // A choice holds for this run only; told once.
  void saveFailed(const QString& file);

 private:
  void store(QSettings& file, const QString& key, const QVariant& value);
  std::filesystem::path pricesFile() const;

  QString m_unsaved, m_folder;  // m_folder: empty for the user's own files
  QSettings m_config;
  QSettings m_state;
};

}  // namespace headroom::ui
