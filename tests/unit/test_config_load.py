"""All faults of a file at once, each with its place, in plain words, and with the key that was meant."""

from datetime import datetime
from pathlib import Path

import pytest

from clew.config import Compression, Config, defaults, find_config, load, notes
from clew.config.checks import NOT_YET
from clew.errors import ClewError, ConfigError, NotFound, StoreError, UsageError
from tests.unit.test_config_sections import PROVIDERS, TRANSPORTS, complaints, loaded

NOT_YES = "must be true or false; write true or false instead of yes, no, on, off"
UNIT = "must be a duration with its unit, such as 500ms, 30s, 10m, 36h or 7d"


def test_a_misspelt_or_ineffective_key_is_never_ignored(tmp_path: Path) -> None:  # BO-100
    text = """\
agent:
  compression:
    trigger_mesages: 20
    trigger_messages: twenty
compact:
  max_messages: 20
transports:
  web: {require_mention: true}
"""
    misspelt, wrong_type, section, no_effect = complaints(tmp_path, text)
    assert misspelt == "3:5 agent.compression.trigger_mesages: unknown key (did you mean trigger_messages?)"
    assert wrong_type == "4:23 agent.compression.trigger_messages: must be a whole number"
    assert section.startswith("5:1 compact: unknown key; this section takes: data_dir, store, http, ")
    assert no_effect == "8:9 transports.web.require_mention: unknown key; this section takes: kind, enabled"


def test_all_faults_come_at_once_and_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = """\
http: {port: "80", hots: x}
agent:
  timezone: Mars/Olympus
  max_model_calls: 0
  notes: {enabled: yes, budget_chars: 1.5}
people:
  ada: {role: king, identities: ["mqtt:ada", bob]}
schedule:
  - {name: a, cron: "61 * * * *", prompt: x, deliver_to: web:local}
  - name: b
    at: tomorrow
    prompt: x
    deliver_to: [web]
limits: {message_bytes: 2 MB}
trigger_messages: 30
store: postgresql://db
http: {}
"""
    places = [line.partition(": ")[0] for line in complaints(tmp_path, text)]
    assert places == [
        "1:14 http.port",
        "1:20 http.hots",
        "3:13 agent.timezone",
        "4:20 agent.max_model_calls",
        "5:20 agent.notes.enabled",
        "5:39 agent.notes.budget_chars",
        "7:15 people.ada.role",
        "7:46 people.ada.identities[1]",
        "9:21 schedule[0].cron",
        "11:9 schedule[1].at",
        "13:5 schedule[1].deliver_to",
        "14:25 limits.message_bytes",
        "15:1 trigger_messages",
        "16:8 store",
        "17:1 http",
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("agent: {recall: {enabled: yes}}", f"1:27 agent.recall.enabled: {NOT_YES}"),
        ("agent: {recall: {enabled: 1}}", "1:27 agent.recall.enabled: must be true or false"),
        ("agent: {recall: 3}", "1:17 agent.recall: must be a section of `key: value` lines"),
        ("agent: {recall: {max_excerpts: true}}", "1:32 agent.recall.max_excerpts: must be a whole number"),
        ("agent: {recall: {max_excerpts: 1.0}}", "1:32 agent.recall.max_excerpts: must be a whole number"),
        ("agent: {recall: {max_excerpts: -1}}", "1:32 agent.recall.max_excerpts: must be at least 0"),
        ("agent: {recall: {placement: user}}", "1:29 agent.recall.placement: must be system or message"),
        ("agent: {fallback: local}", "1:19 agent.fallback: must be a list"),
        ("people: [ada]", "1:1 people: must be a section of `key: value` lines"),
        ("agent: {system_prompt: 7}", "1:24 agent.system_prompt: must be text; put it in quotes"),
        ("data_dir: 7", "1:11 data_dir: must be text; put it in quotes"),
        ("data_dir: ''", "1:11 data_dir: must not be empty"),
        ("schedule: [{name: a, every: 90, prompt: x, deliver_to: web:a}]", f"1:29 schedule[0].every: {UNIT}"),
        ("schedule: [{name: a, every: 90.0, prompt: x, deliver_to: web:a}]", f"1:29 schedule[0].every: {UNIT}"),
        ("schedule: [{name: a, every: 5ms, prompt: x, deliver_to: web:a}]", "1:29 schedule[0].every: must be at least 1.0"),
        ("limits: {message_bytes: 1MB}", "1:25 limits.message_bytes: must be a size such as 128KiB or 2MiB"),
        ("prices: {m: {input: 3.0}}", "1:10 prices.m.output: is missing"),
        ("prices: {m: {input: 1.0e300, output: 1}}", "1:21 prices.m.input: must be at most 1000000.0"),
        ("agents: {}", "1:1 agents: unknown key (did you mean agent?)"),
        ("keep_recent: 3", "1:1 keep_recent: unknown key in this section (did you mean agent.compression.keep_recent?)"),
        ("agent: {timezone: ../../etc/passwd}", "1:19 agent.timezone: is not a time zone of the IANA list, such as Europe/Berlin"),
        ("<<: {http: {}}", None),
    ],
)  # fmt: skip
def test_a_fault_is_said_in_plain_words(tmp_path: Path, text: str, complaint: str | None) -> None:
    [found] = complaints(tmp_path, text)
    assert complaint is None or found == complaint


