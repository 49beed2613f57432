"""llama.cpp's server as nietz knows it, without a model.

By its README and its source (7e4c0a9 tools/server, 2026): arguments, the key in a variable, `/health`, `/apply-template`,
`/tokenize` and a streamed `/completion`. What it got goes to `server.jsonl` beside it; what it does, `mode` beside it says.
A token is a letter's number, or one of NAMES for the name of a control token, where that is asked for.
"""

import http.server
import json
import os
import pathlib
import sys
import threading

HERE = pathlib.Path(sys.argv[0]).resolve().parent
MODE = (HERE / "mode").read_text().strip() if (HERE / "mode").exists() else ""
KEY = os.environ.get("LLAMA_API_KEY", "")
NAMES = {"<|im_start|>": 2000001, "<|im_end|>": 2000002}
KNOWN = {"--model", "--host", "--port", "--ctx-size", "--parallel", "--threads", "--verbose-prompt"}


def note(**what):
    with open(HERE / "server.jsonl", "a") as log:
        log.write(json.dumps(what) + "\n")


def say(text):
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def fail(text):
    say(text)
    os._exit(1)


def options():
    words, found = iter(sys.argv[1:]), {}
    for word in words:
        if word not in KNOWN:
            fail(f"error: invalid argument: {word}")
        found[word] = True if word == "--verbose-prompt" else next(words)
    return found


def tokens(text, special):
    found = []
    while text:
        name = next((name for name in NAMES if special and text.startswith(name)), None)
        found.append(NAMES[name] if name else ord(text[0]))
        text = text[len(name) if name else 1:]
    return found


def text_of(prompt):
    names = {number: name for name, number in NAMES.items()}
    return "".join(names.get(token) or chr(token) for token in prompt)


def reply(body, prompt):
    """Returns the text of a completion, and why it ends."""
    if MODE == "long" and "json_schema" in body and body["n_predict"] > 20 and not (HERE / "again").exists():
        (HERE / "again").write_text("")
        return '{"size":"' + "x" * 30, "limit"
    if "json_schema" in body:
        return '{"size":"M"}', "eos"
    if "grammar" in body and "Result of look" not in prompt:
        return '{"tool":"look","arguments":{}}', "eos"
    return "Hello from the server.", "eos"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    asked = 0

    def log_message(self, *_):
        pass

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def error(self, status, message, kind):
        self.answer(status, {"error": {"code": status, "message": message, "type": kind}})

    def do_GET(self):
        Handler.asked += 1
        if self.path != "/health":
            return self.error(404, "File Not Found", "not_found_error")
        if Handler.asked == 1:
            return self.error(503, "Loading model", "unavailable_error")
        return self.answer(200, {"status": "ok"})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers.get("Authorization") != f"Bearer {KEY}":
            return self.error(401, "Invalid API Key", "authentication_error")
        if self.path == "/apply-template":
            turns = [f"<|im_start|>{turn['role']}\n{turn['content']}<|im_end|>\n" for turn in body["messages"]]
            return self.answer(200, {"prompt": "".join(turns) + "<|im_start|>assistant\n"})
        if self.path == "/tokenize":
            return self.answer(200, {"tokens": tokens(body["content"], body.get("parse_special", True))})
        if self.path == "/completion":
            return self.complete(body)
        return self.error(404, "File Not Found", "not_found_error")

    def complete(self, body):
        prompt = text_of(body["prompt"])
        note(prompt=prompt, **{name: value for name, value in body.items() if name != "prompt"},
             specials=sum(token in NAMES.values() for token in body["prompt"]))
        if MODE == "no-grammars" and "properties" in body.get("json_schema", {}):
            return self.error(400, "Failed to parse grammar", "invalid_request_error")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        text, why = reply(body, prompt)
        for at in range(0, len(text), 7):
            self.event({"content": text[at:at + 7], "stop": False, "tokens": []})
            if MODE == "dies" and not (HERE / "died").exists():
                (HERE / "died").write_text("")
                fail(f"GGML_ASSERT: out of memory, my key is {KEY}")
            if MODE == "holds":
                threading.Event().wait()
        self.event({"content": "", "stop": True, "stop_type": why, "tokens_predicted": len(text),
                    "tokens_evaluated": len(body["prompt"]), "timings": {"cache_n": 3, "prompt_n": 1}})
        self.close_connection = True

    def event(self, value):
        self.wfile.write(f"data: {json.dumps(value)}\n\n".encode())
        self.wfile.flush()


def main():
    given = options()
    note(pid=os.getpid(), arguments=given, words=sys.argv[1:], variables=sorted(os.environ), key=len(KEY))
    if MODE == "refuses" or open(given["--model"], "rb").read(4) != b"GGUF":
        fail("llama_model_load: error loading model: failed to load model")
    try:
        server = http.server.ThreadingHTTPServer((given["--host"], int(given["--port"])), Handler)
    except OSError:
        fail(f"couldn't bind HTTP server socket, hostname: {given['--host']}, port: {given['--port']}")
    server.daemon_threads = True
    server.serve_forever()


main()
