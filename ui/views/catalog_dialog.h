// SPDX-License-Identifier: GPL-3.0-or-later
// CatalogDialog: choose a model by name; typing filters. GUI thread only.
#pragma once

#include <QDialog>

class QDialogButtonBox;
class QLabel;
class QLineEdit;
class QSortFilterProxyModel;
class QTableView;

namespace headroom::ui {

class CatalogTableModel;

class CatalogDialog : public QDialog {
  Q_OBJECT

 public:
  explicit CatalogDialog(QWidget* parent = nullptr);

 signals:
  void modelChosen(const QString& name);

 protected:
  void changeEvent(QEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void retranslate();
  void filter(const QString& text);
  void choose();

  CatalogTableModel* m_model;
  QSortFilterProxyModel* m_proxy;
  QLineEdit* m_search;
  QTableView* m_table;
  QLabel* m_count;
  QDialogButtonBox* m_buttons;
};

}  // namespace headroom::ui