JOB = "schedule: [{name: a, prompt: x, deliver_to: web:a, %s}]"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("agent: {compression: {keep_recent: 60}}", "agent.compression.keep_recent: keep_recent (60) must be smaller"),
        ("agent: {compression: {trigger_messages: 8}}", "agent.compression.trigger_messages: keep_recent (8) must be"),
        ("agent: {approver: {deny: ['pay(to=*)']}}", "agent.approver.deny[0]: with mode: ask it must be the name of a tool; patterns"),
        ("agent: {approver: {mode: allow, deny: [ok, 'p*']}}", "agent.approver.deny[1]: with mode: allow it must be the name of a tool"),
        ("agent: {approver: {mode: pattern, deny: ['pay(to=*']}}", "agent.approver.deny[0]: must be tool or tool(argument=value)"),
        ("agent: {approver: {mode: pattern, allow: ['pay()']}}", "agent.approver.allow[0]: must be tool or tool(argument=value)"),
        ("http: {host: 0.0.0.0}", "http.host: other machines could reach this without a secret"),
        ("http: {host: '::', token: ''}", "http.host: other machines could reach this without a secret"),
        ("embeddings: {provider: lokal, model: m}", "embeddings.provider: there is no provider of this name; there are:"),
        ("embeddings: {provider: claude, model: m}", "embeddings.provider: a provider of kind anthropic has no embeddings"),
        ("embeddings: {provider: local}", "embeddings: needs the model's name"),
        ("embeddings: {provider: wordllama, model: m}", "embeddings.model: wordllama has one model"),
        ("agent: {provider: clod}", "agent.provider: there is no provider of this name; there are: claude, local, none"),
        ("agent: {fallback: [local, lokal]}", "agent.fallback[1]: there is no provider of this name"),
        ("agent: {fallback: [auto]}", "agent.fallback[0]: there is no provider of this name"),
        ("agent: {compression: {provider: x}}", "agent.compression.provider: there is no provider of this name"),
        (JOB % "every: 1h, cron: 0 8 * * *", "schedule[0].every: exactly one of cron, every, at must be set"),
        (JOB % "at: null", "schedule[0]: exactly one of cron, every, at must be set"),
        ("schedule: [{name: a, every: 1h, deliver_to: web:a}]", "schedule[0]: exactly one of prompt, command"),
        (JOB % "cron: 0 0 30 2 *", "schedule[0].cron: never occurs"),
        (JOB % "cron: '0 8 * *'", "schedule[0].cron: is not a cron expression"),
        (JOB % "cron: '@often'", "schedule[0].cron: is not a cron expression"),
        (JOB % "at: '10:30'", "schedule[0].at: must be a date and time such as"),
        (JOB.replace("web:a", "mqtt:a") % "every: 1h", "schedule[0].deliver_to: the transport of this address is disabled"),
        (JOB.replace("web:a", "wbe:a") % "every: 1h", "schedule[0].deliver_to: the transport of this address does not ex"),
        (JOB.replace("web:a", "web") % "every: 1h", "schedule[0].deliver_to: must be transport:name"),
        (JOB % "every: 1h}, {name: a, every: 2h, prompt: x, deliver_to: web:a", "schedule[1].name: schedule[0] has this"),
        ("budgets: {a: {every: day}}", "budgets.a: exactly one of tokens, money must be set"),
        ("budgets: {a: {every: day, tokens: 1, money: 1}}", "budgets.a.money: exactly one of tokens, money must be set"),
        ("budgets: {a: {tokens: 1}}", "budgets.a.every: is missing"),
        ("budgets: {a: {every: week, tokens: 1}}", "budgets.a.every: must be day or month"),
        ("budgets: {a: {every: day, tokens: -1}}", "budgets.a.tokens: must be at least 0"),
        ("budgets: {a: {every: day, token: 1, money: 2}}", "budgets.a.token: unknown key (did you mean tokens?)"),
        ("budgets: {a: {every: day, tokens: 1, roles: [gast]}}", "budgets.a.roles[0]: must be owner, member or guest"),
        ("budgets: {a: {per: all, every: day, tokens: 1, roles: [guest]}}", "budgets.a.roles: has an effect with per: person only"),
        ("budgets: {a: {every: day, tokens: 1, chats: ['web:a']}}", "budgets.a.chats: has an effect with per: chat only, and this"),
        ("{people: {ada: {}}, budgets: {a: {every: day, tokens: 1, people: [adda]}}}", "budgets.a.people[0]: there is nobody of this name"),
        ("people: {a: {identities: ['mqtt:x']}, b: {identities: ['mqtt:x']}}", "people.b.identities[0]: this identity is liste"),
        ("people: {a: {identities: ['mqqt:x']}}", "people.a.identities[0]: no message can ever come from it: there is no transport of"),
        ("people: {a: {identities: ['mqtt:x', 'mqtt:x']}}", "people.a.identities[1]: this identity is listed for a already"),
    ],
)  # fmt: skip
def test_impossible_combinations_are_faults(tmp_path: Path, text: str, complaint: str) -> None:
    [found] = complaints(tmp_path, text)
    assert found.partition(" ")[2].startswith(complaint)


