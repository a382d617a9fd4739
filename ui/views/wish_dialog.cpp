// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/wish_dialog.h"

#include "ui/models/layout_text.h"
#include "ui/models/wish_model.h"
#include "ui/settings/app_settings.h"
#include "ui/theme/format.h"
#include "ui/views/card.h"
#include "ui/views/table_fit.h"
#include "ui/views/token_spin_box.h"

#include <QDialogButtonBox>
#include <QDoubleSpinBox>
#include <QEvent>
#include <QGridLayout>
#include <QHeaderView>
#include <QProgressBar>
#include <QPushButton>
#include <QTableView>
#include <QTimer>
#include <QVBoxLayout>

namespace headroom::ui {
namespace {

constexpr int kTypingPauseMs = 300;
constexpr int kFields = 3;  // beside each other
constexpr int kMostLetters = 40;

}  // namespace

WishDialog::WishDialog(PlanSession& session, AppSettings& settings, QWidget* parent)
    : QDialog(parent), m_session(session), m_settings(settings), m_model(new WishModel(this)) {
  setObjectName(QStringLiteral("wishDialog"));
  for (const GpuSpec& spec : gpuCatalog())
    if (const double price = m_settings.gpuPrice(fromCore(spec.name)); price > 0) m_model->setPrice(fromCore(spec.name), price);
  build();
  retranslate();
  search();
}

WishDialog::~WishDialog() { m_session.cancelSearch(); }

void WishDialog::buildWish() {
  m_form = new QWidget(this);
  auto* grid = new QGridLayout(m_form);
  grid->setContentsMargins(0, 0, 0, 0);
  grid->setHorizontalSpacing(8);
  grid->setVerticalSpacing(6);
  const auto add = [&](QAbstractSpinBox* field, const char* name) {
    field->setObjectName(QString::fromLatin1(name));
    auto* label = new QLabel(m_form);
    label->setBuddy(field);
    const int at = static_cast<int>(m_labels.size());
    grid->addWidget(label, at / kFields, at % kFields * 2);
    grid->addWidget(field, at / kFields, at % kFields * 2 + 1);
    grid->setColumnStretch(at % kFields * 2 + 1, 1);
    m_labels.push_back(label);
  };
  m_context = new TokenSpinBox(m_form);
  m_concurrency = new QSpinBox(m_form);
  m_concurrency->setRange(1, 100000);
  m_mostGpus = new QSpinBox(m_form);
  m_mostGpus->setRange(1, 64);
  m_mostGpus->setValue(Wish().mostGpus);
  m_input = new TokenSpinBox(m_form);
  m_output = new TokenSpinBox(m_form);
  m_ttft = new QDoubleSpinBox(m_form);
  m_each = new QDoubleSpinBox(m_form);
  m_all = new QDoubleSpinBox(m_form);
  for (QDoubleSpinBox* box : {m_ttft, m_each, m_all}) {
    box->setDecimals(0);
    box->setRange(0, 10'000'000);
    box->setGroupSeparatorShown(true);
  }
  m_each->setDecimals(1);
  m_ttft->setSingleStep(100);
  m_each->setSingleStep(5);
  m_all->setSingleStep(100);
  add(m_context, "wishContext");
  add(m_concurrency, "wishConcurrency");
  add(m_mostGpus, "wishMostGpus");
  add(m_input, "wishInput");
  add(m_output, "wishOutput");
  add(m_ttft, "wishTtft");
  add(m_each, "wishEach");
  add(m_all, "wishAll");

  const PlanOptions& planned = m_session.options();
  m_context->setValue(static_cast<int>(std::min<int64_t>(planned.maxModelLen.value_or(0), m_context->maximum())));
  m_concurrency->setValue(static_cast<int>(planned.concurrency));
  m_input->setValue(static_cast<int>(planned.inputLen.value_or(0)));
  m_output->setValue(static_cast<int>(planned.outputLen.value_or(0)));
  for (QSpinBox* box : {m_context, m_concurrency, m_mostGpus, m_input, m_output})
    connect(box, &QSpinBox::valueChanged, this, &WishDialog::begin);
  for (QDoubleSpinBox* box : {m_ttft, m_each, m_all}) connect(box, &QDoubleSpinBox::valueChanged, this, &WishDialog::begin);
}

void WishDialog::build() {
  m_pause = new QTimer(this);
  m_pause->setSingleShot(true);
  m_pause->setInterval(kTypingPauseMs);
  connect(m_pause, &QTimer::timeout, this, &WishDialog::search);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(kPadding, kPadding, kPadding, kPadding);
  layout->setSpacing(8);
  m_hint = makeQuietLabel(this);
  layout->addWidget(m_hint);
  buildWish();
  layout->addWidget(m_form);
  m_progress = new QProgressBar(this);
  m_progress->setObjectName(QStringLiteral("wishProgress"));
  m_progress->setTextVisible(false);
  m_progress->setFixedHeight(4);
  QSizePolicy keeps = m_progress->sizePolicy();
  keeps.setRetainSizeWhenHidden(true);
  m_progress->setSizePolicy(keeps);
  layout->addWidget(m_progress);
  m_table = new QTableView(this);
  m_table->setObjectName(QStringLiteral("wishTable"));
  m_table->setModel(m_model);
  m_table->setSelectionBehavior(QAbstractItemView::SelectRows);
  m_table->setSelectionMode(QAbstractItemView::SingleSelection);
  m_table->setEditTriggers(QAbstractItemView::EditKeyPressed | QAbstractItemView::AnyKeyPressed |
                           QAbstractItemView::SelectedClicked);
  m_table->setAlternatingRowColors(true);
  m_table->setShowGrid(false);
  m_table->setWordWrap(false);
  m_table->setTabKeyNavigation(false);
  m_table->verticalHeader()->hide();
  m_table->verticalHeader()->setDefaultSectionSize(fontMetrics().height() * 7 / 4);
  m_table->horizontalHeader()->setHighlightSections(false);
  layout->addWidget(m_table, 1);
  m_detail = makeTextLabel(this);
  m_detail->setObjectName(QStringLiteral("wishDetail"));
  m_detail->setMinimumHeight(fontMetrics().lineSpacing() * 2);
  m_detail->setAlignment(Qt::AlignLeading | Qt::AlignTop);
  layout->addWidget(m_detail);
  m_count = makeQuietLabel(this);
  m_count->setObjectName(QStringLiteral("wishCount"));
  layout->addWidget(m_count);
  m_buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
  m_use = m_buttons->addButton(QString(), QDialogButtonBox::AcceptRole);
  m_use->setObjectName(QStringLiteral("useMachine"));
  m_use->setDefault(true);
  layout->addWidget(m_buttons);
  resize(fontMetrics().averageCharWidth() * 150, fontMetrics().height() * 36);

  connect(m_buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  connect(m_buttons, &QDialogButtonBox::accepted, this, &WishDialog::choose);
  connect(m_table, &QTableView::doubleClicked, this, [this](const QModelIndex& index) {
    if (index.column() != WishModel::CardPrice) choose();
  });
  connect(m_table->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this] {
    // A row that a person chose stays; until then the best one is marked.
    if (!m_filling) m_rowChosen = true;
    showRow();
  });
  connect(m_model, &WishModel::priceChanged, this, [this](const QString& card, double price) {
    m_settings.setGpuPrice(card, price);
    m_filling = true;
    m_table->selectRow(0);
    m_filling = false;
    showRow();
  });
  connect(&m_session, &PlanSession::wishAnswered, this, [this](const WishReport& ofOneCard) {
    m_filling = true;
    m_model->add(ofOneCard);
    if (!m_rowChosen) m_table->selectRow(0);
    m_filling = false;
    showProgress();
    showRow();
  });
  connect(&m_session, &PlanSession::wishEnded, this, [this](const QString& problem) {
    m_searching = false;
    m_problem = problem;
    showProgress();
    showRow();
  });
}

PlanOptions WishDialog::options() const {
  const auto tokens = [](const QSpinBox* box) { return box->value() > 0 ? std::optional<int64_t>(box->value()) : std::nullopt; };
  PlanOptions options = m_session.options();
  options.maxModelLen = tokens(m_context);
  options.concurrency = m_concurrency->value();
  options.inputLen = tokens(m_input);
  options.outputLen = tokens(m_output);
  return options;
}

Wish WishDialog::wish() const {
  const auto wished = [](const QDoubleSpinBox* box) { return box->value() > 0 ? std::optional(box->value()) : std::nullopt; };
  Wish wish;
  wish.mostGpus = m_mostGpus->value();
  wish.decodeTokensPerSecond = wished(m_each);
  wish.throughputTokensPerSecond = wished(m_all);
  wish.ttftMs = wished(m_ttft);
  return wish;
}

// The answers to another wish go at once; the search waits until the person has written.
void WishDialog::begin() {
  m_session.cancelSearch();
  m_filling = true;
  m_model->clear();
  m_filling = false;
  m_rowChosen = false;
  m_searching = true;
  m_problem.clear();
  m_pause->start();
  showProgress();
  showRow();
}

void WishDialog::search() {
  begin();
  m_pause->stop();
  m_session.searchMachines(options(), wish());
}

void WishDialog::choose() {
  const WishAnswer* answer = m_model->answerAt(m_table->currentIndex().row());
  if (!answer) return;
  WishChoice choice{*answer, options()};
  // A length that was not written is the one that was searched for, not what the machine happens to have room for.
  if (!choice.options.maxModelLen && m_session.model() && m_session.model()->config.maxPositionEmbeddings > 0 &&
      !choice.options.inputLen && !choice.options.outputLen)
    choice.options.maxModelLen = m_session.model()->config.maxPositionEmbeddings;
  emit machineChosen(choice);
  accept();
}

void WishDialog::showRow() {
  const int row = m_table->currentIndex().row();
  m_detail->setText(!m_problem.isEmpty() ? m_problem : m_model->sentence(row));
  m_use->setEnabled(m_model->answerAt(row) != nullptr);
}

void WishDialog::showProgress() {
  const int cards = static_cast<int>(gpuCatalog().size());
  m_progress->setRange(0, cards);
  m_progress->setValue(m_model->rowCount());
  m_progress->setVisible(m_searching);
  fitColumns(*m_table, kMostLetters);
  m_count->setText(m_searching ? tr("Looking: %1 of %2 cards").arg(m_model->rowCount()).arg(cards)
                               : tr("%1 of %2 cards grant it with %3 GPUs or fewer.")
                                     .arg(m_model->answers())
                                     .arg(m_model->rowCount())
                                     .arg(m_mostGpus->value()));
}

void WishDialog::retranslate() {
  setWindowTitle(tr("Find GPUs"));
  const QString name = m_session.model() ? fromCore(m_session.model()->config.name) : QString();
  m_hint->setText(
      tr("The smallest machine of each card that serves %1 under %2 as you wish. Fewest GPUs first, or the cheapest once you "
         "write prices into the table.")
          .arg(name, engineTitle(m_session.options().engine.kind)));
  const QStringList names{tr("Conte&xt length"), tr("Concurrent re&quests"), tr("&Most GPUs"),        tr("Pro&mpt tokens"),
                          tr("&Answer tokens"),  tr("&First token within"),  tr("Tokens/s of &each"), tr("Tokens/s of a&ll")};
  for (size_t i = 0; i < m_labels.size(); ++i) m_labels[i]->setText(names.at(static_cast<qsizetype>(i)));
  m_context->setSpecialValueText(tr("Default"));
  m_input->setSpecialValueText(tr("Default"));
  m_output->setSpecialValueText(tr("Default"));
  m_ttft->setSuffix(tr(" ms"));
  for (QDoubleSpinBox* box : {m_ttft, m_each, m_all}) box->setSpecialValueText(tr("Any"));
  m_context->setToolTip(tr("Most tokens of one request; the model's own length unless written"));
  m_concurrency->setToolTip(tr("Requests at once"));
  m_mostGpus->setToolTip(tr("Most GPUs of one machine"));
  m_ttft->setToolTip(tr("Most milliseconds to the first token"));
  m_each->setToolTip(tr("Least tokens per second of each request"));
  m_all->setToolTip(tr("Least tokens per second of all requests together"));
  m_progress->setAccessibleName(tr("Cards looked at"));
  m_table->setAccessibleName(tr("Machines that grant the wish"));
  m_use->setText(tr("&Plan for this machine"));
  m_model->retranslate();
  showProgress();
  showRow();
}

void WishDialog::changeEvent(QEvent* event) {
  if (event->type() == QEvent::LanguageChange) retranslate();
  QDialog::changeEvent(event);
}

}  // namespace headroom::ui
