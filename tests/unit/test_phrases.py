"""What sentences do, told by their words, language by language."""

import pytest

from clew.context import languages, phrases
from clew.context.phrases import (
    ALL,
    CONDITION,
    CONDITIONAL,
    CORRECTION,
    DEADLINE,
    DECISION,
    DONE,
    DUTY,
    HEDGE,
    HYPOTHETICAL,
    LIMITS,
    NEGATION,
    OBJECTION,
    PREFERENCE,
    PROHIBITION,
    PROMISE,
    REASON,
    TASK,
    does,
    fold,
    read,
)

BITS = {
    "never": PROHIBITION,
    "not": NEGATION,
    "only": LIMITS,
    "must": DUTY,
    "maybe": HEDGE,
    "chosen": DECISION,
    "because": REASON,
    "wrong": CORRECTION,
    "to do": TASK,
    "i will": PROMISE,
    "done": DONE,
    "like": PREFERENCE,
    "by": DEADLINE,
}

SAID = {
    "English": {
        "never": "Never deploy on Fridays. | Please don't call before nine. | You must not post there. | In no case ring.",
        "not": "I can't eat fish. | Nobody was there. | It works without a key.",
        "only": "Only ring the bell unless it is night. | Spend at most 40 euros. | Answer only when I ask.",
        "must": "The file must be signed. | Make sure that the door is shut.",
        "maybe": "I think it costs 80 euros. | Perhaps it rains. | I'm not sure. | He may be ill.",
        "chosen": "We decided on the blue one. | Let's go with SQLite. | We agreed on Monday.",
        "because": "We take the train because it is cheap.",
        "wrong": "Actually the code is 5512. | I meant the other one. | Correction: it is Tuesday.",
        "to do": "Please book the ferry. | Remind me to pay the rent. | Call the plumber. | Don't forget the keys.",
        "i will": "I'll send it tomorrow. | I will check that.",
        "done": "The ferry is booked. | I paid it and it's done.",
        "like": "I'd rather have tea. | She is allergic to nuts.",
        "by": "Send it by Friday. | I need it before the end of May.",
    },
    "German": {
        "never": "Das darf nie passieren. | Du darfst nicht löschen. | Auf keinen Fall klingeln. | Bitte nicht anrufen.",
        "not": "Er kommt nicht mit. | Ich habe keine Zeit. | Es geht auch ohne Schlüssel.",
        "only": "Nur wenn ich es sage, außer am Montag. | Gib höchstens 40 Euro aus.",
        "must": "Die Datei muss unterschrieben sein. | Stell sicher, dass die Tür zu ist. | Es muss unbedingt stimmen.",
        "maybe": "Ich glaube, es kostet 80 Euro. | Vielleicht regnet es. | Ich bin mir nicht sicher. | Es ist wohl kaputt.",
        "chosen": "Wir haben uns für Blau entschieden. | Wir nehmen den Zug. | Wir haben uns geeinigt.",
        "because": "Wir nehmen den Zug, weil er billig ist.",
        "wrong": "Korrektur: es ist Dienstag. | Ich meinte den anderen. | Da habe ich mich vertan.",
        "to do": "Erinnere mich an die Miete. | Vergiss nicht den Schlüssel. | Buche die Fähre.",
        "i will": "Ich kümmere mich darum. | Ich melde mich morgen. | Ich verspreche es.",
        "done": "Die Fähre ist gebucht. | Das ist erledigt.",
        "like": "Ich trinke lieber Tee. | Sie ist allergisch gegen Nüsse.",
        "by": "Schick es bis Freitag. | Das brauche ich bis Ende Mai.",
    },
    "French": {
        "never": "N'appelle pas avant neuf heures. | Il ne faut jamais sonner. | Tu ne dois pas effacer. | En aucun cas le soir.",
        "not": "Il ne mange pas de poisson. | Personne ne vient. | Ça marche sans clé.",
        "only": "Seulement si je le dis, sauf lundi. | Dépense au maximum 40 euros.",
        "must": "Le fichier doit être signé. | Assure-toi que la porte est fermée.",
        "maybe": "Je crois que ça coûte 80 euros. | Il pleut peut-être. | Je ne suis pas sûr. | C'est probablement cassé.",
        "chosen": "Nous avons décidé de prendre le train. | On prend le bleu. | On part sur SQLite.",
        "because": "On prend le train parce que c'est moins cher.",
        "wrong": "Je voulais dire mardi. | Je me suis trompée. | Correction : c'est mardi.",
        "to do": "Rappelle-moi de payer le loyer. | N'oublie pas les clés. | Réserve le bateau.",
        "i will": "Je m'en occupe. | Je vérifierai demain.",
        "done": "C'est fait, le bateau est réservé.",
        "like": "Je préfère le thé. | Elle est allergique aux noix.",
        "by": "Envoie-le avant vendredi. | Il me le faut d'ici lundi.",
    },
    "Spanish": {
        "never": "No llames antes de las nueve. | Nunca borres nada. | No se puede tocar. | En ningún caso por la noche.",
        "not": "No come pescado. | No vino nadie. | Funciona sin llave.",
        "only": "Solo si yo lo digo, salvo el lunes. | Gasta como máximo 40 euros.",
        "must": "El archivo debe estar firmado. | Asegúrate de cerrar la puerta.",
        "maybe": "Creo que cuesta 80 euros. | Quizás llueva. | No estoy seguro. | A lo mejor está roto.",
        "chosen": "Hemos decidido ir en tren. | Nos quedamos con el azul. | Quedamos en el lunes.",
        "because": "Vamos en tren porque es barato.",
        "wrong": "Quise decir el martes. | Me equivoqué. | Corrección: es el martes.",
        "to do": "Recuérdame pagar el alquiler. | No olvides las llaves. | Reserva el barco.",
        "i will": "Me encargo de eso. | Te aviso mañana.",
        "done": "El barco está reservado. | Ya está hecho.",
        "like": "Prefiero el té. | Es alérgica a las nueces.",
        "by": "Mándalo antes del viernes. | Lo necesito para el lunes.",
    },
    "Italian": {
        "never": "Non si può cancellare niente. | Non deve suonare mai. | In nessun caso di notte.",
        "not": "Non mangia pesce. | Funziona senza chiave.",
        "only": "Solo se lo dico io, tranne lunedì. | Spendi al massimo 40 euro.",
        "must": "Il file deve essere firmato. | Assicurati che la porta sia chiusa.",
        "maybe": "Credo che costi 80 euro. | Forse piove. | Non sono sicuro. | Probabilmente è rotto.",
        "chosen": "Abbiamo deciso di prendere il treno. | Andiamo con il blu.",
        "because": "Prendiamo il treno perché costa poco.",
        "wrong": "Volevo dire martedì. | Mi sono sbagliata. | Correzione: è martedì.",
        "to do": "Ricordami di pagare l'affitto. | Non dimenticare le chiavi. | Prenota il traghetto.",
        "i will": "Me ne occupo io. | Ti avviso domani.",
        "done": "Il traghetto è prenotato. | È tutto risolto.",
        "like": "Preferisco il tè. | È allergica alle noci.",
        "by": "Mandalo entro venerdì.",
    },
    "Portuguese": {
        "never": "Não ligue antes das nove. | Não se pode apagar nada. | Em hipótese alguma à noite.",
        "not": "Ele não come peixe. | Funciona sem chave.",
        "only": "Só se eu disser, exceto na segunda. | Gasta no máximo 40 euros.",
        "must": "O ficheiro deve estar assinado. | Certifique-se de que a porta está fechada.",
        "maybe": "Acho que custa 80 euros. | Talvez chova. | Não tenho certeza. | Provavelmente está avariado.",
        "chosen": "Decidimos ir de comboio. | Ficamos com o azul.",
        "because": "Vamos de comboio porque é barato.",
        "wrong": "Quis dizer terça. | Enganei-me. | Correção: é terça.",
        "to do": "Lembra-me de pagar a renda. | Não esqueças as chaves. | Reserva o barco.",
        "i will": "Eu cuido disso. | Trato disso amanhã.",
        "done": "O barco está reservado. | Já está feito.",
        "like": "Prefiro chá. | É alérgica a nozes.",
        "by": "Manda até sexta.",
    },
    "Dutch": {
        "never": "Bel nooit, dat mag niet. | Je mag niet wissen. | In geen geval aanbellen.",
        "not": "Hij eet geen vis. | Hij komt niet mee. | Het werkt zonder sleutel.",
        "only": "Alleen als ik het zeg, tenzij het nacht is. | Geef hoogstens 40 euro uit.",
        "must": "Het bestand moet ondertekend zijn. | Zorg ervoor dat de deur dicht is.",
        "maybe": "Ik denk dat het 80 euro kost. | Misschien regent het. | Het is waarschijnlijk kapot.",
        "chosen": "We hebben besloten de trein te nemen. | We gaan voor blauw. | Dat is afgesproken.",
        "because": "We nemen de trein omdat die goedkoop is.",
        "wrong": "Ik bedoelde dinsdag. | Ik heb me vergist. | Correctie: het is dinsdag.",
        "to do": "Herinner me aan de huur. | Vergeet niet de sleutels. | Boek de veerboot.",
        "i will": "Ik zorg daarvoor. | Ik regel het morgen.",
        "done": "De boot is geboekt. | Het is geregeld.",
        "like": "Ik drink liever thee. | Ze is allergisch voor noten.",
        "by": "Stuur het uiterlijk vrijdag.",
    },
    "Polish": {
        "never": "Nie dzwoń przed dziewiątą. | Nie wolno niczego kasować. | Proszę nie dzwonić. | W żadnym wypadku w nocy.",
        "not": "On nie je ryb. | To działa bez klucza.",
        "only": "Tylko jeśli powiem, chyba że jest noc. | Wydaj najwyżej 40 złotych.",
        "must": "Plik musi być podpisany. | Upewnij się, że drzwi są zamknięte.",
        "maybe": "Myślę, że to kosztuje 80 złotych. | Może pada. | Prawdopodobnie jest zepsute.",
        "chosen": "Zdecydowaliśmy się na pociąg. | Ustaliliśmy poniedziałek. | Wybraliśmy niebieski.",
        "because": "Jedziemy pociągiem, bo jest tani.",
        "wrong": "Miałam na myśli wtorek. | Pomyliłem się. | Sprostowanie: to wtorek.",
        "to do": "Przypomnij mi o czynszu. | Nie zapomnij kluczy. | Zarezerwuj prom.",
        "i will": "Zajmę się tym. | Dam znać jutro.",
        "done": "Prom jest zarezerwowany. | To już załatwione.",
        "like": "Wolę herbatę. | Ona ma alergię na orzechy.",
        "by": "Wyślij to do piątku.",
    },
    "Russian": {
        "never": "Не звони до девяти. | Нельзя ничего удалять. | Ни в коем случае не ночью. | Пожалуйста, не отправляй это.",
        "not": "Он не ест рыбу. | Это работает без ключа.",
        "only": "Только если я скажу, кроме понедельника. | Потрать не более 40 рублей.",
        "must": "Файл обязательно подписать. | Убедись, что дверь закрыта.",
        "maybe": "Думаю, это стоит 80 рублей. | Возможно, дождь. | Кажется, сломано. | Я не уверен.",
        "chosen": "Мы решили ехать поездом. | Договорились на понедельник. | Мы выбрали синий.",
        "because": "Едем поездом, потому что дёшево.",
        "wrong": "Я имел в виду вторник. | Я ошиблась. | Поправка: вторник.",
        "to do": "Напомни мне о квартплате. | Не забудь ключи. | Забронируй паром.",
        "i will": "Я займусь этим. | Сообщу завтра.",
        "done": "Паром забронирован. | Всё готово.",
        "like": "Я предпочитаю чай. | У неё аллергия на орехи.",
        "by": "Отправь до пятницы.",
    },
    "Chinese": {
        "never": "绝对不要在周五部署。 | 禁止删除文件。 | 请勿打扰。 | 千万别打电话。",
        "not": "他不吃鱼。 | 没有钥匙也能用。",
        "only": "只在我说的时候按铃,除非是晚上。 | 最多花四十块。",
        "must": "文件必须签字。 | 务必锁门。",
        "maybe": "我觉得要八十块。 | 可能下雨。 | 大概坏了。",
        "chosen": "我们决定坐火车。 | 就用蓝色的。",
        "because": "坐火车,因为便宜。",
        "wrong": "不是周一,而是周二。 | 我说错了。 | 更正一下。",
        "to do": "提醒我交房租。 | 别忘了钥匙。",
        "i will": "我会处理。 | 交给我。",
        "done": "船票订好了。 | 已经完成。",
        "like": "她对坚果过敏。 | 宁可喝茶。",
        "by": "周五之前发给我。",
    },
    "Japanese": {
        "never": "金曜日には絶対にデプロイしないでください。 | 消してはいけません。 | 電話禁止。",
        "not": "彼は魚を食べない。 | 鍵は要りません。",
        "only": "私が言うときに限ります。 | 遅くとも九時です。 | 予算は4万円以内。",
        "must": "ファイルは必ず署名してください。 | 閉めなければならない。",
        "maybe": "たぶん80円です。 | 雨かもしれません。 | 壊れていると思う。",
        "chosen": "電車にすることに決めました。 | 青にしましょう。",
        "because": "安いので電車にします。",
        "wrong": "月曜ではなく火曜です。 | 訂正します。 | 間違えました。",
        "to do": "家賃をリマインドしてほしい。 | 鍵を忘れないで。 | 船を予約して。",
        "i will": "お送りします。 | 約束します。",
        "done": "予約しました。 | 作業は完了です。",
        "like": "ナッツのアレルギーがあります。 | 食べられません。",
        "by": "金曜日までに送って。",
    },
}

