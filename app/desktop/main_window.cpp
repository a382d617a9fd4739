// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/desktop/main_window.h"

#include "ui/models/layout_text.h"
#include "ui/settings/app_settings.h"
#include "ui/theme/icons.h"
#include "ui/views/card.h"
#include "ui/views/chat_page.h"
#include "ui/views/log_page.h"
#include "ui/views/monitor_page.h"
#include "ui/views/notice_area.h"
#include "ui/views/plan_page.h"
#include "ui/views/run_panel.h"
#include "ui/views/settings_dialog.h"

#include <QActionGroup>
#include <QCloseEvent>
#include <QCoreApplication>
#include <QDropEvent>
#include <QEvent>
#include <QMenuBar>
#include <QMessageBox>
#include <QMimeData>
#include <QPushButton>
#include <QRegularExpression>
#include <QScrollArea>
#include <QSplitter>
#include <QStackedWidget>
#include <QStatusBar>
#include <QToolBar>
#include <QUrl>
#include <QVBoxLayout>

namespace headroom::app {
namespace {

const QString kEngineTopic = QStringLiteral("engine");

// A window that is smaller than a page (a small screen, a large font) scrolls it, so that all of it can be reached.
QScrollArea* scrollable(QWidget* page) {
  auto* area = new QScrollArea;
  area->setFrameShape(QFrame::NoFrame);
  area->setWidgetResizable(true);
  area->setFocusPolicy(Qt::NoFocus);
  area->setWidget(page);
  area->viewport()->setAutoFillBackground(false);
  page->setAutoFillBackground(false);
  return area;
}

}  // namespace

MainWindow::MainWindow(ui::AppSettings& settings, QWidget* parent)
    : QMainWindow(parent), m_settings(settings), m_workspace(settings) {
  setObjectName(QStringLiteral("mainWindow"));
  setAcceptDrops(true);
  buildPages();
  buildActions();
  buildRail();
  m_status = new QLabel(this);
  m_status->setTextFormat(Qt::PlainText);
  m_status->setContentsMargins(ui::kGap, 0, ui::kGap, ui::kGap / 2);
  statusBar()->addWidget(m_status, 1);
  statusBar()->setSizeGripEnabled(false);
  connectWorkspace();
  retranslate();
  refreshRun();
  const QFontMetrics metrics = fontMetrics();
  resize(metrics.averageCharWidth() * 200, metrics.height() * 54);
  restoreGeometry(m_settings.windowGeometry());
  restoreState(m_settings.windowState());
}

MainWindow::~MainWindow() {
  // The pages look at the workspace, which goes before the widgets that Qt deletes as children.
  if (m_closeQuestion) m_closeQuestion->disconnect(this);
  m_workspace.engine().disconnect(this);
  m_workspace.plan().disconnect(this);
  m_settings.disconnect(this);
  delete takeCentralWidget();
}

void MainWindow::buildPages() {
  m_pages = new QStackedWidget(this);
  m_planPage = new ui::PlanPage(m_workspace.plan(), m_settings, m_pages);
  auto* monitor = new QWidget(m_pages);
  auto* layout = new QVBoxLayout(monitor);
  layout->setContentsMargins(0, 0, 0, 0);
  m_monitorSplitter = new QSplitter(Qt::Vertical, monitor);
  m_monitorSplitter->setChildrenCollapsible(false);
  m_monitorSplitter->setHandleWidth(ui::kGap);
  auto* run = new QWidget(m_monitorSplitter);
  auto* runLayout = new QVBoxLayout(run);
  runLayout->setContentsMargins(ui::kGap, ui::kGap, ui::kGap, 0);
  auto* card = new ui::Card(run);
  auto* cardLayout = new QVBoxLayout(card);
  cardLayout->setContentsMargins(ui::kPadding, ui::kPadding, ui::kPadding, ui::kPadding);
  runLayout->addWidget(card);
  m_runPanel = new ui::RunPanel(m_workspace.engine(), card);
  cardLayout->addWidget(m_runPanel);
  m_monitorPage = new ui::MonitorPage(m_workspace.engine(), m_settings, m_monitorSplitter);
  m_monitorSplitter->addWidget(run);
  m_monitorSplitter->addWidget(m_monitorPage);
  m_monitorSplitter->setStretchFactor(0, 0);
  m_monitorSplitter->setStretchFactor(1, 1);
  layout->addWidget(m_monitorSplitter);
  m_chatPage = new ui::ChatPage(m_workspace.engine(), m_pages);
  m_logPage = new ui::LogPage(m_workspace.engine(), m_pages);
  for (QWidget* page :
       {static_cast<QWidget*>(m_planPage), monitor, static_cast<QWidget*>(m_chatPage), static_cast<QWidget*>(m_logPage)})
    m_pages->addWidget(scrollable(page));
  setCentralWidget(m_pages);
}

QAction* MainWindow::addAction(QMenu* menu, const char* text, const char* tip, const QKeySequence& shortcut, const char* icon) {
  auto* action = new QAction(this);
  if (icon) action->setIcon(ui::themedIcon(QString::fromLatin1(icon)));
  action->setShortcut(shortcut);
  if (menu) menu->addAction(action);
  m_actions.push_back({action, text, tip});
  return action;
}

void MainWindow::buildActions() {
  const auto menu = [this](const char* title) {
    QMenu* made = menuBar()->addMenu(QString());
    m_menus.emplace_back(made, title);
    return made;
  };
  QMenu* file = menu(QT_TR_NOOP("&File"));
  connect(addAction(file, QT_TR_NOOP("&Open file…"), QT_TR_NOOP("Open a config.json or a GGUF file"), QKeySequence::Open, "open"),
          &QAction::triggered, m_planPage, &ui::PlanPage::openFile);
  connect(addAction(file, QT_TR_NOOP("Open fol&der…"), QT_TR_NOOP("Open a model's folder"),
                    QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_O), "folder"),
          &QAction::triggered, m_planPage, &ui::PlanPage::openFolder);
  connect(addAction(file, QT_TR_NOOP("Model &catalog…"), QT_TR_NOOP("Choose a model by name"), QKeySequence(Qt::CTRL | Qt::Key_K),
                    "catalog"),
          &QAction::triggered, m_planPage, &ui::PlanPage::openCatalog);
  m_recentMenu = file->addMenu(QString());
  m_menus.emplace_back(m_recentMenu, QT_TR_NOOP("Open &recent"));
  file->addSeparator();
  connect(addAction(file, QT_TR_NOOP("&Settings…"), QT_TR_NOOP("Language, theme and host devices"),
                    QKeySequence(Qt::CTRL | Qt::Key_Comma), "settings"),
          &QAction::triggered, this, &MainWindow::openSettings);
  file->addSeparator();
  connect(addAction(file, QT_TR_NOOP("&Quit"), QT_TR_NOOP("Close the window"), QKeySequence::Quit, nullptr), &QAction::triggered,
          this, &MainWindow::close);

