"""Kinds of sentences that are taken for what must survive, and kinds that only look like it, in several languages."""

import pytest

from clew.context.ledger import Certainty
from clew.context.phrases import GOAL
from clew.context.survival import OPENING, Said, Statement, heard
from tests.threads import START


def statements(*texts: str, roles: tuple[str, ...] = ("user",)) -> tuple[Statement, ...]:
    """What is heard in messages, one after another; the roles go round."""
    said = [
        Said(text, "Ada" if role == "user" else role, role, f"m{n}", n, START + 60 * n)  # type: ignore[arg-type]
        for n, (text, role) in enumerate(zip(texts, roles * len(texts), strict=False), 5)
    ]
    return heard(said).statements


def one(text: str, role: str = "user") -> Statement:
    (statement,) = statements(text, roles=(role,))
    return statement


@pytest.mark.parametrize(
    ("text", "certainty"),
    [
        ("Nobody in the choir may be photographed.", "said"),
        ("It may only be opened by the two of us.", "said"),
        ("Only members may have a key.", "said"),
        ("They ask if it may be the second shelf.", "said"),
        ("The parcel may be at the neighbour's.", "guessed"),
        ("It may not be ready in time.", "guessed"),
        ("Das darf nur die Hausverwaltung öffnen.", "said"),
        ("Kann sein, dass niemand kommt.", "guessed"),
        ("Kann auch sein, dass oben noch einer steht.", "guessed"),
        ("Rien ne peut être jeté sans son accord.", "said"),
        ("Il n'est peut-être pas rentré.", "guessed"),
        ("Preguntan si la cita puede ser el martes.", "said"),
        ("Puede ser que no venga nadie.", "guessed"),
        ("Może nikt nie przyjdzie.", "guessed"),
        ("Może tylko Ola otwierać sejf.", "said"),
        ("我想在六月之前搬到大理。", "said"),
        ("我想应该是星期三。", "guessed"),
        ("门票是120元,不是我猜的80元。", "said"),
        ("静かな部屋をお願いします。", "said"),
        ("水曜日かもしれません。", "guessed"),
        ("来週、庭に木を植えたいと思います。", "said"),
        ("木は三本だと思います。", "guessed"),
        ("Gedruckt, unterschrieben, angenommen.", "said"),
        ("Angenommen, wir ziehen nach Kiel.", "hypothetical"),
        ("この店の主人は頼もしい人です。", "said"),
    ],
)
def test_a_permission_or_a_wish_is_no_guess(text: str, certainty: Certainty) -> None:  # P18
    assert one(text).certainty == certainty


@pytest.mark.parametrize(
    "text",
    [
        "My mother thinks it needs more salt.",
        "The plumber's wife called, they moved.",
        "Mein Vater war früher einmal Schaffner.",
        "Ma mère avant son café, c'est un ours.",
        "Mi madre viene a comer los domingos.",
        "Moja mama śpiewa w chórze.",
        "父はもう温泉へ行きました。",
        "我妈第一次坐地铁,很高兴。",
        "隣の人がりんごをくれました。",
        "先生はもう来るそうです。",
    ],
)
def test_what_only_names_a_relative_or_tells_a_story_need_not_survive(text: str) -> None:
    assert not any(each.must for each in statements(text))


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("The gas bill is missing. £87.40.", True),
        ("Der Termin steht. 14. Mai, 9:30 Uhr.", True),
        ("La clé est chez Paul. Elle a 3 dents et un anneau.", False),
        ("The society has a grant. It must be spent on instruments.", True),
        ("Im Keller liegen noch die Fotos. Die dürfen auf keinen Fall weg.", True),
        ("Hay dos llaves en el cajón. No deben salir de casa.", True),
        ("Je garde les négatifs. Ça doit rester au sec.", True),
        ("我家有一棵老树。这棵树绝对不能砍。", False),
        ("二番目の会社に頼みます。値段がはっきりしているからです。", True),
        ("我们选定了第二家。因为他们送货上门。", True),
        ("We went with the blue tiles. Because they are matt.", True),
        ("Wir nehmen die Fähre. Denn der Tunnel ist zu.", True),
        ("Only then do we sell the boat. Not a week before.", True),
        ("The cleaning job is new. It starts at 03:20.", True),
        ("Seven, I think. There may be another one in the loft.", True),
        ("Sieben, glaube ich. Kann auch sein, dass im Keller noch eine Kiste steht.", True),
        ("The weather is fine. Because of the wind I stayed in.", False),
        ("Is it open? They must ring twice.", False),
    ],
)
def test_a_sentence_that_says_nothing_without_the_one_before_is_joined_with_it(text: str, joined: bool) -> None:  # P17
    found = statements(text)
    assert (len(found) == 1) is joined
    assert "".join(each.text for each in found).replace(" ", "") == text.replace(" ", "")
    if joined:
        assert found[0].must


def test_only_an_answer_that_chooses_or_gives_a_figure_is_kept_with_its_question() -> None:  # P17
    chosen = statements("Shall we take the oak or the pine table?", "The oak one.", roles=("assistant", "user"))[-1]
    assert chosen.text.endswith("table? – The oak one.")
    assert chosen.kind == "decision"
    figure = statements("How many chairs are there?", "34 of them.", roles=("assistant", "user"))[-1]
    assert figure.text == "How many chairs are there? – 34 of them."
    for question, answer in (
        ("How did they take it?", "Badly."),
        ("Wie war die Reise?", "Lang und schön."),
        ("¿Qué tal el viaje?", "Pues largo."),
    ):
        story = statements(question, answer, roles=("assistant", "user"))[-1]
        assert (story.text, story.must) == (answer, False)


@pytest.mark.parametrize(
    "text",
    [
        "We're moving the library out of the old school.",
        "The hall has to be painted by 3 May.",
        "Wir wollen bis zum 1. Juni umgezogen sein.",
        "On veut être à Gand le 4 mai.",
        "Quiero que la casa esté lista el 9 de mayo.",
        "Do końca maja chcę mieć nowy rower.",
        "我想在五月开一家书店。",
        "五月三日までに新しい店を開きたいです。",
    ],
)
def test_what_is_wanted_at_the_beginning_of_a_session_is_its_goal(text: str) -> None:  # P18
    (statement,) = heard([Said(text, "Ada", "user", "m1", OPENING, START)]).statements
    assert statement.does & GOAL


def test_a_date_named_later_is_no_goal() -> None:
    text = "The hall has to be painted by 3 May."
    (early,), (late,) = (heard([Said(text, "Ada", "user", "m1", place, START)]).statements for place in (OPENING, OPENING + 1))
    assert early.does & GOAL
    assert not late.does & GOAL