IDLE = {
    "English": "No problem at all. | Don't worry about it. | Why not? | Not bad. | No idea.",
    "German": "Kein Problem. | Keine Sorge. | Warum nicht? | Nicht schlecht. | Keine Ahnung.",
    "French": "Pas de problème. | Ne t'inquiète pas. | Pourquoi pas ? | Pas mal. | De rien.",
    "Spanish": "No pasa nada. | No te preocupes. | ¿Por qué no? | De nada.",
    "Italian": "Nessun problema. | Non preoccuparti. | Perché no? | Di niente.",
    "Portuguese": "Sem problema. | Não se preocupe. | Por que não? | De nada.",
    "Dutch": "Geen probleem. | Geen zorgen. | Waarom niet? | Niet slecht.",
    "Polish": "Nie ma problemu. | Nie martw się. | Czemu nie? | Nie ma za co.",
    "Russian": "Не проблема. | Не волнуйся. | Почему бы и нет? | Не за что.",
    "Chinese": "没关系。 | 没问题。 | 不客气。",
    "Japanese": "問題ありません。 | すみません。 | かもしれない。",
}


def heard(sentence: str) -> int:
    return read(sentence, languages.likely(languages.counts(sentence)))


CASES = [
    (f"{language}: {what}", sentence.strip(), BITS[what])
    for language, table in SAID.items()
    for what, sentences in table.items()
    for sentence in sentences.split(" | ")
]