  QMenu* engine = menu(QT_TR_NOOP("&Engine"));
  connect(addAction(engine, QT_TR_NOOP("&Refresh the plan"), QT_TR_NOOP("Read the model again and plan again"),
                    QKeySequence(Qt::Key_F5), "refresh"),
          &QAction::triggered, &m_workspace, &WorkspaceState::refresh);
  connect(addAction(engine, QT_TR_NOOP("&Read a log…"),
                    QT_TR_NOOP("What went wrong by an engine's log, or plan with what its start measured"), QKeySequence(), nullptr),
          &QAction::triggered, m_planPage, &ui::PlanPage::openLog);
  connect(addAction(engine, QT_TR_NOOP("&Find GPUs…"), QT_TR_NOOP("The fewest or cheapest GPUs for a length, requests and speeds"),
                    QKeySequence(Qt::CTRL | Qt::Key_G), "catalog"),
          &QAction::triggered, this, [this] {
            showPage(Plan);
            m_planPage->openWish();
          });
  engine->addSeparator();
  m_start = addAction(engine, QT_TR_NOOP("&Start"), QT_TR_NOOP("Start the selected layout"), QKeySequence(Qt::CTRL | Qt::Key_R),
                      "start");
  connect(m_start, &QAction::triggered, this, &MainWindow::startSelected);
  m_stop = addAction(engine, QT_TR_NOOP("S&top"), QT_TR_NOOP("Stop the engine"), QKeySequence(Qt::CTRL | Qt::Key_Period), "stop");
  connect(m_stop, &QAction::triggered, this, &MainWindow::stopEngine);

  QMenu* view = menu(QT_TR_NOOP("&View"));
  m_pageActions = new QActionGroup(this);
  const auto page = [&](Page number, const char* text, const char* tip, const char* icon) {
    QAction* action =
        addAction(view, text, tip, QKeySequence(Qt::CTRL | static_cast<Qt::Key>(Qt::Key_1 + static_cast<int>(number))), icon);
    action->setCheckable(true);
    m_pageActions->addAction(action);
    connect(action, &QAction::triggered, this, [this, number] { showPage(number); });
  };
  page(Plan, QT_TR_NOOP("&Plan"), QT_TR_NOOP("Layouts of the model on these GPUs"), "plan");
  page(Monitor, QT_TR_NOOP("&Monitor"), QT_TR_NOOP("The running engine in figures and charts"), "monitor");
  page(Chat, QT_TR_NOOP("&Chat"), QT_TR_NOOP("Try the model that is served"), "chat");
  page(Log, QT_TR_NOOP("&Log"), QT_TR_NOOP("What the engine wrote"), "log");
  m_pageActions->actions().first()->setChecked(true);
  m_pageActions->actions().at(Log)->setShortcuts({QKeySequence(Qt::CTRL | Qt::Key_4), QKeySequence(Qt::CTRL | Qt::Key_L)});

