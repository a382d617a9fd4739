// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/settings/app_settings.h"

#include "core/hardware/price_list.h"

#include <QDir>
#include <QStandardPaths>
#include <algorithm>

namespace headroom::ui {
namespace {

constexpr int kMostHostDevices = 64;

QString configFile() {
  return QStandardPaths::writableLocation(QStandardPaths::GenericConfigLocation) + QStringLiteral("/headroom/settings.ini");
}

// Qt 6.4 has no location for state yet; this is the one the XDG specification names.
QString stateFile() {
  QString folder = qEnvironmentVariable("XDG_STATE_HOME");
  if (folder.isEmpty() || QDir::isRelativePath(folder)) folder = QDir::homePath() + QStringLiteral("/.local/state");
  return folder + QStringLiteral("/headroom/state.ini");
}

const QString kLanguage = QStringLiteral("language");
const QString kTheme = QStringLiteral("theme");
const QString kHostDeviceCount = QStringLiteral("host_devices/count");
const QString kHostDeviceMemory = QStringLiteral("host_devices/memory_bytes");
const QString kMachine = QStringLiteral("plan/machine");
const QString kChartWindow = QStringLiteral("charts/window_seconds");
const QString kRecentModels = QStringLiteral("recent_models");
const QString kGeometry = QStringLiteral("window/geometry");
const QString kWindowState = QStringLiteral("window/state");

}  // namespace

AppSettings::AppSettings(QObject* parent)
    : QObject(parent), m_config(configFile(), QSettings::IniFormat), m_state(stateFile(), QSettings::IniFormat) {}

AppSettings::AppSettings(const QString& folder, QObject* parent)
    : QObject(parent),
      m_folder(folder),
      m_config(folder + QStringLiteral("/settings.ini"), QSettings::IniFormat),
      m_state(folder + QStringLiteral("/state.ini"), QSettings::IniFormat) {}

void AppSettings::store(QSettings& file, const QString& key, const QVariant& value) {
  file.setValue(key, value);
  // Written at once, so that a folder that cannot be written is told once and not only missed at the next start.
  file.sync();
  if (file.status() == QSettings::NoError || !m_unsaved.isEmpty()) return;
  m_unsaved = file.fileName();
  emit saveFailed(m_unsaved);
}

QString AppSettings::language() const { return m_config.value(kLanguage).toString(); }

void AppSettings::setLanguage(const QString& language) {
  if (language == this->language()) return;
  store(m_config, kLanguage, language);
  emit languageChanged();
}

ThemeChoice AppSettings::theme() const {
  const QString name = m_config.value(kTheme).toString();
  if (name == QLatin1String("light")) return ThemeChoice::Light;
  if (name == QLatin1String("dark")) return ThemeChoice::Dark;
  return ThemeChoice::System;
}

void AppSettings::setTheme(ThemeChoice theme) {
  if (theme == this->theme()) return;
  store(m_config, kTheme,
        theme == ThemeChoice::Light  ? QStringLiteral("light")
        : theme == ThemeChoice::Dark ? QStringLiteral("dark")
                                     : QStringLiteral("system"));
  emit themeChanged();
}

QStringList AppSettings::recentModels() const { return m_state.value(kRecentModels).toStringList(); }

void AppSettings::addRecentModel(const QString& model) {
  if (model.isEmpty()) return;
  QStringList models = recentModels();
  if (!models.isEmpty() && models.first() == model) return;
  models.removeAll(model);
  models.prepend(model);
  store(m_state, kRecentModels, models.mid(0, kMostRecentModels));
  emit recentModelsChanged();
}

void AppSettings::removeRecentModel(const QString& model) {
  QStringList models = recentModels();
  if (models.removeAll(model) == 0) return;
  store(m_state, kRecentModels, models);
  emit recentModelsChanged();
}

void AppSettings::clearRecentModels() {
  if (recentModels().isEmpty()) return;
  m_state.remove(kRecentModels);
  emit recentModelsChanged();
}

HostDeviceSettings AppSettings::hostDevices() const {
  HostDeviceSettings devices;
  bool isNumber = false;
  const int count = m_config.value(kHostDeviceCount).toInt(&isNumber);
  if (isNumber) devices.count = std::clamp(count, 1, kMostHostDevices);
  const qlonglong bytes = m_config.value(kHostDeviceMemory).toLongLong(&isNumber);
  if (isNumber && bytes > 0) devices.memoryEach = Bytes(bytes);
  return devices;
}

void AppSettings::setHostDevices(const HostDeviceSettings& devices) {
  const HostDeviceSettings before = hostDevices();
  if (devices.count == before.count && devices.memoryEach == before.memoryEach) return;
  store(m_config, kHostDeviceCount, devices.count);
  if (devices.memoryEach)
    store(m_config, kHostDeviceMemory, static_cast<qlonglong>(devices.memoryEach->count()));
  else
    m_config.remove(kHostDeviceMemory);
  emit hostDevicesChanged();
}

QString AppSettings::machine() const { return m_state.value(kMachine, QStringLiteral("local")).toString(); }

void AppSettings::setMachine(const QString& machine) { store(m_state, kMachine, machine); }

std::filesystem::path AppSettings::pricesFile() const {
  return m_folder.isEmpty() ? priceFile() : std::filesystem::path((m_folder + QStringLiteral("/prices.json")).toStdString());
}

double AppSettings::gpuPrice(const QString& card) const {
  const PriceList prices = readPrices(pricesFile());
  const auto known = prices.find(card.toStdString());
  return known == prices.end() ? 0 : known->second;
}

void AppSettings::setGpuPrice(const QString& card, double price) {
  PriceList prices = readPrices(pricesFile());
  if (price > 0)
    prices[card.toStdString()] = price;
  else
    prices.erase(card.toStdString());
  if (writePrices(pricesFile(), prices) || !m_unsaved.isEmpty()) return;
  m_unsaved = QString::fromStdString(pricesFile().string());
  emit saveFailed(m_unsaved);
}

int AppSettings::chartWindowSeconds() const {
  const int seconds = m_config.value(kChartWindow, kDefaultChartWindowSeconds).toInt();
  return seconds > 0 ? seconds : kDefaultChartWindowSeconds;
}

void AppSettings::setChartWindowSeconds(int seconds) {
  if (seconds <= 0 || seconds == chartWindowSeconds()) return;
  store(m_config, kChartWindow, seconds);
  emit chartWindowChanged(seconds);
}

QByteArray AppSettings::windowGeometry() const { return m_state.value(kGeometry).toByteArray(); }
void AppSettings::setWindowGeometry(const QByteArray& geometry) { store(m_state, kGeometry, geometry); }
QByteArray AppSettings::windowState() const { return m_state.value(kWindowState).toByteArray(); }
void AppSettings::setWindowState(const QByteArray& state) { store(m_state, kWindowState, state); }
QByteArray AppSettings::viewState(const QString& name) const {
  return m_state.value(QStringLiteral("view/") + name).toByteArray();
}
void AppSettings::setViewState(const QString& name, const QByteArray& state) {
  store(m_state, QStringLiteral("view/") + name, state);
}

}  // namespace headroom::ui