@pytest.mark.parametrize(("what", "sentence", "bit"), CASES)
def test_what_a_sentence_does_is_told_by_its_words(what: str, sentence: str, bit: int) -> None:  # P17 P18
    assert does(heard(sentence), bit), what


@pytest.mark.parametrize("language", sorted(SAID))
def test_every_language_has_every_kind_of_sentence(language: str) -> None:
    assert set(SAID[language]) == set(BITS)


@pytest.mark.parametrize("sentence", [each.strip() for table in IDLE.values() for each in table.split(" | ")])
def test_set_phrases_deny_nothing(sentence: str) -> None:  # P17
    assert not does(heard(sentence), NEGATION | PROHIBITION)


@pytest.mark.parametrize(
    "sentence",
    [
        "If we moved to Oslo, we would need a visa.",
        "Wenn wir nach Oslo zögen, würden wir ein Visum brauchen.",
        "Si on déménageait à Oslo, il faudrait un visa.",
        "Si nos mudáramos a Oslo, necesitaríamos un visado.",
        "Se ci trasferissimo a Oslo, servirebbe un visto.",
        "Se fôssemos para Oslo, precisaríamos de um visto.",
        "Als we naar Oslo zouden verhuizen, hebben we een visum nodig.",
        "Gdybyśmy przeprowadzili się do Oslo, byłaby potrzebna wiza.",
        "Если бы мы переехали в Осло, нужна была бы виза.",
        "如果搬到奥斯陆,就需要签证。",
        "もしオスロに引っ越したら、ビザが要ります。",
    ],
)
def test_what_is_only_imagined_is_told_from_what_is(sentence: str) -> None:  # P18
    found = heard(sentence)
    assert found & HYPOTHETICAL or (found & CONDITION and found & CONDITIONAL)