  QMenu* help = menu(QT_TR_NOOP("&Help"));
  connect(addAction(help, QT_TR_NOOP("&About Headroom"), QT_TR_NOOP("Version and licence"), QKeySequence(Qt::Key_F1), nullptr),
          &QAction::triggered, this, &MainWindow::showAbout);
}

void MainWindow::buildRail() {
  m_rail = new QToolBar(this);
  m_rail->setObjectName(QStringLiteral("rail"));
  m_rail->setMovable(false);
  m_rail->setFloatable(false);
  m_rail->setContextMenuPolicy(Qt::PreventContextMenu);
  m_rail->setToolButtonStyle(Qt::ToolButtonTextUnderIcon);
  const int icon = fontMetrics().height() * 3 / 2;
  m_rail->setIconSize({icon, icon});
  for (QAction* action : m_pageActions->actions()) m_rail->addAction(action);
  auto* space = new QWidget(m_rail);
  space->setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Expanding);
  m_rail->addWidget(space);
  m_rail->addAction(m_start);
  m_rail->addAction(m_stop);
  addToolBar(Qt::LeftToolBarArea, m_rail);
}

void MainWindow::connectWorkspace() {
  connect(m_planPage, &ui::PlanPage::startRequested, this, &MainWindow::startSelected);
  connect(m_runPanel, &ui::RunPanel::startRequested, this, &MainWindow::startSelected);
  connect(m_planPage, &ui::PlanPage::selectionChanged, this, &MainWindow::refreshRun);
  connect(&m_workspace.plan(), &ui::PlanSession::planReady, this, &MainWindow::refreshRun);
  // Whether a model opens or says why not is told on the plan page.
  connect(&m_workspace.plan(), &ui::PlanSession::openStarted, this, [this] { showPage(Plan); });
  connect(&m_settings, &ui::AppSettings::saveFailed, this, &MainWindow::tellUnsaved);
  connect(&m_settings, &ui::AppSettings::recentModelsChanged, this, &MainWindow::fillRecentMenu);
  ui::EngineSession& engine = m_workspace.engine();
  connect(&engine, &ui::EngineSession::phaseChanged, this, [this] {
    refreshRun();
    // Quits once the engine is gone, however it went.
    if (m_quitWhenStopped && !m_workspace.engine().isRunning()) close();
  });
  connect(&engine, &ui::EngineSession::failed, this,
          [this](const QString& reason) { m_planPage->notices().show(kEngineTopic, ui::NoticeKind::Problem, reason); });
}

void MainWindow::openModel(const QString& model) { m_workspace.plan().openModel(model); }

void MainWindow::showPage(Page page) {
  m_pages->setCurrentIndex(page);
  m_pageActions->actions().at(page)->setChecked(true);
}

MainWindow::Page MainWindow::page() const { return static_cast<Page>(m_pages->currentIndex()); }

void MainWindow::startSelected() {
  if (!m_workspace.start(m_planPage->selectedLayout())) return refreshRun();
  m_planPage->notices().clear(kEngineTopic);
  showPage(Monitor);
}

void MainWindow::stopEngine() { m_workspace.engine().stop(); }

