"""German."""

PHRASES = {
    "common": """der die das und oder ist ein eine einen einem einer es ich du wir ihr sie er mir dir uns mich dich den dem des im am
        zum zur von für mit auf bei aus nach über auch noch schon aber wenn dass wie was wer wo war sind hat haben habe hast bin bist
        wird werden mein dein unser euer sein kein nicht so nur mal doch ja da hier heute dann denn zu man sich vom beim kann können
        soll nein bitte nie""",
    "negation": """nicht, nie, niemals, kein*, nichts, niemand*, nirgends, nirgendwo, weder, ohne, keinesfalls, keineswegs, nimmer, ned,
        nich, nix, vermeide, vermeiden, nicht mehr, doch nicht""",
    "prohibition": """?nie, ?niemals, auf keinen fall, unter keinen umständen, keinesfalls, darf nicht, dürfen nicht, darfst nicht, darf
        kein*, dürfen kein*, soll nicht, sollen nicht, sollst nicht, sollte nicht, muss nicht, verboten, untersagt, nicht erlaubt, bitte
        nicht, bitte kein*, ?^kein*, lass das, ^vermeide, ohne rückfrage, ohne meine, ohne zu fragen, nichts ohne, nicht ohne, ?will
        nicht, ?wollen nicht, möchte nicht, will kein*, möchte kein*, nicht vor, kommt nicht in frage, tabu, ^niemals, ^nie, darf nie,
        darf niemals, dürfen nie, dürfen niemals, nie wieder, nie ohne, niemals ohne, soll nie, sollen nie, bitte nie, niemand darf, auf
        gar keinen fall, darf man nicht, dürfe nicht, ^^nicht""",
    "limits": """?nur, außer, ausser, es sei denn, sofern, höchstens, mindestens, ?maximal, ?minimal, nicht mehr als, nicht weniger als,
        spätestens, frühestens, ausschließlich, ausschliesslich, lediglich, solange, vorausgesetzt, ?maximum, ?minimum, ?bis zu, bloß
        nicht, ausgenommen, nicht über, nicht unter, nicht später als, nur wenn, nur mit, nur nach, erst wenn, nur noch, nur über, nur
        von, nur am, nur bei, nicht vor, darf nur, dürfen nur, darfst nur, darf erst, dürfen erst, soll nur, sollen nur""",
    "duty": """muss, müssen, musst, ?müsst, unbedingt, zwingend, ?pflicht, verpflichtend, ?jedes mal, ausnahmslos, stell sicher, stellt
        sicher, achte darauf, achtet darauf, ?grundsätzlich, wichtig ist dass, es ist wichtig, ?regel, bestehe darauf, ?jedenfalls, frag
        vorher, vorher fragen, frag mich, erst fragen, immer zuerst, ab sofort, ab jetzt, von jetzt an, ich will immer, ich möchte immer,
        wir wollen immer, ?^immer, ?^stets, ?wir immer""",
    "hedge": """ich glaube, glaube ich, ich denke, denke ich, ich meine, meine ich, ich vermute, vermutlich, vielleicht, wahrscheinlich,
        möglicherweise, eventuell, evtl, wohl, anscheinend, angeblich, scheinbar, scheint, könnte sein, bin mir nicht sicher, nicht
        sicher, unsicher, soweit ich weiß, soweit ich weiss, wenn ich mich recht erinnere, schätze, ich nehme an, nehme ich an, womöglich,
        mutmaßlich, glaub ich, glaub, denk ich, schätzungsweise, ungefähr so, oder so""",
    "hypothetical": """stell dir vor, mal angenommen, hypothetisch, theoretisch, was wäre wenn, gesetzt den fall, nehmen wir an, an deiner
        stelle, ^^angenommen""",
    "condition": "wenn, falls",
    "conditional": """würde, würden, würdest, wäre, wären, hätte, hätten, könnte, könnten, müsste, müssten, bräuchte, bräuchten, ginge,
        käme""",
    "decision": """entschied*, entschlossen, entscheid*, beschloss*, beschließ*, vereinbart, ?einig*, geeinigt, festgelegt, abgemacht,
        ?ausgemacht, wir nehmen, ?wir machen, nehmen wir, ?machen wir, wir bleiben bei, bleiben wir bei, bleibt bei, ich nehme,
        wir verwenden, wir benutzen, ?gewählt, ausgewählt, ?wahl fiel, ?endgültig, ?bestätigt, genehmigt, ?zugesagt, ?steht fest,
        dabei bleibt""",
    "correction": """?eigentlich, korrektur, gilt nicht mehr, darfst wieder, wieder erlaubt, aufgehoben, korrigiere, ich meinte,
        meinte ich, ?falsch, ?fehler, vertan, geirrt, irrtum, verwechselt, ?stattdessen, ?statt, ?anstatt, ?sondern, ?nicht mehr,
        doch nicht, vielmehr, ?geändert, verschoben, ?ist jetzt, ?ist nun, ?sind jetzt, tippfehler, ?stimmt nicht, richtig ist,
        muss heißen, ?doch lieber, verlegt auf, verschrieben, berichtig*, ?verlegt, ?umgezogen""",
    "objection": "nein, nee, nö, moment, halt, stopp, sorry, entschuldigung, quatsch, warte",
    "task": """?bitte, ?würdest du, erinner*, vergiss nicht, nicht vergessen, denk dran, denk daran, todo, ?aufgabe, ?muss noch, ?müssen
        noch, ?sollten wir, ?wir müssen, ?ich muss, ?du sollst, fällig, frist, ?termin, deadline, nächster schritt, noch offen, zu
        erledigen, ^buch, ^buche, ^bucht, ^ruf, ^rufe, ^ruft, ^schick, ^schicke, ^schickt, ^sende, ^sendee, ^sendet, ^kauf, ^kaufe,
        ^kauft, ^bestell, ^bestelle, ^bestellt, ?^prüf, ?^prüfe, ?^prüft, ^schreib, ^schreibe, ^schreibt, ?^mach, ?^mache, ?^macht,
        ?^stell, ?^stelle, ?^stellt, ?^such, ?^suche, ?^sucht, ^hol, ^hole, ^holt, ?^frag, ?^frage, ?^fragt, ^trag, ^trage, ^tragt,
        ^lösch, ^lösche, ^löscht, ^änder, ^ändere, ^ändert, ^erstell, ^erstelle, ^erstellt, ?^plan, ?^plane, ?^plant, ^zahl, ^zahle,
        ^zahlt, ^überweis, ^überweise, ^überweist, ^reservier, ^reserviere, ^reserviert, ^druck, ^drucke, ^druckt, ^merk, ^merke, ^merkt,
        ^organisier, ^organisiere, ^organisiert, ^bereite, ^bereitee, ^bereitet, ^kündig, ^kündige, ^kündigt, ^verschieb, ^verschiebe,
        ^verschiebt, ?^gib, ?^nimm, ?^leg, ?^lege, ?^legt, ?^setz, ?^setze, ?^setzt, ^melde, ?^sag, ?^zeig, ?^zeige, ?^zeigt, ?^erklär,
        ?^erkläre, ?^erklärt, kümmere dich, brauche bis, ^bitte, und bitte, erinnerst du mich, erinnere mich, kannst du mich erinnern,
        denkst du daran, ^kannst du, ^könntest du, ^können sie, ^könnten sie, ?kannst du, ?könntest du""",
    "promise": """?ich werde, ?werde ich, ich kümmere mich, ?ich mache das, ?mache ich, ich sorge, ich melde mich, melde ich mich, ich
        erinnere, ich schicke, ich verspreche, versprochen, ich buche, ich prüfe, ?ich schaue, ?^ich *e""",
    "preference": """lieber, am liebsten, bevorzug*, ?ich mag, ?mag ich, mag keine*, ?gefällt, liebling*, lieblings*, allergi*,
        vegetari*, vegan*, unverträglich*, ?ich liebe, ?ich hasse, ?gern, ?ungern, ?schmeckt""",
    "goal": """ziel, ?zweck, ?ich will, wir wollen, ?ich möchte, wir möchten, ?vorhaben, ?projekt, ?hilf mir, geplant ist, ich plane,
        wir planen, ?ich versuche, ?wir versuchen""",
    "reason": "weil, denn, damit, deshalb, deswegen, grund, wegen, daher, darum, sonst, nämlich, da wir, da es, da ich",
    "done": """erledigt, fertig, abgeschlossen, gelöst, behoben, gebucht, verschickt, gesendet, bezahlt, überwiesen, geklappt,
        geschafft, storniert, gekauft, bestellt, geliefert, eingereicht, installiert, hochgeladen, unterschrieben, angekommen, gekündigt""",
    "error": """fehler, fehlgeschlagen, fehlermeldung, gescheitert, absturz, abgestürzt, ?kaputt, ?defekt, zeitüberschreitung,
        ?verweigert, ?abgelehnt, nicht erreichbar, nicht gefunden, ?ungültig, error, exception, timeout""",
    "open": """offene frage, noch offen, unentschieden, nicht entschieden, unklar, ungeklärt, noch nicht, steht noch aus, ausstehend,
        müssen noch klären, zu klären""",
    "idle": """ich merke mir das, ich werde es mir merken, ich werde daran denken, ich denke daran, mache ich gern, das mache ich, kein
        problem, keine sorge, keine ahnung, nicht schlecht, warum nicht, nicht nur, macht nichts, nichts zu danken, keine ursache, gar
        nicht so, nicht so schlimm, kein ding, weiß nicht, weiss nicht, ob oder nicht, oder nicht, nicht wahr, kein stress, keine eile,
        nichts besonderes, nichts neues, nicht viel, kein wunder, ganz und gar nicht schlecht, noch nie so, mehr oder weniger, früher oder
        später, immer noch, immer wieder, wie immer, nicht übel, auch nicht schlecht, macht ja nichts, mit oder ohne, hätte ich nie, hätte
        nie, hätte ich niemals""",
    "numbers": """zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn
        neunzehn zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig hundert tausend million dutzend""",
    "months": "januar februar märz april mai juni juli august september oktober november dezember",
    "units": """minute minuten stunde stunden tag tage tagen woche wochen monat monate monaten jahr jahre jahren sekunden uhr euro
        personen leute gäste plätze stück mal prozent grad seiten karten flaschen eier kilo meter liter gramm nächte""",
    "when": """heute abend, morgen, übermorgen, nächste woche, nächsten monat, nächstes jahr, am montag, am dienstag, am mittwoch, am
        donnerstag, am freitag, am samstag, am sonntag, bis montag, bis dienstag, bis mittwoch, bis donnerstag, bis freitag, bis samstag,
        bis sonntag, jeden tag, jede woche, jeden monat, jeden montag, jeden dienstag, jeden mittwoch, jeden donnerstag, jeden freitag,
        jeden samstag, jeden sonntag, täglich, wöchentlich, monatlich, bis zum, bis ende, vor dem, im januar, im februar, im märz, im
        april, im mai, im juni, im juli, im august, im september, im oktober, im november, im dezember, nächsten montag, nächsten freitag,
        spätestens, heute noch, noch heute, heute nachmittag, heute mittag""",
    "naming": """heißt, heißen, heisst, genannt, mein name, name ist, wohne, wohnt, lebt in, geboren, geburtstag, adresse, nummer ist,
        liegt unter, erreichbar unter, liegt in, kostet, gehört, läuft auf, gespeichert, steht in, kommt auf, macht zusammen, wiegt,
        misst, ?meine frau, ?mein mann, ?meine tochter, ?mein sohn, ?meine mutter, ?mein vater, ?meine schwester, ?mein bruder, ?arbeitet,
        ?kosten""",
    "past": "war, waren, wurde, wurden, hatte, hatten, habe, hast, hat, haben wir, gewesen, noch nie",
    "until": "bevor, bis, ehe, solange, vorher",
    "deadline": """bis montag, bis dienstag, bis mittwoch, bis donnerstag, bis freitag, bis samstag, bis sonntag, bis morgen,
        bis heute abend, bis ende, bis zum, bis spätestens, spätestens, rechtzeitig, frist, vor ende, bis ostern, bis weihnachten""",
    "recurring": "jeden, jede, jedes, jedem, täglich, wöchentlich, monatlich, immer, stets, ab jetzt",
    "possible": "kann sein, kann auch sein, kann gut sein, mag sein, könnte auch sein",
    "leave": ", darf, dürfen, darfst, dürft, dürfe, soll, sollen, sollst, sollt, solle",
    "refers": """, die darf, die dürfen, die muss, die müssen, die soll, die sollen, das darf, das muss, das soll, das
        ist, das sind, der darf, der muss, der soll, er darf, er muss, sie darf, sie muss, es darf, es muss, dies*,
        den darf, den dürfen, davon, dabei, dafür""",
    "because": ", weil, denn, der grund, nämlich, grund",
    "finite": """ist sind bin bist war waren hat haben habe hast hatte hatten wird werden wurde wurden kann können konnte konnten muss
        müssen musste soll sollen sollte darf dürfen will wollen wollte ich du er wir ihr man es gibt gab geht kommt macht steht liegt
        möchte hätte wäre würde sie""",
    "copula": "ist sind war waren",
    "denial": "nicht nie niemals",
    "joins": "und also aber",
    "only": "nur bloß erst",
    "none": "kein keine keinen keinem keiner",
    "leading": """der die das den dem des ein eine einen einem einer am im in an auf aus bei mit nach von vom zu zum zur für bis ab um
        über unter vor mein meine dein deine wie""",
    "object": "sie ihn mir uns mich dich bitte",
    "adverb": """für ohne gegen um durch wegen mit bei zu von nach vor aus bis seit trotz außer heute gestern morgen jetzt hab habe hat
        dann wie als ob weil dass wenn""",
    "never": "nie niemals",
    "more": "mehr als",
    "bidding": "gebeten bittet bat verlangt",
    "first": "ich wir",
    "nobody": "niemand",
    "passive": "wird werden",
    "without": "ohne",
    "others": "er es",
}
