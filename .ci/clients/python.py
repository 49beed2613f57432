"""A flow by the official Python client of the Agent Client Protocol, in plain turns."""

import asyncio
import json
import os
import sys

import acp
from acp.interfaces import Client
from acp.schema import TextContentBlock

TOLD = json.loads(sys.argv[1])


def note(who: str, what: str) -> None:
    if TOLD.get("transcript"):
        with open(TOLD["transcript"], "a", encoding="utf8") as out:
            out.write(f"{who}: {what}\n\n")


class Person(Client):
    """Shows what comes."""

    def __init__(self) -> None:
        self.shown = ""

    async def session_update(self, session_id, update, **_):
        text = getattr(getattr(update, "content", None), "text", None)
        if text and update.session_update == "agent_message_chunk":
            self.shown += text

    async def request_permission(self, *_, **__):
        raise NotImplementedError


async def main() -> None:
    person, asked = Person(), 0
    command = [TOLD["nietz"], "acp", *TOLD["options"]]
    async with acp.spawn_agent_process(lambda _: person, *command, env=dict(os.environ), cwd=TOLD["cwd"]) as (agent, _):
        await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        session = await agent.new_session(cwd=TOLD["cwd"], mcp_servers=[])

        async def say(line: str) -> None:
            note("user", line)
            person.shown = ""
            ended = await agent.prompt(session_id=session.session_id, prompt=[TextContentBlock(type="text", text=line)])
            note("nietz", person.shown)
            note("turn", str(ended.stop_reason))

        arguments = dict(TOLD["arguments"])
        names = [name for name in ("topic", "request", "problem", "goal") if name in arguments]
        text = arguments.pop(names[0]) if names else ""
        words = [f"/{TOLD['flow']}"]
        for name, value in arguments.items():
            flag = name.replace("_", "-")
            words.append(f"--{flag}" if value is True else f"--no-{flag}" if value is False else f'--{flag}="{value}"')
        await say(" ".join([*words, text]).strip())
        for answer in TOLD["answers"]:
            asked += 1
            await say(answer)
    print(json.dumps({"asked": asked}))


asyncio.run(main())
