# SPDX-License-Identifier: Apache-2.0
"""headroom-engine serve as a process, and its figures: memory, open files, threads, blocks, counters."""
import json, os, re, subprocess, time

from soak_http import Connection


class Server:
    def __init__(self, engine, model, options, log):
        self.log = open(log, "w+")
        command = [engine, "serve", model, "--device", "cpu", "--port", "0", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{' '.join(command)} ended with status {self.process.wait()}; its last words are in {log}")
        ready = json.loads(line)
        self.model, self.port = ready["model"], int(ready["url"].rsplit(":", 1)[1])

    def get(self, path):
        connection = Connection(self.port)
        try:
            return connection.ask("GET", path)
        finally:
            connection.close()

    def models(self):
        """name: its summary."""
        return {model["name"]: model for model in self.get("/engine/models").body["data"]}

    def counter(self, name):
        """The sum of a counter over all models."""
        lines = re.findall(rf"^headroom:{name}(?:\{{.*\}})? ([0-9.e+-]+)$", self.get("/metrics").text, re.MULTILINE)
        return int(sum(float(value) for value in lines))

    def is_idle(self):
        return all(model["requests"]["running"] + model["requests"]["waiting"] == 0 for model in self.models().values())

    def figures(self):
        """What must be again as it was when no request is open."""
        process = f"/proc/{self.process.pid}"
        status = open(process + "/status").read()
        field = lambda name: int(re.search(rf"^{name}:\s+(\d+)", status, re.MULTILINE).group(1))
        return {"rss_kib": field("VmRSS"), "files": len(os.listdir(process + "/fd")), "threads": field("Threads")}

    def settle(self, limit_s=300):
        """Waits until nothing runs and the last connections are closed; the figures then."""
        end = time.monotonic() + limit_s
        while not self.is_idle():
            if time.monotonic() > end:
                raise AssertionError(f"requests run or wait {limit_s} s after the last client left: {self.models()}")
            time.sleep(0.05)
        figures = self.figures()
        while time.monotonic() < end:  # connections close a little later
            time.sleep(0.5)
            before, figures = figures, self.figures()
            if figures["files"] == before["files"] and figures["threads"] == before["threads"]:
                break
        return figures

    def last_words(self):
        self.log.seek(0)
        return "".join(self.log.readlines()[-20:])

    def stop(self):
        """The exit status after SIGTERM."""
        self.process.terminate()
        status = self.process.wait(timeout=900)
        self.process.stdout.close()
        self.log.close()
        return status


def memory_for(state, blocks, share=0.9):
    """Bytes of each host device at which its fullest rank has about `blocks` KV blocks, from another server's /engine/state of the same layout."""
    total = state["kv_blocks"]["total"] // state["layout"]["dp"]
    most = 0
    for rank in state["ranks"]:
        allocated = rank["allocated"]
        kv = allocated["kv_cache_bytes"] * blocks // total
        most = max(most, kv + sum(allocated[part] or 0 for part in ("weights_bytes", "activation_bytes", "graph_bytes")))
    return int(most / share) + 4096
