// SPDX-License-Identifier: Apache-2.0
#include "engine/server/http_server.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

namespace headroom::engine {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using tcp = asio::ip::tcp;
using Clock = std::chrono::steady_clock;

namespace {

constexpr size_t kReadBytes = 16 << 10;
constexpr size_t kMaxEarlyBytes = 64 << 10;  // read ahead while an answer is open
constexpr size_t kDrainedBytes = 64 << 10;   // whenDrained() fires below it
constexpr Clock::time_point kNever = Clock::time_point::max();

std::string_view reasonPhrase(int status) {
  const auto text = http::obsolete_reason(static_cast<http::status>(status));
  return {text.data(), text.size()};
}

std::string errorBody(std::string_view message, std::string_view type) {
  // The messages are our own and hold nothing that JSON would escape.
  return fmt::format(R"({{"error":{{"message":"{}","type":"{}","param":null,"code":null}}}})", message, type);
}

}  // namespace

struct HttpServer::Impl {
  explicit Impl(const HttpLimits& limits) : limits(limits), acceptor(io) {}

  HttpLimits limits;
  asio::io_context io;
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work;
  tcp::acceptor acceptor;
  tcp::endpoint bound;  // where the acceptor listens, for any thread
  std::string host;
  Handler handler;
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::condition_variable changed;
  std::set<HttpConnection*> connections;
  std::atomic<size_t> exchanges{0};
  std::atomic<bool> stopping{false};
  std::atomic<bool> stopped{false};

  void accept(const std::shared_ptr<Impl>& self);
  void exchangeOver() {
    std::lock_guard lock(mutex);
    exchanges.fetch_sub(1);
    changed.notify_all();
  }
};

// All members run on the strand of the socket.
class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(std::shared_ptr<HttpServer::Impl> server, tcp::socket socket)
      : m_server(std::move(server)), m_socket(std::move(socket)), m_timer(m_socket.get_executor()) {
    std::lock_guard lock(m_server->mutex);
    m_server->connections.insert(this);
  }
  ~HttpConnection() {
    std::lock_guard lock(m_server->mutex);
    m_server->connections.erase(this);
    m_server->changed.notify_all();
  }

  void start() {
    error_code ignored;
    m_socket.set_option(tcp::no_delay(true), ignored);
    setDeadline(m_server->limits.idleTimeout);
    read();
  }

  auto executor() { return m_socket.get_executor(); }
  bool hasStopped() const { return m_server->stopped; }
  size_t pendingBytes() const { return m_waiting.size() + (m_writing.size() - m_written); }

  void respond(HttpResponse&& response) {
    std::string head = headOf(response.status, response.contentType);
    for (const auto& [name, value] : response.headers) head += fmt::format("{}: {}\r\n", name, value);
    if (response.status != 204) head += fmt::format("Content-Length: {}\r\n", response.body.size());
    head += "\r\n";
    write(head);
    if (!m_headOnly) write(response.body);
    finish();
  }

  void beginStream(int status, std::string_view contentType) {
    m_chunked = m_version >= 11;
    if (!m_chunked) m_keepAlive = false;
    std::string head = headOf(status, contentType);
    head += "Cache-Control: no-store\r\nX-Accel-Buffering: no\r\n";
    if (m_chunked) head += "Transfer-Encoding: chunked\r\n";
    head += "\r\n";
    write(head);
  }

  void send(std::string_view data) {
    if (data.empty() || m_headOnly) return;
    if (!m_chunked) return write(data);
    m_waiting += fmt::format("{:x}\r\n", data.size());
    m_waiting += data;
    m_waiting += "\r\n";
    flush();
  }

  void endStream() {
    if (m_chunked && !m_headOnly) write("0\r\n\r\n");
    finish();
  }

  void close() {
    if (m_closed) return;
    m_closed = true;
    leave();
    error_code ignored;
    m_timer.cancel();
    m_socket.shutdown(tcp::socket::shutdown_both, ignored);
    m_socket.close(ignored);
  }

  // The server stops: an idle connection closes, a busy one after its answer.
  void stopSoon() {
    m_keepAlive = false;
    if (!m_exchange && pendingBytes() == 0) close();
  }

 private:
  enum class Phase { Head, Body, Answering, Lingering };
  using Parser = http::request_parser<http::string_body>;

