"""What the built-in transports say of a config beyond their models: each fault and warning with its place."""

from pathlib import Path

import pytest

from clew.cli.options import models
from clew.config import Config, load
from clew.errors import ConfigError
from clew.plugins import registry

KINDS = registry("clew.transports")
TELEGRAM = "kind: telegram, token: '123456789:AAbbccddee'"
MAIL = "address: clew@example.org, password: x, authserv_id: mx, imap_host: mail.example.org, smtp_host: localhost"
NUMBER = "number: '+15551234567'"
SMS = f"account_sid: AC{'0' * 32}, auth_token: x, {NUMBER}"
JOB = "schedule: [{name: tea, every: 1h, prompt: x, deliver_to: '%s'}]"


def read(folder: Path, text: str) -> Config:
    path = folder / "clew.yaml"
    path.write_text(text, encoding="utf-8")
    return load(path, transports=models("transports"), providers=models("providers"), plugins=KINDS, env={"HOME": "/home/ada"})


def faults(folder: Path, text: str) -> list[str]:
    """As `line:column key: message`."""
    with pytest.raises(ConfigError) as caught:
        read(folder, text)
    return [str(each).removeprefix(f"{folder / 'clew.yaml'}:") for each in caught.value.findings]


def warnings(folder: Path, text: str) -> list[str]:
    return [str(each).removeprefix(f"{folder / 'clew.yaml'}:") for each in read(folder, text).warnings]


@pytest.mark.parametrize(
    ("transports", "address", "why"),
    [
        ("mqtt: {}", "mqtt:a b", "nothing can be sent to mqtt:a b: user and thread must be 1 to 64 of A-Z a-z 0-9 _ . -"),
        (f"bot: {{{TELEGRAM}}}", "bot:@ada", "nothing can be sent to bot:@ada: chat and topic must be the numbers that Telegram has"),
        ("webhook: {secret: 0123456789abcdef}", "webhook:ada", "nothing can be sent to webhook:ada: a webhook answers where"),
        ("web: {}", "web:a/", "must be transport:chat or transport:chat/thread"),
    ],
)
def test_a_job_whose_reply_can_never_be_sent_is_a_fault(tmp_path: Path, transports: str, address: str, why: str) -> None:  # BO-100
    [found] = faults(tmp_path, f"transports: {{{transports}}}\n{JOB % address}\n")
    assert found.startswith(f"2:58 schedule[0].deliver_to: {why}")


@pytest.mark.parametrize(
    ("identity", "known_as"),
    [
        ("email:ADA@Example.org", "email:ada@example.org"),
        ("xmpp:Ada@example.org/phone", "xmpp:ada@example.org"),
        ("irc:Ada[m]", "irc:ada{m}"),
        ("sms:+1 (555) 123-4567", "sms:+15551234567"),
        ("whatsapp:+15551234567", "whatsapp:15551234567"),
        ("slack:u024be7lh", "slack:U024BE7LH"),
        ("telegram:0042", "telegram:42"),
        ("signal:12345678-ABCD-4abc-8abc-123456789abc", "signal:12345678-abcd-4abc-8abc-123456789abc"),
        ("matrix:@Ada:example.org", "matrix:@Ada:example.org"),
        ("mqtt:ada", "mqtt:ada"),
        ("web:local", "web:local"),
        ("terminal:ada", "terminal:ada"),
    ],
)
def test_an_identity_is_known_as_its_messages_have_it(tmp_path: Path, identity: str, known_as: str) -> None:
    assert read(tmp_path, f"people: {{ada: {{identities: ['{identity}']}}}}").people["ada"].identities == (known_as,)


@pytest.mark.parametrize(
    ("identity", "why"),
    [
        ("telegran:1", "there is no transport of this name; there are: "),
        ("telegram:@ada", "behind telegram: must stand the number that Telegram has for the person"),
        ("discord:ada#1234", "behind discord: must stand the number that Discord has"),
        ("slack:ada", "behind slack: must stand the person's member ID"),
        ("email:ada", "behind email: must stand a mail address alone"),
        ("xmpp:a b@c", "behind xmpp: must stand a JID"),
        ("irc:#garden", "behind irc: must stand an account's name alone"),
        ("sms:555", "behind sms: must stand a telephone number with the country's code"),
        ("whatsapp:ada", "behind whatsapp: must stand the person's number"),
        ("signal:+15551234567", "behind signal: must stand the account's id"),
        ("matrix:ada", "behind matrix: must stand the person's whole id"),
        ("mqtt:ada/kitchen", "behind mqtt: must stand a user as it is in the topic"),
        ("ntfy:hall", "behind ntfy: must stand a topic that is read, and those are: asks"),
    ],
)
def test_an_identity_that_no_message_can_have_is_a_fault(tmp_path: Path, identity: str, why: str) -> None:  # BO-100
    people = f"people: {{ada: {{identities: ['{identity}']}}}}\ntransports: {{ntfy: {{topics: {{asks: hears}}}}}}"
    [found] = faults(tmp_path, people)
    assert found.startswith(f"1:29 people.ada.identities[0]: no message can ever come from it: {why}")


