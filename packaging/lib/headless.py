# SPDX-License-Identifier: Apache-2.0
"""The workbench's job without a window: plan, start a layout, ask one question, print the live figures, stop. Python's standard library only."""
import json, signal, subprocess, sys, threading, time, urllib.request


def get(url):
    with urllib.request.urlopen(url, timeout=60) as response:
        return json.load(response)


def events(url, samples, stop):
    """Collects the metrics events of the running engine until told to stop."""
    try:
        with urllib.request.urlopen(url + "/engine/events", timeout=60) as stream:
            name = ""
            for line in stream:
                if stop.is_set():
                    return
                line = line.decode().rstrip("\n")
                if line.startswith("event:"):
                    name = line[6:].strip()
                elif line.startswith("data:") and name == "metrics":
                    samples.append(json.loads(line[5:]))
    except OSError:
        pass


def ask(url, model, question):
    body = {"model": model, "messages": [{"role": "user", "content": question}], "temperature": 0, "max_tokens": 64, "stream": True,
            "stream_options": {"include_usage": True}}
    request = urllib.request.Request(url + "/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    began, first, answer, usage = time.monotonic(), None, "", {}
    with urllib.request.urlopen(request, timeout=120) as stream:
        for line in stream:
            line = line.decode().strip()
            if not line.startswith("data:") or line == "data: [DONE]":
                continue
            chunk = json.loads(line[5:])
            usage = chunk.get("usage") or usage
            for choice in chunk["choices"]:
                text = choice["delta"].get("content") or ""
                if text and first is None:
                    first = time.monotonic()
                answer += text
                print(text, end="", flush=True)
    print()
    ended = time.monotonic()
    tokens = usage.get("completion_tokens", 0)
    return answer, 1e3 * ((first or ended) - began), (tokens - 1) / (ended - first) if first and tokens > 1 else None, tokens


def follow_load(process, lines):
    for line in process.stderr:
        lines.append(line.rstrip("\n"))


def main():
    engine, model, layout, question = sys.argv[1:]
    try:
        tp, pp, dp = (int(part) for part in layout.split(","))
    except ValueError:
        sys.exit(f"packaging/run: --layout: found {layout}, expected three numbers such as 3,2,1")
    planned = subprocess.run([engine, "plan", model, "--gpus", "host", "--format", "table"])
    if planned.returncode:
        sys.exit(planned.returncode)

    print(f"\nStarting TP{tp} x PP{pp} x DP{dp}.", flush=True)
    began = time.monotonic()
    process = subprocess.Popen([engine, "serve", model, "--tp", str(tp), "--pp", str(pp), "--dp", str(dp), "--device", "cpu", "--port", "0"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    log = []
    threading.Thread(target=follow_load, args=(process, log), daemon=True).start()
    line = process.stdout.readline()
    if not line:
        status = process.wait()
        print("\n".join(log[-5:]), file=sys.stderr)
        sys.exit(status or 3)
    ready = json.loads(line)
    url = ready["url"]
    print(f"Ready after {time.monotonic() - began:.1f} s at {url}.")
    stop, samples = threading.Event(), []
    threading.Thread(target=events, args=(url, samples, stop), daemon=True).start()
    status = 3
    try:
        print(f"\nQuestion: {question}\nAnswer:   ", end="", flush=True)
        answer, ttft, rate, tokens = ask(url, ready["model"], question)
        time.sleep(1.2)
        state = get(url + "/engine/state")
        print(f"\nMeasured here: time to first token {ttft:.0f} ms, {tokens} tokens" + (f", {rate:.1f} tokens/s" if rate else ""))
        peak = max((sample["generated_tokens_per_s"] for sample in samples), default=None)
        if peak:
            print(f"Engine's own meter: up to {peak:.1f} tokens/s in half a second")
        mib = lambda count: "unknown" if count is None else f"{count / 2**20:.1f} MiB"
        print("\nrank  device  stage  tp  layers    weights     KV cache    activations  planned = allocated")
        for rank in state["ranks"]:
            same = rank["planned"] == rank["allocated"]
            a = rank["allocated"]
            print(f"{rank['rank']:>4}  {rank['device']:<6}  {rank['stage']:>5}  {rank['tp_rank']:>2}  {str(rank['layers']):<8}  {mib(a['weights_bytes']):>10}  "
                  f"{mib(a['kv_cache_bytes']):>11}  {mib(a['activation_bytes']):>11}  {'yes' if same else 'NO'}")
        status = 0 if answer.strip() else 3
    finally:
        stop.set()
        process.send_signal(signal.SIGTERM)
        try:
            ended = process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()
            ended = process.wait()
        print(f"\nStopped with status {ended}.")
    sys.exit(status if ended == 0 else 3)


main()