  std::string headOf(int status, std::string_view contentType) {
    if (m_server->stopping) m_keepAlive = false;
    std::string head = fmt::format(
        "HTTP/1.1 {} {}\r\nDate: {:%a, %d %b %Y %H:%M:%S} GMT\r\nServer: headroom-engine\r\nAccess-Control-Allow-Origin: *\r\n",
        status, reasonPhrase(status), fmt::gmtime(std::time(nullptr)));
    if (!contentType.empty()) head += fmt::format("Content-Type: {}\r\n", contentType);
    if (!m_keepAlive)
      head += "Connection: close\r\n";
    else if (m_version < 11)
      head += "Connection: keep-alive\r\n";
    return head;
  }

  // ---- deadlines

  // Deadlines move with every byte; the timer sleeps on and looks at the deadline when it wakes, so it is seldom armed anew.
  void setDeadline(std::chrono::milliseconds delay) {
    m_deadline = Clock::now() + delay;
    if (m_deadline < m_wake) armTimer();
  }
  void clearDeadline() { m_deadline = kNever; }
  void armTimer() {
    m_wake = m_deadline;
    m_timer.expires_at(m_wake);
    m_timer.async_wait([self = shared_from_this()](error_code error) {
      if (error || self->m_closed) return;
      self->m_wake = kNever;
      if (Clock::now() >= self->m_deadline) return self->timeOut();
      if (self->m_deadline != kNever) self->armTimer();
    });
  }
  void timeOut() {
    const bool slowRequest = !m_exchange && m_parser && (m_phase == Phase::Head || m_phase == Phase::Body) && pendingBytes() == 0;
    if (!slowRequest) return close();
    refuse(408, "The request did not come in time.");
  }

  // ---- reading

  void read() {
    if (m_reading || m_readEnded || m_closed) return;
    if (m_phase == Phase::Answering && m_input.size() >= kMaxEarlyBytes) return;
    m_reading = true;
    m_socket.async_read_some(m_input.prepare(kReadBytes), [self = shared_from_this()](error_code error, size_t count) {
      self->m_reading = false;
      if (self->m_closed) return;
      self->m_input.commit(count);
      if (error) return self->readEnded(error);
      if (self->m_phase == Phase::Lingering)
        self->m_input.clear();
      else if (self->m_phase != Phase::Answering)
        self->parse();
      self->read();
    });
  }

  void readEnded(error_code error) {
    m_readEnded = true;
    if (m_phase != Phase::Answering) {
      if (error != asio::error::eof || pendingBytes() == 0 || m_phase == Phase::Lingering) return close();
      m_closeWhenWritten = true;
      return;
    }
    m_keepAlive = false;
    if (error != asio::error::eof) return close();
    if (!m_exchange) return;
    m_exchange->m_left = true;
    if (m_exchange->m_gone) close();
  }

  // Parses what has come; hands a whole request to the handler.
  void parse() {
    while (!m_closed && (m_phase == Phase::Head || m_phase == Phase::Body)) {
      if (m_input.size() == 0) return;
      if (!m_parser) beginRequest();
      error_code error;
      const size_t used = m_parser->put(m_input.data(), error);
      m_input.consume(used);
      if (error == http::error::need_more) error = {};
      if (error) return refuseParse(error);
      if (m_phase == Phase::Head && m_parser->is_header_done())
        headerDone();
      else if (m_phase == Phase::Body)
        setDeadline(m_server->limits.bodyTimeout);
      if (m_phase == Phase::Body && m_parser->is_done()) return dispatch();
      if (used == 0) return;
    }
  }

  void beginRequest() {
    m_parser.emplace();
    m_parser->body_limit(m_server->limits.maxBodyBytes);
    m_parser->header_limit(static_cast<uint32_t>(m_server->limits.maxHeaderBytes));
    setDeadline(m_server->limits.headerTimeout);
  }

  void headerDone() {
    m_phase = Phase::Body;
    m_parser->eager(true);
    setDeadline(m_server->limits.bodyTimeout);
    const auto& message = m_parser->get();
    m_version = message.version();
    m_headOnly = message.method() == http::verb::head;
    m_keepAlive = message.keep_alive();
    if (!m_parser->is_done() && boost::beast::iequals(message[http::field::expect], "100-continue") && m_version >= 11)
      write("HTTP/1.1 100 Continue\r\n\r\n");
  }

