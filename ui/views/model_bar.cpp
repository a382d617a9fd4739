// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/model_bar.h"

#include "ui/models/layout_text.h"
#include "ui/settings/app_settings.h"
#include "ui/theme/icons.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QMenu>
#include <QPushButton>
#include <QVBoxLayout>

namespace headroom::ui {

ModelBar::ModelBar(AppSettings& settings, QWidget* parent) : Card(parent), m_settings(settings) {
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(kPadding, 10, kPadding, 10);
  auto* text = new QVBoxLayout;
  text->setSpacing(2);
  m_name = makeTitle(this, 1.35);
  m_facts = makeQuietLabel(this);
  text->addWidget(m_name);
  text->addWidget(m_facts);
  layout->addLayout(text, 1);

  const auto button = [&](const char* icon, const char* name) {
    auto* made = new QPushButton(themedIcon(QString::fromLatin1(icon)), QString(), this);
    made->setObjectName(QString::fromLatin1(name));
    layout->addWidget(made, 0, Qt::AlignVCenter);
    return made;
  };
  m_file = button("open", "openFile");
  m_folder = button("folder", "openFolder");
  m_catalog = button("catalog", "openCatalog");
  m_recent = button("recent", "openRecent");
  m_recentMenu = new QMenu(this);
  m_recent->setMenu(m_recentMenu);
  connect(m_file, &QPushButton::clicked, this, &ModelBar::openFileRequested);
  connect(m_folder, &QPushButton::clicked, this, &ModelBar::openFolderRequested);
  connect(m_catalog, &QPushButton::clicked, this, &ModelBar::catalogRequested);
  connect(&m_settings, &AppSettings::recentModelsChanged, this, &ModelBar::fillRecentMenu);
  retranslate();
}

void ModelBar::setModel(std::shared_ptr<const ModelSource> model) {
  m_model = std::move(model);
  retranslate();
}

void ModelBar::setOpening(const QString& name) {
  m_opening = name;
  retranslate();
}

void ModelBar::fillRecentMenu() {
  m_recentMenu->clear();
  for (const QString& model : m_settings.recentModels()) {
    QAction* action = m_recentMenu->addAction(QString(model).replace(QLatin1Char('&'), QLatin1String("&&")));
    connect(action, &QAction::triggered, this, [this, model] { emit openRequested(model); });
  }
  m_recent->setEnabled(!m_recentMenu->isEmpty());
  if (m_recentMenu->isEmpty()) return;
  m_recentMenu->addSeparator();
  connect(m_recentMenu->addAction(tr("&Forget these")), &QAction::triggered, &m_settings, &AppSettings::clearRecentModels);
}

void ModelBar::retranslate() {
  m_file->setText(tr("Open file…"));
  m_file->setToolTip(tr("Open a config.json, a GGUF file or a safetensors index"));
  m_folder->setText(tr("Open folder…"));
  m_folder->setToolTip(tr("Open a model's folder, with its weights"));
  m_catalog->setText(tr("Catalog…"));
  m_catalog->setToolTip(tr("Choose a model by name, without its files"));
  m_recent->setText(tr("Recent"));
  m_recent->setToolTip(tr("Models that were opened before"));
  fillRecentMenu();
  if (!m_opening.isEmpty()) {
    m_name->setText(tr("Opening %1 …").arg(m_opening));
  } else if (m_model) {
    m_name->setText(fromCore(m_model->config.name));
    QString facts = modelFacts(*m_model);
    m_facts->setToolTip(m_model->path.empty() ? QString() : fromCore(m_model->path.string()));
    m_facts->setText(facts);
  } else {
    m_name->setText(tr("No model is open"));
    m_facts->setText(tr("Drop a config.json, a model folder or a GGUF file here, or choose a model from the catalog."));
  }
}

void ModelBar::changeEvent(QEvent* event) {
  if (event->type() == QEvent::LanguageChange) retranslate();
  Card::changeEvent(event);
}

}  // namespace headroom::ui