def test_the_list_of_faults_is_bounded(tmp_path: Path) -> None:
    found = complaints(tmp_path, "\n".join(f"key{number}: 1" for number in range(5000)))
    assert len(found) == 100


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_loopback_needs_no_token(tmp_path: Path, host: str) -> None:
    assert loaded(tmp_path, f"http: {{host: '{host}'}}").http.host == host


def test_other_hosts_need_a_token(tmp_path: Path) -> None:
    token = loaded(tmp_path, "http: {host: 0.0.0.0, token: t}").http.token
    assert token is not None
    assert token.get_secret_value() == "t"


ASKED_TOO_EARLY = {
    ("agent", "approver", "mode"): "agent: {approver: {mode: pattern}}",
    ("sessions", "reset"): "sessions: {reset: daily}",
    ("schedule", "*", "command"): "schedule: [{name: a, every: 1h, command: x, deliver_to: web:a}]",
    ("schedule", "*", "condition"): JOB % "every: 1h, condition: x",
    ("schedule", "*", "session"): JOB % "every: 1h, session: isolated",
    ("schedule", "*", "jitter"): JOB % "every: 1h, jitter: 1m",
    ("schedule", "*", "timeout"): JOB % "every: 1h, timeout: 1m",
    ("schedule", "*", "overlap"): JOB % "every: 1h, overlap: queue",
    ("transcriber",): "transcriber: {kind: openai}",
    ("docs", "paths"): "docs: {paths: [a]}",
}