  void refuseParse(error_code error) {
    if (error == http::error::body_limit)
      return refuse(413, fmt::format("The request body is larger than {} bytes.", m_server->limits.maxBodyBytes));
    if (error == http::error::header_limit || error == http::error::buffer_overflow)
      return refuse(431, fmt::format("The request header is larger than {} bytes.", m_server->limits.maxHeaderBytes));
    refuse(400, fmt::format("Malformed HTTP request: {}.", error.message()));
  }

  void refuse(int status, const std::string& message) {
    m_keepAlive = false;
    HttpResponse response;
    response.status = status;
    response.body = errorBody(message, "invalid_request_error");
    respond(std::move(response));
  }

  void dispatch() {
    auto message = m_parser->release();
    m_parser.reset();
    m_phase = Phase::Answering;
    m_chunked = false;
    clearDeadline();
    HttpRequest request;
    request.method = std::string(message.method_string());
    const std::string_view target(message.target().data(), message.target().size());
    const size_t mark = target.find('?');
    request.path = percentDecode(target.substr(0, mark));
    if (mark != std::string_view::npos) request.query = std::string(target.substr(mark + 1));
    for (const auto& field : message) request.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
    request.body = std::move(message.body());
    m_exchange = std::make_shared<HttpExchange>(std::move(request), shared_from_this());
    m_server->exchanges.fetch_add(1);
    m_server->handler(m_exchange);
  }

  // ---- writing

  void write(std::string_view data) {
    m_waiting += data;
    flush();
  }

  void flush() {
    if (m_writeActive || m_waiting.empty() || m_closed) return;
    m_writing.swap(m_waiting);
    m_waiting.clear();
    m_written = 0;
    m_writeActive = true;
    writeSome();
  }

  void writeSome() {
    setDeadline(m_server->limits.writeTimeout);
    m_socket.async_write_some(asio::buffer(m_writing.data() + m_written, m_writing.size() - m_written),
                              [self = shared_from_this()](error_code error, size_t count) {
                                if (self->m_closed) return;
                                if (error) return self->close();
                                self->m_written += count;
                                if (self->m_written < self->m_writing.size()) return self->writeSome();
                                self->m_writeActive = false;
                                self->m_writing.clear();
                                self->m_written = 0;
                                if (self->m_writing.capacity() > (1 << 20)) self->m_writing.shrink_to_fit();
                                self->written();
                              });
  }

  void written() {
    if (m_exchange) clearDeadline();
    if (m_exchange && m_exchange->m_drained && pendingBytes() < kDrainedBytes) std::exchange(m_exchange->m_drained, nullptr)();
    if (m_closed) return;
    if (!m_waiting.empty()) return flush();
    if (m_closeWhenWritten) return lingerThenClose();
    if (!m_exchange && (m_phase == Phase::Head))
      setDeadline(m_parser ? m_server->limits.headerTimeout : m_server->limits.idleTimeout);
    if (m_phase == Phase::Body) setDeadline(m_server->limits.bodyTimeout);
  }

  // The answer is whole (its bytes may still wait).
  void finish() {
    leave();
    m_phase = Phase::Head;
    m_parser.reset();
    if (!m_keepAlive || m_readEnded || m_server->stopping) {
      m_closeWhenWritten = true;
      m_phase = Phase::Lingering;
      if (pendingBytes() == 0) lingerThenClose();
      return;
    }
    if (pendingBytes() == 0) setDeadline(m_server->limits.idleTimeout);
    // Not from here: a pipelined request would be handled inside the end of the last one.
    asio::post(executor(), [self = shared_from_this()] {
      if (self->m_closed || self->m_exchange) return;
      self->parse();
      self->read();
    });
  }

  // Closing with unread bytes would reset the connection and may take the answer with it: say that no more comes, and read on for
  // a moment.
  void lingerThenClose() {
    m_closeWhenWritten = false;
    if (m_readEnded) return close();
    error_code ignored;
    m_socket.shutdown(tcp::socket::shutdown_send, ignored);
    m_phase = Phase::Lingering;
    m_input.clear();
    setDeadline(m_server->limits.lingerTimeout);
    read();
  }

