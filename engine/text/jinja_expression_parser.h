// SPDX-License-Identifier: Apache-2.0
// The expression half of the parser.
#pragma once

#include "engine/text/jinja_ast.h"
#include "engine/text/jinja_lexer.h"

#include <initializer_list>

namespace headroom::engine::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<Token> tokens) : m_tokens(std::move(tokens)) {}

 protected:
  [[noreturn]] void fail(const std::string& what) const;
  const Token& current() const { return m_tokens[m_at]; }
  const Token& next() { return m_tokens[m_at + 1 < m_tokens.size() ? m_at++ : m_at]; }
  const Token& peek() const { return m_tokens[m_at + 1 < m_tokens.size() ? m_at + 1 : m_at]; }
  bool at(Token::Type type, std::string_view text) const { return current().type == type && current().text == text; }
  bool atSign(std::string_view text) const { return at(Token::sign, text); }
  bool atName(std::string_view text) const { return at(Token::name, text); }
  bool skipSign(std::string_view text);
  bool skipName(std::string_view text);
  void expectSign(std::string_view text);
  void expect(Token::Type type, const char* what);
  std::string expectName();

  ExpressionPtr expression(bool withChoice = true);
  // One expression, or several with commas between them as a tuple.
  ExpressionPtr tuple(bool withChoice = true, bool inParentheses = false);
  ExpressionPtr assignTarget(bool withNamespace);
  ExpressionPtr unary(bool withFilter = true);
  ExpressionPtr filters(ExpressionPtr inner, bool startsInline);
  Arguments arguments();
  bool mentioned(std::string_view name, size_t from) const;  // as a name token since `from`
  size_t place() const { return m_at; }

  // Nesting is limited, so that a hostile template cannot exhaust the stack.
  struct Deeper {
    explicit Deeper(ExpressionParser& parser);
    ~Deeper() { --m_parser.m_depth; }
    ExpressionParser& m_parser;
  };

 private:
  // One more operation of a chain such as a.b.c or a + b + c: each is a level of the tree, and its length is limited like nesting.
  void extend(int& links) const;
  ExpressionPtr make(Expression::Type type) const;
  ExpressionPtr binaryChain(ExpressionPtr (ExpressionParser::*operand)(), std::initializer_list<std::string_view> signs);
  ExpressionPtr choice();
  ExpressionPtr disjunction();
  ExpressionPtr conjunction();
  ExpressionPtr negation();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr concatenation();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unaryWithFilter() { return unary(true); }
  ExpressionPtr primary();
  ExpressionPtr postfix(ExpressionPtr inner);
  ExpressionPtr filtersAndTests(ExpressionPtr inner);
  ExpressionPtr subscript(ExpressionPtr inner);
  ExpressionPtr subscribed();
  ExpressionPtr test(ExpressionPtr inner);
  ExpressionPtr listLiteral();
  ExpressionPtr dictLiteral();

  std::vector<Token> m_tokens;
  size_t m_at = 0;
  int m_depth = 0;
};

}  // namespace headroom::engine::jinja
