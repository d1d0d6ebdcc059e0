"""One table: each figure beside the floor of the same run, and the bound it is held to."""

import asyncio
import json
import platform
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from bench import background, compaction, finding, turns
from bench.processes import Measured
from tests.servers import Mosquitto

TURNS = 150


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured value, what it is compared with, and the bound (None: shown, not held to anything)."""

    name: str
    value: float
    unit: str
    floor: float | None = None
    bound: float | None = None

    def line(self) -> str:
        ratio = f"{self.value / self.floor:6.2f} x floor" if self.floor else " " * 14
        verdict = "" if self.bound is None else ("ok" if self.value <= self.bound else "OVER")
        bound = "" if self.bound is None else f"<= {self.bound:g}"
        return f"{self.name:58} {self.value:9.2f} {self.unit:5} {ratio}  {bound:10} {verdict}"


async def turn_figures(root: Path) -> list[Figure]:
    (root / "broker").mkdir()
    with Mosquitto(root / "broker") as broker:
        floor_process = Measured("-m", "bench.floor", str(broker.port), str(root / "floor.db"), ready="floor is ready")
        floor = await turns.cpu_per_turn(floor_process, broker.port, TURNS, daemon=False)
        floor_process.stop()
        short = await _clew(root / "short", broker.port, 100, recall=False)
        long = await _clew(root / "long", broker.port, 100_000, recall=False)
        recalled = await _clew(root / "recall", broker.port, 100, recall=True)
        recalled_long = await _clew(root / "recall_long", broker.port, 100_000, recall=True)
    return [
        Figure("floor: MQTT receive, one commit, MQTT publish; CPU", floor, "ms"),
        Figure("turn, recall off, 100 messages before; CPU at the median", short, "ms", floor, 5.0),
        Figure("turn, recall off, 100,000 messages before; CPU", long, "ms", floor),
        Figure("ratio 100,000 : 100", long / short, "", None, 1.2),
        Figure("turn, recall on, 100 messages before; CPU", recalled, "ms", floor),
        Figure("turn, recall on, 100,000 messages before; CPU", recalled_long, "ms", floor),
    ]


async def finding_figures(file: Path) -> list[Figure]:
    found = await finding.cost(file)
    return [
        Figure("floor: six words among 100,000 messages, ranked by SQLite; CPU", found.plain, "ms"),
        Figure("search for them; CPU", found.search, "ms", found.plain, 20.0),
    ]


async def _clew(folder: Path, port: int, messages: int, *, recall: bool) -> float:
    folder.mkdir()
    await turns.seed(folder, messages)
    config = turns.write_config(folder, port, recall=recall)
    measured = Measured("-m", "bench.daemon", str(config), ready="clew is ready")
    try:
        return await turns.cpu_per_turn(measured, port, TURNS)
    finally:
        measured.stop()


def _run(config: Path) -> Measured:
    return Measured("-c", "from clew.cli import main; main()", "run", "--config", str(config), ready="clew is ready")


async def start_figures(root: Path) -> list[Figure]:
    figures = []
    for name, providers, cpu, memory in (
        ("offline", "none: {kind: offline}", 1.5, 90.0),
        ("anthropic SDK", "claude: {kind: anthropic, model: claude-sonnet-5-5, api_key: not-a-key}", 3.0, 160.0),
    ):
        folder = root / name.split()[0]
        folder.mkdir()
        config = turns.write_config(folder, 1, recall=True, providers=providers)
        config.write_text(config.read_text().replace("mqtt: {enabled: true", "mqtt: {enabled: false"))
        measured = _run(config)
        figures.append(Figure(f"start to ready, {name}; CPU", measured.cpu_at_start_s, "s", None, cpu))
        figures.append(Figure(f"resting memory, {name}", measured.resident_mb, "MB", None, memory))
        measured.stop()
    return figures


async def compaction_figures(root: Path) -> list[Figure]:
    """The model call of a compaction aside; the longest step is what keeps the loop waiting."""
    (small, _), (middle, step), (large, _) = (compaction.contract_cpu(count) for count in (250, 1000, 4000))
    (root / "compaction").mkdir()
    return [
        Figure("compaction of 250 messages: planning and contract; CPU", small, "ms"),
        Figure("compaction of 1,000 messages: planning and contract; CPU", middle, "ms", None, 150.0),
        Figure("ratio 4,000 : 1,000", large / middle, "", None, 5.0),
        Figure("longest step of the contract at 1,000 messages; CPU", step, "ms", None, 5.0),
        Figure("compaction: what the store does; CPU", await compaction.store_cpu(root / "compaction"), "ms", None, 10.0),
    ]


async def background_figures(root: Path) -> list[Figure]:
    (root / "background").mkdir()
    found = await background.latency(root / "background")
    return [
        Figure("reply while nothing is compacted; from message to reply", found.alone, "ms"),
        Figure("reply while a compaction runs in the background", found.beside, "ms", found.alone),
        Figure("difference of the two, held to the noise of the run", found.difference, "ms", None, round(found.noise, 2)),
    ]


async def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        figures = [*await start_figures(Path(folder)), *await turn_figures(Path(folder)), *await compaction_figures(Path(folder))]
        figures += await background_figures(Path(folder))
        figures += await finding_figures(Path(folder) / "recall_long" / "data" / "clew.db")
    print(f"{platform.machine()}, Python {platform.python_version()}, {TURNS} turns each; medians")
    for figure in figures:
        print(figure.line())
    print(json.dumps([asdict(figure) for figure in figures]))
    return 0 if all(f.bound is None or f.value <= f.bound for f in figures) else 1


sys.exit(asyncio.run(main()))
