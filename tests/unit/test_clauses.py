"""What a sentence does by how its clauses are built, in several languages."""

import pytest

from clew.context import clauses, languages, phrases
from clew.context.phrases import ALL, CORRECTION, DUTY, TASK


def does(text: str) -> int:
    return clauses.read(text, languages.within(languages.counts(text), ALL))


@pytest.mark.parametrize(
    "text",
    [
        "The lamp is green, not blue.",
        "She was seven, not eight, when they moved.",
        "Not Tromsø, she sailed to Bodø.",
        "It isn't the neighbour's dog, it's the postman's.",
        "He does not want a new bike, he wants new brakes for the old one.",
        "we ordered four lamps not three",
        "Es sind zwölf Fenster, nicht elf.",
        "Er kommt am Montag, also nicht am Dienstag.",
        "Le rendez-vous est au deuxième étage, pas au premier.",
        "Ce n'est pas mon oncle, c'est mon cousin.",
        "Le duele en las dos rodillas, no solo en la derecha.",
        "No es el lunes, es el martes.",
        "Il treno parte da Pisa, non da Lucca.",
        "São cinco caixas, não quatro.",
        "Het zijn zes dozen, niet vijf.",
        "Spotkanie jest w piątek, a nie w czwartek.",
        "Поезд идёт в Тверь, а не в Тулу.",
        "会议是星期四,不是星期三。",
        "集合は駅ではなく、港です。",
    ],
)
def test_what_is_so_and_what_is_not_is_a_correction(text: str) -> None:  # P17
    assert phrases.does(does(text), CORRECTION)


@pytest.mark.parametrize(
    "text",
    [
        "I slept well, not that it matters.",
        "It's not far, we walked.",
        "I don't know, I wasn't there.",
        "Ich war müde, nicht wahr?",
        "Estoy cansada, no quiero salir.",
        "Sono stanca, non voglio uscire.",
        "Jestem zmęczona, nie chcę wychodzić.",
        "Я устала, не хочу гулять.",
        "The bridge is closed.",
    ],
)
def test_a_negation_alone_is_no_correction(text: str) -> None:
    assert not does(text) & CORRECTION


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("Sweep the stairs before the guests come.", True),
        ("Owen, return the ladder to the school.", True),
        ("rinse it twice", True),
        ("Sperren Sie bitte den Hof ab.", True),
        ("Half the street was there.", False),
        ("Yesterday the boiler stopped.", False),
        ("left the ladder outside", False),
        ("Seven the cat came in.", False),
        ("Painting the fence took all day.", False),
    ],
)
def test_a_bare_verb_with_what_it_is_done_to_is_a_command(text: str, command: bool) -> None:  # P17
    assert phrases.does(does(text), TASK) is command


@pytest.mark.parametrize(
    ("text", "demand"),
    [
        ("Two signatures, from different people.", True),
        ("no perfume anywhere near the bees", True),
        ("linen thread only", True),
        ("Keine Nägel im alten Gebälk.", True),
        ("Ningún plástico en la cocina.", True),
        ("Żadnych gwoździ w starych belkach.", True),
        ("Four minutes, against nine by bus.", False),
        ("Two dogs were in the yard.", False),
        ("It was quiet in the yard.", False),
        ("Quiet yard.", False),
        ("Eleven boxes, dust on all of them.", False),
        ("No space left on device.", False),
    ],
)
def test_a_demand_needs_no_verb(text: str, demand: bool) -> None:  # P17
    assert bool(does(text) & DUTY) is demand


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("The nightly builds never touch the archive.", True),
        ("The negatives are never washed in the sink.", True),
        ("They begged us in a letter not to sell the mill.", True),
        ("Werft alte Farbe nie in den Ausguss.", True),
        ("nothing on the roof ever again", True),
        ("Nobody climbs the roof without a rope.", True),
        ("Nobody knows it.", False),
        ("He never touches the archive.", False),
        ("I have never seen the mill.", False),
        ("Er geht nie in den Keller.", False),
        ("She asked why it was not there.", False),
    ],
)
def test_what_is_never_done_by_nobody_in_particular_is_a_rule(text: str, rule: bool) -> None:  # P17
    assert bool(does(text) & phrases.PROHIBITION) is rule


def test_only_with_a_permission_is_a_limit() -> None:  # P17
    assert does("Only the night watch may open it.") & phrases.LIMITS
    assert does("Nur die Wache darf es öffnen.") & phrases.LIMITS
    assert not does("Only the night watch was there.") & phrases.LIMITS


def test_a_rule_beside_a_story_is_one_and_a_story_none() -> None:  # P17
    rule = phrases.PROHIBITION << phrases.HINT
    assert does("No dogs in the orchard, the farmer was very clear.") & rule
    assert not does("He was never in the orchard.") & rule
    assert not does("Jugaba solo con la pelota azul.") & (phrases.LIMITS << phrases.HINT)


@pytest.mark.parametrize(
    "text",
    [
        "I drove up there without a hat.",
        "Krótki spacer bez parasola.",
        "Ohne Pause auf den Gipfel.",
        "Hemos comido sin él.",
        "On part avec ou sans toi.",
    ],
)
def test_without_alone_is_no_condition(text: str) -> None:
    does_ = does(text)
    assert not (does_ & phrases.NEGATION and does_ & phrases.UNTIL)


@pytest.mark.parametrize(
    "text", ["Must nobody enter the shed before noon?", "Darf man hier nur bar zahlen?", "¿Nadie puede entrar sin casco?"]
)
def test_what_is_asked_is_no_rule(text: str) -> None:  # P18
    assert not does(text) & (phrases.PROHIBITION | phrases.LIMITS | DUTY)


def test_a_rule_in_a_request_is_one() -> None:  # P17
    assert does("Could you please never call before nine?") & phrases.PROHIBITION


@pytest.mark.parametrize(
    "text",
    [
        "Never seen a sky like that.",
        "I never expected so many guests.",
        "Mai visto un mare così blu.",
        "Nunca vi um mar assim.",
        "Nunca había visto un mar así.",
        "Jamais vu une mer pareille.",
        "Nog nooit zo'n zee gezien.",
        "Nigdy nie widziałam takiego morza.",
        "Никогда не видела такого моря.",
        "The old dog never barks.",
        "Frau Brandt grüßt seit Jahren nicht mehr.",
        "La vecina toca la trompeta sin piedad.",
        "Mon frère dit que je chante toujours.",
    ],
)
def test_what_never_happened_is_no_rule(text: str) -> None:
    assert not does(text) & (phrases.PROHIBITION | phrases.LIMITS | DUTY | CORRECTION)


@pytest.mark.parametrize(
    "text", ["Er raucht nicht mehr.", "Ya no fuma.", "Non fuma più, non più di una volta.", "Hij rookt niet meer.", "Już nie pali."]
)
def test_what_is_no_longer_is_denied(text: str) -> None:  # P18
    assert does(text) & phrases.NEGATION
