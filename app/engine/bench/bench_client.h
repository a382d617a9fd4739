// SPDX-License-Identifier: Apache-2.0
// The client of a load test: sends requests at their times over kept-alive connections and notes when each piece of an answer
// comes. One thread drives all of them, so that nothing of the client waits for a lock.
#pragma once

#include "app/engine/bench/bench_load.h"
#include "app/engine/bench/bench_statistics.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace headroom::app {

struct Endpoint {
  bool tls = false;
  std::string host, port;
  std::string prefix;  // of paths, without a slash at its end; "/v1" is left out
};
// http://HOST[:PORT][/PREFIX][/v1]
Result<Endpoint> readEndpoint(const std::string& url);

struct ClientOptions {
  Endpoint endpoint;
  std::vector<std::pair<std::string, std::string>> headers;
  std::chrono::milliseconds connectTimeout{30'000};
  std::chrono::milliseconds idleTimeout{600'000};  // without a byte of the answer
};

struct HttpAnswer {
  int status = 0;
  std::string body;
};
// One request without a stream. Ends early, with an Error, once `stop` is set.
Result<HttpAnswer> fetch(const ClientOptions& options, const std::string& method, const std::string& path,
                         const std::string& body, const std::atomic<bool>& stop);

struct LoadRun {
  std::string path;                   // of the endpoint
  std::vector<std::string> bodies;    // JSON, one a request
  std::vector<double> arrivals;       // seconds, ascending
  std::vector<int64_t> promptTokens;  // as planned, where the server does not say
  int64_t maxConcurrency = 0;         // 0: without limit
};

struct LoadProgress {
  size_t done = 0, failed = 0, running = 0, planned = 0;
  int64_t pieces = 0;  // of text, of all answers
  double seconds = 0;
};

struct LoadResult {
  std::vector<RequestRecord> records;  // in order of the bodies
  double duration = 0;
};

// Sends all and waits for all answers. Once `stop` is set nothing more is sent, and what is open is ended: interrupted.
LoadResult runLoad(const ClientOptions& options, const LoadRun& run, const std::atomic<bool>& stop,
                   const std::function<void(const LoadProgress&)>& progress);

}  // namespace headroom::app
