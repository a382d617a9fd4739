// SPDX-License-Identifier: Apache-2.0
#include "engine/text/jinja_parser.h"

#include "engine/text/jinja_expression_parser.h"

#include <fmt/format.h>
#include <algorithm>

namespace headroom::engine::jinja {
namespace {

class Parser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Body run() { return body({}); }

 private:
  using Names = std::initializer_list<std::string_view>;

  // Statements up to a tag of one of these names, whose name is the current token then; without names up to the end.
  Body body(Names ends) {
    Deeper deeper(*this);
    Body statements;
    while (true) {
      const Token& token = current();
      if (token.type == Token::end) {
        if (ends.size()) fail(fmt::format("Unexpected end of template. Jinja was looking for '{}'", *ends.begin()));
        return statements;
      }
      if (token.type == Token::data) {
        auto made = make(Statement::data);
        made->text = next().text;
        statements.push_back(std::move(made));
      } else if (token.type == Token::variableBegin) {
        auto made = make(Statement::output);
        next();
        made->expression = tuple();
        expect(Token::variableEnd, "}}");
        statements.push_back(std::move(made));
      } else {
        next();  // {%
        if (current().type != Token::name) fail("tag name expected");
        if (std::find(ends.begin(), ends.end(), current().text) != ends.end()) return statements;
        statements.push_back(statement());
      }
    }
  }

  std::unique_ptr<Statement> make(Statement::Type type) const {
    auto made = std::make_unique<Statement>();
    made->type = type;
    made->line = current().line;
    return made;
  }
  void endTag() { expect(Token::blockEnd, "%}"); }
  // The body up to {% end %}, its tag included.
  Body bodyUntil(std::string_view end) {
    endTag();
    Body made = body({end});
    next();
    endTag();
    return made;
  }

  std::unique_ptr<Statement> statement() {
    const std::string tag = next().text;
    if (tag == "if") return choice();
    if (tag == "for") return loop();
    if (tag == "set") return assign();
    if (tag == "macro") return macro();
    if (tag == "call") return callBlock();
    if (tag == "filter") return filterBlock();
    if (tag == "with") return with();
    if (tag == "generation" || tag == "block" || tag == "autoescape") return plainScope(tag);
    if (tag == "break" || tag == "continue") {
      if (m_loops == 0) fail("'" + tag + "' outside a loop");
      auto made = make(tag == "break" ? Statement::breakLoop : Statement::continueLoop);
      endTag();
      return made;
    }
    if (tag == "include" || tag == "import" || tag == "from" || tag == "extends") {
      auto made = make(Statement::unsupported);
      made->text = "no loader for this environment specified";
      while (current().type != Token::blockEnd && current().type != Token::end) next();
      endTag();
      return made;
    }
    fail("Encountered unknown tag '" + tag + "'.");
  }

  std::unique_ptr<Statement> choice() {
    auto made = make(Statement::choice);
    while (true) {
      made->conditions.push_back(tuple(false));
      endTag();
      made->bodies.push_back(body({"elif", "else", "endif"}));
      const std::string tag = next().text;
      if (tag == "elif") continue;
      if (tag == "else") {
        endTag();
        made->bodies.push_back(body({"endif"}));
        next();
      }
      endTag();
      return made;
    }
  }

  std::unique_ptr<Statement> loop() {
    auto made = make(Statement::loop);
    made->target = assignTarget(false);
    if (!skipName("in")) fail("expected token 'in', got '" + current().text + "'");
    made->expression = tuple(false);
    if (skipName("if")) made->condition = expression();
    made->recursive = skipName("recursive");
    endTag();
    ++m_loops;
    made->body = body({"endfor", "else"});
    --m_loops;
    if (next().text == "else") {
      endTag();
      made->otherwise = body({"endfor"});
      next();
    }
    endTag();
    return made;
  }

  std::unique_ptr<Statement> assign() {
    auto made = make(Statement::assign);
    made->target = assignTarget(true);
    if (skipSign("=")) {
      made->expression = tuple();
      endTag();
      return made;
    }
    made->type = Statement::assignBlock;
    made->expression = filters(nullptr, false);
    made->body = bodyUntil("endset");
    return made;
  }

  // (a, b=1): the parameters of a macro or a caller.
  std::vector<Parameter> signature() {
    std::vector<Parameter> parameters;
    expectSign("(");
    while (!atSign(")")) {
      Parameter parameter;
      parameter.name = expectName();
      if (skipSign("="))
        parameter.otherwise = expression();
      else if (!parameters.empty() && parameters.back().otherwise)
        fail("non-default argument follows default argument");
      parameters.push_back(std::move(parameter));
      if (!skipSign(",")) break;
    }
    expectSign(")");
    return parameters;
  }

  void macroBody(Statement& made, std::string_view end) {
    const size_t from = place();
    const int loops = std::exchange(m_loops, 0);
    made.body = bodyUntil(end);
    m_loops = loops;
    const auto hides = [&](std::string_view name) {
      return std::any_of(made.macroParts.parameters.begin(), made.macroParts.parameters.end(),
                         [&](const Parameter& p) { return p.name == name; });
    };
    made.macroParts.usesVarargs = mentioned("varargs", from) && !hides("varargs");
    made.macroParts.usesKwargs = mentioned("kwargs", from) && !hides("kwargs");
    made.macroParts.usesCaller = mentioned("caller", from);
  }

  std::unique_ptr<Statement> macro() {
    auto made = make(Statement::macro);
    made->macroParts.name = expectName();
    made->macroParts.parameters = signature();
    macroBody(*made, "endmacro");
    return made;
  }

  std::unique_ptr<Statement> callBlock() {
    auto made = make(Statement::callBlock);
    made->macroParts.name = "caller";
    if (atSign("(")) made->macroParts.parameters = signature();
    made->expression = expression();
    if (made->expression->type != Expression::call) fail("expected call");
    macroBody(*made, "endcall");
    return made;
  }

  std::unique_ptr<Statement> filterBlock() {
    auto made = make(Statement::filterBlock);
    made->expression = filters(nullptr, true);
    made->body = bodyUntil("endfilter");
    return made;
  }

  std::unique_ptr<Statement> with() {
    auto made = make(Statement::with);
    while (current().type != Token::blockEnd) {
      if (!made->targets.empty()) expectSign(",");
      made->targets.push_back(assignTarget(false));
      expectSign("=");
      made->values.push_back(expression());
    }
    made->body = bodyUntil("endwith");
    return made;
  }

  std::unique_ptr<Statement> plainScope(const std::string& tag) {
    auto made = make(Statement::scope);
    while (current().type != Token::blockEnd && current().type != Token::end) next();  // a block's name, autoescape's value
    endTag();
    made->body = body({"end" + tag});
    next();
    if (tag == "block" && current().type == Token::name) next();
    endTag();
    return made;
  }

  int m_loops = 0;
};

}  // namespace

Body parse(std::string_view source) { return Parser(lex(source)).run(); }

}  // namespace headroom::engine::jinja
