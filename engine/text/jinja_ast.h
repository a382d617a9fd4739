// SPDX-License-Identifier: Apache-2.0
// The syntax tree of a template. One node type for expressions and one for statements; which members mean something stands beside
// the kind.
#pragma once

#include "engine/text/jinja_value.h"

#include <optional>

namespace headroom::engine::jinja {

struct Expression;
struct Statement;
using ExpressionPtr = std::unique_ptr<Expression>;
using Body = std::vector<std::unique_ptr<Statement>>;

struct Arguments {
  struct Argument {
    std::string name;  // empty: by place
    int stars = 0;     // *list, **dict
    ExpressionPtr value;
  };
  std::vector<Argument> list;
};

struct Expression {
  enum Type {
    constant,   // value
    name,       // text
    list,       // operands
    tuple,      // operands
    dict,       // operands: key, value, key, value …
    attribute,  // operands[0] . text
    item,       // operands[0] [ operands[1] ]
    slice,      // operands: start, stop, step; each may be null
    call,       // operands[0] ( arguments )
    filter,     // operands[0] | text ( arguments ); operands[0] null in a filter block
    test,       // operands[0] is [not] text ( arguments )
    unary,      // text: - + not
    binary,     // text: the operator; and, or
    concat,     // operands, joined as text
    compare,    // operands[0] operators[0] operands[1] operators[1] …
    choice      // operands[1] if operands[0] else operands[2] (may be null)
  } type;
  int line = 0;
  std::string text;
  Value value;
  bool negated = false;
  std::vector<ExpressionPtr> operands;
  std::vector<std::string> operators;
  Arguments arguments;

  ~Expression();  // one after the other, however deep they nest
};

struct Parameter {
  std::string name;
  ExpressionPtr otherwise;  // null: none
};

// The parts of a macro or of a call block's caller.
struct MacroParts {
  std::string name;
  std::vector<Parameter> parameters;
  bool usesVarargs = false, usesKwargs = false, usesCaller = false;
};

struct Statement {
  enum Type {
    data,         // text
    output,       // expression
    choice,       // conditions and bodies side by side; a last body without condition is the else
    loop,         // target in expression if condition; body, otherwise
    assign,       // target = expression
    assignBlock,  // target = body through filter (expression, may be null)
    macro,        // macroParts, body
    callBlock,    // expression (a call), macroParts, body
    filterBlock,  // expression (a filter), body
    with,         // targets[i] = values[i]; body
    scope,        // body: generation, block, autoescape
    breakLoop,
    continueLoop,
    unsupported  // text: why it fails when it is reached
  } type;
  int line = 0;
  std::string text;
  ExpressionPtr target, expression, condition;
  bool recursive = false;
  std::vector<ExpressionPtr> conditions, targets, values;
  std::vector<Body> bodies;
  Body body, otherwise;
  MacroParts macroParts;
};

}  // namespace headroom::engine::jinja
