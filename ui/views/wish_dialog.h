// SPDX-License-Identifier: GPL-3.0-or-later
// WishDialog: which GPUs a length, requests and speeds need. Searches the catalog on the worker thread whenever the wish changes;
// the chosen answer becomes the planned machine. GUI thread only.
#pragma once

#include "ui/models/plan_session.h"

#include <QDialog>
#include <vector>

class QDialogButtonBox;
class QDoubleSpinBox;
class QLabel;
class QProgressBar;
class QPushButton;
class QSpinBox;
class QTableView;
class QTimer;

namespace headroom::ui {

class AppSettings;
class WishModel;

// What is planned when an answer is taken.
struct WishChoice {
  WishAnswer answer;
  PlanOptions options;  // the load of the wish
};

class WishDialog : public QDialog {
  Q_OBJECT

 public:
  WishDialog(PlanSession& session, AppSettings& settings, QWidget* parent = nullptr);
  ~WishDialog() override;
  WishModel& model() { return *m_model; }

 signals:
  void machineChosen(const headroom::ui::WishChoice& choice);

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void build();
  void buildWish();
  void retranslate();
  void begin();
  void search();
  void choose();
  void showRow();
  void showProgress();
  PlanOptions options() const;
  Wish wish() const;

  PlanSession& m_session;
  AppSettings& m_settings;
  WishModel* m_model = nullptr;
  QLabel* m_hint = nullptr;
  std::vector<QLabel*> m_labels;
  QWidget* m_form = nullptr;
  QSpinBox* m_context = nullptr;
  QSpinBox* m_concurrency = nullptr;
  QSpinBox* m_mostGpus = nullptr;
  QSpinBox* m_input = nullptr;
  QSpinBox* m_output = nullptr;
  QDoubleSpinBox* m_ttft = nullptr;
  QDoubleSpinBox* m_each = nullptr;
  QDoubleSpinBox* m_all = nullptr;
  QProgressBar* m_progress = nullptr;
  QTableView* m_table = nullptr;
  QLabel* m_detail = nullptr;
  QLabel* m_count = nullptr;
  QDialogButtonBox* m_buttons = nullptr;
  QPushButton* m_use = nullptr;
  QTimer* m_pause = nullptr;
  QString m_problem;
  bool m_searching = false, m_rowChosen = false, m_filling = false;
};

}  // namespace headroom::ui
