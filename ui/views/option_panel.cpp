// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/option_panel.h"

#include "core/model/what_if_quantization.h"
#include "ui/models/layout_text.h"
#include "ui/theme/format.h"
#include "ui/views/card.h"
#include "ui/views/log_slider.h"
#include "ui/views/token_spin_box.h"

#include <QCheckBox>
#include <QComboBox>
#include <QEvent>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QLocale>
#include <QSignalBlocker>
#include <algorithm>

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

constexpr int kLeastContext = 512;

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
  for (const EngineKind kind : plannedEngines()) m_engine->addItem(engineTitle(kind), static_cast<int>(kind));
  m_version = new QComboBox(this);
  m_version->setEditable(true);
  m_version->setInsertPolicy(QComboBox::NoInsert);
  m_version->setCompleter(nullptr);
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
  m_quantization = new QComboBox(this);
  m_sequences = new QSpinBox(this);
  m_sequences->setRange(0, 1 << 20);
  m_sequences->setGroupSeparatorShown(true);
  m_batched = new TokenSpinBox(this);
  m_batched->setDefaultValue(2048);
  m_eager = new QCheckBox(this);
  m_expertParallel = new QCheckBox(this);
  m_expertParallel->setObjectName(QStringLiteral("expertParallel"));
  m_attentionReplicas = new QCheckBox(this);
  m_attentionReplicas->setObjectName(QStringLiteral("attentionDataParallel"));

  addRow(m_engine, "engine");
  addRow(m_version, "engineVersion");
  addRow(m_context, "contextLength");
  m_contextSlider = new LogSlider(*m_context, kLeastContext, 1 << 17, 8, 64, this);
  addSlider(m_contextSlider, "contextSlider");
  addRow(m_concurrency, "concurrency");
  m_concurrencySlider = new LogSlider(*m_concurrency, 1, 1024, 4, 1, this);
  addSlider(m_concurrencySlider, "concurrencySlider");
  addRow(m_dtype, "dtype");
  addRow(m_kvDType, "kvDType");
  addRow(m_quantization, "quantization");
  addRow(m_utilization, "utilization");
  addRow(m_input, "inputLength");
  addRow(m_output, "outputLength");
  addRow(m_sequences, "maxNumSeqs");
  addRow(m_batched, "maxNumBatchedTokens");
  for (QComboBox* box : {m_engine, m_version, m_dtype, m_kvDType, m_quantization}) {
    box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    box->setMinimumContentsLength(10);
  }
  m_eager->setObjectName(QStringLiteral("enforceEager"));
  for (QCheckBox* box : {m_eager, m_expertParallel, m_attentionReplicas}) grid->addWidget(box, grid->rowCount(), 0, 1, 2);

  // From top to bottom, as they are seen.
  const std::vector<QWidget*> shown{
      m_engine,  m_version,        m_context,          m_contextSlider, m_concurrency, m_concurrencySlider, m_dtype,
      m_kvDType, m_quantization,   m_utilization,      m_input,         m_output,      m_sequences,         m_batched,
      m_eager,   m_expertParallel, m_attentionReplicas};
  for (size_t i = 1; i < shown.size(); ++i) setTabOrder(shown[i - 1], shown[i]);

  connect(m_engine, &QComboBox::currentIndexChanged, this, [this] {
    fillTypes();
    writeDefaults();
    emit optionsChanged();
  });
  connect(m_version->lineEdit(), &QLineEdit::editingFinished, this, &OptionPanel::optionsChanged);
  connect(m_version, &QComboBox::activated, this, &OptionPanel::optionsChanged);
  for (QComboBox* box : {m_dtype, m_kvDType, m_quantization})
    connect(box, &QComboBox::currentIndexChanged, this, &OptionPanel::optionsChanged);
  for (QSpinBox* box : {static_cast<QSpinBox*>(m_context), m_concurrency, static_cast<QSpinBox*>(m_input),
                        static_cast<QSpinBox*>(m_output), m_utilization, m_sequences, static_cast<QSpinBox*>(m_batched)})
    connect(box, &QSpinBox::valueChanged, this, &OptionPanel::optionsChanged);
  for (QCheckBox* box : {m_eager, m_expertParallel, m_attentionReplicas})
    connect(box, &QCheckBox::toggled, this, &OptionPanel::optionsChanged);
}

void OptionPanel::addSlider(LogSlider* slider, const char* name) {
  auto* grid = static_cast<QGridLayout*>(layout());
  slider->setObjectName(QString::fromLatin1(name));
  grid->addWidget(slider, grid->rowCount(), 0, 1, 2);
}

