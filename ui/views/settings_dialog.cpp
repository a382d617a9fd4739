// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/settings_dialog.h"

#include "ui/settings/app_settings.h"
#include "ui/theme/format.h"
#include "ui/views/card.h"

#include <QComboBox>
#include <QDialogButtonBox>
#include <QDoubleSpinBox>
#include <QEvent>
#include <QFormLayout>
#include <QSignalBlocker>
#include <QVBoxLayout>
#include <cmath>

namespace headroom::ui {

SettingsDialog::SettingsDialog(AppSettings& settings, QWidget* parent) : QDialog(parent), m_settings(settings) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(kPadding, kPadding, kPadding, kPadding);
  auto* form = new QFormLayout;
  form->setHorizontalSpacing(kPadding);
  form->setVerticalSpacing(8);
  m_language = new QComboBox(this);
  m_language->setObjectName(QStringLiteral("language"));
  // Languages are written in themselves.
  m_language->addItem(QString(), QString());
  m_language->addItem(QStringLiteral("English"), QStringLiteral("en"));
  m_language->addItem(QStringLiteral("简体中文"), QStringLiteral("zh_CN"));
  m_theme = new QComboBox(this);
  m_theme->setObjectName(QStringLiteral("theme"));
  for (const ThemeChoice choice : {ThemeChoice::System, ThemeChoice::Light, ThemeChoice::Dark})
    m_theme->addItem(QString(), static_cast<int>(choice));
  m_devices = new QSpinBox(this);
  m_devices->setObjectName(QStringLiteral("hostDeviceCount"));
  m_devices->setRange(1, 64);
  m_memory = new QDoubleSpinBox(this);
  m_memory->setObjectName(QStringLiteral("hostDeviceMemory"));
  m_memory->setRange(0, 100000);
  m_memory->setDecimals(2);
  m_memory->setSingleStep(0.5);
  const auto label = [this](QWidget* field) {
    auto* made = new QLabel(this);
    made->setBuddy(field);
    return made;
  };
  m_languageLabel = label(m_language);
  m_themeLabel = label(m_theme);
  m_devicesLabel = label(m_devices);
  m_memoryLabel = label(m_memory);
  form->addRow(m_languageLabel, m_language);
  form->addRow(m_themeLabel, m_theme);
  form->addRow(m_devicesLabel, m_devices);
  form->addRow(m_memoryLabel, m_memory);
  layout->addLayout(form);
  m_hint = makeQuietLabel(this);
  m_hint->setMinimumWidth(fontMetrics().averageCharWidth() * 56);
  layout->addWidget(m_hint);
  m_buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
  layout->addWidget(m_buttons);
  connect(m_buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);

  m_language->setCurrentIndex(std::max(0, m_language->findData(m_settings.language())));
  m_theme->setCurrentIndex(std::max(0, m_theme->findData(static_cast<int>(m_settings.theme()))));
  const HostDeviceSettings devices = m_settings.hostDevices();
  m_devices->setValue(devices.count);
  m_memory->setValue(devices.memoryEach ? devices.memoryEach->gib() : 0);
  retranslate();
  connect(m_language, &QComboBox::activated, this, [this] { m_settings.setLanguage(m_language->currentData().toString()); });
  connect(m_theme, &QComboBox::activated, this,
          [this] { m_settings.setTheme(static_cast<ThemeChoice>(m_theme->currentData().toInt())); });
  connect(m_devices, &QSpinBox::valueChanged, this, &SettingsDialog::storeHostDevices);
  connect(m_memory, &QDoubleSpinBox::valueChanged, this, &SettingsDialog::storeHostDevices);
}

void SettingsDialog::storeHostDevices() {
  HostDeviceSettings devices;
  devices.count = m_devices->value();
  if (m_memory->value() > 0)
    devices.memoryEach = Bytes(static_cast<int64_t>(std::llround(m_memory->value() * 1024 * 1024 * 1024)));
  m_settings.setHostDevices(devices);
  retranslate();
}

void SettingsDialog::retranslate() {
  setWindowTitle(tr("Settings"));
  m_languageLabel->setText(tr("&Language"));
  m_language->setItemText(0, tr("As the system"));
  m_themeLabel->setText(tr("&Theme"));
  m_theme->setItemText(0, tr("As the system"));
  m_theme->setItemText(1, tr("Light"));
  m_theme->setItemText(2, tr("Dark"));
  m_devicesLabel->setText(tr("Host &devices"));
  m_memoryLabel->setText(tr("&Memory of each"));
  m_memory->setSuffix(tr(" GiB"));
  m_memory->setSpecialValueText(tr("Half of the memory, divided"));
  m_hint->setText(tr("Host devices are shares of this machine's processor and memory. They run small models without a GPU; this "
                     "machine has %1.")
                      .arg(formatGib(hostMemory())));
}

void SettingsDialog::changeEvent(QEvent* event) {
  if (event->type() == QEvent::LanguageChange) retranslate();
  QDialog::changeEvent(event);
}

}  // namespace headroom::ui
