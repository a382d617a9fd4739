// SPDX-License-Identifier: GPL-3.0-or-later
// ModelBar: which model is open, what it is, and every way to open another. GUI thread only.
#pragma once

#include "ui/views/card.h"

#include <memory>

class QMenu;
class QPushButton;
class QToolButton;

namespace headroom {
struct ModelSource;
}

namespace headroom::ui {

class AppSettings;

class ModelBar : public Card {
  Q_OBJECT

 public:
  explicit ModelBar(AppSettings& settings, QWidget* parent = nullptr);

  void setModel(std::shared_ptr<const ModelSource> model);  // null: none is open
  void setOpening(const QString& name);                     // empty: nothing is being opened

 signals:
  void openFileRequested();
  void openFolderRequested();
  void catalogRequested();
  void openRequested(const QString& model);  // a recent one

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void retranslate();
  void fillRecentMenu();

  AppSettings& m_settings;
  QLabel* m_name = nullptr;
  QLabel* m_facts = nullptr;
  QPushButton* m_file = nullptr;
  QPushButton* m_folder = nullptr;
  QPushButton* m_catalog = nullptr;
  QPushButton* m_recent = nullptr;
  QMenu* m_recentMenu = nullptr;
  std::shared_ptr<const ModelSource> m_model;
  QString m_opening;
};

}  // namespace headroom::ui
