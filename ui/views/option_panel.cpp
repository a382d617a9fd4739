// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/option_panel.h"

#include "ui/models/layout_text.h"
#include "ui/theme/format.h"
#include "ui/views/card.h"
#include "ui/views/token_spin_box.h"

#include <QCheckBox>
#include <QComboBox>
#include <QEvent>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QLocale>
#include <QSignalBlocker>

namespace headroom::ui {
namespace {

QString nameOf(DType dtype) {
  const std::string_view name = dtypeName(dtype);
  return QString::fromUtf8(name.data(), static_cast<qsizetype>(name.size()));
}

std::optional<DType> typeOf(const QComboBox* box) {
  const QVariant data = box->currentData();
  return data.isValid() ? std::optional(static_cast<DType>(data.toInt())) : std::nullopt;
}

std::optional<int64_t> tokensOf(const QSpinBox* box) {
  return box->value() > 0 ? std::optional<int64_t>(box->value()) : std::nullopt;
}

void fill(QComboBox* box, const std::vector<DType>& types) {
  const QSignalBlocker block(box);
  const QVariant before = box->currentData();
  box->clear();
  box->addItem(QString());
  for (const DType type : types) box->addItem(nameOf(type), static_cast<int>(type));
  box->setCurrentIndex(before.isValid() ? std::max(0, box->findData(before)) : 0);
}

}  // namespace

OptionPanel::OptionPanel(QWidget* parent) : QWidget(parent) {
  build();
  fillTypes();
  retranslate();
}

QLabel* OptionPanel::addRow(QWidget* field, const char* name) {
  auto* grid = static_cast<QGridLayout*>(layout());
  auto* label = new QLabel(this);
  label->setBuddy(field);
  field->setObjectName(QString::fromLatin1(name));
  const int row = grid->rowCount();
  grid->addWidget(label, row, 0);
  grid->addWidget(field, row, 1);
  m_labels.push_back(label);
  return label;
}

void OptionPanel::build() {
  auto* grid = new QGridLayout(this);
  grid->setContentsMargins(0, 0, 0, 0);
  grid->setHorizontalSpacing(8);
  grid->setVerticalSpacing(6);
  grid->setColumnStretch(1, 1);

  m_engine = new QComboBox(this);
  for (const EngineKind kind :
       {EngineKind::Headroom, EngineKind::Vllm, EngineKind::SgLang, EngineKind::TensorRtLlm, EngineKind::LlamaCpp})
    if (parseEngine(engineName(kind))) m_engine->addItem(engineTitle(kind), static_cast<int>(kind));
  m_version = new QLineEdit(this);
  m_dtype = new QComboBox(this);
  m_kvDType = new QComboBox(this);
  m_utilization = new QSpinBox(this);
  m_utilization->setRange(0, 100);
  m_utilization->setSuffix(QStringLiteral(" %"));
  m_context = new TokenSpinBox(this);
  m_concurrency = new QSpinBox(this);
  m_concurrency->setRange(1, 100000);
  m_concurrency->setGroupSeparatorShown(true);
  m_input = new TokenSpinBox(this);
  m_input->setDefaultValue(512);
  m_output = new TokenSpinBox(this);
  m_output->setDefaultValue(128);
  m_eager = new QCheckBox(this);

  addRow(m_engine, "engine");
  addRow(m_version, "engineVersion");
  addRow(m_context, "contextLength");
  addRow(m_concurrency, "concurrency");
  addRow(m_dtype, "dtype");
  addRow(m_kvDType, "kvDType");
  addRow(m_utilization, "utilization");
  addRow(m_input, "inputLength");
  addRow(m_output, "outputLength");
  for (QWidget* field : {static_cast<QWidget*>(m_engine), static_cast<QWidget*>(m_dtype), static_cast<QWidget*>(m_kvDType)}) {
    auto* box = static_cast<QComboBox*>(field);
    box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    box->setMinimumContentsLength(10);
  }
  m_eager->setObjectName(QStringLiteral("enforceEager"));
  grid->addWidget(m_eager, grid->rowCount(), 0, 1, 2);

  connect(m_engine, &QComboBox::currentIndexChanged, this, [this] {
    fillTypes();
    writeDefaults();
    emit optionsChanged();
  });
  connect(m_version, &QLineEdit::editingFinished, this, &OptionPanel::optionsChanged);
  for (QComboBox* box : {m_dtype, m_kvDType}) connect(box, &QComboBox::currentIndexChanged, this, &OptionPanel::optionsChanged);
  for (QSpinBox* box : {static_cast<QSpinBox*>(m_context), m_concurrency, static_cast<QSpinBox*>(m_input),
                        static_cast<QSpinBox*>(m_output), m_utilization})
    connect(box, &QSpinBox::valueChanged, this, &OptionPanel::optionsChanged);
  connect(m_eager, &QCheckBox::toggled, this, &OptionPanel::optionsChanged);
}

void OptionPanel::fillTypes() {
  const bool own = static_cast<EngineKind>(m_engine->currentData().toInt()) == EngineKind::Headroom;
  fill(m_dtype, {DType::BF16, DType::F16, DType::F32});
  fill(m_kvDType, own ? std::vector{DType::F32, DType::F16, DType::BF16}
                      : std::vector{DType::BF16, DType::F16, DType::F8E4M3, DType::F8E5M2});
  // Headroom has one version, its own, and no graphs to switch off.
  m_version->setEnabled(!own);
  m_eager->setEnabled(!own);
}

PlanOptions OptionPanel::options() const {
  PlanOptions options;
  options.engine.kind = static_cast<EngineKind>(m_engine->currentData().toInt());
  if (m_version->isEnabled()) options.engine.version = m_version->text().trimmed().toStdString();
  options.dtype = typeOf(m_dtype);
  options.kvCacheDType = typeOf(m_kvDType);
  options.maxModelLen = tokensOf(m_context);
  options.concurrency = m_concurrency->value();
  options.inputLen = tokensOf(m_input);
  options.outputLen = tokensOf(m_output);
  if (m_utilization->value() > 0) options.gpuMemoryUtilization = m_utilization->value() / 100.0;
  options.enforceEager = m_eager->isEnabled() && m_eager->isChecked();
  return options;
}

void OptionPanel::setResolved(const ResolvedOptions& resolved) {
  m_resolved = resolved;
  writeDefaults();
}

void OptionPanel::writeDefaults() {
  const QString plain = tr("Default");
  const auto named = [&](const QString& value) { return value.isEmpty() ? plain : tr("Default: %1").arg(value); };
  const bool known = m_resolved && static_cast<int>(m_resolved->engine.kind) == m_engine->currentData().toInt();
  const auto tokens = [&](const QSpinBox* box, int64_t value) {
    return named(known && box->value() == 0 && value > 0 ? formatCount(value) : QString());
  };
  m_context->setSpecialValueText(tokens(m_context, known ? m_resolved->maxModelLen : 0));
  m_input->setSpecialValueText(tokens(m_input, known ? m_resolved->inputLen : 0));
  m_output->setSpecialValueText(tokens(m_output, known ? m_resolved->outputLen : 0));
  if (known && m_context->value() == 0 && m_resolved->maxModelLen > 0)
    m_context->setDefaultValue(static_cast<int>(std::min<int64_t>(m_resolved->maxModelLen, m_context->maximum())));
  const bool utilizationKnown = known && m_utilization->value() == 0;
  m_utilization->setSpecialValueText(named(
      utilizationKnown ? QLocale().toString(m_resolved->gpuMemoryUtilization * 100, 'g', 4) + QStringLiteral(" %") : QString()));
  const auto type = [&](QComboBox* box, DType resolved) {
    const QSignalBlocker block(box);
    box->setItemText(0, named(known && box->currentIndex() == 0 ? nameOf(resolved) : QString()));
  };
  type(m_dtype, known ? m_resolved->dtype : DType::BF16);
  type(m_kvDType, known ? m_resolved->kvCacheDType : DType::BF16);
  m_version->setPlaceholderText(!m_version->isEnabled() ? tr("this one")
                                : known && !m_resolved->engine.version.empty()
                                    ? tr("newest known: %1").arg(fromCore(m_resolved->engine.version))
                                    : tr("newest known"));
}

void OptionPanel::retranslate() {
  const QStringList names{tr("&Engine"),      tr("Version"),        tr("Conte&xt length"), tr("Concurrent re&quests"),
                          tr("&Data type"),   tr("&KV cache type"), tr("Memory &use"),     tr("Prompt tokens"),
                          tr("Answer tokens")};
  for (size_t i = 0; i < m_labels.size(); ++i) m_labels[i]->setText(names.at(static_cast<int>(i)));
  m_engine->setToolTip(tr("The engine whose rules and memory use the grid shows"));
  m_version->setToolTip(tr("Version of the engine; empty means the newest that is known"));
  m_context->setToolTip(tr("Most tokens of one request, prompt and answer together"));
  m_concurrency->setToolTip(tr("Requests at once that headroom and predictions are for"));
  m_dtype->setToolTip(tr("Type of weights and activations"));
  m_kvDType->setToolTip(tr("Type of the cached keys and values"));
  m_utilization->setToolTip(tr("Share of each GPU's memory that the engine may use"));
  m_input->setToolTip(tr("Prompt length that predictions are for"));
  m_output->setToolTip(tr("Answer length that predictions are for"));
  m_eager->setText(tr("Without CUDA &graphs"));
  m_eager->setToolTip(tr("Saves the memory of captured graphs; decoding becomes slower"));
  writeDefaults();
}

void OptionPanel::changeEvent(QEvent* event) {
  if (event->type() == QEvent::LanguageChange) retranslate();
  QWidget::changeEvent(event);
}

}  // namespace headroom::ui
