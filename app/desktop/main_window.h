// SPDX-License-Identifier: GPL-3.0-or-later
// MainWindow: the pages Plan, Monitor, Chat and Log beside a rail, the menus, and the question before a serving engine is
// closed. GUI thread only.
#pragma once

#include "app/desktop/workspace_state.h"

#include <QMainWindow>
#include <vector>

class QAction;
class QActionGroup;
class QLabel;
class QMenu;
class QMessageBox;
class QSplitter;
class QStackedWidget;
class QToolBar;

namespace headroom::ui {
class AppSettings;
class ChatPage;
class LogPage;
class MonitorPage;
class PlanPage;
class RunPanel;
}  // namespace headroom::ui

namespace headroom::app {

class MainWindow : public QMainWindow {
  Q_OBJECT

 public:
  enum Page { Plan, Monitor, Chat, Log, PageCount };

  explicit MainWindow(ui::AppSettings& settings, QWidget* parent = nullptr);
  ~MainWindow() override;

  void openModel(const QString& model);
  void showPage(Page page);
  Page page() const;

  WorkspaceState& workspace() { return m_workspace; }
  ui::PlanPage& planPage() { return *m_planPage; }
  ui::MonitorPage& monitorPage() { return *m_monitorPage; }
  ui::ChatPage& chatPage() { return *m_chatPage; }
  ui::LogPage& logPage() { return *m_logPage; }
  ui::RunPanel& runPanel() { return *m_runPanel; }
  // The open question whether to stop the engine and quit; null when it is not asked.
  QMessageBox* closeQuestion() const { return m_closeQuestion; }

 public slots:
  void startSelected();
  void stopEngine();
  void openSettings();

 protected:
  void changeEvent(QEvent* event) override;
  void closeEvent(QCloseEvent* event) override;
  // Models and logs may be dropped on any page.
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;

 private:
  struct TextAction {
    QAction* action;
    const char* text;  // translated in the context of MainWindow
    const char* tip;
  };
  void buildPages();
  void buildActions();
  void buildRail();
  void connectWorkspace();
  QAction* addAction(QMenu* menu, const char* text, const char* tip, const QKeySequence& shortcut, const char* icon);
  void retranslate();
  void refreshRun();
  void fillRecentMenu();
  void tellUnsaved();
  void askBeforeClosing();
  void showAbout();

  ui::AppSettings& m_settings;
  WorkspaceState m_workspace;
  QStackedWidget* m_pages = nullptr;
  ui::PlanPage* m_planPage = nullptr;
  ui::MonitorPage* m_monitorPage = nullptr;
  ui::ChatPage* m_chatPage = nullptr;
  ui::LogPage* m_logPage = nullptr;
  ui::RunPanel* m_runPanel = nullptr;
  QSplitter* m_monitorSplitter = nullptr;
  QToolBar* m_rail = nullptr;
  std::vector<TextAction> m_actions;
  std::vector<std::pair<QMenu*, const char*>> m_menus;
  QMenu* m_recentMenu = nullptr;
  QActionGroup* m_pageActions = nullptr;
  QAction* m_start = nullptr;
  QAction* m_stop = nullptr;
  QLabel* m_status = nullptr;
  QMessageBox* m_closeQuestion = nullptr;
  bool m_quitWhenStopped = false;
};

}  // namespace headroom::app
