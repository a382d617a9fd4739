// SPDX-License-Identifier: GPL-3.0-or-later
// RunPanel: Start and Stop, the phase of the engine, what each rank has loaded, and the reason when it failed. GUI thread only.
#pragma once

#include "ui/client/engine_session.h"

#include <QWidget>

class QLabel;
class QProgressBar;
class QPushButton;
class QTimer;
class QTreeView;

namespace headroom::ui {

class MessageBar;
class RankListModel;

class RunPanel : public QWidget {
  Q_OBJECT

 public:
  explicit RunPanel(EngineSession& session, QWidget* parent = nullptr);
  ~RunPanel() override;

  // What Start would do: "TP3 × PP2 on 6 host devices"; or, when it cannot, why.
  void setOffer(bool canStart, const QString& text);

 signals:
  void startRequested();  // the owner composes a LaunchRequest and calls EngineSession::start

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void build();
  void retranslate();
  void refresh();
  void refreshElapsed();
  void fitRows();

  EngineSession& m_session;
  RankListModel* m_ranks = nullptr;
  QPushButton* m_start = nullptr;
  QPushButton* m_stop = nullptr;
  QLabel* m_phase = nullptr;
  QLabel* m_detail = nullptr;
  QLabel* m_offer = nullptr;
  QLabel* m_elapsed = nullptr;
  QProgressBar* m_progress = nullptr;
  MessageBar* m_failure = nullptr;
  MessageBar* m_connection = nullptr;
  QTreeView* m_view = nullptr;
  QTimer* m_tick = nullptr;
  bool m_canStart = false;
};

}  // namespace headroom::ui
