// SPDX-License-Identifier: Apache-2.0
#include "engine/replica.h"

#include "core/memory/workspace.h"

#include <algorithm>
#include <cmath>

namespace headroom::engine {

namespace {

double seconds(std::chrono::steady_clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

std::vector<int32_t> endTokensOf(const SamplingParams& params, const std::vector<int32_t>& eosTokens) {
  std::vector<int32_t> ends = params.stopTokenIds;
  if (!params.ignoreEos) ends.insert(ends.end(), eosTokens.begin(), eosTokens.end());
  return ends;
}

TokenLogprob wire(const LogprobEntry& entry) { return {entry.token, entry.logprob, entry.rank}; }

const char* reasonLabel(FinishReason reason) {
  switch (reason) {
    case FinishReason::Stop: return "stop";
    case FinishReason::Length: return "length";
    case FinishReason::Abort: return "abort";
    case FinishReason::Error: return "error";
  }
  return "error";
}

}  // namespace

Replica::Replica(const ModelSource& model, const ParallelLayout& layout, int index, const Machine& machine,
                 const EngineLimits& limits, const EngineMemoryPlan& memory, const EngineSettings& settings,
                 EngineMetrics& metrics, std::function<void()> changed)
    : m_limits(limits),
      m_stages(layout.pp),
      m_eosTokens(settings.eosTokenIds),
      m_metrics(metrics),
      m_changed(std::move(changed)),
      m_pool(memory.kvBlocks, limits.blockTokens,
             settings.prefixCaching && (!keepsStates(model.config) || limits.cachedStates > 0)),
      // A wrong guess would stay in a state of linear attention.
      m_scheduler({limits.maxNumSeqs, limits.maxNumBatchedTokens, layout.pp, keepsStates(model.config) ? 0 : settings.draftTokens,
                   keepsStates(model.config) ? limits.cachedStates : 0},
                  m_pool) {
  RankGroup::Callbacks callbacks;
  callbacks.loadProgress = m_changed;
  callbacks.loaded = [this] {
    m_ready = true;
    {
      std::lock_guard lock(m_mutex);
      pump();
    }
    m_changed();
  };
  callbacks.failed = [this](const Error& error) { fail(error); };
  // Callbacks may come before the constructor is through; pump() waits for m_ranks.
  auto ranks = std::make_unique<RankGroup>(model, layout, index, machine, limits, memory, settings.ranks, *this, std::move(callbacks));
  std::lock_guard lock(m_mutex);
  m_ranks = std::move(ranks);
  pump();
}

Replica::~Replica() {
  std::unique_ptr<RankGroup> ranks;
  {
    std::lock_guard lock(m_mutex);
    ranks = std::move(m_ranks);  // a rank that ends a step meanwhile finds none to give the next one to
  }
  ranks.reset();  // joins the ranks; no callback after this
  {
    std::lock_guard lock(m_mutex);
    std::vector<Request*> open;
    for (auto& [id, request] : m_requests) open.push_back(request.get());
    for (Request* request : open) finish(*request, {}, FinishReason::Abort);
  }
  deliver();
}

std::optional<Error> Replica::failure() const {
  std::lock_guard lock(m_mutex);
  return m_failure;
}

Replica::Load Replica::load() const {
  std::lock_guard lock(m_mutex);
  return {m_scheduler.running(), m_scheduler.waiting(), m_finished, m_pool.total(), m_pool.free()};
}

int64_t Replica::queuedTokens() const {
  std::lock_guard lock(m_mutex);
  int64_t tokens = 0;
  for (const auto& [id, request] : m_requests) {
    const Sequence& sequence = *request->sequence;
    tokens += std::max<int64_t>(0, static_cast<int64_t>(sequence.tokens.size()) - sequence.scheduled) + 32;  // what it will generate is not known; every request counts for some
  }
  return tokens;
}

int64_t Replica::cachedPrefix(std::span<const int32_t> prompt) const {
  std::lock_guard lock(m_mutex);
  return m_scheduler.cachedPrefix(prompt);
}

IntervalFigures Replica::takeFigures() {
  std::lock_guard lock(m_mutex);
  return std::exchange(m_figures, {});
}

void Replica::submit(RequestId id, GenerationRequest request, UpdateSink sink) {
  {
    std::lock_guard lock(m_mutex);
    if (m_failure) {
      GenerationUpdate update;
      update.finish = FinishReason::Error;
      update.error = m_failure->message();
      m_outbox.push_back({std::move(sink), std::move(update)});
    } else {
      auto sequence = std::make_shared<Sequence>();
      sequence->id = SequenceId{id};
      sequence->priority = request.priority;
      sequence->arrival = m_arrivals++;
      sequence->promptTokens = static_cast<int64_t>(request.prompt.size());
      sequence->mostTokens = std::min(m_limits.maxModelLen, sequence->promptTokens + std::max<int64_t>(0, request.sampling.maxTokens));
      sequence->promptLogprobs = request.sampling.promptLogprobs.has_value();
      Sampler sampler(request.sampling, request.prompt, endTokensOf(request.sampling, m_eosTokens));
      sequence->tokens = std::move(request.prompt);
      sequence->tokens.reserve(sequence->tokens.size() + static_cast<size_t>(std::clamp<int64_t>(request.sampling.maxTokens, 0, 4096)));
      auto entry = std::make_unique<Request>(Request{sequence, std::move(sampler), std::move(sink), {}, Clock::now(), {}, {}, {}, false, false, {}, 0});
      if (request.pooling) {
        entry->pooler.emplace(*request.pooling, sequence->promptTokens);
        sequence->hidden = Pooler::needsAll(*request.pooling) ? Sequence::Hidden::All : Sequence::Hidden::Last;
      }
      if (sequence->promptLogprobs) entry->promptLogprobs.resize(sequence->tokens.size());
      m_requests.emplace(id, std::move(entry));
      m_scheduler.add(std::move(sequence));
      pump();
    }
  }
  deliver();
}

void Replica::cancel(RequestId id) {
  {
    std::lock_guard lock(m_mutex);
    const auto found = m_requests.find(id);
    if (found == m_requests.end()) return;
    finish(*found->second, {}, FinishReason::Abort);
    pump();
  }
  deliver();
}

void Replica::fail(const Error& error) {
  {
    std::lock_guard lock(m_mutex);
    if (m_failure) return;
    m_failure = error;
    std::vector<Request*> open;
    for (auto& [id, request] : m_requests) open.push_back(request.get());
    for (Request* request : open) {
      GenerationUpdate update;
      update.error = error.message();
      finish(*request, std::move(update), FinishReason::Error);
    }
  }
  deliver();
  m_changed();
}

void Replica::pump() {
  if (!m_ranks || !m_ready || m_failure) return;
  while (m_inFlight < m_stages) {
    SharedStepPlan plan = m_scheduler.schedule();
    if (!plan) break;
    const auto now = Clock::now();
    for (const SequenceId id : plan->sequences) {
      Request& request = *m_requests.at(static_cast<RequestId>(id));
      if (request.wasScheduled) continue;
      request.wasScheduled = true;
      request.firstScheduled = now;
    }
    ++m_inFlight;
    m_lastSubmitted = plan->step;
    m_ranks->submit(std::move(plan));
  }
  m_metrics.update([&](MetricsSnapshot& values) {
    values.preemptions += m_scheduler.preemptions() - std::exchange(m_seenPreemptions, m_scheduler.preemptions());
    values.prefixCacheQueries += m_scheduler.prefixQueries() - std::exchange(m_seenQueries, m_scheduler.prefixQueries());
    values.prefixCacheHits += m_scheduler.prefixHits() - std::exchange(m_seenHits, m_scheduler.prefixHits());
    const DraftFigures& drafts = m_scheduler.draftFigures();
    if (drafts.drafts == m_seenDrafts.drafts) return;
    values.drafts += drafts.drafts - m_seenDrafts.drafts;
    values.draftTokens += drafts.draftTokens - m_seenDrafts.draftTokens;
    values.acceptedTokens += drafts.acceptedTokens - m_seenDrafts.acceptedTokens;
    m_seenDrafts.acceptedAt.resize(drafts.acceptedAt.size());
    values.acceptedAt.resize(std::max(values.acceptedAt.size(), drafts.acceptedAt.size()));
    for (size_t place = 0; place < drafts.acceptedAt.size(); ++place)
      values.acceptedAt[place] += drafts.acceptedAt[place] - m_seenDrafts.acceptedAt[place];
    m_seenDrafts = drafts;
  });
}

Replica::Request* Replica::requestOf(const StepPlan& plan, const StepPlan::LogitsRow& row) {
  std::lock_guard lock(m_mutex);
  const auto found = m_requests.find(static_cast<RequestId>(plan.sequences[row.sequence]));
  return found == m_requests.end() ? nullptr : found->second.get();
}

std::vector<RowSampling> Replica::deviceSampling(const StepPlan& plan, int64_t firstRow, int64_t rows, int64_t vocab) {
  // Whether a row behind a guess counts is only known when the rows before it are sampled: the host does these steps.
  for (size_t i = 1; i < plan.logits.size(); ++i)
    if (plan.logits[i].sample && plan.logits[i - 1].sample && plan.logits[i].sequence == plan.logits[i - 1].sequence) return {};
  std::vector<RowSampling> sampling(static_cast<size_t>(rows));
  for (int64_t i = 0; i < rows; ++i) {
    const StepPlan::LogitsRow& wanted = plan.logits[firstRow + i];
    Request* request = requestOf(plan, wanted);
    if (!request) continue;
    RowSampling& row = sampling[static_cast<size_t>(i)];
    row.wantsLogits = wanted.promptPosition >= 0 || request->sampler.needsLogits();
    if (!row.wantsLogits && wanted.sample) row = request->sampler.prepare(vocab);
  }
  return sampling;
}

void Replica::takeTokens(const StepPlan& plan, int64_t firstRow, std::span<const int32_t> tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    const StepPlan::LogitsRow& wanted = plan.logits[firstRow + static_cast<int64_t>(i)];
    Request* request = requestOf(plan, wanted);
    if (!request || !wanted.sample || wanted.promptPosition >= 0 || request->sampler.needsLogits()) continue;
    if (!request->sampler.accept(tokens[i])) {
      request->poisoned = true;
      continue;
    }
    request->next.push_back(TokenOutput{tokens[i], {}, {}});
  }
}

void Replica::takeLogits(const StepPlan& plan, int64_t firstRow, int64_t rows, float* logits, int64_t vocab) {
  for (int64_t i = 0; i < rows; ++i) {
    const StepPlan::LogitsRow& wanted = plan.logits[firstRow + i];
    Request* request = requestOf(plan, wanted);
    if (!request) continue;
    const std::span<float> row(logits + i * vocab, static_cast<size_t>(vocab));
    if (wanted.promptPosition >= 0) {
      const int32_t following = request->sequence->tokens[wanted.promptPosition + 1];
      const Logprobs found = logprobsOf(row, following, *request->sampler.params().promptLogprobs);
      std::vector<TokenLogprob>& entry = request->promptLogprobs[wanted.promptPosition + 1];
      entry.assign(1, wire(found.chosen));
      for (const LogprobEntry& top : found.top) entry.push_back(wire(top));
    }
    if (!wanted.sample || request->poisoned) continue;
    // Behind a guess only where it and all guesses before it were right and the answer goes on.
    if (!request->next.empty()) {
      const auto row = static_cast<size_t>(wanted.row);
      const int32_t before = request->next.back().token;
      GenerationUpdate ignored;
      if (plan.positions[row] + 1 != static_cast<int64_t>(request->sequence->tokens.size() + request->next.size())) continue;
      if (before != plan.tokenIds[row]) continue;
      if (endOf(*request, before, request->generated + static_cast<int64_t>(request->next.size()), true, ignored)) continue;
    }
    const std::optional<Sampler::Choice> choice = request->sampler.sample(row);
    if (!choice) {
      request->poisoned = true;
      continue;
    }
    TokenOutput output;
    output.token = choice->token;
    if (choice->logprobs) {
      output.logprob = wire(choice->logprobs->chosen);
      for (const LogprobEntry& top : choice->logprobs->top) output.top.push_back(wire(top));
    }
    request->next.push_back(std::move(output));
  }
}

void Replica::takeHidden(const StepPlan& plan, int64_t firstRow, int64_t rows, const float* hidden, int64_t hiddenSize) {
  for (int64_t i = 0; i < rows; ++i) {
    const StepPlan::LogitsRow& wanted = plan.logits[firstRow + i];
    Request* request = requestOf(plan, wanted);
    if (request && request->pooler) request->pooler->add(wanted.promptPosition, {hidden + i * hiddenSize, static_cast<size_t>(hiddenSize)});
  }
}

std::optional<FinishReason> Replica::endOf(const Request& request, int32_t token, int64_t generated, bool newest,
                                          GenerationUpdate& update) const {
  const SamplingParams& params = request.sampler.params();
  auto contains = [&](const std::vector<int32_t>& tokens) { return std::find(tokens.begin(), tokens.end(), token) != tokens.end(); };
  if (generated >= params.minTokens && ((!params.ignoreEos && contains(m_eosTokens)) || contains(params.stopTokenIds))) {
    update.stopToken = token;
    return FinishReason::Stop;
  }
  if (newest && request.sampler.isOver()) return FinishReason::Stop;
  const bool full = request.sequence->promptTokens + generated >= m_limits.maxModelLen;
  if (generated >= params.maxTokens || full) return FinishReason::Length;
  return std::nullopt;
}

void Replica::stepDone(const SharedStepPlan& plan) {
  {
    std::lock_guard lock(m_mutex);
    --m_inFlight;
    const auto now = Clock::now();
    uint64_t generated = 0;
    std::vector<double> gaps;
    // Tokens come before finishStep(), which may publish the blocks that they fill.
    struct Ended {
      Request* request;
      GenerationUpdate update;
      FinishReason reason;
    };
    std::vector<Ended> ended;
    for (const SequenceId id : plan->sequences) {
      const auto found = m_requests.find(static_cast<RequestId>(id));
      if (found == m_requests.end()) continue;
      Request& request = *found->second;
      GenerationUpdate update;
      if (request.poisoned) {
        update.error = request.sampler.isStuck()
                           ? "no token of the model's vocabulary fits the form that was asked for"
                           : "the model's logits are not finite numbers; are the weights damaged, or is the dtype too narrow for them?";
        ended.push_back({&request, std::move(update), FinishReason::Error});
        continue;
      }
      if (request.pooler) {
        if (!request.pooler->isWhole()) continue;
        update.embedding = request.pooler->take();
        update.cachedPromptTokens = request.sequence->cachedPromptTokens;
        const bool isFinite = std::all_of(update.embedding.begin(), update.embedding.end(), [](float value) { return std::isfinite(value); });
        if (!isFinite) update.error = "the model's hidden states are not finite numbers; are the weights damaged, or is the dtype too narrow for them?";
        m_figures.promptTokens += static_cast<uint64_t>(request.sequence->promptTokens);
        m_metrics.update([&](MetricsSnapshot& values) { values.promptTokens += static_cast<uint64_t>(request.sequence->promptTokens); });
        ended.push_back({&request, std::move(update), isFinite ? FinishReason::Stop : FinishReason::Error});
        continue;
      }
      if (request.next.empty()) continue;
      std::vector<TokenOutput> outputs = std::exchange(request.next, {});
      const bool first = request.generated == 0;
      const bool nothingAsked = request.sampler.params().maxTokens <= 0;
      if (first) {
        update.promptLogprobs = std::move(request.promptLogprobs);
        update.cachedPromptTokens = request.sequence->cachedPromptTokens;
        request.firstToken = now;
        IntervalFigures::note(m_figures.ttftMs, 1e3 * seconds(now - request.arrived));
        m_figures.promptTokens += static_cast<uint64_t>(request.sequence->promptTokens);
        m_metrics.update([&](MetricsSnapshot& values) {
          values.promptTokens += static_cast<uint64_t>(request.sequence->promptTokens);
          values.timeToFirstToken.observe(seconds(now - request.arrived));
          values.queueTime.observe(seconds(request.firstScheduled - request.arrived));
          values.prefillTime.observe(seconds(now - request.firstScheduled));
        });
      } else {  // tokens of one step share its time
        gaps.insert(gaps.end(), outputs.size(), seconds(now - request.lastToken) / static_cast<double>(outputs.size()));
      }
      request.lastToken = now;
      if (nothingAsked) {
        ended.push_back({&request, std::move(update), FinishReason::Length});
        continue;
      }
      std::optional<FinishReason> reason;
      for (TokenOutput& output : outputs) {
        expects(!reason, "a token was sampled behind the end of an answer");
        ++request.generated;
        ++generated;
        m_scheduler.appendToken(*request.sequence, output.token);
        reason = endOf(request, output.token, request.generated, &output == &outputs.back(), update);
        update.tokens.push_back(std::move(output));
      }
      if (reason) {
        ended.push_back({&request, std::move(update), *reason});
      } else {
        m_outbox.push_back({request.sink, std::move(update)});
      }
    }
    m_scheduler.finishStep(*plan);
    for (Ended& end : ended) finish(*end.request, std::move(end.update), end.reason);
    m_figures.generatedTokens += generated;
    for (const double gap : gaps) IntervalFigures::note(m_figures.itlMs, 1e3 * gap);
    m_metrics.update([&](MetricsSnapshot& values) {
      values.generationTokens += generated;
      values.iterationTokens.observe(static_cast<double>(plan->tokens()));
      for (const double gap : gaps) values.interTokenLatency.observe(gap);
    });
    std::erase_if(m_retired, [&](const Retired& retired) { return retired.lastStep <= plan->step; });
    pump();
  }
  deliver();
}

void Replica::finish(Request& request, GenerationUpdate update, FinishReason reason) {
  const auto now = Clock::now();
  const auto id = static_cast<RequestId>(request.sequence->id);
  m_metrics.update([&](MetricsSnapshot& values) {
    ++values.requestSuccess[reasonLabel(reason)];
    values.endToEndLatency.observe(seconds(now - request.arrived));
    if (request.wasScheduled) values.inferenceTime.observe(seconds(now - request.firstScheduled));
    if (request.generated > 0) values.decodeTime.observe(seconds(now - request.firstToken));
    values.promptLength.observe(static_cast<double>(request.sequence->promptTokens));
    values.generationLength.observe(static_cast<double>(request.generated));
    values.maxTokensParameter.observe(static_cast<double>(request.sampler.params().maxTokens));
  });
  ++m_finished;
  update.finish = reason;
  m_outbox.push_back({std::move(request.sink), std::move(update)});
  m_scheduler.remove(request.sequence->id);
  const auto found = m_requests.find(id);
  if (m_inFlight > 0) m_retired.push_back({m_lastSubmitted, std::move(found->second)});
  m_requests.erase(found);
}

void Replica::deliver() {
  std::unique_lock lock(m_mutex);
  if (m_delivering) return;  // that thread sends ours too
  m_delivering = true;
  while (!m_outbox.empty()) {
    std::deque<Delivery> batch = std::exchange(m_outbox, {});
    lock.unlock();
    for (Delivery& delivery : batch) delivery.sink(std::move(delivery.update));
    batch.clear();
    lock.lock();
  }
  m_delivering = false;
}

}  // namespace headroom::engine
