// SPDX-License-Identifier: Apache-2.0
#include "engine/server/metrics.h"

#include <fmt/format.h>

#include <map>
#include <utility>
#include <vector>

namespace headroom::engine {
namespace {

std::string labelOf(std::string_view modelName) {
  std::string label = "model_name=\"";
  for (char c : modelName) {
    if (c == '\\')
      label += "\\\\";
    else if (c == '"')
      label += "\\\"";
    else if (c == '\n')
      label += "\\n";
    else
      label += c;
  }
  return label + '"';
}

// A family of all models at a time: the format wants the lines of one together.
class Writer {
 public:
  explicit Writer(std::span<const ModelMetrics> models) : m_models(models) {
    for (const ModelMetrics& model : models) m_labels.push_back(labelOf(model.name));
  }

  template <class Value>
  void gauge(std::string_view name, std::string_view help, Value value) {
    single(name, help, "gauge", value);
  }
  template <class Value>
  void counter(std::string_view name, std::string_view help, Value value) {
    single(name, help, "counter", value);
  }
  template <class Values>
  void counters(std::string_view name, std::string_view help, std::string_view label, Values values) {
    head(name, help, "counter");
    for (size_t i = 0; i < m_models.size(); ++i)
      for (const auto& [key, value] : std::map<std::string, uint64_t>(values(m_models[i].values)))
        fmt::format_to(out(), "headroom:{}{{{},{}=\"{}\"}} {}\n", name, m_labels[i], label, key, value);
  }
  void histogram(std::string_view name, std::string_view help, Histogram MetricsSnapshot::*member) {
    head(name, help, "histogram");
    for (size_t i = 0; i < m_models.size(); ++i) write(name, m_models[i].values.*member, m_labels[i]);
  }
  std::string take() { return std::move(m_text); }

 private:
  template <class Value>
  void single(std::string_view name, std::string_view help, std::string_view type, Value value) {
    head(name, help, type);
    for (size_t i = 0; i < m_models.size(); ++i)
      fmt::format_to(out(), "headroom:{}{{{}}} {}\n", name, m_labels[i], value(m_models[i].values));
  }
  void write(std::string_view name, const Histogram& histogram, const std::string& labels) {
    uint64_t below = 0;
    for (size_t i = 0; i < histogram.bounds().size(); ++i) {
      below += histogram.counts()[i];
      // Bounds are written as Prometheus' own clients write them: 1 is "1.0".
      const double bound = histogram.bounds()[i];
      const std::string text =
          bound == static_cast<double>(static_cast<int64_t>(bound)) ? fmt::format("{:.1f}", bound) : fmt::format("{}", bound);
      fmt::format_to(out(), "headroom:{}_bucket{{{},le=\"{}\"}} {}\n", name, labels, text, below);
    }
    fmt::format_to(out(), "headroom:{}_bucket{{{},le=\"+Inf\"}} {}\n", name, labels, histogram.count());
    fmt::format_to(out(), "headroom:{}_sum{{{}}} {}\n", name, labels, histogram.sum());
    fmt::format_to(out(), "headroom:{}_count{{{}}} {}\n", name, labels, histogram.count());
  }
  std::back_insert_iterator<std::string> out() { return std::back_inserter(m_text); }
  void head(std::string_view name, std::string_view help, std::string_view type) {
    fmt::format_to(out(), "# HELP headroom:{0} {1}\n# TYPE headroom:{0} {2}\n", name, help, type);
  }
  const std::span<const ModelMetrics> m_models;
  std::vector<std::string> m_labels;
  std::string m_text;
};

}  // namespace

std::string prometheusText(const MetricsSnapshot& metrics, std::string_view modelName) {
  const ModelMetrics one{std::string(modelName), metrics};
  return prometheusText({&one, 1});
}

std::string prometheusText(std::span<const ModelMetrics> models) {
  using Values = const MetricsSnapshot&;
  Writer writer(models);
  writer.gauge("num_requests_running", "Requests whose tokens are being computed.",
               [](Values v) { return static_cast<double>(v.running); });
  writer.gauge("num_requests_waiting", "Requests that wait for their turn.",
               [](Values v) { return static_cast<double>(v.waiting); });
  writer.gauge("kv_cache_usage_perc", "Share of the KV cache in use; 1 is all of it.", [](Values v) { return v.kvCacheUsage; });
  writer.counter("num_preemptions_total", "Requests that gave up their KV cache for others and began anew.",
                 [](Values v) { return v.preemptions; });
  writer.counter("prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache.",
                 [](Values v) { return v.prefixCacheQueries; });
  writer.counter("prefix_cache_hits_total", "Prompt tokens found in the prefix cache.",
                 [](Values v) { return v.prefixCacheHits; });
  writer.counter("spec_decode_num_drafts_total", "Times that next tokens were guessed.", [](Values v) { return v.drafts; });
  writer.counter("spec_decode_num_draft_tokens_total", "Guessed tokens.", [](Values v) { return v.draftTokens; });
  writer.counter("spec_decode_num_accepted_tokens_total", "Guessed tokens that were right.",
                 [](Values v) { return v.acceptedTokens; });
  writer.counters("spec_decode_num_accepted_tokens_per_pos_total", "Guessed tokens that were right, by their place in the guess.",
                  "position", [](Values v) {
                    std::map<std::string, uint64_t> acceptedAt;
                    for (size_t place = 0; place < v.acceptedAt.size(); ++place)
                      acceptedAt[std::to_string(place)] = v.acceptedAt[place];
                    return acceptedAt;
                  });
  writer.counter("prompt_tokens_total", "Prompt tokens of requests that got their first token.",
                 [](Values v) { return v.promptTokens; });
  writer.counter("generation_tokens_total", "Generated tokens.", [](Values v) { return v.generationTokens; });
  writer.counters("request_success_total", "Finished requests by their reason.", "finished_reason",
                  [](Values v) { return v.requestSuccess; });
  writer.histogram("iteration_tokens_total", "Tokens of one engine step.", &MetricsSnapshot::iterationTokens);
  writer.histogram("time_to_first_token_seconds", "From a request's arrival to its first token.",
                   &MetricsSnapshot::timeToFirstToken);
  writer.histogram("inter_token_latency_seconds", "Between two tokens of a request.", &MetricsSnapshot::interTokenLatency);
  writer.histogram("e2e_request_latency_seconds", "From a request's arrival to its end.", &MetricsSnapshot::endToEndLatency);
  writer.histogram("request_queue_time_seconds", "A request's time in the queue.", &MetricsSnapshot::queueTime);
  writer.histogram("request_inference_time_seconds", "From a request's first step to its end.", &MetricsSnapshot::inferenceTime);
  writer.histogram("request_prefill_time_seconds", "From a request's first step to its first token.",
                   &MetricsSnapshot::prefillTime);
  writer.histogram("request_decode_time_seconds", "From a request's first token to its last.", &MetricsSnapshot::decodeTime);
  writer.histogram("request_prompt_tokens", "Prompt tokens of a request.", &MetricsSnapshot::promptLength);
  writer.histogram("request_generation_tokens", "Generated tokens of a request.", &MetricsSnapshot::generationLength);
  writer.histogram("request_params_max_tokens", "max_tokens of a request.", &MetricsSnapshot::maxTokensParameter);
  writer.histogram("request_params_n", "n of a request.", &MetricsSnapshot::nParameter);
  return writer.take();
}

}  // namespace headroom::engine
