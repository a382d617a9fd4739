# SPDX-License-Identifier: Apache-2.0
"""The requests of a soak and what must come back for each of them."""
import json, random, socket, time

from soak_http import leave, raw, read_events, request_bytes

WORDS = ("river stone light paper engine garden winter signal copper window silver market letter bridge forest number castle "
         "morning station island mirror pocket thunder velvet lantern harbor meadow pencil rocket saddle").split()
WEATHER = {"type": "function", "function": {"name": "get_weather", "description": "The weather of a city", "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "maxLength": 12}, "days": {"type": "integer", "minimum": 1, "maximum": 7}},
    "required": ["city", "days"], "additionalProperties": False}}}
PERSON = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 10}, "age": {"type": "integer", "minimum": 0, "maximum": 120},
                                           "likes": {"type": "array", "items": {"enum": ["tea", "rain", "bread"]}, "maxItems": 3}},
          "required": ["name", "age", "likes"], "additionalProperties": False}


def words(r, count):
    return " ".join(r.choice(WORDS) for _ in range(max(1, int(count))))


def user(text):
    return [{"role": "user", "content": text}]


class Texts:
    """Prompts that fit a model's context beside an answer of 150 tokens, whatever its tokenizer makes of them."""

    def __init__(self, context, tokens_of):
        self.context = context
        self.room = (0.95 * context - 200) / tokens_of(" ".join(WORDS * 4)) * len(WORDS) * 4  # words
        self.prefix = "You keep the books. " + words(random.Random(3), 0.5 * self.room) + ". "  # of many requests

    def of(self, r, share):
        """That share of the room that a prefix leaves."""
        return words(r, share * 0.4 * self.room)


# ---- answers that are known beforehand

