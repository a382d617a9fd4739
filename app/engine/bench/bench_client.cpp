// SPDX-License-Identifier: Apache-2.0
#include "app/engine/bench/bench_client.h"

#include "app/engine/bench/stream_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#ifdef HEADROOM_BENCH_TLS
#include <boost/asio/ssl.hpp>
#endif

namespace headroom::app {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using tcp = asio::ip::tcp;
using Clock = std::chrono::steady_clock;

namespace {

constexpr std::chrono::milliseconds kTick{50};
constexpr size_t kReadBytes = 16 << 10;

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

auto intoError(error_code& error) { return asio::redirect_error(asio::use_awaitable, error); }

class Connection {
 public:
#ifdef HEADROOM_BENCH_TLS
  Connection(asio::io_context& io, asio::ssl::context* tls) : m_plain(io) {
    if (tls) m_secure = std::make_unique<asio::ssl::stream<beast::tcp_stream&>>(m_plain, *tls);
  }
#else
  explicit Connection(asio::io_context& io) : m_plain(io) {}
#endif

  asio::awaitable<error_code> connect(const tcp::resolver::results_type& addresses, const ClientOptions& options) {
    error_code error;
    m_plain.expires_after(options.connectTimeout);
    co_await m_plain.async_connect(addresses, intoError(error));
    if (error) co_return error;
    error_code ignored;
    m_plain.socket().set_option(tcp::no_delay(true), ignored);
#ifdef HEADROOM_BENCH_TLS
    if (m_secure) {
      SSL_set_tlsext_host_name(m_secure->native_handle(), options.endpoint.host.c_str());
      m_secure->set_verify_callback(asio::ssl::host_name_verification(options.endpoint.host));
      co_await m_secure->async_handshake(asio::ssl::stream_base::client, intoError(error));
    }
#endif
    co_return error;
  }

  asio::awaitable<error_code> write(const std::string& bytes, std::chrono::milliseconds timeout) {
    error_code error;
    m_plain.expires_after(timeout);
#ifdef HEADROOM_BENCH_TLS
    if (m_secure) {
      co_await asio::async_write(*m_secure, asio::buffer(bytes), intoError(error));
      co_return error;
    }
#endif
    co_await asio::async_write(m_plain, asio::buffer(bytes), intoError(error));
    co_return error;
  }

  // Appends to `buffer`.
  asio::awaitable<error_code> read(beast::flat_buffer& buffer, std::chrono::milliseconds timeout) {
    error_code error;
    m_plain.expires_after(timeout);
    size_t count = 0;
#ifdef HEADROOM_BENCH_TLS
    if (m_secure) {
      count = co_await m_secure->async_read_some(buffer.prepare(kReadBytes), intoError(error));
      buffer.commit(count);
      co_return error;
    }
#endif
    count = co_await m_plain.async_read_some(buffer.prepare(kReadBytes), intoError(error));
    buffer.commit(count);
    co_return error;
  }

  void close() { m_plain.close(); }
  bool wasUsed = false;

 private:
  beast::tcp_stream m_plain;
#ifdef HEADROOM_BENCH_TLS
  std::unique_ptr<asio::ssl::stream<beast::tcp_stream&>> m_secure;
#endif
};

std::string requestText(const ClientOptions& options, const std::string& method, const std::string& path,
                        const std::string& body) {
  const Endpoint& endpoint = options.endpoint;
  const bool isIpv6 = endpoint.host.find(':') != std::string::npos;
  std::string text = fmt::format("{} {}{} HTTP/1.1\r\nHost: {}{}{}:{}\r\nUser-Agent: headroom-engine\r\nAccept: */*\r\n", method,
                                 endpoint.prefix, path, isIpv6 ? "[" : "", endpoint.host, isIpv6 ? "]" : "", endpoint.port);
  for (const auto& [name, value] : options.headers) text += fmt::format("{}: {}\r\n", name, value);
  if (!body.empty()) text += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", body.size());
  return text + "\r\n" + body;
}

// What came of one exchange.
struct Outcome {
  error_code error;       // of the connection
  bool answered = false;  // the header came
  int status = 0;
  bool isStream = false;
};

class Client {
 public:
  Client(const ClientOptions& options, const std::atomic<bool>& stop)
      : m_options(options), m_stop(stop), m_ticker(m_io), m_gate(m_io) {}