@pytest.mark.parametrize("pattern", [pattern for pattern, _ in NOT_YET], ids=".".join)
def test_what_does_not_exist_yet_is_refused_and_not_ignored(tmp_path: Path, pattern: tuple[str, ...]) -> None:
    [found] = complaints(tmp_path, ASKED_TOO_EARLY[pattern])
    key = ".".join(pattern).replace(".*", "[0]")
    assert f" {key}: not available in this version yet" in found


def test_a_schedule_is_read(tmp_path: Path) -> None:
    text = """\
transports: {mqtt: {enabled: true}}
schedule:
  - {name: a, cron: "@daily", timezone: Europe/Berlin, prompt: x, deliver_to: mqtt:ada/kitchen, grace: 36h}
  - {name: b, every: 90m, prompt: x, deliver_to: terminal:ada, misfire: all}
  - {name: c, at: 2027-03-01T08:30, prompt: x, deliver_to: web:local}
  - {name: d, at: "2027-03-01T08:30:00+02:00", prompt: x, deliver_to: web:local}
"""
    daily, often, once, exact = loaded(tmp_path, text).schedule
    assert (daily.cron, daily.timezone, daily.grace, daily.misfire) == ("0 0 * * *", "Europe/Berlin", 129600.0, "once")
    assert (often.every, often.misfire) == (5400.0, "all")
    assert once.at == datetime(2027, 3, 1, 8, 30)
    assert exact.at == datetime.fromisoformat("2027-03-01T08:30:00+02:00")


def test_zero_means_the_default_number_of_messages() -> None:  # P8
    zero = Compression(trigger_messages=0, keep_recent=0)
    assert (zero.count_mark, zero.kept_messages) == (60, 8)
    assert (zero.trigger_messages, zero.keep_recent) == (0, 0)
    assert (Compression(trigger_messages=20).count_mark, Compression(keep_recent=3).kept_messages) == (20, 3)


def test_what_is_printed_reads_back_the_same() -> None:
    assert Config.model_validate_json(Config().model_dump_json()) == Config()


@pytest.mark.parametrize(
    ("env", "place"),
    [
        ({"XDG_CONFIG_HOME": "xdg"}, "xdg/clew/clew.yaml"),
        ({"HOME": "home"}, "home/.config/clew/clew.yaml"),
        ({"XDG_CONFIG_HOME": "xdg"}, "clew.yaml"),
        ({"CLEW_CONFIG": "mine.yaml"}, "mine.yaml"),
    ],
)
def test_the_file_is_looked_for_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, env: dict[str, str], place: str) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("xdg/clew/clew.yaml", "clew.yaml") if place == "clew.yaml" else (place,):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()
    assert find_config(None, env) == Path(place)
    Path("given.yaml").touch()
    assert find_config("given.yaml", env) == Path("given.yaml")


def test_without_a_file_the_defaults_are_what_one_means_that_says_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if not Path("/etc/clew/clew.yaml").is_file():
        assert find_config(None, {"XDG_CONFIG_HOME": "/nowhere"}) is None
    env = {"HOME": "/home/ada", "ANTHROPIC_API_KEY": "sk-test"}
    Path("clew.yaml").write_text("store: sqlite")
    assert defaults(transports=TRANSPORTS, providers=PROVIDERS, env=env) == load(
        "clew.yaml", transports=TRANSPORTS, providers=PROVIDERS, env=env
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("agents:", "1:1 agents: unknown key (did you mean agent?)"),
        ("people: null\nprojekts: ~", "2:1 projekts: unknown key (did you mean projects?)"),
        ("http: {prot: null}", "1:8 http.prot: unknown key (did you mean port?)"),
        ("agent: {recall: {enable: ~}}", "1:18 agent.recall.enable: unknown key (did you mean enabled?)"),
        ("transports: {mqtt: {hots: null}}", "1:21 transports.mqtt.hots: unknown key (did you mean host?)"),
        ("providers: {none: {kind: offline, model: ~}}", "1:35 providers.none.model: unknown key; this section takes: kind"),
        (JOB % "every: 1h, croon: null", "1:63 schedule[0].croon: unknown key (did you mean cron?)"),
    ],
)  # fmt: skip
def test_an_unknown_key_without_a_value_is_a_fault_too(tmp_path: Path, text: str, complaint: str) -> None:  # BO-100
    assert complaints(tmp_path, text) == [complaint]


