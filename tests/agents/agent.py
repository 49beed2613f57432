# An agent of the Agent Client Protocol without dependencies, for tests: written against the published protocol, version 1. Its
# first argument says how it behaves; what it gets, it writes to `agent.jsonl` in the user's home.
import json
import os
import sys

MODE = sys.argv[1] if len(sys.argv) > 1 else "text"
SESSIONS = 0


def log(entry):
    with open(os.path.join(os.environ["HOME"], "agent.jsonl"), "a") as file:
        file.write(json.dumps(entry) + "\n")


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def read():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    message = json.loads(line)
    log(message)
    return message


def update(session, **update):
    send({"method": "session/update", "params": {"sessionId": session, "update": update}})


def say(session, text):
    update(session, sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})


def ask(number, method, params):
    send({"id": number, "method": method, "params": params})
    return read()


def prompt(session, text):
    update(session, sessionUpdate="agent_thought_chunk", content={"type": "text", "text": "let me think"})
    if MODE == "dies":
        say(session, "half a rep")
        print("out of memory, planted-key-5f1d9a77c3", file=sys.stderr, flush=True)
        sys.exit(9)
    if MODE == "holds":
        with open(os.path.join(os.environ["HOME"], "held"), "w") as pipe:
            pipe.write("held")
        read()
    if MODE == "permission":
        options = [
            {"optionId": "always", "name": "Always", "kind": "allow_always"},
            {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
            {"optionId": "never", "name": "Never", "kind": "reject_always"},
            {"optionId": "no", "name": "No", "kind": "reject_once"},
        ]
        call = {"toolCallId": "c1", "title": "rm -rf \u001b[31m/", "kind": "execute", "status": "pending"}
        answer = ask(7, "session/request_permission", {"sessionId": session, "toolCall": call, "options": options})
        say(session, json.dumps(answer["result"]))
    elif MODE == "files":
        answers = [
            ask("f1", "fs/read_text_file", {"sessionId": session, "path": "/etc/passwd"}),
            ask("f2", "terminal/create", {"sessionId": session, "command": "sh"}),
        ]
        say(session, " ".join(str(answer["error"]["code"]) for answer in answers))
    elif MODE == "schema":
        is_repair = "That reply cannot be used" in text
        say(session, '```json\n{"size": "M"}\n```' if is_repair else "It is of size M, I think.")
    elif MODE == "refuses":
        return {"stopReason": "refusal"}
    elif MODE == "wrong":
        return {"stopReason": 5}
    else:
        say(session, "Hello ")
        say(session, "from " + os.path.basename(os.getcwd()))
        say("another", "not for you")
    usage = {"totalTokens": 30, "inputTokens": 20, "outputTokens": 10}
    return {"stopReason": "end_turn", "usage": usage}


log({"pid": os.getpid()})
while True:
    message = read()
    method, number = message.get("method"), message.get("id")
    if method == "initialize":
        version = 2 if MODE == "version" else 1
        send({"id": number, "result": {"protocolVersion": version, "agentCapabilities": {}, "authMethods": []}})
    elif method == "session/new":
        if MODE == "logged-out":
            send({"id": number, "error": {"code": -32000, "message": "Authentication required"}})
            continue
        SESSIONS += 1
        log({"cwd": os.getcwd(), "files": os.listdir(os.getcwd()), "environment": sorted(os.environ)})
        modes = [{"id": "auto", "name": "Decides"}, {"id": "default", "name": "Asks"}]
        made = {"currentModeId": "auto", "availableModes": modes}
        send({"id": number, "result": {"sessionId": f"s{SESSIONS}", "modes": made}})
    elif method == "session/set_mode":
        send({"id": number, "result": {}})
    elif method == "session/prompt":
        params = message["params"]
        send({"id": number, "result": prompt(params["sessionId"], params["prompt"][0]["text"])})
    elif number is not None:
        send({"id": number, "error": {"code": -32601, "message": "no such method"}})
