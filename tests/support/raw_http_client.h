// SPDX-License-Identifier: Apache-2.0
// A client that sends exactly the bytes it is told to, for what well-behaved clients never do. Every wait has an end.
#pragma once

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace headroom::test {

// Milliseconds until a wait is given up. Passing tests do not come near it, also on a machine under load and under a sanitizer.
inline constexpr int kPatience = 60'000;

struct RawResponse {
  int status = 0;                              // 0: none came
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string() : found->second;
  }
};

class RawClient {
 public:
  // `receiveBuffer`: bytes of the socket's buffer, small for a client that reads slowly.
  explicit RawClient(int port, int receiveBuffer = 0) : m_socket(socket(AF_INET, SOCK_STREAM, 0)) {
    if (receiveBuffer) setsockopt(m_socket, SOL_SOCKET, SO_RCVBUF, &receiveBuffer, sizeof receiveBuffer);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    m_connected = connect(m_socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~RawClient() { closeNow(); }
  RawClient(RawClient&& other) noexcept
      : m_socket(std::exchange(other.m_socket, -1)), m_connected(other.m_connected), m_input(std::move(other.m_input)) {}
  RawClient(const RawClient&) = delete;

  bool isConnected() const { return m_connected; }
  bool send(std::string_view data) {
    while (!data.empty()) {
      const ssize_t sent = ::send(m_socket, data.data(), data.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      data.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  void shutdownSend() { shutdown(m_socket, SHUT_WR); }
  void closeNow() {
    if (m_socket >= 0) close(std::exchange(m_socket, -1));
  }
  // Closes with a reset in place of an orderly end.
  void reset() {
    const linger now{1, 0};
    setsockopt(m_socket, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    closeNow();
  }

  // Reads until `done(input)` holds; false at the end of the stream or of the time.
  template <class Done>
  bool readUntil(Done done, int milliseconds = kPatience) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
    while (!done(m_input)) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
      pollfd file{m_socket, POLLIN, 0};
      if (left <= 0 || poll(&file, 1, static_cast<int>(left)) <= 0) return false;
      char buffer[16384];
      const ssize_t count = recv(m_socket, buffer, sizeof buffer, 0);
      if (count <= 0) return m_ended = true, done(m_input);
      m_input.append(buffer, static_cast<size_t>(count));
    }
    return true;
  }
  bool readUntilText(std::string_view text, int milliseconds = kPatience) {
    return readUntil([text](const std::string& input) { return input.find(text) != std::string::npos; }, milliseconds);
  }
  // Whether the server ends the connection (whatever else comes before).
  bool readToEnd(int milliseconds = kPatience) {
    readUntil([](const std::string&) { return false; }, milliseconds);
    return m_ended;
  }
  const std::string& input() const { return m_input; }

  // The next answer, by Content-Length, chunks or the end of the connection. What comes behind stays for the next call.
  RawResponse readResponse(int milliseconds = kPatience) {
    RawResponse response;
    if (!readUntilText("\r\n\r\n", milliseconds)) return response;
    const size_t headEnd = m_input.find("\r\n\r\n");
    const std::string head = m_input.substr(0, headEnd + 2);
    m_input.erase(0, headEnd + 4);
    response.status = std::atoi(head.c_str() + head.find(' ') + 1);
    for (size_t at = head.find("\r\n") + 2; at < head.size();) {
      const size_t end = head.find("\r\n", at), colon = head.find(':', at);
      std::string name = head.substr(at, colon - at);
      std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      response.headers[name] = head.substr(colon + 2, end - colon - 2);
      at = end + 2;
    }
    if (response.status == 204 || response.status == 100) return response;
    if (response.header("transfer-encoding") == "chunked") {
      while (true) {
        if (!readUntilText("\r\n", milliseconds)) return response.status = 0, response;
        const size_t lineEnd = m_input.find("\r\n");
        const size_t size = std::strtoul(m_input.c_str(), nullptr, 16);
        if (!readUntil([&](const std::string& input) { return input.size() >= lineEnd + 2 + size + 2; }, milliseconds))
          return response.status = 0, response;
        response.body += m_input.substr(lineEnd + 2, size);
        m_input.erase(0, lineEnd + 2 + size + 2);
        if (size == 0) return response;
      }
    }
    if (response.headers.count("content-length")) {
      const size_t size = std::strtoul(response.header("content-length").c_str(), nullptr, 10);
      if (!readUntil([&](const std::string& input) { return input.size() >= size; }, milliseconds))
        return response.status = 0, response;
      response.body = m_input.substr(0, size);
      m_input.erase(0, size);
      return response;
    }
    readToEnd(milliseconds);
    response.body = std::exchange(m_input, {});
    return response;
  }

 private:
  int m_socket;
  bool m_connected = false, m_ended = false;
  std::string m_input;
};

inline std::string requestText(std::string_view method, std::string_view path, std::string_view body = {},
                               std::string_view headers = {}) {
  std::string text;
  text.append(method).append(" ").append(path).append(" HTTP/1.1\r\nHost: test\r\n").append(headers);
  if (method == "POST")
    text.append("Content-Type: application/json\r\nContent-Length: ").append(std::to_string(body.size())).append("\r\n");
  return text.append("\r\n").append(body);
}

inline RawResponse request(int port, std::string_view method, std::string_view path, std::string_view body = {},
                           std::string_view headers = {}) {
  RawClient client(port);
  client.send(requestText(method, path, body, headers));
  return client.readResponse();
}

}  // namespace headroom::test