  // The exchange ends; what it still sends goes nowhere.
  void leave() {
    if (!m_exchange) return;
    const auto exchange = std::exchange(m_exchange, nullptr);
    exchange->m_drained = nullptr;
    const auto gone = std::exchange(exchange->m_gone, nullptr);
    exchange->m_connection.reset();
    m_server->exchangeOver();
    if (m_closed && gone) gone();
  }

  friend class HttpExchange;
  std::shared_ptr<HttpServer::Impl> m_server;
  tcp::socket m_socket;
  asio::steady_timer m_timer;
  Clock::time_point m_deadline = kNever, m_wake = kNever;
  Phase m_phase = Phase::Head;
  boost::beast::flat_buffer m_input;
  std::optional<Parser> m_parser;
  std::shared_ptr<HttpExchange> m_exchange;
  std::string m_waiting, m_writing;  // bytes to send; being sent
  size_t m_written = 0;
  unsigned m_version = 11;
  bool m_reading = false, m_readEnded = false, m_writeActive = false, m_closed = false;
  bool m_keepAlive = true, m_chunked = false, m_headOnly = false, m_closeWhenWritten = false;
};

// ---- exchange

HttpExchange::HttpExchange(HttpRequest request, std::shared_ptr<HttpConnection> connection)
    : m_request(std::move(request)), m_connection(connection), m_strandOwner(std::move(connection)) {}
HttpExchange::~HttpExchange() = default;

void HttpExchange::post(std::function<void()> work) {
  if (m_strandOwner->hasStopped()) return;  // nobody would run it
  asio::post(m_strandOwner->executor(), [self = shared_from_this(), work = std::move(work)] { work(); });
}

void HttpExchange::respond(HttpResponse response) {
  m_begun = true;
  if (const auto connection = m_connection) connection->respond(std::move(response));
}

void HttpExchange::beginStream(int status, std::string_view contentType) {
  m_begun = true;
  if (m_connection) m_connection->beginStream(status, contentType);
}

void HttpExchange::send(std::string_view data) {
  if (m_connection) m_connection->send(data);
}

void HttpExchange::endStream() {
  if (const auto connection = m_connection) connection->endStream();
}

void HttpExchange::abandon() {
  if (const auto connection = m_connection) connection->close();
}

size_t HttpExchange::pendingBytes() const { return m_connection ? m_connection->pendingBytes() : 0; }

void HttpExchange::whenDrained(std::function<void()> drained) {
  if (!m_connection) return;
  if (m_connection->pendingBytes() < kDrainedBytes) return post(std::move(drained));
  m_drained = std::move(drained);
}

void HttpExchange::whenGone(std::function<void()> gone) {
  if (!m_connection) return gone();
  m_gone = std::move(gone);
  if (m_left) abandon();
}

std::string_view HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers)
    if (boost::beast::iequals(boost::beast::string_view(key.data(), key.size()),
                              boost::beast::string_view(name.data(), name.size())))
      return value;
  return {};
}

