// SPDX-License-Identifier: Apache-2.0
#include "engine/text/jinja_expression_parser.h"

#include <fmt/format.h>
#include <algorithm>

namespace headroom::engine::jinja {

Expression::~Expression() {
  std::vector<ExpressionPtr> waiting;
  const auto take = [&](Expression& from) {
    for (auto& each : from.operands)
      if (each) waiting.push_back(std::move(each));
    for (auto& each : from.arguments.list)
      if (each.value) waiting.push_back(std::move(each.value));
  };
  take(*this);
  while (!waiting.empty()) {
    const ExpressionPtr last = std::move(waiting.back());
    waiting.pop_back();
    take(*last);
  }
}

ExpressionParser::Deeper::Deeper(ExpressionParser& parser) : m_parser(parser) {
  if (++parser.m_depth > kDeepest) parser.fail("the template nests too deep");
}

void ExpressionParser::extend(int& links) const {
  constexpr int kLongestChain = 1000;
  if (++links > kLongestChain) fail("the template chains too many operations");
}

void ExpressionParser::fail(const std::string& what) const { throw Fault(fmt::format("{} (line {})", what, current().line)); }

bool ExpressionParser::skipSign(std::string_view text) {
  if (!atSign(text)) return false;
  next();
  return true;
}

bool ExpressionParser::skipName(std::string_view text) {
  if (!atName(text)) return false;
  next();
  return true;
}

void ExpressionParser::expectSign(std::string_view text) {
  if (!skipSign(text))
    fail(fmt::format("expected token '{}', got '{}'", text, current().text.empty() ? "end of tag" : current().text));
}

void ExpressionParser::expect(Token::Type type, const char* what) {
  if (current().type != type) fail(fmt::format("expected token '{}', got '{}'", what, current().text));
  next();
}

std::string ExpressionParser::expectName() {
  if (current().type != Token::name) fail(fmt::format("expected token 'name', got '{}'", current().text));
  return next().text;
}

bool ExpressionParser::mentioned(std::string_view name, size_t from) const {
  return std::any_of(m_tokens.begin() + static_cast<std::ptrdiff_t>(from), m_tokens.begin() + static_cast<std::ptrdiff_t>(m_at),
                     [&](const Token& token) { return token.type == Token::name && token.text == name; });
}

ExpressionPtr ExpressionParser::make(Expression::Type type) const {
  auto made = std::make_unique<Expression>();
  made->type = type;
  made->line = current().line;
  return made;
}

ExpressionPtr ExpressionParser::expression(bool withChoice) {
  Deeper deeper(*this);
  return withChoice ? choice() : disjunction();
}

ExpressionPtr ExpressionParser::choice() {
  ExpressionPtr value = disjunction();
  for (int links = 0; atName("if");) {
    extend(links);
    ExpressionPtr made = make(Expression::choice);
    next();
    made->operands.push_back(disjunction());
    made->operands.push_back(std::move(value));
    if (skipName("else")) {
      Deeper deeper(*this);
      made->operands.push_back(choice());
    } else {
      made->operands.push_back(nullptr);
    }
    value = std::move(made);
  }
  return value;
}

ExpressionPtr ExpressionParser::disjunction() {
  ExpressionPtr left = conjunction();
  for (int links = 0; atName("or");) {
    extend(links);
    ExpressionPtr made = make(Expression::binary);
    made->text = next().text;
    made->operands.push_back(std::move(left));
    made->operands.push_back(conjunction());
    left = std::move(made);
  }
  return left;
}

ExpressionPtr ExpressionParser::conjunction() {
  ExpressionPtr left = negation();
  for (int links = 0; atName("and");) {
    extend(links);
    ExpressionPtr made = make(Expression::binary);
    made->text = next().text;
    made->operands.push_back(std::move(left));
    made->operands.push_back(negation());
    left = std::move(made);
  }
  return left;
}

ExpressionPtr ExpressionParser::negation() {
  if (!atName("not")) return comparison();
  Deeper deeper(*this);
  ExpressionPtr made = make(Expression::unary);
  made->text = next().text;
  made->operands.push_back(negation());
  return made;
}

ExpressionPtr ExpressionParser::comparison() {
  ExpressionPtr first = sum();
  ExpressionPtr made;
  while (true) {
    std::string sign;
    if (current().type == Token::sign && std::string_view("== != < <= > >=").find(current().text) != std::string_view::npos &&
        current().text != "=") {
      sign = next().text;
    } else if (atName("in")) {
      sign = next().text;
    } else if (atName("not") && peek().type == Token::name && peek().text == "in") {
      next();
      next();
      sign = "not in";
    } else {
      break;
    }
    if (!made) {
      made = make(Expression::compare);
      made->operands.push_back(std::move(first));
    }
    made->operators.push_back(std::move(sign));
    made->operands.push_back(sum());
  }
  return made ? std::move(made) : std::move(first);
}

ExpressionPtr ExpressionParser::binaryChain(ExpressionPtr (ExpressionParser::*operand)(),
                                            std::initializer_list<std::string_view> signs) {
  ExpressionPtr left = (this->*operand)();
  for (int links = 0; current().type == Token::sign && std::find(signs.begin(), signs.end(), current().text) != signs.end();) {
    extend(links);
    ExpressionPtr made = make(Expression::binary);
    made->text = next().text;
    made->operands.push_back(std::move(left));
    made->operands.push_back((this->*operand)());
    left = std::move(made);
  }
  return left;
}

ExpressionPtr ExpressionParser::sum() { return binaryChain(&ExpressionParser::concatenation, {"+", "-"}); }

ExpressionPtr ExpressionParser::concatenation() {
  ExpressionPtr first = product();
  if (!atSign("~")) return first;
  ExpressionPtr made = make(Expression::concat);
  made->operands.push_back(std::move(first));
  while (skipSign("~")) made->operands.push_back(product());
  return made;
}

ExpressionPtr ExpressionParser::product() { return binaryChain(&ExpressionParser::power, {"*", "/", "//", "%"}); }
ExpressionPtr ExpressionParser::power() { return binaryChain(&ExpressionParser::unaryWithFilter, {"**"}); }

ExpressionPtr ExpressionParser::unary(bool withFilter) {
  Deeper deeper(*this);
  ExpressionPtr made;
  if (atSign("-") || atSign("+")) {
    made = make(Expression::unary);
    made->text = next().text;
    made->operands.push_back(unary(false));
  } else {
    made = primary();
  }
  made = postfix(std::move(made));
  return withFilter ? filtersAndTests(std::move(made)) : std::move(made);
}

ExpressionPtr ExpressionParser::primary() {
  ExpressionPtr made = make(Expression::constant);
  switch (current().type) {
    case Token::name: {
      const std::string name = next().text;
      if (name == "true" || name == "True") {
        made->value = Value(true);
      } else if (name == "false" || name == "False") {
        made->value = Value(false);
      } else if (name == "none" || name == "None") {
        made->value = Value::none();
      } else {
        made->type = Expression::name;
        made->text = name;
      }
      return made;
    }
    case Token::string: {
      std::string text;
      while (current().type == Token::string) text += next().text;
      made->value = Value(std::move(text));
      return made;
    }
    case Token::integer:
    case Token::real:
      made->value = next().value;
      return made;
    default:
      break;
  }
  if (atSign("[")) return listLiteral();
  if (atSign("{")) return dictLiteral();
  if (skipSign("(")) {
    made = tuple(true, true);
    expectSign(")");
    return made;
  }
  fail(fmt::format("unexpected '{}'", current().text.empty() ? "end of tag" : current().text));
}

ExpressionPtr ExpressionParser::tuple(bool withChoice, bool inParentheses) {
  ExpressionPtr made = make(Expression::tuple);
  bool isTuple = false;
  while (true) {
    const auto type = current().type;
    if (type == Token::variableEnd || type == Token::blockEnd || type == Token::end || atSign(")") || atName("in") ||
        atName("recursive"))
      break;
    made->operands.push_back(expression(withChoice));
    if (!skipSign(",")) break;
    isTuple = true;
  }
  if (!isTuple && made->operands.size() == 1) return std::move(made->operands[0]);
  if (made->operands.empty() && !inParentheses)
    fail(fmt::format("Expected an expression, got '{}'", current().text.empty() ? "end of tag" : current().text));
  return made;
}

ExpressionPtr ExpressionParser::assignTarget(bool withNamespace) {
  const auto one = [&]() -> ExpressionPtr {
    if (skipSign("(")) {
      Deeper deeper(*this);
      ExpressionPtr inner = assignTarget(false);
      expectSign(")");
      return inner;
    }
    ExpressionPtr made = make(Expression::name);
    made->text = expectName();
    for (std::string_view word : {"true", "false", "none", "True", "False", "None"})
      if (made->text == word) fail(fmt::format("can't assign to '{}'", word));
    return made;
  };
  ExpressionPtr first = one();
  if (withNamespace && first->type == Expression::name && skipSign(".")) {
    ExpressionPtr made = make(Expression::attribute);
    made->text = expectName();
    made->operands.push_back(std::move(first));
    return made;
  }
  if (!atSign(",")) return first;
  ExpressionPtr made = make(Expression::tuple);
  made->operands.push_back(std::move(first));
  while (skipSign(",")) {
    if (current().type == Token::blockEnd || atName("in") || atSign("=") || atSign(")")) break;
    made->operands.push_back(one());
  }
  return made;
}

ExpressionPtr ExpressionParser::listLiteral() {
  ExpressionPtr made = make(Expression::list);
  expectSign("[");
  while (!atSign("]")) {
    made->operands.push_back(expression());
    if (!skipSign(",")) break;
  }
  expectSign("]");
  return made;
}

ExpressionPtr ExpressionParser::dictLiteral() {
  ExpressionPtr made = make(Expression::dict);
  expectSign("{");
  while (!atSign("}")) {
    made->operands.push_back(expression());
    expectSign(":");
    made->operands.push_back(expression());
    if (!skipSign(",")) break;
  }
  expectSign("}");
  return made;
}

ExpressionPtr ExpressionParser::postfix(ExpressionPtr inner) {
  for (int links = 0;;) {
    extend(links);
    if (atSign(".") || atSign("[")) {
      inner = subscript(std::move(inner));
    } else if (atSign("(")) {
      ExpressionPtr made = make(Expression::call);
      made->operands.push_back(std::move(inner));
      made->arguments = arguments();
      inner = std::move(made);
    } else {
      return inner;
    }
  }
}

ExpressionPtr ExpressionParser::filtersAndTests(ExpressionPtr inner) {
  for (int links = 0;;) {
    extend(links);
    if (atSign("|")) {
      inner = filters(std::move(inner), false);
    } else if (atName("is")) {
      inner = test(std::move(inner));
    } else if (atSign("(")) {
      ExpressionPtr made = make(Expression::call);
      made->operands.push_back(std::move(inner));
      made->arguments = arguments();
      inner = std::move(made);
    } else {
      return inner;
    }
  }
}

ExpressionPtr ExpressionParser::filters(ExpressionPtr inner, bool startsInline) {
  for (int links = 0; startsInline || atSign("|");) {
    extend(links);
    if (!startsInline) next();
    startsInline = false;
    ExpressionPtr made = make(Expression::filter);
    made->text = expectName();
    while (skipSign(".")) made->text += "." + expectName();
    made->operands.push_back(std::move(inner));
    if (atSign("(")) made->arguments = arguments();
    inner = std::move(made);
  }
  return inner;
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr inner) {
  if (skipSign(".")) {
    ExpressionPtr made = make(Expression::attribute);
    made->operands.push_back(std::move(inner));
    if (current().type == Token::integer) {
      made->type = Expression::item;
      ExpressionPtr index = make(Expression::constant);
      index->value = next().value;
      made->operands.push_back(std::move(index));
    } else {
      made->text = expectName();
    }
    return made;
  }
  ExpressionPtr made = make(Expression::item);
  expectSign("[");
  made->operands.push_back(std::move(inner));
  std::vector<ExpressionPtr> keys;
  while (!atSign("]")) {
    keys.push_back(subscribed());
    if (!skipSign(",")) break;
  }
  expectSign("]");
  if (keys.empty()) fail("expected an index");
  if (keys.size() == 1) {
    made->operands.push_back(std::move(keys[0]));
  } else {
    ExpressionPtr several = make(Expression::tuple);
    several->operands = std::move(keys);
    made->operands.push_back(std::move(several));
  }
  return made;
}

ExpressionPtr ExpressionParser::subscribed() {
  ExpressionPtr first;
  if (!atSign(":")) {
    first = expression();
    if (!atSign(":")) return first;
  }
  ExpressionPtr made = make(Expression::slice);
  made->operands.push_back(std::move(first));
  while (made->operands.size() < 3) {
    if (!skipSign(":")) {
      made->operands.push_back(nullptr);
      continue;
    }
    const bool absent = atSign(":") || atSign("]") || atSign(",");
    made->operands.push_back(absent ? nullptr : expression());
  }
  return made;
}

ExpressionPtr ExpressionParser::test(ExpressionPtr inner) {
  ExpressionPtr made = make(Expression::test);
  next();  // is
  made->negated = skipName("not");
  made->text = expectName();
  while (skipSign(".")) made->text += "." + expectName();
  made->operands.push_back(std::move(inner));
  const auto type = current().type;
  if (atSign("(")) {
    made->arguments = arguments();
  } else if (type == Token::string || type == Token::integer || type == Token::real || atSign("[") || atSign("{") ||
             (type == Token::name && !atName("else") && !atName("or") && !atName("and"))) {
    if (atName("is")) fail("You cannot chain multiple tests with is");
    // `x is foo if y`, `x is foo in …` and a tag's further words end the test, as they would be odd operands.
    if (atName("if") || atName("not") || atName("in") || atName("recursive")) return made;
    made->arguments.list.push_back({"", 0, postfix(primary())});
  }
  return made;
}

Arguments ExpressionParser::arguments() {
  Arguments made;
  expectSign("(");
  while (!atSign(")")) {
    Arguments::Argument argument;
    if (atSign("*") || atSign("**"))
      argument.stars = static_cast<int>(next().text.size());
    else if (current().type == Token::name && peek().type == Token::sign && peek().text == "=") {
      argument.name = next().text;
      next();
    }
    argument.value = expression();
    made.list.push_back(std::move(argument));
    if (!skipSign(",")) break;
  }
  expectSign(")");
  return made;
}

}  // namespace headroom::engine::jinja