  // Runs `work` until it ends or `stop` is set.
  void run(std::function<asio::awaitable<void>()> work, const std::function<void()>& tick) {
    asio::co_spawn(
        m_io,
        [this, work = std::move(work)]() -> asio::awaitable<void> {
          co_await work();
          m_working = false;
          m_ticker.cancel();
        },
        asio::detached);
    asio::co_spawn(m_io, watch(tick), asio::detached);
    m_io.run();
  }

  // Finds the addresses once. The message of what went wrong, or nothing.
  asio::awaitable<std::string> resolve() {
    error_code error;
    tcp::resolver resolver(m_io);
    m_addresses = co_await resolver.async_resolve(m_options.endpoint.host, m_options.endpoint.port, intoError(error));
    if (error) co_return fmt::format("{}: {}", m_options.endpoint.host, error.message());
#ifdef HEADROOM_BENCH_TLS
    if (m_options.endpoint.tls) {
      m_tls = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_client);
      m_tls->set_default_verify_paths();
      m_tls->set_verify_mode(asio::ssl::verify_peer);
    }
#endif
    co_return std::string();
  }

  // `header(status, isStream)` once the header came, `body(bytes)` for each part behind it.
  template <class Header, class Body>
  asio::awaitable<Outcome> exchange(std::string request, Header begun, Header header, Body body) {
    for (bool again = true; again;) {
      again = false;
      std::unique_ptr<Connection> connection;
      if (!m_idle.empty()) {
        connection = std::move(m_idle.back());
        m_idle.pop_back();
      } else {
#ifdef HEADROOM_BENCH_TLS
        connection = std::make_unique<Connection>(m_io, m_tls.get());
#else
        connection = std::make_unique<Connection>(m_io);
#endif
      }
      m_live.insert(connection.get());
      bool keep = false;
      begun(Outcome{});
      const Outcome outcome = co_await exchangeOn(*connection, request, header, body, keep);
      m_live.erase(connection.get());
      // A kept connection that the server closed meanwhile is no failure of the server.
      if (outcome.error && !outcome.answered && connection->wasUsed && !m_stop) {
        again = true;
        continue;
      }
      connection->wasUsed = true;
      if (keep) m_idle.push_back(std::move(connection));
      co_return outcome;
    }
    co_return Outcome{};
  }

  asio::io_context& io() { return m_io; }
  bool isStopped() const { return m_stop; }
  // Waiting for a seat.
  asio::awaitable<void> waitAtGate() {
    error_code ignored;
    m_gate.expires_at(Clock::time_point::max());
    co_await m_gate.async_wait(intoError(ignored));
  }
  void openGate() { m_gate.cancel(); }
  asio::awaitable<void> sleepUntil(Clock::time_point time) {
    error_code ignored;
    m_gate.expires_at(time);
    co_await m_gate.async_wait(intoError(ignored));
  }

 private:
  asio::awaitable<void> watch(std::function<void()> tick) {
    while (m_working) {
      error_code ignored;
      m_ticker.expires_after(kTick);
      co_await m_ticker.async_wait(intoError(ignored));
      if (m_working) tick();
      if (!m_stop) continue;
      m_gate.cancel();
      const std::set<Connection*> live = m_live;
      for (Connection* connection : live) connection->close();
    }
    m_idle.clear();
  }