std::string percentDecode(std::string_view text) {
  auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0) {
      decoded += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

// ---- server

void HttpServer::Impl::accept(const std::shared_ptr<Impl>& self) {
  acceptor.async_accept(asio::make_strand(io), [self](error_code error, tcp::socket socket) {
    if (self->stopping || error == asio::error::operation_aborted) return;
    if (error) {  // out of file descriptors: wait for some to come back
      auto timer = std::make_shared<asio::steady_timer>(self->io, std::chrono::milliseconds(50));
      timer->async_wait([self, timer](error_code cancelled) {
        if (!cancelled && !self->stopping) self->accept(self);
      });
      return;
    }
    size_t open = 0;
    {
      std::lock_guard lock(self->mutex);
      open = self->connections.size();
    }
    if (open < self->limits.maxConnections) {
      auto connection = std::make_shared<HttpConnection>(self, std::move(socket));
      asio::dispatch(connection->executor(), [connection] { connection->start(); });
    }
    self->accept(self);
  });
}

HttpServer::HttpServer(std::shared_ptr<Impl> impl) : m_impl(std::move(impl)) {}
HttpServer::~HttpServer() { stop(0); }

Result<std::unique_ptr<HttpServer>> HttpServer::bind(const std::string& host, int port, const HttpLimits& limits) {
  auto impl = std::make_shared<Impl>(limits);
  impl->host = host;
  error_code error;
  tcp::resolver resolver(impl->io);
  const auto found = resolver.resolve(host, std::to_string(port), tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (error || found.empty())
    return failure("--host " + host, error ? error.message() : "no address", "an address of this machine",
                   "127.0.0.1 serves this machine only, 0.0.0.0 the network");
  tcp::endpoint endpoint = found.begin()->endpoint();
  for (const auto& entry : found)
    if (entry.endpoint().address().is_v4()) {
      endpoint = entry.endpoint();
      break;
    }
  impl->acceptor.open(endpoint.protocol(), error);
  if (!error) impl->acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) impl->acceptor.bind(endpoint, error);
  if (!error) impl->acceptor.listen(4096, error);
  if (error == asio::error::address_in_use)
    return failure(fmt::format("--port {}", port), fmt::format("{}:{} in use by another program", host, port), "a free port",
                   "stop that program, or take --port 0 for any free one");
  if (error == asio::error::access_denied)
    return failure(fmt::format("--port {}", port), "no permission for this port", "a port from 1024 on",
                   "ports below 1024 need more rights");
  if (error)
    return failure(fmt::format("--host {} --port {}", host, port), error.message(), "an address of this machine",
                   "127.0.0.1 serves this machine only");
  impl->bound = impl->acceptor.local_endpoint(error);
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

void HttpServer::serve(Handler handler, int threads) {
  m_impl->handler = std::move(handler);
  m_impl->work.emplace(asio::make_work_guard(m_impl->io));
  m_impl->accept(m_impl);
  for (int i = 0; i < std::max(threads, 1); ++i) m_impl->threads.emplace_back([impl = m_impl.get()] { impl->io.run(); });
}

int HttpServer::port() const { return m_impl->bound.port(); }

std::string HttpServer::url() const {
  const tcp::endpoint& endpoint = m_impl->bound;
  const auto address = endpoint.address();
  if (address.is_unspecified()) return fmt::format("http://{}:{}", address.is_v6() ? "[::1]" : "127.0.0.1", endpoint.port());
  const std::string text = address.is_v6() ? "[" + address.to_string() + "]" : address.to_string();
  return fmt::format("http://{}:{}", text, endpoint.port());
}

size_t HttpServer::openExchanges() const { return m_impl->exchanges; }

size_t HttpServer::openConnections() const {
  std::lock_guard lock(m_impl->mutex);
  return m_impl->connections.size();
}

void HttpServer::schedule(std::chrono::milliseconds delay, std::function<void()> work) {
  if (m_impl->stopped) return;
  auto timer = std::make_shared<asio::steady_timer>(m_impl->io, delay);
  timer->async_wait([timer, work = std::move(work)](error_code error) {
    if (!error) work();
  });
}

void HttpServer::stop(double seconds) {
  Impl& impl = *m_impl;
  if (impl.stopped) return;
  impl.stopping = true;
  auto closeAcceptor = [&impl] {
    error_code ignored;
    impl.acceptor.close(ignored);
  };
  if (impl.threads.empty())
    closeAcceptor();
  else
    asio::post(impl.io, closeAcceptor);
  auto everyConnection = [&](auto act) {
    std::vector<std::shared_ptr<HttpConnection>> open;
    {
      std::lock_guard lock(impl.mutex);
      for (HttpConnection* connection : impl.connections)
        if (auto shared = connection->weak_from_this().lock()) open.push_back(std::move(shared));
    }
    for (auto& connection : open) asio::post(connection->executor(), [connection, act] { act(*connection); });
  };
  if (!impl.threads.empty()) {
    everyConnection([](HttpConnection& connection) { connection.stopSoon(); });
    {
      std::unique_lock lock(impl.mutex);
      impl.changed.wait_for(lock, std::chrono::duration<double>(seconds),
                            [&] { return impl.exchanges == 0 && impl.connections.empty(); });
    }
    everyConnection([](HttpConnection& connection) { connection.close(); });
    {
      std::unique_lock lock(impl.mutex);
      impl.changed.wait_for(lock, std::chrono::seconds(1), [&] { return impl.exchanges == 0 && impl.connections.empty(); });
    }
  }
  impl.stopped = true;
  impl.work.reset();
  impl.io.stop();
  for (auto& thread : impl.threads) thread.join();
  impl.threads.clear();
  // Handlers that were cancelled still own their connections: let them go.
  impl.io.restart();
  impl.io.poll();
}

}  // namespace headroom::engine
