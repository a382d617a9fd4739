// SPDX-License-Identifier: Apache-2.0
#include "engine/server/metrics.h"

#include <fmt/format.h>

namespace headroom::engine {
namespace {

class Writer {
 public:
  explicit Writer(std::string_view modelName) : m_labels("model_name=\"") {
    for (char c : modelName) {
      if (c == '\\')
        m_labels += "\\\\";
      else if (c == '"')
        m_labels += "\\\"";
      else if (c == '\n')
        m_labels += "\\n";
      else
        m_labels += c;
    }
    m_labels += '"';
  }

  void gauge(std::string_view name, std::string_view help, double value) {
    head(name, help, "gauge");
    fmt::format_to(out(), "headroom:{}{{{}}} {}\n", name, m_labels, value);
  }
  void counter(std::string_view name, std::string_view help, uint64_t value) {
    head(name, help, "counter");
    fmt::format_to(out(), "headroom:{}{{{}}} {}\n", name, m_labels, value);
  }
  void counters(std::string_view name, std::string_view help, std::string_view label,
                const std::map<std::string, uint64_t>& values) {
    head(name, help, "counter");
    for (const auto& [key, value] : values)
      fmt::format_to(out(), "headroom:{}{{{},{}=\"{}\"}} {}\n", name, m_labels, label, key, value);
  }
  void histogram(std::string_view name, std::string_view help, const Histogram& histogram) {
    head(name, help, "histogram");
    uint64_t below = 0;
    for (size_t i = 0; i < histogram.bounds().size(); ++i) {
      below += histogram.counts()[i];
      // Bounds are written as Prometheus' own clients write them: 1 is "1.0".
      const double bound = histogram.bounds()[i];
      const std::string text =
          bound == static_cast<double>(static_cast<int64_t>(bound)) ? fmt::format("{:.1f}", bound) : fmt::format("{}", bound);
      fmt::format_to(out(), "headroom:{}_bucket{{{},le=\"{}\"}} {}\n", name, m_labels, text, below);
    }
    fmt::format_to(out(), "headroom:{}_bucket{{{},le=\"+Inf\"}} {}\n", name, m_labels, histogram.count());
    fmt::format_to(out(), "headroom:{}_sum{{{}}} {}\n", name, m_labels, histogram.sum());
    fmt::format_to(out(), "headroom:{}_count{{{}}} {}\n", name, m_labels, histogram.count());
  }
  std::string take() { return std::move(m_text); }

 private:
  std::back_insert_iterator<std::string> out() { return std::back_inserter(m_text); }
  void head(std::string_view name, std::string_view help, std::string_view type) {
    fmt::format_to(out(), "# HELP headroom:{0} {1}\n# TYPE headroom:{0} {2}\n", name, help, type);
  }
  std::string m_text, m_labels;
};

}  // namespace

std::string prometheusText(const MetricsSnapshot& metrics, std::string_view modelName) {
  Writer writer(modelName);
  writer.gauge("num_requests_running", "Requests whose tokens are being computed.", static_cast<double>(metrics.running));
  writer.gauge("num_requests_waiting", "Requests that wait for their turn.", static_cast<double>(metrics.waiting));
  writer.gauge("kv_cache_usage_perc", "Share of the KV cache in use; 1 is all of it.", metrics.kvCacheUsage);
  writer.counter("num_preemptions_total", "Requests that gave up their KV cache for others and began anew.", metrics.preemptions);
  writer.counter("prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache.", metrics.prefixCacheQueries);
  writer.counter("prefix_cache_hits_total", "Prompt tokens found in the prefix cache.", metrics.prefixCacheHits);
  writer.counter("spec_decode_num_drafts_total", "Times that next tokens were guessed.", metrics.drafts);
  writer.counter("spec_decode_num_draft_tokens_total", "Guessed tokens.", metrics.draftTokens);
  writer.counter("spec_decode_num_accepted_tokens_total", "Guessed tokens that were right.", metrics.acceptedTokens);
  std::map<std::string, uint64_t> acceptedAt;
  for (size_t place = 0; place < metrics.acceptedAt.size(); ++place) acceptedAt[std::to_string(place)] = metrics.acceptedAt[place];
  writer.counters("spec_decode_num_accepted_tokens_per_pos_total", "Guessed tokens that were right, by their place in the guess.",
                  "position", acceptedAt);
  writer.counter("prompt_tokens_total", "Prompt tokens of requests that got their first token.", metrics.promptTokens);
  writer.counter("generation_tokens_total", "Generated tokens.", metrics.generationTokens);
  writer.counters("request_success_total", "Finished requests by their reason.", "finished_reason", metrics.requestSuccess);
  writer.histogram("iteration_tokens_total", "Tokens of one engine step.", metrics.iterationTokens);
  writer.histogram("time_to_first_token_seconds", "From a request's arrival to its first token.", metrics.timeToFirstToken);
  writer.histogram("inter_token_latency_seconds", "Between two tokens of a request.", metrics.interTokenLatency);
  writer.histogram("e2e_request_latency_seconds", "From a request's arrival to its end.", metrics.endToEndLatency);
  writer.histogram("request_queue_time_seconds", "A request's time in the queue.", metrics.queueTime);
  writer.histogram("request_inference_time_seconds", "From a request's first step to its end.", metrics.inferenceTime);
  writer.histogram("request_prefill_time_seconds", "From a request's first step to its first token.", metrics.prefillTime);
  writer.histogram("request_decode_time_seconds", "From a request's first token to its last.", metrics.decodeTime);
  writer.histogram("request_prompt_tokens", "Prompt tokens of a request.", metrics.promptLength);
  writer.histogram("request_generation_tokens", "Generated tokens of a request.", metrics.generationLength);
  writer.histogram("request_params_max_tokens", "max_tokens of a request.", metrics.maxTokensParameter);
  writer.histogram("request_params_n", "n of a request.", metrics.nParameter);
  return writer.take();
}

}  // namespace headroom::engine
