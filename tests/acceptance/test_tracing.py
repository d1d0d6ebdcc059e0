"""What a collector of OpenTelemetry gets of a turn, and that a turn needs none."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.acceptance.harness import Correspondent, JsonObject, running, write_config
from tests.emulators.anthropic import AnthropicEmulator
from tests.emulators.listening import Listening
from tests.emulators.server import Answer, Reply
from tests.servers import Mosquitto

pytestmark = [pytest.mark.e2e, pytest.mark.mosquitto, pytest.mark.asyncio]

SECRET = "the aubergine is in the cellar"


class Collector(Listening):
    """It takes what is sent to /v1/traces over HTTP. spans: those that came."""

    def __init__(self) -> None:
        super().__init__()
        self.spans: list[Any] = []
        self.bytes = b""

    def _routes(self) -> Sequence[web.RouteDef]:
        return [web.post("/v1/traces", self._take)]

    async def _take(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.bytes += body
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                self.spans += scope.spans
        self._changed.set()
        return web.Response(content_type="application/x-protobuf")

    def attributes(self, name: str) -> list[dict[str, Any]]:
        """Of the spans with this name."""
        return [
            {each.key: each.value.string_value or each.value.int_value for each in span.attributes}
            for span in self.spans
            if span.name == name
        ]


def telling_the_time(body: JsonObject) -> Answer:
    content = body["messages"][-1]["content"]
    if any(part["type"] == "tool_result" for part in content if isinstance(part, dict)):
        return Reply([{"type": "text", "text": "It is late."}])
    return Reply([{"type": "tool_use", "id": "toolu_1", "name": "current_time", "input": {}}], "tool_use")


async def test_a_turn_is_a_trace_without_a_word_of_it(tmp_path: Path, mosquitto: Mosquitto) -> None:  # P19
    async with AnthropicEmulator(script=telling_the_time) as model, Collector() as collector:
        config = write_config(tmp_path, broker_port=mosquitto.port, model_url=model.url, agent={}, schedule=[])
        ada = Correspondent("ada")
        environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "100"}
        async with running(config, environment) as clew, ada.connected(mosquitto.port):
            await ada.ask("m1", SECRET)
            assert await clew.terminate() == 0
            (turn,) = collector.attributes("invoke_agent clew")
            (finished,) = clew.events("turn.finished")
        assert (turn["gen_ai.conversation.id"], turn["clew.turn"], turn["clew.outcome"]) == (finished["session"], finished["turn"], "done")
        (tool,) = collector.attributes("execute_tool current_time")
        assert tool["gen_ai.tool.name"] == "current_time"
        calls = [each for span in collector.spans if span.name.startswith("chat ") for each in collector.attributes(span.name)][:2]
        assert [each["gen_ai.provider.name"] for each in calls] == ["anthropic", "anthropic"]
        assert sum(each["gen_ai.usage.input_tokens"] for each in calls) == finished["prompt_tokens"]
        assert sum(each["gen_ai.usage.output_tokens"] for each in calls) == finished["output_tokens"]
        (root,) = (span for span in collector.spans if span.name == "invoke_agent clew")
        assert {span.parent_span_id for span in collector.spans} == {b"", root.span_id}
        assert len({span.trace_id for span in collector.spans}) == 1
        for words in (SECRET, "It is late."):
            assert words.encode() not in collector.bytes


async def test_a_collector_that_is_away_costs_nothing_but_its_traces(tmp_path: Path, mosquitto: Mosquitto) -> None:  # P48
    async with AnthropicEmulator(script=telling_the_time) as model:
        config = write_config(tmp_path, broker_port=mosquitto.port, model_url=model.url, agent={}, schedule=[])
        ada = Correspondent("ada")
        async with running(config, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}) as clew, ada.connected(mosquitto.port):
            assert (await ada.ask("m1", "hello"))["text"] == "It is late."
            assert await clew.terminate() == 0