@pytest.mark.parametrize(
    ("sentence", "bit"),
    [
        ("Am 5. Mai fahren wir nach Hamburg.", NEGATION),  # mai is never in Italian
        ("Das Wetter war schön und wir waren lange draußen.", CONDITIONAL),  # waren is not wären
        ("Don't forget the keys, please.", PROHIBITION),
        ("The number of guests is settled by the hotel and the bill is paid.", NEGATION),
    ],
)
def test_words_of_another_language_or_of_a_longer_phrase_mean_nothing(sentence: str, bit: int) -> None:  # P17
    assert not does(heard(sentence), bit)


def test_a_bare_no_objects_and_denies_nothing() -> None:  # P17
    assert heard("No, the blue one.") & OBJECTION
    assert not does(heard("No, the blue one."), NEGATION)


def test_a_hint_is_told_from_what_is_plain() -> None:
    plain, hint = heard("Remind me to pay the rent."), heard("I need to pay the rent.")
    assert plain & TASK
    assert not hint & TASK
    assert hint & TASK << phrases.HINT


def test_accents_and_apostrophes_do_not_matter() -> None:
    assert fold("N’oublie PAS Ça") == fold("n'oublie pas ca")
    assert fold("Straße für Łódź") == "strasse fuer lodz"
    assert heard("N’oublie pas les clés") == heard("N'oublie pas les cles")


def test_languages_are_told_by_their_common_words() -> None:
    english, german = (
        languages.likely(languages.counts(text)) for text in ("We are going to the park with them.", "Wir gehen mit ihnen in den Park.")
    )
    assert english != german
    assert languages.likely({}) == ALL
    assert languages.within({1: 1}, 2) == 2
