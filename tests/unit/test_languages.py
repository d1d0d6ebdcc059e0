"""Sentences of a household in every language of the tables: what they do, how sure they are, and what is only talk."""

import pytest

from clew.context import phrases
from clew.context.phrases import CORRECTION, DECISION, DUTY, LIMITS, OBJECTION, PROHIBITION, PROMISE, REASON, TASK, WHEN
from clew.context.survival import Said, Statement, heard
from tests.threads import START

RULE = PROHIBITION | LIMITS | DUTY
SENTENCES = {
    "English": {
        "constraint": [
            "Never ring my aunt after nine in the evening.",
            "Nobody goes into the workshop without gloves.",
            "No garlic in Saturday's dinner, please.",
            "The gate has to stay shut while the dogs are out.",
            "The original photos are never edited, only the copies.",
            "Only Marta may open the safe.",
            "They asked us not to change the name of the file.",
            "We don't spend more than 300 euros on the present.",
            "Cash only at the market, nobody takes cards there.",
            "please dont post pictures of the kids",
        ],
        "decision": [
            "We've decided to take the train because the flight is too expensive.",
            "We'll take the house in New Lane, because it has a garden.",
        ],
        "correction": [
            "The train leaves from Ely, not from March.",
            "No, the meeting is on Wednesday, not on Tuesday.",
            "I was wrong: the code is 5512.",
            "There are six chairs, not five.",
        ],
        "task": [
            "Remind me on 12 June to pay the bill.",
            "Mail the architect about the visit.",
            "I'll call the plumber tomorrow.",
            "I still have to hand in the papers at school by Friday.",
            "Could you write a letter to the landlord?",
        ],
        "guessed": [
            "I think the tap costs about 80 euros.",
            "Maybe the doctor is back from holiday on Thursday.",
        ],
        "hypothetical": [
            "If we moved to Oslo, we would need a visa.",
        ],
        "small": [
            "What a lovely day, don't you think?",
            "I didn't sleep at all last night.",
            "My mother can't cook, but she tries.",
            "The cat always sleeps on the sofa.",
            "Yesterday we only went to the park.",
        ],
    },
    "German": {
        "constraint": [
            "Ruf meine Tante nie nach neun Uhr abends an.",
            "Niemand darf ohne Handschuhe in die Werkstatt.",
            "Kein Knoblauch im Essen am Samstag, bitte.",
            "Das Tor muss zu bleiben, wenn die Hunde draußen sind.",
            "Die Originalfotos werden nie bearbeitet, nur die Kopien.",
            "Nur Marta darf den Tresor öffnen.",
            "Sie haben uns gebeten, den Namen der Datei nicht zu ändern.",
            "Wir geben nicht mehr als 300 Euro für das Geschenk aus.",
        ],
        "decision": [
            "Wir haben beschlossen, mit dem Zug zu fahren, weil der Flug zu teuer ist.",
            "Wir nehmen das Haus in der Neugasse, denn es hat einen Garten.",
        ],
        "correction": [
            "Der Zug fährt in Ulm ab, nicht in Aalen.",
            "Nein, die Sitzung ist am Mittwoch, nicht am Dienstag.",
            "Ich habe mich geirrt: der Code ist 5512.",
            "Es sind sechs Stühle, nicht fünf.",
        ],
        "task": [
            "Erinnere mich am 12. Juni daran, die Rechnung zu zahlen.",
            "Schick dem Architekten eine Mail wegen der Besichtigung.",
            "Ich rufe morgen den Installateur an.",
            "Ich muss die Papiere noch bis Freitag in der Schule abgeben.",
            "Kannst du einen Brief an die Hausverwaltung schreiben?",
        ],
        "guessed": [
            "Ich glaube, der Hahn kostet etwa 80 Euro.",
            "Vielleicht kommt der Arzt am Donnerstag aus dem Urlaub zurück.",
        ],
        "hypothetical": [
            "Wenn wir nach Oslo ziehen würden, bräuchten wir ein Visum.",
        ],
        "small": [
            "Was für ein schöner Tag, findest du nicht?",
            "Ich habe heute Nacht gar nicht geschlafen.",
            "Meine Mutter kann nicht kochen, aber sie versucht es.",
            "Die Katze schläft immer auf dem Sofa.",
            "Gestern waren wir nur im Park.",
        ],
    },
    "French": {
        "constraint": [
            "N'appelle jamais ma tante après neuf heures du soir.",
            "Personne ne peut entrer dans l'atelier sans gants.",
            "Pas d'ail dans le dîner de samedi, s'il te plaît.",
            "Le portail doit rester fermé quand les chiens sont dehors.",
            "Les photos originales ne sont jamais modifiées, on travaille sur des copies.",
            "Seule Marthe peut ouvrir le coffre.",
            "On nous a demandé de ne pas changer le nom du fichier.",
            "On ne dépense pas plus de 300 euros pour le cadeau.",
        ],
        "decision": [
            "On a décidé de prendre le train parce que l'avion est trop cher.",
            "On prend la maison de la rue Neuve, car elle a un jardin.",
        ],
        "correction": [
            "Le train part de Dijon, pas de Beaune.",
            "Non, la réunion est mercredi, pas mardi.",
            "Je me suis trompée : le code est 5512.",
            "Il y a six chaises, et non cinq.",
        ],
        "task": [
            "Rappelle-moi de payer la facture le 12 juin.",
            "Envoie un mail à l'architecte pour la visite.",
            "J'appelle le plombier demain matin.",
            "Je dois encore rendre les papiers à l'école avant vendredi.",
            "Peux-tu écrire une lettre au syndic ?",
        ],
        "guessed": [
            "Je crois que le robinet coûte environ 80 euros.",
            "Le médecin revient peut-être de vacances jeudi.",
        ],
        "hypothetical": [
            "Si on déménageait à Oslo, il nous faudrait un visa.",
        ],
        "small": [
            "Quelle belle journée, tu ne trouves pas ?",
            "Je n'ai rien dormi cette nuit.",
            "Ma mère ne sait pas cuisiner, mais elle essaie.",
            "Le chat dort toujours sur le canapé.",
            "Hier on est juste allés au parc.",
        ],
    },
    "Spanish": {
        "constraint": [
            "No llames nunca a mi tía después de las nueve de la noche.",
            "Nadie puede entrar en el taller sin guantes.",
            "Nada de ajo en la cena del sábado, por favor.",
            "La verja tiene que estar cerrada cuando los perros están fuera.",
            "Las fotos originales nunca se tocan, se trabaja con copias.",
            "Solo Marta puede abrir la caja fuerte.",
            "Nos pidieron que no cambiáramos el nombre del archivo.",
            "No gastamos más de 300 euros en el regalo.",
        ],
        "decision": [
            "Hemos decidido ir en tren porque el avión es demasiado caro.",
            "Nos quedamos con la casa de la calle Nueva, porque tiene jardín.",
        ],
        "correction": [
            "El tren sale de Burgos, no de León.",
            "No, la reunión es el miércoles, no el martes.",
            "Me equivoqué: el código es 5512.",
            "Son seis sillas, no cinco.",
        ],
        "task": [
            "Recuérdame el 12 de junio que pague la factura.",
            "Manda un correo al arquitecto por la visita.",
            "Mañana llamo al fontanero.",
            "Todavía tengo que entregar los papeles en la escuela antes del viernes.",
            "¿Puedes escribir una carta a la comunidad?",
        ],
        "guessed": [
            "Creo que el grifo cuesta unos 80 euros.",
            "A lo mejor el médico vuelve de vacaciones el jueves.",
        ],
        "hypothetical": [
            "Si nos mudáramos a Oslo, necesitaríamos un visado.",
        ],
        "small": [
            "Qué día tan bonito, ¿no crees?",
            "No he dormido nada esta noche.",
            "Mi madre no sabe cocinar, pero lo intenta.",
            "El gato siempre duerme en el sofá.",
            "Ayer fuimos solo al parque.",
        ],
    },
    "Italian": {
        "constraint": [
            "Non chiamare mai mia zia dopo le nove di sera.",
            "Nessuno può entrare nel laboratorio senza guanti.",
            "Niente aglio nella cena di sabato, per favore.",
            "Il cancello deve restare chiuso quando i cani sono fuori.",
            "Le foto originali non si toccano mai, si lavora solo sulle copie.",
            "Solo Marta può aprire la cassaforte.",
            "Mi hanno chiesto di non cambiare il nome del file.",
            "Non spendiamo più di 300 euro per il regalo.",
        ],
        "decision": [
            "Abbiamo deciso di prendere il treno perché l'aereo costa troppo.",
            "Prendiamo la casa in via Roma, perché ha il giardino.",
            "Andiamo con la seconda ditta, visto che porta via anche i mobili vecchi.",
        ],
        "correction": [
            "Il treno parte da Pisa, non da Lucca.",
            "No, la riunione è mercoledì, non martedì.",
            "Mi sono sbagliata: il codice è 5512.",
            "Sono sei sedie, non cinque.",
        ],
        "task": [
            "Ricordami di pagare la bolletta il 12 giugno.",
            "Manda una mail al geometra per il sopralluogo.",
            "Chiamo l'idraulico domani mattina.",
            "Devo ancora consegnare i documenti alla scuola entro venerdì.",
            "Potresti scrivere una lettera al condominio?",
            "Puoi prenotare il traghetto per quattro persone?",
        ],
        "guessed": [
            "Credo che il rubinetto costi circa 80 euro.",
            "Forse il medico torna giovedì dalle ferie.",
            "Mi sembra che la chiave sia dal vicino.",
        ],
        "hypothetical": [
            "Se ci trasferissimo a Oslo, avremmo bisogno di un visto.",
        ],
        "small": [
            "Che bella giornata, non trovi?",
            "Non ho dormito niente stanotte.",
            "Mia madre non sa cucinare, ma ci prova.",
            "Il gatto dorme sempre sul divano.",
            "Non era poi così male.",
            "Ieri siamo andati solo al parco.",
            "Non lo so nemmeno io.",
        ],
    },
    "Portuguese": {
        "constraint": [
            "Nunca ligues à minha tia depois das nove da noite.",
            "Ninguém pode entrar no laboratório sem luvas.",
            "Nada de alho no jantar de sábado, por favor.",
            "O portão deve ficar fechado quando os cães estão fora.",
            "As fotografias originais nunca são alteradas, trabalha-se sobre cópias.",
            "Só a Marta pode abrir o cofre.",
            "Pediram-nos para não mudar o nome do ficheiro.",
            "Não gastamos mais de 300 euros no presente.",
        ],
        "decision": [
            "Decidimos ir de comboio porque o avião é caro demais.",
            "Ficamos com a casa da rua nova, porque tem jardim.",
        ],
        "correction": [
            "O comboio parte de Braga, não do Porto.",
            "Não, a reunião é na quarta, não na terça.",
            "Enganei-me: o código é 5512.",
            "São seis cadeiras, não cinco.",
        ],
        "task": [
            "Lembra-me de pagar a conta no dia 12 de junho.",
            "Manda um email ao arquiteto por causa da visita.",
            "Amanhã ligo ao canalizador.",
            "Ainda tenho de entregar os papéis na escola até sexta.",
            "Podes escrever uma carta ao condomínio?",
        ],
        "guessed": [
            "Acho que a torneira custa cerca de 80 euros.",
            "Talvez o médico volte das férias na quinta.",
        ],
        "hypothetical": [
            "Se nos mudássemos para Oslo, precisaríamos de um visto.",
        ],
        "small": [
            "Que dia bonito, não achas?",
            "Não dormi nada esta noite.",
            "A minha mãe não sabe cozinhar, mas tenta.",
            "O gato dorme sempre no sofá.",
            "Ontem fomos só ao parque.",
        ],
    },
    "Dutch": {
        "constraint": [
            "Bel mijn tante nooit na negen uur 's avonds.",
            "Niemand mag zonder handschoenen het lab in.",
            "Geen knoflook in het eten van zaterdag, alsjeblieft.",
            "Het hek moet dicht blijven als de honden buiten zijn.",
            "De originele foto's worden nooit bewerkt, alleen de kopieën.",
            "Alleen Marta mag de kluis openen.",
            "Ze vroegen ons de naam van het bestand niet te veranderen.",
            "We geven niet meer dan 300 euro uit aan het cadeau.",
        ],
        "decision": [
            "We hebben besloten met de trein te gaan omdat het vliegtuig te duur is.",
            "We nemen het huis in de Nieuwstraat, want het heeft een tuin.",
        ],
        "correction": [
            "De trein vertrekt uit Delft, niet uit Leiden.",
            "Nee, de vergadering is woensdag, niet dinsdag.",
            "Ik heb me vergist: de code is 5512.",
            "Het zijn zes stoelen, niet vijf.",
        ],
        "task": [
            "Herinner me eraan op 12 juni de rekening te betalen.",
            "Stuur een mail naar de architect over het bezoek.",
            "Ik bel morgen de loodgieter.",
            "Ik moet de papieren nog voor vrijdag bij de school inleveren.",
            "Kun je een brief aan de vereniging schrijven?",
        ],
        "guessed": [
            "Ik denk dat de kraan ongeveer 80 euro kost.",
            "Misschien komt de dokter donderdag terug van vakantie.",
        ],
        "hypothetical": [
            "Als we naar Oslo zouden verhuizen, zouden we een visum nodig hebben.",
        ],
        "small": [
            "Wat een mooie dag, vind je niet?",
            "Ik heb vannacht niets geslapen.",
            "Mijn moeder kan niet koken, maar ze probeert het.",
            "De kat slaapt altijd op de bank.",
            "Gisteren zijn we alleen naar het park geweest.",
        ],
    },
    "Polish": {
        "constraint": [
            "Nigdy nie dzwoń do mojej ciotki po dziewiątej wieczorem.",
            "Nikt nie może wchodzić do pracowni bez rękawic.",
            "Żadnego czosnku w sobotniej kolacji, proszę.",
            "Brama musi być zamknięta, kiedy psy są na dworze.",
            "Oryginalnych zdjęć nigdy nie ruszamy, pracujemy na kopiach.",
            "Tylko Marta może otwierać sejf.",
            "Prosili nas, żeby nie zmieniać nazwy pliku.",
            "Na prezent wydajemy nie więcej niż 300 zł.",
        ],
        "decision": [
            "Postanowiliśmy jechać pociągiem, bo samolot jest za drogi.",
            "Bierzemy dom przy Nowej, bo ma ogród.",
        ],
        "correction": [
            "Pociąg odjeżdża z Kutna, a nie z Łodzi.",
            "Nie, zebranie jest w środę, nie we wtorek.",
            "Pomyliłam się: kod to 5512.",
            "Jest sześć krzeseł, nie pięć.",
        ],
        "task": [
            "Przypomnij mi 12 czerwca o zapłaceniu rachunku.",
            "Wyślij maila do architekta w sprawie wizyty.",
            "Jutro zadzwonię do hydraulika.",
            "Muszę jeszcze oddać papiery w szkole do piątku.",
            "Możesz napisać list do wspólnoty?",
        ],
        "guessed": [
            "Chyba kran kosztuje około 80 zł.",
            "Może lekarz wróci z urlopu w czwartek.",
        ],
        "hypothetical": [
            "Gdybyśmy przeprowadzili się do Oslo, potrzebowalibyśmy wizy.",
        ],
        "small": [
            "Jaki piękny dzień, prawda?",
            "Nic dziś w nocy nie spałam.",
            "Moja mama nie umie gotować, ale próbuje.",
            "Kot zawsze śpi na kanapie.",
            "Wczoraj byliśmy tylko w parku.",
        ],
    },
    "Russian": {
        "constraint": [
            "Никогда не звони моей тёте после девяти вечера.",
            "Никто не должен входить в лабораторию без перчаток.",
            "Никакого чеснока в субботнем ужине, пожалуйста.",
            "Ворота должны быть закрыты, пока собаки на улице.",
            "Оригиналы фотографий никогда не трогаем, работаем только с копиями.",
            "Только Марта может открывать сейф.",
            "Нас просили не менять название файла.",
            "На подарок тратим не больше 300 евро.",
        ],
        "decision": [
            "Мы решили ехать поездом, потому что самолёт слишком дорогой.",
            "Берём дом на Новой улице, потому что там есть сад.",
        ],
        "correction": [
            "Поезд уходит из Твери, а не из Тулы.",
            "Нет, собрание в среду, а не во вторник.",
            "Я ошиблась: код 5512.",
            "Там шесть стульев, не пять.",
        ],
        "task": [
            "Напомни мне 12 июня оплатить счёт.",
            "Отправь письмо архитектору насчёт визита.",
            "Завтра позвоню сантехнику.",
            "Мне ещё надо сдать документы в школу до пятницы.",
            "Можешь написать письмо в управляющую компанию?",
        ],
        "guessed": [
            "Кажется, кран стоит около 80 евро.",
            "Может быть, врач вернётся из отпуска в четверг.",
        ],
        "hypothetical": [
            "Если бы мы переехали в Осло, нам была бы нужна виза.",
        ],
        "small": [
            "Какой хороший день, правда?",
            "Я совсем не спала этой ночью.",
            "Моя мама не умеет готовить, но старается.",
            "Кот всегда спит на диване.",
            "Вчера мы ходили только в парк.",
        ],
    },
    "Chinese": {
        "constraint": [
            "晚上九点以后绝对不要给我姨妈打电话。",
            "没有手套谁都不能进车间。",
            "星期六的晚饭不要放大蒜。",
            "狗在外面的时候大门必须关着。",
            "原始照片从不修改,只改副本。",
            "只有玛莎可以打开保险箱。",
            "他们要求我们不要改文件名。",
        ],
        "decision": [
            "我们决定坐火车,因为飞机太贵了。",
            "就选新街的房子,因为有院子。",
        ],
        "correction": [
            "火车从苏州出发,不是从无锡。",
            "不对,会议是星期三,不是星期二。",
            "我记错了,密码是5512。",
            "一共六把椅子,不是五把。",
        ],
        "task": [
            "6月12日提醒我付账单。",
            "给建筑师发一封邮件,说参观的事。",
            "我明天给水管工打电话。",
            "星期五之前还要把材料交到学校。",
            "你能帮我给物业写封信吗?",
        ],
        "guessed": [
            "水龙头大概要80块钱。",
            "医生可能星期四休假回来。",
        ],
        "hypothetical": [
            "如果我们搬到奥斯陆,就需要签证。",
        ],
        "small": [
            "今天天气真好,是不是?",
            "我昨晚一点没睡。",
            "我妈不会做饭,但她会试试。",
            "猫总是睡在沙发上。",
            "昨天我们只去了公园。",
        ],
    },
    "Japanese": {
        "constraint": [
            "夜九時以降は絶対に叔母に電話しないでください。",
            "手袋なしで工房に入ってはいけません。",
            "土曜日の夕食にはにんにくを入れないでください。",
            "犬が外にいるときは必ず門を閉めてください。",
            "元の写真は絶対に編集しません。コピーだけ使います。",
            "金庫を開けていいのはマルタさんだけです。",
            "ファイル名を変えないように頼まれました。",
            "プレゼントは一万円以内にしてください。",
        ],
        "decision": [
            "飛行機は高いので、電車で行くことに決めました。",
            "庭があるので、新町の家にします。",
        ],
        "correction": [
            "電車は大津からではなく、草津から出ます。",
            "いえ、会議は火曜日ではなく水曜日です。",
            "間違えました。番号は5512です。",
        ],
        "task": [
            "6月12日に請求書の支払いを思い出させてください。",
            "建築家に見学のメールを送ってください。",
            "明日、水道屋さんに電話します。",
            "大家さんへの手紙を書いてもらえますか。",
        ],
        "guessed": [
            "蛇口はたぶん八千円くらいです。",
            "先生は木曜日に休みから戻るかもしれません。",
        ],
        "hypothetical": [
            "もしオスロに引っ越したら、ビザが必要です。",
        ],
        "small": [
            "今日はいい天気ですね。",
            "昨日は全然眠れませんでした。",
            "母は料理ができませんが、頑張っています。",
            "猫はいつもソファで寝ています。",
            "昨日は公園に行っただけです。",
        ],
    },
}
CASES = [(kind, text) for language in SENTENCES.values() for kind, texts in language.items() for text in texts]