def fixed_requests(texts):
    """(path, body): greedy or seeded, so that each has one right answer. Whether it is streamed, and its priority, are the load's matter.
    What a model does not offer is refused by it."""
    r = random.Random(7)
    complete, chat, respond = "/v1/completions", "/v1/chat/completions", "/v1/responses"
    cases = []
    for length in (0.02, 0.1, 0.3, 0.6, 1):
        cases.append((complete, {"prompt": texts.of(r, length), "max_tokens": 24, "temperature": 0}))
        cases.append((complete, {"prompt": texts.prefix + texts.of(r, length), "max_tokens": 40, "temperature": 0, "logprobs": 3, "ignore_eos": True}))
        cases.append((complete, {"prompt": texts.prefix + texts.of(r, length / 2), "max_tokens": 30, "temperature": 0.9, "top_p": 0.9, "seed": int(100 * length)}))
        cases.append((chat, {"messages": user(texts.of(r, length)), "max_tokens": 24, "temperature": 0}))
    cases += [
        (complete, {"prompt": "one two three one two three one two three", "max_tokens": 60, "temperature": 0, "ignore_eos": True}),
        (complete, {"prompt": [texts.of(r, 0.1), texts.prefix, texts.of(r, 0.2)], "max_tokens": 12, "temperature": 0}),
        (complete, {"prompt": texts.of(r, 0.3), "max_tokens": 20, "temperature": 1, "seed": 5, "n": 3}),
        (complete, {"prompt": texts.of(r, 0.1), "max_tokens": 16, "temperature": 1, "seed": 6, "n": 2, "best_of": 4}),
        (complete, {"prompt": texts.of(r, 0.6), "max_tokens": 1, "temperature": 0, "echo": True, "logprobs": 2}),
        (complete, {"prompt": texts.of(r, 0.3), "max_tokens": 8, "temperature": 0, "prompt_logprobs": 1}),
        (complete, {"prompt": texts.of(r, 0.2), "max_tokens": 100, "temperature": 1, "seed": 8, "n": 4, "logprobs": 20, "ignore_eos": True}),  # long
        (complete, {"prompt": "a b c d e f g", "max_tokens": 40, "temperature": 0, "stop": ["k", " l", "zz"]}),
        (complete, {"prompt": texts.of(r, 0.1), "max_tokens": 30, "temperature": 0, "min_tokens": 10, "repetition_penalty": 1.3,
                    "presence_penalty": 0.5, "frequency_penalty": 0.2}),
        (complete, {"prompt": "Phone:", "max_tokens": 30, "temperature": 0, "structured_outputs": {"regex": "[0-9]{3}-[0-9]{4} [a-z]{2,9}"}}),
        (complete, {"prompt": "The best of them is", "max_tokens": 10, "temperature": 0, "structured_outputs": {"choice": ["river", "stone", "paper"]}}),
        (chat, {"messages": user("Describe a person."), "max_tokens": 80, "temperature": 0,
                "response_format": {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": PERSON}}}),
        (chat, {"messages": user("Some JSON, please."), "max_tokens": 30, "temperature": 0.8, "seed": 11, "response_format": {"type": "json_object"}}),
        (chat, {"messages": user("The weather in Oslo for two days?"), "max_tokens": 80, "temperature": 0, "tools": [WEATHER], "tool_choice": "required"}),
        (chat, {"messages": user("And in Rome?"), "max_tokens": 80, "temperature": 1, "seed": 3, "tools": [WEATHER],
                "tool_choice": {"type": "function", "function": {"name": "get_weather"}}}),
        (chat, {"messages": user("Rome?"), "max_tokens": 30, "temperature": 0, "tools": [WEATHER]}),
        (chat, {"messages": [{"role": "system", "content": texts.prefix}, *user("Who are you?")], "max_tokens": 30, "temperature": 0,
                "logprobs": True, "top_logprobs": 4}),
        (chat, {"messages": user("Say it."), "max_tokens": 20, "temperature": 1.2, "seed": 9, "n": 4, "logit_bias": {"11": -100}}),
        (respond, {"input": "Tell me of the sea.", "max_output_tokens": 24, "temperature": 0}),
        (respond, {"input": [{"role": "user", "content": texts.of(r, 0.5)}], "instructions": texts.prefix, "max_output_tokens": 24, "temperature": 0}),
        (respond, {"input": "The weather in Lima?", "max_output_tokens": 80, "temperature": 0, "tool_choice": "required",
                   "tools": [{"type": "function", **WEATHER["function"]}]}),
        (respond, {"input": "A person.", "max_output_tokens": 80, "temperature": 0,
                   "text": {"format": {"type": "json_schema", "name": "person", "strict": True, "schema": PERSON}}}),
    ]
    cases += [("/v1/embeddings", {"input": [texts.of(r, 1), texts.prefix + texts.of(r, 0.5), "a"]}),
              ("/v1/embeddings", {"input": texts.prefix + texts.of(r, 1), "encoding_format": "base64", "dimensions": 8})]
    return cases


def can_stream(path, body):
    if path == "/v1/embeddings" or "prompt_logprobs" in body or body.get("echo") and body.get("logprobs"):
        return False
    return body.get("best_of", 1) <= body.get("n", 1)


def with_options(body, model, stream, priority=0, store=False, path=""):
    body = {**body, "model": model, "priority": priority}
    if path == "/v1/responses":
        body["store"] = store
    elif stream:
        body["stream_options"] = {"include_usage": True}
    return {**body, "stream": True} if stream else body


def essence(path, answer):
    """What of an answer must be the same each time, streamed or whole. Raises where it is not a well-formed answer."""
    if path == "/v1/responses":
        return essence_of_response(answer)
    if path == "/v1/embeddings":
        return {"data": answer.body["data"], "prompt_tokens": answer.body["usage"]["prompt_tokens"]}
    if answer.events is None:
        whole = answer.body
    else:
        whole = joined(path, answer.events)
    usage = whole["usage"]
    if usage["prompt_tokens"] + usage["completion_tokens"] != usage["total_tokens"]:
        raise ValueError(f"usage does not add up: {usage}")
    choices = []
    for place, choice in enumerate(whole["choices"]):
        if choice["index"] != place or choice["finish_reason"] not in ("stop", "length", "tool_calls"):
            raise ValueError(f"choice {place}: index {choice['index']}, finish_reason {choice['finish_reason']}")
        kept = {key: choice.get(key) for key in ("text", "finish_reason", "stop_reason", "logprobs", "prompt_logprobs")}
        if "message" in choice:
            message = choice["message"]
            calls = [(call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls") or []]
            kept.update(content=message.get("content") or "", calls=calls)
        choices.append(kept)
    return {"choices": choices, "prompt_tokens": usage["prompt_tokens"], "completion_tokens": usage["completion_tokens"]}


def joined(path, events):
    """The whole answer that a stream's chunks make."""
    if events[-1][1] != "[DONE]":
        raise ValueError(f"the stream ends with {events[-1]}, not with [DONE]")
    choices, usage = {}, None
    for _, chunk in events[:-1]:
        if "error" in chunk:
            raise ValueError(f"an error in the stream: {chunk}")
        usage = chunk.get("usage") or usage
        for piece in chunk["choices"]:
            choice = choices.setdefault(piece["index"], {"index": piece["index"], "finish_reason": None, "logprobs": None})
            if choice["finish_reason"]:
                raise ValueError(f"a chunk after the end of choice {piece['index']}: {piece}")
            for key in ("finish_reason", "stop_reason"):
                choice[key] = piece.get(key) if piece.get(key) is not None else choice.get(key)
            for key, entries in (piece.get("logprobs") or {}).items():
                if entries is not None:
                    choice["logprobs"] = choice["logprobs"] or {}
                    choice["logprobs"][key] = choice["logprobs"].get(key, []) + entries
            if path == "/v1/completions":
                choice["text"] = choice.get("text", "") + piece["text"]
            else:
                add_delta(choice.setdefault("message", {"content": "", "tool_calls": []}), piece["delta"])
    if usage is None:
        raise ValueError("a stream without the usage that was asked for")
    return {"choices": [choices[index] for index in sorted(choices)], "usage": usage}


def add_delta(message, delta):
    message["content"] += delta.get("content") or ""
    for call in delta.get("tool_calls") or []:
        if call["index"] == len(message["tool_calls"]):
            message["tool_calls"].append({"function": {"name": call["function"]["name"], "arguments": ""}})
        message["tool_calls"][call["index"]]["function"]["arguments"] += call["function"].get("arguments") or ""


def essence_of_response(answer):
    response = answer.body
    if answer.events is not None:
        numbers = [data["sequence_number"] for _, data in answer.events]
        if numbers != list(range(len(numbers))):
            raise ValueError(f"sequence numbers are {numbers}")
        if answer.events[-1][0] not in ("response.completed", "response.incomplete"):
            raise ValueError(f"the stream ends with {answer.events[-1]}")
        response = answer.events[-1][1]["response"]
        streamed = "".join(data["delta"] for name, data in answer.events if name == "response.output_text.delta")
        whole = "".join(part["text"] for item in response["output"] if item["type"] == "message" for part in item["content"])
        if streamed != whole:
            raise ValueError(f"the deltas say {streamed!r}, the response {whole!r}")
    usage = response["usage"]
    output = []
    for item in response["output"]:
        if item["type"] == "function_call":
            output.append((item["name"], item["arguments"], item["status"]))
        else:
            output.append((item["type"], [part.get("text") for part in item.get("content") or []], item["status"]))
    return {"status": response["status"], "output": output, "prompt_tokens": usage["input_tokens"], "completion_tokens": usage["output_tokens"]}


# ---- requests that are refused

def refused_requests(model, texts):
    """(method, path, body, status)."""
    complete, chat = "/v1/completions", "/v1/chat/completions"
    context = texts.context
    long = "word " * (context + 20)
    m = {"model": model}
    deep = b"[" * 5000 + b"]" * 5000
    return [
        ("POST", complete, b"", 400), ("POST", complete, b"{", 400), ("POST", complete, b"[1, 2]", 400), ("POST", complete, b'{"prompt": "a",}', 400),
        ("POST", complete, b'{"prompt": "\xff\xfe"}', 400), ("POST", complete, b'{"prompt": ' + deep + b"}", 400), ("POST", chat, b"null", 400),
        ("POST", complete, {**m}, 400), ("POST", complete, {**m, "prompt": []}, 400), ("POST", complete, {**m, "prompt": ""}, 400),
        ("POST", complete, {**m, "prompt": [10**9]}, 400), ("POST", complete, {**m, "prompt": [[]]}, 400),
        ("POST", complete, {**m, "prompt": long}, 400), ("POST", chat, {**m, "messages": user(long)}, 400),
        ("POST", complete, {**m, "prompt": "a", "max_tokens": context}, 400), ("POST", complete, {**m, "prompt": "a", "max_tokens": 10**30}, 400),
        ("POST", complete, {**m, "prompt": "a", "n": 0}, 400), ("POST", complete, {**m, "prompt": "a", "n": 3, "best_of": 2}, 400),
        ("POST", complete, {**m, "prompt": "a", "best_of": 2, "stream": True}, 400), ("POST", complete, {**m, "prompt": "a", "temperature": -1}, 400),
        ("POST", complete, {**m, "prompt": "a", "logprobs": 99}, 400), ("POST", complete, {**m, "prompt": "a", "stop": [""]}, 400),
        ("POST", complete, {**m, "prompt": "a", "suffix": "b"}, 400), ("POST", complete, {**m, "prompt": "a", "structured_outputs": {"regex": "("}}, 400),
        ("POST", complete, {**m, "prompt": "a", "logit_bias": {"x": 1}}, 400), ("POST", complete, {**m, "prompt": "a", "priority": "high"}, 400),
        ("POST", chat, {**m, "messages": []}, 400), ("POST", chat, {**m, "messages": [{"role": "alien", "content": "a"}]}, 400),
        ("POST", chat, {**m, "messages": user([{"type": "image_url", "image_url": {"url": "x"}}])}, 400),
        ("POST", chat, {**m, "messages": user("a"), "tool_choice": "required"}, 400),
        ("POST", chat, {**m, "messages": user("a"), "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "x"}}}}, 400),
        ("POST", "/v1/responses", {**m, "input": 5}, 400), ("POST", "/v1/responses", {**m, "input": "a", "previous_response_id": "resp_0"}, 404),
        ("POST", "/v1/responses", {**m, "input": "a", "background": True}, 400), ("POST", "/v1/responses", {**m, "input": long}, 400),
        ("POST", "/v1/embeddings", {**m, "input": "a"}, 400), ("POST", complete, {"model": "nobody", "prompt": "a"}, 404),
        ("POST", chat, {"model": "nobody", "messages": user("a")}, 404), ("POST", complete, {"model": 5, "prompt": "a"}, 400),
        ("POST", "/tokenize", {**m}, 400), ("POST", "/detokenize", {**m, "tokens": [-1]}, 400), ("GET", "/v1/models/nobody", None, 404),
        ("GET", "/v1/responses/resp_0", None, 404), ("DELETE", "/v1/responses/resp_0", None, 404), ("GET", complete, None, 405),
        ("PUT", chat, b"{}", 405), ("GET", "/nowhere", None, 404), ("POST", "/v1/rerank", {**m}, 404), ("DELETE", "/engine/models/nobody", None, None),
    ]


def check_refusal(answer, status):
    if status is not None and answer.status != status or status is None and answer.status not in (403, 404):
        raise ValueError(f"status {answer.status}, expected {status}: {answer.text[:300]}")
    error = answer.body["error"]
    if not error["message"] or not error["type"] or "param" not in error or "code" not in error:
        raise ValueError(f"no error object: {answer.text[:300]}")


# ---- requests whose answer is not known, only its form

def free_request(r, path, texts):
    body = {"max_tokens": r.randint(1, 60), "temperature": r.uniform(0, 1.5), "n": r.choice((1, 1, 1, 2, 3))}
    text = (texts.prefix if r.random() < 0.4 else "") + texts.of(r, r.random())
    if path == "/v1/responses":
        return {"input": text, "max_output_tokens": body["max_tokens"], "temperature": body["temperature"]}
    if r.random() < 0.3:
        body["stop"] = [r.choice(WORDS), "the"]
    if r.random() < 0.2:
        body.update(top_k=r.randint(1, 50), min_p=r.random() / 10, repetition_penalty=1.1)
    if path == "/v1/completions":
        return {**body, "prompt": text, "logprobs": r.choice((None, 1, 5)), "echo": r.random() < 0.1 and body["n"] == 1}
    if r.random() < 0.3:
        body.update(response_format={"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON}})
    elif r.random() < 0.3:
        body.update(tools=[WEATHER], tool_choice=r.choice(("auto", "required")))
        text = texts.of(r, 0.1)  # the template adds the tools
    return {**body, "messages": user(text)}


def check_free(path, body, answer):
    kept = essence(path, answer)
    if path != "/v1/responses":
        if len(kept["choices"]) != body["n"]:
            raise ValueError(f"{len(kept['choices'])} choices, expected {body['n']}")
        if kept["completion_tokens"] > body["n"] * body["max_tokens"]:
            raise ValueError(f"{kept['completion_tokens']} tokens of {body['n']} choices with at most {body['max_tokens']}")
        for choice in kept["choices"]:
            if "response_format" in body and choice["finish_reason"] == "stop" and choice["stop_reason"] is None:  # no stop string cut it
                person = json.loads(choice["content"])
                if set(person) != {"name", "age", "likes"} or not 0 <= person["age"] <= 120 or len(person["name"]) > 10:
                    raise ValueError(f"not in the form that was asked for: {person}")
            for name, arguments in choice.get("calls") or []:
                if choice["finish_reason"] == "tool_calls" and body.get("tool_choice") == "required":
                    if name != "get_weather" or not 1 <= json.loads(arguments)["days"] <= 7:
                        raise ValueError(f"not a call of the tool: {name} {arguments}")


# ---- clients that leave

def vanish(r, port, model, texts):
    """Asks for a long answer and leaves: before the answer, in its middle, or before the request is whole. Nothing comes back."""
    path = r.choice(("/v1/completions", "/v1/chat/completions", "/v1/responses"))
    body = with_options(free_request(r, path, texts), model, r.random() < 0.7, r.randint(-5, 5), path=path)
    if body.get("stream") and not can_stream(path, body):
        body.pop("echo")
    body["max_output_tokens" if path == "/v1/responses" else "max_tokens"] = r.randint(60, 150)
    body.pop("stop", None)
    reset, way = r.random() < 0.5, r.choice(("at once", "soon", "half sent", "in the stream", "half closed"))
    if way == "half sent":
        return leave(raw(port, request_bytes(path, body, keep=r.randint(0, 60))), reset)
    sock = raw(port, request_bytes(path, body))
    if way == "soon":
        time.sleep(r.uniform(0, 1))
    elif way == "in the stream":
        for _ in range(r.randint(1, 12)):
            if not sock.recv(512):
                break
    elif way == "half closed":
        sock.shutdown(socket.SHUT_WR)
        while sock.recv(4096):
            pass
    leave(sock, reset)


def listen_a_while(r, connection):
    """Follows /engine/events for some events and leaves."""
    response = connection.begin("GET", "/engine/events")
    for count, (name, data) in enumerate(read_events(response)):
        if name not in ("state", "metrics") or not isinstance(data, dict):
            raise ValueError(f"event {name}: {data}")
        if count >= r.randint(0, 3):
            break
    leave_response(connection, response)


def leave_response(connection, response):
    response.close()
    connection.close()