void OptionPanel::setModel(const ModelSource& model) {
  const int64_t positions = model.config.maxPositionEmbeddings;
  m_contextSlider->setMost(
      static_cast<int>(std::clamp<int64_t>(positions > 0 ? positions : 1 << 17, kLeastContext * 2, m_context->maximum())));
  m_hasExperts = std::any_of(model.config.layers.begin(), model.config.layers.end(),
                             [](const LayerSpec& layer) { return layer.moe.experts > 0; });
  m_quantized = model.config.quantization.has_value() || model.origin == ModelSource::Origin::GgufHeader;
  fillTypes();
}

bool OptionPanel::setMachine(const Machine& machine) {
  const bool host = machine.isHostOnly();
  if (host == m_hostDevices) return false;
  m_hostDevices = host;
  const QVariant before = m_kvDType->currentData();
  fillTypes();
  return m_kvDType->currentData() != before;
}

bool OptionPanel::apply(const FixAction& action) {
  const QSignalBlocker block(this);
  if (action.engine) {
    m_engine->setCurrentIndex(m_engine->findData(static_cast<int>(action.engine->kind)));
    m_version->setCurrentText(fromCore(action.engine->version));
  }
  if (action.maxModelLen) m_context->setValue(static_cast<int>(*action.maxModelLen));
  if (action.concurrency) m_concurrency->setValue(static_cast<int>(*action.concurrency));
  if (action.dtype) m_dtype->setCurrentIndex(std::max(0, m_dtype->findData(static_cast<int>(*action.dtype))));
  if (action.kvCacheDType) m_kvDType->setCurrentIndex(std::max(0, m_kvDType->findData(static_cast<int>(*action.kvCacheDType))));
  // Rounded down: a share that is a little too large does not start.
  if (action.utilization) m_utilization->setValue(static_cast<int>(*action.utilization * 100 + 1e-6));
  if (action.expertParallel) m_expertParallel->setChecked(true);
  return action.engine || action.maxModelLen || action.concurrency || action.dtype || action.kvCacheDType || action.utilization ||
         action.expertParallel;
}

void OptionPanel::setLoad(const PlanOptions& options) {
  const QSignalBlocker block(this);
  const auto write = [](QSpinBox* box, const std::optional<int64_t>& value) {
    box->setValue(static_cast<int>(std::min<int64_t>(value.value_or(0), box->maximum())));
  };
  write(m_context, options.maxModelLen);
  write(m_concurrency, options.concurrency);
  write(m_input, options.inputLen);
  write(m_output, options.outputLen);
}

void OptionPanel::fillTypes() {
  const auto kind = static_cast<EngineKind>(m_engine->currentData().toInt());
  // What the engine takes; a type that it refuses is not offered.
  if (kind == EngineKind::TensorRtLlm)
    fill(m_dtype, {});
  else
    fill(m_dtype, {DType::BF16, DType::F16, DType::F32});
  std::vector<DType> kvTypes{DType::BF16, DType::F16, DType::F8E4M3, DType::F8E5M2};
  if (kind == EngineKind::Headroom) {
    kvTypes = {DType::F32, DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2};
    if (m_hostDevices) kvTypes.push_back(DType::I8);
  } else if (kind == EngineKind::LlamaCpp) {
    kvTypes = {DType::F32, DType::F16, DType::BF16, DType::Q8_0, DType::Q4_1, DType::Q4_0};
  } else if (kind == EngineKind::LmDeploy) {
    kvTypes = {DType::BF16, DType::F16};
  }
  // llama.cpp takes what it needs, and its slots are the concurrent requests.
  m_utilization->setEnabled(kind != EngineKind::LlamaCpp);
  m_sequences->setEnabled(kind != EngineKind::LlamaCpp);
  fill(m_kvDType, kvTypes);
  // What the checkpoint says stays; a 16-bit model may be planned as if it were quantized.
  {
    const QSignalBlocker block(m_quantization);
    const QString before = m_quantization->currentData().toString();
    m_quantization->clear();
    m_quantization->addItem(QString(), QString());
    if (!m_quantized)
      for (const std::string_view method : headroom::whatIfQuantizations()) {
        const QString name = QString::fromUtf8(method.data(), static_cast<qsizetype>(method.size()));
        m_quantization->addItem(name, name);
      }
    m_quantization->setCurrentIndex(std::max(0, m_quantization->findData(before)));
    m_quantization->setEnabled(m_quantization->count() > 1);
  }
  {
    const QSignalBlocker block(m_version);
    m_version->clear();
    m_version->addItems(engineVersions(kind));
    m_version->setCurrentIndex(-1);
    m_version->setCurrentText(QString());
  }
  // Headroom has one version, its own; llama.cpp has builds.
  m_version->setEnabled(m_version->count() > 0);
  // Only servers that deal whole experts, and only for models that have any.
  const std::string_view engine = engineName(kind);
  const bool server = engine == "vllm" || engine == "sglang" || engine == "tensorrt-llm";
  m_expertParallel->setVisible(m_hasExperts);
  m_expertParallel->setEnabled(server);
  m_attentionReplicas->setVisible(m_hasExperts);
  m_attentionReplicas->setEnabled(engine == "sglang" || engine == "tensorrt-llm");
}