  template <class Header, class Body>
  asio::awaitable<Outcome> exchangeOn(Connection& connection, const std::string& request, Header& header, Body& body,
                                      bool& keep) {
    Outcome outcome;
    if (!connection.wasUsed) {
      outcome.error = co_await connection.connect(m_addresses, m_options);
      if (outcome.error) co_return outcome;
    }
    outcome.error = co_await connection.write(request, m_options.idleTimeout);
    if (outcome.error) co_return outcome;
    http::response_parser<http::string_body> parser;
    // Not boost::none: Beast 1.74 compares the length with it, and none is less than any.
    parser.body_limit(std::numeric_limits<std::uint64_t>::max());
    parser.eager(true);
    beast::flat_buffer buffer;
    while (!parser.is_done()) {
      outcome.error = co_await connection.read(buffer, m_options.idleTimeout);
      if (outcome.error == asio::error::eof && parser.is_header_done()) {
        error_code end;
        parser.put_eof(end);
        outcome.error = end;
        break;
      }
      if (outcome.error) co_return outcome;
      while (buffer.size() > 0 && !parser.is_done()) {
        error_code error;
        const size_t used = parser.put(buffer.data(), error);
        buffer.consume(used);
        if (error == http::error::need_more) break;
        if (error) {
          outcome.error = error;
          co_return outcome;
        }
        if (used == 0) break;
      }
      if (!parser.is_header_done()) continue;
      if (!outcome.answered) {
        outcome.answered = true;
        outcome.status = static_cast<int>(parser.get().result_int());
        const auto type = parser.get()[http::field::content_type];
        outcome.isStream = std::string_view(type.data(), type.size()).starts_with("text/event-stream");
        header(outcome);
      }
      std::string& text = parser.get().body();
      if (!text.empty()) body(std::string_view(text));
      text.clear();
    }
    keep = !outcome.error && parser.is_done() && parser.get().keep_alive() && buffer.size() == 0;
    co_return outcome;
  }

  const ClientOptions& m_options;
  const std::atomic<bool>& m_stop;
  asio::io_context m_io{1};
#ifdef HEADROOM_BENCH_TLS
  std::unique_ptr<asio::ssl::context> m_tls;
#endif
  asio::steady_timer m_ticker, m_gate;
  tcp::resolver::results_type m_addresses;
  std::vector<std::unique_ptr<Connection>> m_idle;
  std::set<Connection*> m_live;
  bool m_working = true;
};

}  // namespace

Result<Endpoint> readEndpoint(const std::string& url) {
  const char* expected = "http://HOST:PORT, with /v1 or without";
  Endpoint endpoint;
  std::string_view rest = url;
  if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
    endpoint.port = "80";
  } else if (rest.starts_with("https://")) {
    rest.remove_prefix(8);
    endpoint.port = "443";
    endpoint.tls = true;
#ifndef HEADROOM_BENCH_TLS
    return failure(url, "https, which this build has no library for", "http", "build it with OpenSSL");
#endif
  } else {
    return failure(url, "no address", expected);
  }
  const size_t slash = rest.find_first_of("/?#");
  std::string_view authority = rest.substr(0, slash), path = slash == std::string_view::npos ? "" : rest.substr(slash);
  if (path.find_first_of("?# \r\n") != std::string_view::npos || authority.find_first_of("@ \r\n") != std::string_view::npos)
    return failure(url, "an address with more than host and path", expected);
  const size_t bracket = authority.starts_with('[') ? authority.find(']') : std::string_view::npos;
  const size_t colon = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
  endpoint.host = std::string(authority.substr(0, colon));
  if (bracket != std::string_view::npos) endpoint.host = std::string(authority.substr(1, bracket - 1));
  if (colon != std::string_view::npos) {
    endpoint.port = std::string(authority.substr(colon + 1));
    const bool isNumber = !endpoint.port.empty() && endpoint.port.size() <= 5 &&
                          std::all_of(endpoint.port.begin(), endpoint.port.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!isNumber || std::stoi(endpoint.port) > 65535 || std::stoi(endpoint.port) == 0)
      return failure(url, "port " + endpoint.port, "a port from 1 to 65535");
  }
  if (endpoint.host.empty()) return failure(url, "no host", expected);
  while (path.ends_with('/')) path.remove_suffix(1);
  if (path.ends_with("/v1")) path.remove_suffix(3);
  endpoint.prefix = std::string(path);
  return endpoint;
}

