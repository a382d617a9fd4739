// SPDX-License-Identifier: GPL-3.0-or-later
// SettingsDialog: language, theme and host devices. Every change takes effect at once and is kept. GUI thread only.
#pragma once

#include <QDialog>

class QComboBox;
class QDialogButtonBox;
class QDoubleSpinBox;
class QLabel;
class QSpinBox;

namespace headroom::ui {

class AppSettings;

class SettingsDialog : public QDialog {
  Q_OBJECT

 public:
  explicit SettingsDialog(AppSettings& settings, QWidget* parent = nullptr);

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void retranslate();
  void storeHostDevices();

  AppSettings& m_settings;
  QLabel* m_languageLabel;
  QComboBox* m_language;
  QLabel* m_themeLabel;
  QComboBox* m_theme;
  QLabel* m_devicesLabel;
  QSpinBox* m_devices;
  QLabel* m_memoryLabel;
  QDoubleSpinBox* m_memory;
  QLabel* m_hint;
  QDialogButtonBox* m_buttons;
};

}  // namespace headroom::ui