def test_one_identity_in_two_spellings_is_that_of_one_person(tmp_path: Path) -> None:
    people = (
        "people:\n  ada: {identities: ['email:ada@example.org', 'email:Ada@example.org']}\n  bob: {identities: ['email:ADA@example.org']}"
    )
    assert faults(tmp_path, people) == [
        "2:47 people.ada.identities[1]: this identity is listed for ada already",
        "3:22 people.bob.identities[0]: this identity is listed for ada already",
    ]


@pytest.mark.parametrize(
    ("section", "fault"),
    [
        (
            "slack: {bot_token: xoxb-1}",
            "1:33 transports.slack.bot_token: neither app_token (Socket Mode) nor signing_secret (Events API) is set",
        ),
        ("matrix: {}", "1:14 transports.matrix.user: neither a password nor a token is set"),
        ("webhook: {secret: short}", "1:32 transports.webhook.secret: can be guessed: use 16 characters or more"),
        ("webhook: {secret: aaaaaaaaaaaaaaaaaaaaaaaa}", "1:32 transports.webhook.secret: can be guessed"),
        ("webhook: {secret: 0123456789abcdef, old_secrets: [x]}", "1:50 transports.webhook.old_secrets: can be guessed"),
        (f"b: {{{TELEGRAM}}}, a: {{{TELEGRAM}}}", "1:93 transports.a.token: transports.b has the same account: each would take messages"),
        (
            f"b: {{kind: sms, {SMS}, url: 'https://x/webhooks/b/'}}, a: {{kind: sms, {SMS}, url: 'https://x/webhooks/a/'}}",
            "transports.a.number: transports.b has",
        ),
        ("a: {kind: mqtt}, mqtt: {}", "transports.a.bot: transports.mqtt has"),
        (f"b: {{{TELEGRAM}, mode: webhook}}", "transports.b.mode: needs http.public_url"),
    ],
)
def test_a_section_that_cannot_work_is_a_fault(tmp_path: Path, section: str, fault: str) -> None:  # BO-100
    [found] = faults(tmp_path, f"transports: {{{section}}}")
    assert fault.split(": ")[0] in found
    assert fault.partition(" ")[2] in found


def test_what_is_switched_off_may_be_unfinished(tmp_path: Path) -> None:
    off = f"slack: {{enabled: false}}, webhook: {{enabled: false, secret: x}}, a: {{{TELEGRAM}, enabled: false, mode: webhook}}"
    assert warnings(tmp_path, f"transports: {{{off}, b: {{{TELEGRAM}}}}}") == []


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (
            f"transports: {{email: {{{MAIL}, imap_tls: false, smtp_tls: none}}}}",
            "transports.email.imap_tls: password and mails go to mail.example.org",
        ),
        (
            f"transports: {{sms: {{{SMS}, url: 'https://example.org/sms'}}}}",
            "transports.sms.url: clew takes what Twilio sends at /webhooks/sms/",
        ),
        ("transports: {mqtt: {host: broker.lan}}", "transports.mqtt.host: "),
        (
            "transports: {mqtt: {host: broker.lan, tls: false}}",
            "transports.mqtt.tls: messages and password go to broker.lan without encryption",
        ),
        (f"transports: {{a: {{{TELEGRAM}, base_url: 'http://api.lan'}}}}", "transports.a.base_url: secrets and messages go to api.lan"),
        ("http: {token: abc}", "http.token: can be guessed"),
    ],
)
def test_what_is_hardly_meant_is_a_warning_with_its_place(tmp_path: Path, text: str, warning: str) -> None:
    [found] = warnings(tmp_path, text)
    key, _, message = warning.partition(": ")
    assert message in found
    assert key.rpartition(".")[0] in found


@pytest.mark.parametrize(
    "text",
    [
        "transports: {mqtt: {host: localhost}}",
        f"transports: {{email: {{{MAIL}}}}}",
        f"transports: {{sms: {{{SMS}, url: 'https://example.org/clew/webhooks/sms/'}}}}",
        "http: {token: 0123456789abcdef}",
    ],
)
def test_what_is_sound_has_no_warning(tmp_path: Path, text: str) -> None:
    assert warnings(tmp_path, text) == []


def test_every_transport_can_be_built_without_a_connection() -> None:
    for plugin in KINDS.values():
        assert isinstance(plugin.build(plugin.name, plugin.Config()).capabilities.unreachable, object)