Result<HttpAnswer> fetch(const ClientOptions& options, const std::string& method, const std::string& path,
                         const std::string& body, const std::atomic<bool>& stop) {
  Client client(options, stop);
  HttpAnswer answer;
  std::string problem;
  client.run(
      [&]() -> asio::awaitable<void> {
        problem = co_await client.resolve();
        if (!problem.empty()) co_return;
        auto nothing = [](const Outcome&) {};
        const Outcome outcome = co_await client.exchange(
            requestText(options, method, path, body), std::function<void(const Outcome&)>(nothing),
            std::function<void(const Outcome&)>(nothing), [&](std::string_view bytes) { answer.body += bytes; });
        answer.status = outcome.status;
        if (outcome.error) problem = outcome.error.message();
      },
      [] {});
  if (!problem.empty()) {
    const Endpoint& endpoint = options.endpoint;
    return failure(
        fmt::format("{}://{}:{}{}{}", endpoint.tls ? "https" : "http", endpoint.host, endpoint.port, endpoint.prefix, path),
        problem, "an answer");
  }
  return answer;
}

LoadResult runLoad(const ClientOptions& options, const LoadRun& run, const std::atomic<bool>& stop,
                   const std::function<void(const LoadProgress&)>& progress) {
  Client client(options, stop);
  LoadResult result;
  const size_t count = run.bodies.size();
  result.records.resize(count);
  for (size_t i = 0; i < count && i < run.promptTokens.size(); ++i) result.records[i].promptTokens = run.promptTokens[i];
  LoadProgress figures;
  figures.planned = count;
  Clock::time_point begin, lastEnd;
  int64_t open = 0;

  auto one = [&](size_t index) -> asio::awaitable<void> {
    RequestRecord& record = result.records[index];
    StreamReader reader;
    Clock::time_point sent;
    std::string refusal;
    bool isStream = false;
    const std::function<void(const Outcome&)> begun = [&](const Outcome&) { sent = Clock::now(); };
    const std::function<void(const Outcome&)> header = [&](const Outcome& outcome) {
      isStream = outcome.status == 200 && outcome.isStream;
    };
    auto body = [&](std::string_view bytes) {
      if (!isStream) {
        if (refusal.size() < (64 << 10)) refusal += bytes;
        return;
      }
      const int64_t before = reader.pieces();
      reader.push(bytes, seconds(Clock::now() - sent));
      figures.pieces += reader.pieces() - before;
    };
    const Outcome outcome =
        co_await client.exchange(requestText(options, "POST", run.path, run.bodies[index]), begun, header, body);
    const Clock::time_point end = Clock::now();
    record.sentAt = seconds(sent - begin);
    record.status = outcome.status;
    if (isStream) reader.finish(record);
    if (record.latency <= 0) record.latency = seconds(end - sent);
    if (outcome.error && !(isStream && reader.isOver()))
      record.error = outcome.error == beast::error::timeout ? "no answer in time" : outcome.error.message();
    else if (outcome.status != 200)
      record.error = fmt::format("HTTP {}: {}", outcome.status, errorMessage(refusal));
    else if (!isStream)
      record.error = "the answer is no event stream";
    if (!record.error.empty() && stop) {
      record.interrupted = true;
      record.error.clear();
    }
    lastEnd = std::max(lastEnd, end);
    ++figures.done;
    figures.failed += !record.completed() && !record.interrupted;
    --open;
    client.openGate();
  };

  client.run(
      [&]() -> asio::awaitable<void> {
        const std::string problem = co_await client.resolve();
        begin = lastEnd = Clock::now();
        if (!problem.empty()) {
          for (RequestRecord& record : result.records) record.error = problem;
          co_return;
        }
        size_t sent = 0;
        for (; sent < count && !stop; ++sent) {
          const auto at = begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(run.arrivals[sent]));
          while (Clock::now() < at && !stop) co_await client.sleepUntil(at);
          while (run.maxConcurrency > 0 && open >= run.maxConcurrency && !stop) co_await client.waitAtGate();
          if (stop) break;
          ++open;
          figures.running = static_cast<size_t>(open);
          asio::co_spawn(client.io(), one(sent), asio::detached);
        }
        for (size_t i = sent; i < count; ++i) result.records[i].interrupted = true;
        while (open > 0) co_await client.waitAtGate();
      },
      [&] {
        figures.running = static_cast<size_t>(open);
        figures.seconds = seconds(Clock::now() - begin);
        progress(figures);
      });
  result.duration = seconds(lastEnd - begin);
  return result;
}

}  // namespace headroom::app
