#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Thousands of mixed requests to `headroom-engine serve`, many of them broken off or wrong, while KV blocks are so few that sequences are preempted all the
time. Nothing may get lost, nothing may be answered wrongly, and nothing may be left behind. Linux, Python's standard library only."""
import argparse, collections, http.client, json, os, random, sys, tempfile, threading, time, traceback

from soak_http import Connection, finish
from soak_load import (can_stream, check_free, check_refusal, essence, fixed_requests, free_request, listen_a_while, refused_requests, Texts, vanish,
                       with_options, words)
from soak_server import Server, memory_for

# Layout, and how many tokens a step may guess.
VARIANTS = {
    "tp1": (["--tp", "1", "--pp", "1", "--dp", "1"], 8),
    "tp3pp2": (["--tp", "3", "--pp", "2", "--dp", "1"], 8),
    "dp2": (["--tp", "1", "--pp", "1", "--dp", "2"], 0),
    "several": (["--tp", "1", "--pp", "1", "--dp", "1"], 8),  # with a second model, and a third one that comes and goes
}
KINDS = {"known": 45, "free": 15, "refused": 15, "gone": 15, "other": 10}  # of a hundred requests
ROUNDS = 5
SECOND, GUEST = "second", "guest"


class Soak:
    def __init__(self, arguments, variant, folder):
        self.arguments, self.variant, self.folder = arguments, variant, folder
        self.known = {}  # model name: [(path, body, what must come back)]
        self.texts = {}  # by model name
        self.counts, self.failures, self.lock = collections.Counter(), [], threading.Lock()
        self.server = None

    # ---- the right answers, and the server that is to give them under load

    def options(self):
        a = self.arguments
        return [*VARIANTS[self.variant][0], "--max-model-len", str(a.max_model_len), "--max-num-seqs", "16", "--threads", str(a.threads), *a.serve.split()]

    def start_server(self, model, options, name):
        return Server(self.arguments.engine, model, options, os.path.join(self.folder, f"{self.variant}-{name}.log"))

    def learn(self, model, options, name):
        """Prompts for it, and the answers to the known requests one after the other, with blocks for all, no prefix cache and no guesses; its name and state."""
        server = self.start_server(model, [*options, "--speculative-tokens", "0", "--no-prefix-caching", "--device-memory", "2GiB"], "alone-" + name)
        state, connection, answers = server.get("/engine/state").body, Connection(server.port), []
        tokens_of = lambda text: connection.ask("POST", "/tokenize", {"prompt": text}).body["count"]
        texts = Texts(self.arguments.max_model_len, tokens_of)
        for path, body in fixed_requests(texts):
            answer = connection.ask("POST", path, with_options(body, server.model, False, path=path))
            if answer.status == 400 and answer.body["error"]["code"] in ("no_chat_template", "no_embeddings"):
                continue
            if answer.status != 200:
                raise SystemExit(f"{path} {json.dumps(body)[:300]}: status {answer.status}: {answer.text[:300]}")
            answers.append((path, body, essence(path, answer)))
        connection.close()
        server.stop()
        return texts, answers, server.model, state

    def start(self):
        a = self.arguments
        texts, answers, name, state = self.learn(a.model, self.options(), "first")
        self.known[name], self.texts[name] = answers, texts
        memory, extra = memory_for(state, a.kv_blocks), []
        if self.variant == "several":
            layout = ["--tp", "2", "--max-model-len", str(a.max_model_len), "--max-num-seqs", "8", "--pooling", "mean"]
            texts, answers, _, state = self.learn(a.guest, [*layout, "--threads", str(a.threads)], "guest")
            self.known[SECOND] = self.known[GUEST] = answers
            self.texts[SECOND] = self.texts[GUEST] = texts
            guest = memory_for(state, a.kv_blocks)
            total = memory + 2 * guest
            share = lambda part: f"{0.9 * part / total:.4f}"
            self.guest_body = {"model": a.guest, "name": GUEST, "tp": 2, "max_model_len": a.max_model_len, "max_num_seqs": 8, "pooling": "mean",
                               "gpu_memory_utilization": float(share(guest))}
            extra = ["--gpu-memory-utilization", share(memory), "--manage-models", "--also",
                     f"{a.guest} --served-model-name {SECOND} --gpu-memory-utilization {share(guest)} {' '.join(layout)}"]
            memory = total
        self.server = self.start_server(a.model, [*self.options(), "--speculative-tokens", str(VARIANTS[self.variant][1]), *extra, "--device-memory", f"{memory // 1024 + 1}KiB", "--drain-seconds", "600"], "soak")

    # ---- one request of each kind

    def generate(self, r, connection, model, path, body):
        """The answer; None where it is of the guest, who may be away, and says so."""
        stream = can_stream(path, body) and r.random() < 0.5
        slow = Connection(self.server.port, pause_s=0.01) if stream and r.random() < 0.1 else None
        answer = (slow or connection).ask("POST", path, with_options(body, model, stream, r.randint(-5, 5), path=path))
        if slow:
            slow.close()
            self.count("read slowly")
        if model == GUEST and says_away(answer):
            return self.count("guest away")
        if answer.status != 200:
            raise ValueError(f"{path} {json.dumps(body)[:300]} for {model}: status {answer.status}: {answer.text[:300]}")
        return answer

    def known_answer(self, r, connection):
        model = r.choice(list(self.known))
        path, body, right = r.choice(self.known[model])
        answer = self.generate(r, connection, model, path, body)
        if answer is None:
            return
        found = essence(path, answer)
        if found != right:
            how = "streamed" if answer.events is not None else "whole"
            raise ValueError(f"{model}, {how}, {path} {json.dumps(body)[:400]}:\n    found    {json.dumps(found)}\n    expected {json.dumps(right)}")

    def free_answer(self, r, connection):
        model = r.choice(list(self.known))
        path = r.choice(sorted({path for path, _, _ in self.known[model]} - {"/v1/embeddings"}))
        body = free_request(r, path, self.texts[model])
        answer = self.generate(r, connection, model, path, body)
        if answer is not None:
            check_free(path, body, answer)

    def refused(self, r, connection):
        model = next(iter(self.known))
        method, path, body, status = r.choice(refused_requests(model, self.texts[model]))
        check_refusal(connection.ask(method, path, body), status)

    def gone(self, r, connection):
        model = r.choice(list(self.known))
        vanish(r, self.server.port, model, self.texts[model])

    def other(self, r, connection):
        model = next(iter(self.known))
        what = r.choice(("tokens", "tokens", "models", "metrics", "state", "events", "stored"))
        self.count(what)
        if what == "tokens":
            text = words(r, r.randint(1, 100))
            tokens = connection.ask("POST", "/tokenize", {"model": model, "prompt": text, "add_special_tokens": False}).body["tokens"]
            back = connection.ask("POST", "/detokenize", {"model": model, "tokens": tokens}).body["prompt"]
            if back != text:
                raise ValueError(f"detokenize: found {back!r}, expected {text!r}")
        elif what == "models":
            names = [card["id"] for card in connection.ask("GET", "/v1/models").body["data"]]
            if model not in names or connection.ask("GET", "/health").status != 200:
                raise ValueError(f"/v1/models or /health: {names}")
        elif what == "metrics":
            if "headroom:num_requests_running" not in connection.ask("GET", "/metrics").text:
                raise ValueError("/metrics without the requests that run")
        elif what == "state":
            if connection.ask("GET", "/engine/state").body["phase"] != "ready":
                raise ValueError("/engine/state is not ready")
        elif what == "events":
            listen_a_while(r, connection)
        elif "/v1/responses" in {path for path, _, _ in self.known[model]}:
            self.stored(r, connection, model)

    def stored(self, r, connection, model):
        """A response is kept, gone on from, read and deleted."""
        body = {"input": words(r, 20), "max_output_tokens": 8}
        first = connection.ask("POST", "/v1/responses", with_options(body, model, False, store=True, path="/v1/responses")).body
        then = connection.ask("POST", "/v1/responses", {**body, "model": model, "previous_response_id": first["id"], "store": False}).body
        if then["previous_response_id"] != first["id"] or then["usage"]["input_tokens"] <= first["usage"]["input_tokens"]:
            raise ValueError(f"a response that goes on from another: {then}")
        if connection.ask("GET", "/v1/responses/" + first["id"]).body != first:
            raise ValueError("a stored response is another one than was answered")
        if connection.ask("DELETE", "/v1/responses/" + first["id"]).status != 200:
            raise ValueError("a stored response was not deleted")

    # ---- the load

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def fail(self, what, problem):
        with self.lock:
            self.failures.append(f"{what}: {problem}")
            if len(self.failures) <= 20 or what == "end":
                print(f"  WRONG {what}: {problem}"[:4000], flush=True)

    def client(self, seed, requests):
        r, connection = random.Random(seed), Connection(self.server.port)
        kinds = {"known": self.known_answer, "free": self.free_answer, "refused": self.refused, "gone": self.gone, "other": self.other}
        for _ in range(requests):
            kind = r.choices(list(KINDS), list(KINDS.values()))[0]
            try:
                kinds[kind](r, connection)
            except Exception as problem:
                where = traceback.extract_tb(problem.__traceback__)[-1]
                self.fail(kind, f"{type(problem).__name__}: {problem} ({os.path.basename(where.filename)}:{where.lineno})")
                connection.close()
            if r.random() < 0.1:
                connection.close()
            self.count(kind)
        connection.close()

    def visits(self, seed, over):
        """Loads the guest and unloads it, until told that it is over; with time for running requests, or none."""
        r = random.Random(seed)
        while not over.is_set():
            connection = Connection(self.server.port)
            try:
                answer = connection.ask("POST", "/engine/models", self.guest_body)
                if answer.status != 202:
                    raise ValueError(f"loading: status {answer.status}: {answer.text}")
                while (summary := connection.ask("GET", "/engine/models/" + GUEST).body)["phase"] == "loading":
                    time.sleep(0.02)
                if summary["phase"] != "ready":
                    raise ValueError(f"loading: {summary}")
                over.wait(r.uniform(0.2, 4))
                answer = connection.ask("DELETE", f"/engine/models/{GUEST}?timeout={r.choice((0, 1, 60))}")
                if answer.status != 202:
                    raise ValueError(f"unloading: status {answer.status}: {answer.text}")
                while connection.ask("GET", "/engine/models/" + GUEST).status == 200:
                    time.sleep(0.02)
                self.count("visits of the guest")
            except Exception as problem:
                self.fail("guest", f"{type(problem).__name__}: {problem}")
                return
            finally:
                connection.close()

    def round(self, number):
        a, over = self.arguments, threading.Event()
        each = max(1, a.requests // (ROUNDS * a.clients))
        clients = [threading.Thread(target=self.client, args=(f"{a.seed} {self.variant} {number} {i}", each)) for i in range(a.clients)]
        guest = threading.Thread(target=self.visits, args=(f"{a.seed} {number}", over)) if self.variant == "several" else None
        for thread in [*clients, guest] if guest else clients:
            thread.start()
        for thread in clients:
            thread.join()
        over.set()
        if guest:
            guest.join()

    def check_nothing_is_left(self, before, after):
        for what in ("files", "threads"):
            if after[what] != before[what]:
                self.fail("left behind", f"{what}: {before[what]} before, {after[what]} after")
        for name, model in self.server.models().items():
            blocks = model["kv_blocks"]
            if blocks["free"] != blocks["total"]:
                self.fail("left behind", f"KV blocks of {name}: {blocks['free']} of {blocks['total']} are free")

    def last_requests(self, seed):
        """Asks for known answers until the server stops: each is right, or refused, or the connection ends before it."""
        r = random.Random(seed)
        while True:
            connection = Connection(self.server.port)
            model = r.choice([name for name in self.known if name != GUEST])
            path, body, right = r.choice(self.known[model])
            try:
                response = connection.begin("POST", path, with_options(body, model, can_stream(path, body), path=path))
            except (ConnectionError, http.client.HTTPException):
                return
            try:
                answer = finish(response)
                if answer.status == 503 and answer.body["error"]["code"] == "engine_stopping":
                    return
                if essence(path, answer) != right:
                    raise ValueError(f"{path} {json.dumps(body)[:400]}: {answer.text[:400]}")
                self.count("while it stopped")
            except Exception as problem:
                self.fail("end", f"{type(problem).__name__}: {problem}")
            finally:
                connection.close()

    def stop_under_load(self):
        """The exit status."""
        clients = [threading.Thread(target=self.last_requests, args=(f"{self.arguments.seed} last {i}",)) for i in range(8)]
        for thread in clients:
            thread.start()
        time.sleep(1)
        status = self.server.stop()
        for thread in clients:
            thread.join()
        return status

    def run(self):
        """The failures."""
        began = time.monotonic()
        self.start()
        blocks = self.server.get("/engine/state").body["kv_blocks"]["total"]
        print(f"{self.variant}: {blocks} KV blocks, the right answers known after {time.monotonic() - began:.0f} s", flush=True)
        began, resident, figures = time.monotonic(), [], None
        for number in range(ROUNDS):
            self.round(number)
            if self.server.process.poll() is not None:
                self.fail("end", f"the server ended by itself with status {self.server.process.returncode}: {self.server.last_words()}")
                return self.failures
            before, figures = figures, self.server.settle()
            resident.append(figures["rss_kib"] >> 10)
            if before:  # the first round opens what stays open
                self.check_nothing_is_left(before, figures)
            preemptions = self.server.counter("num_preemptions_total")
            accepted = self.server.counter("spec_decode_num_accepted_tokens_total")
            print(f"  round {number + 1}: {time.monotonic() - began:.0f} s, {sum(self.counts[kind] for kind in KINDS)} requests, {preemptions} preemptions, "
                  f"{accepted} guessed tokens, {resident[-1]} MiB, {figures['files']} files, {figures['threads']} threads", flush=True)
        if preemptions == 0:
            self.fail("load", "no sequence was preempted; a smaller --kv-blocks does it")
        if resident[-1] - resident[1] > self.arguments.may_grow:
            self.fail("left behind", f"resident memory after each round, MiB: {resident}")
        status = self.stop_under_load()
        if status != 0:
            self.fail("end", f"status {status} after SIGTERM")
        print(f"  {dict(self.counts)}; {len(self.failures)} wrong", flush=True)
        return self.failures


def says_away(answer):
    """Whether the answer says that its model is loaded or unloaded just now, at once or in place of the rest."""
    def is_away(error):
        return bool(error) and error.get("code") in ("model_not_found", "engine_loading", "model_unloading")
    parts = [answer.body] if answer.events is None else [data for _, data in answer.events if isinstance(data, dict)]
    for part in parts:
        part = part.get("response") or part
        if is_away(part.get("error")) or any(choice["finish_reason"] == "abort" for choice in part.get("choices", [])):
            return True
        if part.get("status") == "failed" and "stopped before the answer was whole" in part["error"]["message"]:
            return True
    return False


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", help="headroom-engine")
    parser.add_argument("model", help="a model folder or a .gguf file; with a chat template, chats and responses take part")
    parser.add_argument("--guest", default=os.path.join(here, "../data/models/chat"), help="a small model, of the variant `several`")
    parser.add_argument("--variants", default=",".join(VARIANTS), help="of " + ", ".join(VARIANTS))
    parser.add_argument("--requests", type=int, default=2500, help="of each variant")
    parser.add_argument("--clients", type=int, default=24, help="that ask at the same time")
    parser.add_argument("--kv-blocks", type=int, default=72, help="of a replica; few, so that sequences are preempted")
    parser.add_argument("--max-model-len", type=int, default=512)
    parser.add_argument("--may-grow", type=int, default=32, help="MiB of resident memory after the second round that are no leak")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of the engine")
    parser.add_argument("--serve", default="", help="more options of serve: --serve='--kv-cache-dtype int8'")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--logs", help="folder for what the servers wrote")
    arguments = parser.parse_args()
    failures = []
    folder = arguments.logs or tempfile.mkdtemp(prefix="headroom-soak-")
    os.makedirs(folder, exist_ok=True)
    for variant in arguments.variants.split(","):
        failures += Soak(arguments, variant, folder).run()
    print(f"the servers' logs are in {folder}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