PlanOptions OptionPanel::options() const {
  PlanOptions options;
  options.engine.kind = static_cast<EngineKind>(m_engine->currentData().toInt());
  if (m_version->isEnabled()) options.engine.version = m_version->currentText().trimmed().toStdString();
  options.dtype = typeOf(m_dtype);
  options.kvCacheDType = typeOf(m_kvDType);
  options.maxModelLen = tokensOf(m_context);
  options.concurrency = m_concurrency->value();
  options.inputLen = tokensOf(m_input);
  options.outputLen = tokensOf(m_output);
  if (m_utilization->isEnabled() && m_utilization->value() > 0) options.gpuMemoryUtilization = m_utilization->value() / 100.0;
  options.enforceEager = m_eager->isChecked();
  const auto checked = [](const QCheckBox* box) {
    return box->isEnabled() && box->isVisibleTo(box->parentWidget()) && box->isChecked();
  };
  options.expertParallel = checked(m_expertParallel);
  options.attentionDataParallel = checked(m_attentionReplicas);
  if (const std::string quantization = m_quantization->currentData().toString().toStdString(); !quantization.empty())
    options.quantization = quantization;
  if (m_sequences->isEnabled() && m_sequences->value() > 0) options.maxNumSeqs = m_sequences->value();
  options.maxNumBatchedTokens = tokensOf(m_batched);
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
  m_batched->setSpecialValueText(tokens(m_batched, known ? m_resolved->maxNumBatchedTokens : 0));
  m_sequences->setSpecialValueText(tokens(m_sequences, known ? m_resolved->maxNumSeqs : 0));
  if (known && m_context->value() == 0 && m_resolved->maxModelLen > 0) {
    const int length = static_cast<int>(std::min<int64_t>(m_resolved->maxModelLen, m_context->maximum()));
    m_context->setDefaultValue(length);
    m_contextSlider->setDefaultValue(length);
  }
  m_quantization->setItemText(0, m_quantized ? tr("As the checkpoint") : tr("None"));
  const bool utilizationKnown = known && m_utilization->value() == 0;
  m_utilization->setSpecialValueText(named(
      utilizationKnown ? QLocale().toString(m_resolved->gpuMemoryUtilization * 100, 'g', 4) + QStringLiteral(" %") : QString()));
  const auto type = [&](QComboBox* box, DType resolved) {
    const QSignalBlocker block(box);
    box->setItemText(0, named(known && box->currentIndex() == 0 ? nameOf(resolved) : QString()));
  };
  type(m_dtype, known ? m_resolved->dtype : DType::BF16);
  type(m_kvDType, known ? m_resolved->kvCacheDType : DType::BF16);
  const bool own = static_cast<EngineKind>(m_engine->currentData().toInt()) == EngineKind::Headroom;
  m_version->lineEdit()->setPlaceholderText(own                       ? tr("this one")
                                            : !m_version->isEnabled() ? tr("any build")
                                                                      : tr("%1 (newest)").arg(m_version->itemText(0)));
}

void OptionPanel::retranslate() {
  const QStringList names{tr("&Engine"),       tr("Version"),        tr("Conte&xt length"), tr("Concurrent re&quests"),
                          tr("&Data type"),    tr("&KV cache type"), tr("Quanti&zation"),   tr("Memory &use"),
                          tr("Prompt tokens"), tr("Answer tokens"),  tr("Sequences"),       tr("Tokens in a step")};
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
  m_contextSlider->setAccessibleName(tr("Context length"));
  m_contextSlider->setToolTip(m_context->toolTip());
  m_concurrencySlider->setAccessibleName(tr("Concurrent requests"));
  m_concurrencySlider->setToolTip(m_concurrency->toolTip());
  m_quantization->setToolTip(tr("What if the weights of a 16-bit model were quantized so"));
  m_sequences->setToolTip(tr("Most requests that the engine takes into one step (max-num-seqs)"));
  m_batched->setToolTip(tr("Most tokens of one step (max-num-batched-tokens)"));
  m_expertParallel->setText(tr("Expert &parallel (EP)"));
  m_expertParallel->setToolTip(tr("Whole experts on each GPU in place of columns of all of them"));
  m_attentionReplicas->setText(tr("&Attention data parallel"));
  m_attentionReplicas->setToolTip(tr("Replicas of the attention share one set of experts"));
  m_eager->setText(tr("Without CUDA &graphs"));
  m_eager->setToolTip(tr("Saves the memory of captured graphs; decoding becomes slower"));
  writeDefaults();
}

void OptionPanel::changeEvent(QEvent* event) {
  if (event->type() == QEvent::LanguageChange) retranslate();
  QWidget::changeEvent(event);
}

}  // namespace headroom::ui