def test_a_known_key_without_a_value_means_the_default(tmp_path: Path) -> None:
    assert loaded(tmp_path, "\n".join(f"{key}:" for key in Config.model_fields)) == loaded(tmp_path, "")


def test_a_time_that_has_passed_is_noted(tmp_path: Path) -> None:
    jobs = "{name: a, at: 2027-03-01T08:30, prompt: x, deliver_to: web:a}, {name: b, every: 1h, prompt: x, deliver_to: web:a}"
    config = loaded(tmp_path, f"schedule: [{jobs}]")
    due = datetime.fromisoformat("2027-03-01T08:30:00+01:00").timestamp()
    assert notes(config, due - 1, "Europe/Berlin") == []
    [line] = notes(config, due, "Europe/Berlin")
    assert line.startswith("schedule[0].at: 2027-03-01T08:30:00 has passed")


def test_marks_that_are_close_together_are_noted(tmp_path: Path) -> None:  # BO-008
    config = loaded(tmp_path, "agent: {compression: {trigger_messages: 20, keep_recent: 18}}")
    [line] = notes(config, 0.0, "UTC")
    assert line == ("agent.compression: trigger_messages (20) is only 2 above keep_recent (18): every 2 messages cost a summary")
    assert notes(loaded(tmp_path, "agent: {compression: {trigger_messages: 20, keep_recent: 8}}"), 0.0, "UTC") == []


def test_a_budget_of_money_that_counts_nothing_is_noted(tmp_path: Path) -> None:
    text = (
        "providers: {a: {kind: openai, base_url: 'http://127.0.0.1:1/v1', model: qwen}, b: {kind: anthropic, api_key: k},"
        " n: {kind: offline}}\n"
        "budgets: {house: {per: all, every: month, money: 20}, each: {every: day, tokens: 5}}\n"
    )
    [line] = notes(loaded(tmp_path, text), 0.0, "UTC")
    assert line.startswith("budgets.house: it counts money, and qwen of providers.a has no price in prices:")
    assert notes(loaded(tmp_path, text + "prices: {qwen: {input: 0, output: 0}}"), 0.0, "UTC") == []


def test_the_enabled_transports_are_named_once(tmp_path: Path) -> None:
    text = "transports: {terminal: {kind: web}}\n" + JOB.replace("web:a", "wbe:a") % "every: 1h"
    [found] = complaints(tmp_path, text)
    assert "enabled are: web, terminal (did you mean web?)" in found


def test_a_named_file_that_is_missing_is_not_replaced_by_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("clew.yaml").touch()
    with pytest.raises(ConfigError, match=r"gone\.yaml: there is no such file \(named by --config\)"):
        find_config("gone.yaml", {})
    with pytest.raises(ConfigError, match=r"gone\.yaml: there is no such file \(named by \$CLEW_CONFIG\)"):
        find_config(None, {"CLEW_CONFIG": "gone.yaml"})


def test_each_error_has_its_exit_code() -> None:
    codes = {each.__name__: each.exit_code for each in (ClewError, StoreError, UsageError, NotFound, ConfigError)}
    assert codes == {"ClewError": 1, "StoreError": 1, "UsageError": 2, "NotFound": 3, "ConfigError": 78}
