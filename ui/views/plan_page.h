// SPDX-License-Identifier: GPL-3.0-or-later
// PlanPage: model, machine and options on the left and top, the grid of layouts in the middle, the selected one on the right.
// Accepts files and folders that are dropped on it. GUI thread only.
#pragma once

#include "ui/theme/theme.h"

#include <QWidget>
#include <memory>
#include <optional>

class QComboBox;
class QLabel;
class QSplitter;
class QStackedWidget;
class QTabBar;
class QTimer;

namespace headroom {
struct LayoutPlan;
struct PlanReport;
}  // namespace headroom

namespace headroom::ui {

class AppSettings;
class ContextChart;
class DetailsPanel;
class EnginesPage;
class GridLegend;
class LayoutGridModel;
class LayoutGridView;
class MachineBar;
class ModelBar;
class NoticeArea;
class OptionPanel;
class PlanSession;
struct Calibration;
struct FixAction;
struct LogReading;

class PlanPage : public QWidget {
  Q_OBJECT

 public:
  PlanPage(PlanSession& session, AppSettings& settings, QWidget* parent = nullptr);
  ~PlanPage() override;

  // Of the present plan; null when there is none.
  const LayoutPlan* selectedLayout() const;
  void selectLayout(int tp, int pp, int dp);
  void setStartObstacle(const QString& obstacle);
  enum Tab { GridTab, ContextTab, EnginesTab, TabCount };
  void showTab(int tab);

  NoticeArea& notices() { return *m_notices; }
  LayoutGridModel& gridModel() { return *m_model; }
  LayoutGridView& gridView() { return *m_grid; }
  DetailsPanel& details() { return *m_details; }
  MachineBar& machineBar() { return *m_machine; }
  OptionPanel& optionPanel() { return *m_options; }

 public slots:
  void openFile();
  void openFolder();
  void openCatalog();
  // Which GPUs a wish needs.
  void openWish();
  // A log of an engine: what went wrong, or what it measured while it started.
  void openLog();
  // A file or folder that was dropped: a model, or a log.
  void take(const QString& path);

 signals:
  void selectionChanged();  // another layout, or a new plan of the same
  void startRequested();

 protected:
  void changeEvent(QEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;

 private:
  struct Selection {
    int tp = 1, pp = 1, dp = 1;
  };
  void build();
  QWidget* buildOptions();
  QWidget* buildGrid();
  void connectSession();
  void retranslate();
  void showPlan();
  void clearPlan(const QString& text);
  void fillReplicas();
  void restoreSelection();
  void updateDetails();
  void updateContext(const LayoutPlan* layout);
  void applyFix(const FixAction& action);
  void showDiagnosis(const LogReading& reading);
  void showCalibration(const Calibration& calibration, const LogReading& reading);

  PlanSession& m_session;
  AppSettings& m_settings;
  NoticeArea* m_notices = nullptr;
  ModelBar* m_modelBar = nullptr;
  MachineBar* m_machine = nullptr;
  OptionPanel* m_options = nullptr;
  LayoutGridModel* m_model = nullptr;
  LayoutGridView* m_grid = nullptr;
  GridLegend* m_legend = nullptr;
  DetailsPanel* m_details = nullptr;
  QComboBox* m_replicas = nullptr;
  QLabel* m_replicasLabel = nullptr;
  QTabBar* m_tabs = nullptr;
  QStackedWidget* m_tabPages = nullptr;
  ContextChart* m_context = nullptr;
  QLabel* m_contextHint = nullptr;
  EnginesPage* m_engines = nullptr;
  QLabel* m_gridHint = nullptr;
  QLabel* m_machineTitle = nullptr;
  QLabel* m_optionsTitle = nullptr;
  QSplitter* m_splitter = nullptr;
  QTimer* m_stale = nullptr;  // hides a plan whose inputs have changed
  std::optional<Selection> m_selection;
  bool m_chosen = false;     // by a person, not by the recommendation
  bool m_restoring = false;  // the grid's current cell is being set from m_selection
};

}  // namespace headroom::ui