void MainWindow::openSettings() {
  auto* dialog = new ui::SettingsDialog(m_settings, this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->open();
}

void MainWindow::refreshRun() {
  const LayoutPlan* layout = m_planPage->selectedLayout();
  const QString obstacle = m_workspace.startObstacle(layout);
  const ui::EngineSession& engine = m_workspace.engine();
  m_planPage->setStartObstacle(obstacle);
  m_runPanel->setOffer(obstacle.isEmpty(), m_workspace.offerText(layout));
  m_start->setEnabled(obstacle.isEmpty());
  m_stop->setEnabled(engine.isRunning());
  QString status;
  const auto& request = engine.request();
  const QString running = request ? tr("%1 as %2").arg(request->modelName, request->layoutName) : QString();
  switch (engine.phase()) {
    case ui::SessionPhase::Idle:
      status = tr("No engine is running.");
      break;
    case ui::SessionPhase::Starting:
    case ui::SessionPhase::Loading:
      status = tr("Loading %1 …").arg(running);
      break;
    case ui::SessionPhase::Ready:
      status = tr("Serving %1 at %2").arg(running, engine.url().toString());
      break;
    case ui::SessionPhase::Stopping:
      status = tr("Stopping %1 …").arg(running);
      break;
    case ui::SessionPhase::Failed:
      status = tr("The engine ended: %1").arg(engine.failureReason());
      break;
  }
  m_status->setText(status.section(QLatin1Char('\n'), 0, 0));
}

void MainWindow::tellUnsaved() {
  const QString file = m_settings.unsavedFile();
  if (file.isEmpty()) return;
  m_planPage->notices().show(QStringLiteral("settings"), ui::NoticeKind::Warning,
                             tr("%1 cannot be written: settings and window sizes hold until the window is closed.").arg(file));
}

void MainWindow::fillRecentMenu() {
  m_recentMenu->clear();
  for (const QString& model : m_settings.recentModels()) {
    QAction* action = m_recentMenu->addAction(QString(model).replace(QLatin1Char('&'), QLatin1String("&&")));
    connect(action, &QAction::triggered, this, [this, model] { openModel(model); });
  }
  m_recentMenu->setEnabled(!m_recentMenu->isEmpty());
}

void MainWindow::askBeforeClosing() {
  if (m_closeQuestion) return m_closeQuestion->raise();
  m_closeQuestion = new QMessageBox(QMessageBox::Question, tr("Stop the engine?"),
                                    tr("The engine is running. Closing the window stops it."), QMessageBox::NoButton, this);
  m_closeQuestion->setObjectName(QStringLiteral("closeQuestion"));
  m_closeQuestion->setAttribute(Qt::WA_DeleteOnClose);
  QPushButton* stop = m_closeQuestion->addButton(tr("&Stop and quit"), QMessageBox::AcceptRole);
  stop->setObjectName(QStringLiteral("stopAndQuit"));
  QPushButton* cancel = m_closeQuestion->addButton(tr("&Keep it running"), QMessageBox::RejectRole);
  cancel->setObjectName(QStringLiteral("keepRunning"));
  m_closeQuestion->setDefaultButton(cancel);
  m_closeQuestion->setEscapeButton(cancel);
  connect(stop, &QPushButton::clicked, this, [this] {
    m_quitWhenStopped = true;
    if (m_workspace.engine().isRunning())
      m_workspace.engine().stop();
    else
      close();
  });
  connect(m_closeQuestion, &QObject::destroyed, this, [this] { m_closeQuestion = nullptr; });
  m_closeQuestion->open();
}

void MainWindow::closeEvent(QCloseEvent* event) {
  if (m_workspace.engine().isRunning()) {
    event->ignore();
    if (!m_quitWhenStopped) askBeforeClosing();
    return;
  }
  m_settings.setWindowGeometry(saveGeometry());
  m_settings.setWindowState(saveState());
  QMainWindow::closeEvent(event);
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  const QList<QUrl> urls = event->mimeData()->urls();
  if (urls.size() == 1 && urls.first().isLocalFile()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  const QList<QUrl> urls = event->mimeData()->urls();
  if (urls.size() != 1 || !urls.first().isLocalFile()) return;
  event->acceptProposedAction();
  showPage(Plan);
  m_planPage->take(urls.first().toLocalFile());
}

void MainWindow::showAbout() {
  auto* box = new QMessageBox(QMessageBox::NoIcon, tr("About Headroom"),
                              tr("Headroom %1").arg(QCoreApplication::applicationVersion()), QMessageBox::Close, this);
  box->setInformativeText(
      tr("A workbench to plan, start and watch language models on your own GPUs.\n"
         "The window is licensed under GPL-3.0-or-later, the engine under Apache-2.0."));
  box->setIconPixmap(ui::applicationIcon().pixmap(64));
  box->setAttribute(Qt::WA_DeleteOnClose);
  box->open();
}

void MainWindow::retranslate() {
  setWindowTitle(QStringLiteral("Headroom"));
  for (const auto& [menu, title] : m_menus) menu->setTitle(tr(title));
  for (const TextAction& item : m_actions) {
    item.action->setText(tr(item.text));
    // The rail writes names without mnemonics and dots.
    item.action->setIconText(tr(item.text).remove(QRegularExpression(QStringLiteral("\\(&\\w\\)|&|…"))));
    item.action->setStatusTip(tr(item.tip));
    const QString keys = item.action->shortcut().toString(QKeySequence::NativeText);
    item.action->setToolTip(keys.isEmpty() ? tr(item.tip) : tr("%1 (%2)").arg(tr(item.tip), keys));
  }
  m_rail->setWindowTitle(tr("Pages"));
  m_rail->setAccessibleName(tr("Pages"));
  fillRecentMenu();
  tellUnsaved();
  refreshRun();
}

void MainWindow::changeEvent(QEvent* event) {
  if (event->type() == QEvent::LanguageChange) retranslate();
  QMainWindow::changeEvent(event);
}

}  // namespace headroom::app
