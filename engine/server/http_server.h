// SPDX-License-Identifier: Apache-2.0
// An HTTP/1.1 server on Boost.Asio: a few io threads carry thousands of connections. It knows requests, answers and streams, and
// no route. While a request is being answered the connection is read on, so a client that leaves is noticed at once; what it
// sends early waits (pipelining).
#pragma once

#include "core/result.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headroom::engine {

struct HttpLimits {
  size_t maxBodyBytes = size_t{32} << 20;
  size_t maxHeaderBytes = size_t{64} << 10;
  size_t maxConnections = 16384;
  std::chrono::milliseconds headerTimeout{15'000};  // from a request's first byte to the end of its header
  std::chrono::milliseconds bodyTimeout{30'000};    // without a byte of the body
  std::chrono::milliseconds idleTimeout{75'000};    // kept alive between requests
  std::chrono::milliseconds writeTimeout{60'000};   // the client takes nothing
  std::chrono::milliseconds lingerTimeout{2'000};   // a refused upload is read and dropped for so long
};

struct HttpRequest {
  std::string method;  // upper case as sent
  std::string path;    // percent-decoded, without the query
  std::string query;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
  // The first header of this name in any case; empty where absent.
  std::string_view header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string contentType = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

class HttpConnection;

// One request and its answer. All members but post() and request() are called on the connection's own strand: handlers start
// there, and post() leads back.
class HttpExchange : public std::enable_shared_from_this<HttpExchange> {
 public:
  explicit HttpExchange(HttpRequest request, std::shared_ptr<HttpConnection> connection);
  ~HttpExchange();
  const HttpRequest& request() const { return m_request; }
  HttpRequest& request() { return m_request; }

  // Thread-safe: runs `work` on the strand, whether the client is still there or not.
  void post(std::function<void()> work);

  void respond(HttpResponse response);
  void beginStream(int status, std::string_view contentType);
  void send(std::string_view data);
  void endStream();
  // Closes the connection without an answer.
  void abandon();

  bool isOpen() const { return m_connection != nullptr; }  // neither answered nor gone
  bool hasBegun() const { return m_begun; }
  // Bytes that the client has not taken yet.
  size_t pendingBytes() const;
  // Called once, on the strand, when pendingBytes() is small again.
  void whenDrained(std::function<void()> drained);
  // Called once, on the strand, when the client leaves before the answer is whole (at once where it already has). Without it the
  // answer is still written: a client may have shut down its sending side only.
  void whenGone(std::function<void()> gone);

 private:
  friend class HttpConnection;
  HttpRequest m_request;
  std::shared_ptr<HttpConnection> m_connection;  // null once the exchange is over
  std::shared_ptr<HttpConnection> m_strandOwner;
  std::function<void()> m_drained, m_gone;
  bool m_begun = false, m_left = false;
};

class HttpServer {
 public:
  using Handler = std::function<void(const std::shared_ptr<HttpExchange>&)>;

  // Binds and listens; connections wait until serve(). An Error names the address that is in use.
  static Result<std::unique_ptr<HttpServer>> bind(const std::string& host, int port, const HttpLimits& limits = {});
  ~HttpServer();
  // Starts `threads` io threads; the handler runs on them and must not block.
  void serve(Handler handler, int threads);
  int port() const;
  std::string url() const;  // with an address that this machine can connect to
  // No new connections, idle ones close; open answers may end within `seconds`, then everything closes. Returns when all is
  // closed.
  void stop(double seconds);
  size_t openExchanges() const;
  size_t openConnections() const;
  // Runs `work` on an io thread after `delay`; not after stop().
  void schedule(std::chrono::milliseconds delay, std::function<void()> work);

  struct Impl;

 private:
  explicit HttpServer(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> m_impl;
};

std::string percentDecode(std::string_view text);

}  // namespace headroom::engine