def spoken(text: str) -> list[Statement]:
    return list(heard([Said(text, "Ada", "user", "m9", 9, START)]).statements)


def done_in(text: str) -> int:
    does = 0
    for each in spoken(text):
        does |= each.does
    return does


def of(*kinds: str) -> list[str]:
    return [text for kind, text in CASES if kind in kinds]


@pytest.mark.parametrize("text", of("constraint"))
def test_a_rule_is_told(text: str) -> None:  # P17 P18
    assert done_in(text) & RULE


@pytest.mark.parametrize("text", of("decision"))
def test_a_decision_is_told_with_its_reason(text: str) -> None:  # P17
    assert phrases.does(done_in(text), DECISION)
    assert done_in(text) & REASON


@pytest.mark.parametrize("text", of("correction"))
def test_a_correction_is_told(text: str) -> None:  # P17
    assert done_in(text) & (CORRECTION | OBJECTION)


@pytest.mark.parametrize("text", of("task"))
def test_something_to_do_is_told(text: str) -> None:  # P17
    does = done_in(text)
    assert phrases.does(does, TASK) or (phrases.does(does, PROMISE) and does & WHEN)


@pytest.mark.parametrize(("kind", "text"), [each for each in CASES if each[0] in ("guessed", "hypothetical")])
def test_a_guess_is_told_from_a_statement(kind: str, text: str) -> None:  # P18
    assert kind in {each.certainty for each in spoken(text)}


@pytest.mark.parametrize("text", of("constraint", "decision", "correction"))
def test_a_statement_is_no_guess(text: str) -> None:  # P18
    assert {each.certainty for each in spoken(text)} == {"said"}


@pytest.mark.parametrize("text", of("small"))
def test_talk_is_none_of_it(text: str) -> None:
    assert not done_in(text) & (RULE | CORRECTION | DECISION | TASK | PROMISE)


def test_every_language_is_tried() -> None:
    assert len(SENTENCES) == 11
    assert all(len(kinds["constraint"]) >= 5 and len(kinds["small"]) >= 2 for kinds in SENTENCES.values())
