"""Spanish."""

PHRASES = {
    "common": """el la los las un una unos unas de del al y o es en que con por para como más pero si su sus mi mis tu tus nuestro
        nuestra lo le les se me te nos yo tú él ella ellos usted este esta esto ese esa eso está están son fue ser hay muy también ya
        cuando donde qué quién cómo hoy aquí allí ha he han tengo tiene porque sobre hasta desde todo no sí estoy estás vino come""",
    "negation": "no, nunca, jamás, nada, nadie, ningún, ninguna, ninguno, ni, tampoco, sin, evita, evitar, evite, ya no",
    "prohibition": """?nunca, ?jamás, ?^no *es, ?^no *as, ^no haga, ^no llame, ^no envíe, ^no use, ^no borre, ^no toque, ^no mande, ^no
        ponga, ^no olvide, ^no diga, ^no publique, ^no compre, ^no pague, ^no cambie, ^no reserve, por favor no, no se puede, no debe, no
        deben, no debes, no debemos, ?no puede, ?no pueden, ?no quiero, ?no queremos, prohibid*, está prohibido, bajo ninguna
        circunstancia, en ningún caso, de ninguna manera, ?^nada de, ?^ningún, ?^ninguna, ni hablar, ^evita, ^evite, no hay que, nunca
        más, sin preguntar, sin mi permiso, sin consultar, no permit*, ^nunca, ^jamás, nunca se, no debe nunca, nadie puede, nadie debe,
        no le des, no les des, no lo, no la, no los, no las, no se le, no se les, ?pedido que no, ?pidió que no, ?dicho que no, ?dijo que
        no, ?pidieron que no, ?pide que no, ?piden que no, ?dijeron que no""",
    "limits": """?solo, ?sólo, ?solamente, ?únicamente, ?salvo, ?excepto, a menos que, a no ser que, como máximo, como mínimo, ?máximo,
        ?mínimo, al menos, por lo menos, a lo sumo, no más de, no menos de, a más tardar, no antes de, no después de, exclusivamente,
        siempre que, siempre y cuando, con tal de, mientras que, ?límite, ?hasta un, solo si, sólo si, solo cuando, sólo cuando, solo con,
        solo por, solo después, solo puede, solo pueden, solo se puede, puede solo, sólo puede, solo debe""",
    "duty": """debe, deben, ?debes, debemos, tiene que ser, obligatori*, imprescindible, asegúrate, asegúrese, es importante, ?cada vez,
        sin excepción, ?sin falta, estrictamente, necesariamente, ?regla, ?exijo, ?exige, pregúntame antes, pregunta antes, a partir de
        ahora, de ahora en adelante, ?hay que, quiero siempre, siempre quiero, ?^siempre, tiene que estar, tienen que estar, tiene que
        quedar, ?tiene que, ?tienen que""",
    "hedge": """creo que, creo, pienso que, me parece, quizás, quizá, tal vez, probablemente, posiblemente, supongo, imagino, al parecer,
        aparentemente, a lo mejor, puede que, no estoy segur*, no sé si, si no recuerdo mal, que yo sepa, diría que, parece que,
        seguramente, dudo, igual, puede ser que, podría ser que, también puede ser""",
    "hypothetical": """supongamos, imagina, imaginemos, imagínate, hipotéticamente, en teoría, teóricamente, y si, pongamos,
        digamos que, en tu lugar""",
    "condition": "si, en caso de",
    "conditional": "*ría, *ríamos, *rían, *rías, fuera, fuéramos, tuviera, tuviéramos, pudiera, hubiera",
    "decision": """decid*, decisión, acordamos, acordado, ?acuerdo, quedamos en, hemos quedado, elegimos, ?elegido, elijo, escogimos,
        optamos, nos quedamos con, vamos con, usaremos, ?usamos, ?tomamos, ?confirmad*, ?confirmo, ?aprobad*, ?definitiv*,
        está decidido, ?al final será, ?nos pasamos a, ?nos cambiamos a""",
    "correction": """?en realidad, corrección, ya se puede, corrijo, quise decir, quería decir, me equivoqué, ?equivocad*, error mío,
        me he equivocado, mejor dicho, ?en vez de, ?en lugar de, ?sino, ?ya no, ?cambió, ?ha cambiado, ?cambiado, ?ahora es, ?ahora son,
        pasa a ser, se movió, se aplazó, rectifico, ?incorrect*, me confundí, errata, ?más bien, ?de hecho, ?en vez del""",
    "objection": "no, espera, perdón, perdona, disculpa, ups, un momento",
    "task": """?por favor, ?puede usted, ?podría, recuérdame, recuerda, recuérdanos, no olvides, no te olvides, acuérdate, ?tarea,
        ?pendiente, ?tengo que, ?tenemos que, ?tienes que, ?hace falta, ?debería, ?deberíamos, necesito que, quiero que, fecha límite,
        plazo, próximo paso, por hacer, ^reserva, ^reservame, ^reservanos, ^reservalo, ^reservala, ^reservalos, ^reservalas, ^reservale,
        ^reservales, ^llama, ^llamame, ^llamanos, ^llamalo, ^llamala, ^llamalos, ^llamalas, ^llamale, ^llamales, ^envía, ^envíame,
        ^envíanos, ^envíalo, ^envíala, ^envíalos, ^envíalas, ^envíale, ^envíales, ?^manda, ?^mandame, ?^mandanos, ?^mandalo, ?^mandala,
        ?^mandalos, ?^mandalas, ?^mandale, ?^mandales, ^compra, ^comprame, ^compranos, ^compralo, ^comprala, ^compralos, ^compralas,
        ^comprale, ^comprales, ?^pide, ?^pideme, ?^pidenos, ?^pidelo, ?^pidela, ?^pidelos, ?^pidelas, ?^pidele, ?^pideles, ?^revisa,
        ?^revisame, ?^revisanos, ?^revisalo, ?^revisala, ?^revisalos, ?^revisalas, ?^revisale, ?^revisales, ^escribe, ^escribeme,
        ^escribenos, ^escribelo, ^escribela, ^escribelos, ^escribelas, ^escribele, ^escribeles, ^añade, ^añademe, ^añadenos, ^añadelo,
        ^añadela, ^añadelos, ^añadelas, ^añadele, ^añadeles, ^agrega, ^agregame, ^agreganos, ^agregalo, ^agregala, ^agregalos, ^agregalas,
        ^agregale, ^agregales, ^borra, ^borrame, ^borranos, ^borralo, ^borrala, ^borralos, ^borralas, ^borrale, ^borrales, ^elimina,
        ^eliminame, ^eliminanos, ^eliminalo, ^eliminala, ^eliminalos, ^eliminalas, ^eliminale, ^eliminales, ^crea, ^creame, ^creanos,
        ^crealo, ^creala, ^crealos, ^crealas, ^creale, ^creales, ^cancela, ^cancelame, ^cancelanos, ^cancelalo, ^cancelala, ^cancelalos,
        ^cancelalas, ^cancelale, ^cancelales, ^paga, ^pagame, ^paganos, ^pagalo, ^pagala, ^pagalos, ^pagalas, ^pagale, ^pagales, ^prepara,
        ^preparame, ^preparanos, ^preparalo, ^preparala, ^preparalos, ^preparalas, ^preparale, ^preparales, ?^pregunta, ?^preguntame,
        ?^preguntanos, ?^preguntalo, ?^preguntala, ?^preguntalos, ?^preguntalas, ?^preguntale, ?^preguntales, ?^busca, ?^buscame,
        ?^buscanos, ?^buscalo, ?^buscala, ?^buscalos, ?^buscalas, ?^buscale, ?^buscales, ^anota, ^anotame, ^anotanos, ^anotalo, ^anotala,
        ^anotalos, ^anotalas, ^anotale, ^anotales, ^apunta, ^apuntame, ^apuntanos, ^apuntalo, ^apuntala, ^apuntalos, ^apuntalas,
        ^apuntale, ^apuntales, ^planifica, ^planificame, ^planificanos, ^planificalo, ^planificala, ^planificalos, ^planificalas,
        ^planificale, ^planificales, ^imprime, ^imprimeme, ^imprimenos, ^imprimelo, ^imprimela, ^imprimelos, ^imprimelas, ^imprimele,
        ^imprimeles, ^organiza, ^organizame, ^organizanos, ^organizalo, ^organizala, ^organizalos, ^organizalas, ^organizale,
        ^organizales, ?^haz, ?^pon, ?^dime, ?^dame, ?^explica, ?^explicame, ?^explicanos, ?^explicalo, ?^explicala, ?^explicalos,
        ?^explicalas, ?^explicale, ?^explicales, ^avisa, ^avisame, ^avisanos, ^avisalo, ^avisala, ^avisalos, ^avisalas, ^avisale,
        ^avisales, encárgate, me recuerdas, me avisas, me lo recuerdas, ?hay que, ^puedes, ^podrías, ?puedes, ?podrías""",
    "promise": """lo haré, ?haré, me encargo, me ocupo, te aviso, te avisaré, te enviaré, ?voy a, prometo, prometido, me encargaré, lo
        revisaré, reservaré, ?^yo *o, ?se lo *o""",
    "preference": """prefier*, preferid*, preferiría, ?me gusta, no me gusta, ?me encanta, ?odio, ?detesto, alérgic*, alergia,
        vegetarian*, vegan*, intoleran*, ?favorit*""",
    "goal": """objetivo, ?meta, ?quiero, ?queremos, ?quisiera, ?me gustaría, ?proyecto, ?ayúdame, ?estoy intentando, ?intentamos,
        ?propósito, la idea es""",
    "reason": """porque, ya que, puesto que, para que, debido a, razón, por eso, por lo tanto, a causa de, si no, gracias a, pues""",
    "done": """hecho, terminad*, acabad*, listo, lista, resuelto, resuelta, solucionad*, arreglad*, reservad*, enviad*, pagad*,
        cancelad*, comprad*, pedido, entregad*, firmad*, instalad*, llegó""",
    "error": """error, errores, falló, ?fallo, fallado, fracas*, excepción, se cayó, ?roto, ?rota, averiad*, ?denegad*, ?rechazad*,
        inaccesible, no encontrado, ?inválid*, timeout""",
    "open": """pregunta abierta, por decidir, sin decidir, aún no, todavía no, pendiente de, no está claro, por aclarar, queda por,
        en espera""",
    "idle": """no hay problema, no te preocupes, no se preocupe, no pasa nada, por qué no, no está mal, de nada, ni idea, no solo, no
        sólo, nada más, no importa, no sé, ningún problema, sin problema, no hay de qué, nada nuevo, nada especial, no mucho, no hay
        prisa, o no, no es cierto, como siempre, más o menos, tarde o temprano, no tanto, no veas, nada mal, no me digas, con o sin""",
    "numbers": """dos tres cuatro cinco seis siete ocho nueve diez doce trece catorce quince veinte treinta cuarenta cincuenta sesenta
        setenta ochenta noventa cien ciento mil millón docena""",
    "months": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "units": """minuto minutos hora horas día días semana semanas mes meses año años segundos noches euro euros dólares pesos personas
        invitados plazas piezas veces por ciento grados páginas entradas botellas huevos kilos metros litros gramos""",
    "when": """hoy, esta noche, mañana, pasado mañana, la semana que viene, la próxima semana, el próximo, la próxima, el lunes,
        el martes, el miércoles, el jueves, el viernes, el sábado, el domingo, antes del, antes de que, para el, cada día, cada semana,
        cada mes, todos los, todas las, a más tardar, en enero, en febrero, en marzo, en abril, en mayo, en junio, en julio, en agosto,
        en septiembre, en octubre, en noviembre, en diciembre""",
    "naming": """se llama, mi nombre, me llamo, vive en, vivo en, vivimos, nació, cumpleaños, dirección, número es, cuesta, pertenece, en
        total, pesa, mide, ?mi mujer, ?mi marido, ?mi hija, ?mi hijo, ?mi madre, ?mi padre, ?mi hermana, ?mi hermano, ?trabaja, ?cuestan,
        ?toma, ?está en, ?llamad*""",
    "past": """era, eran, fue, fueron, había, estaba, estaban, he, ha sido, hemos, tenía, *aba, *aban, *aron, *ieron, *abamos, nunca
        había, nunca he, nunca ha, nunca vi, nunca *ado, nunca *ido""",
    "until": "antes, hasta, mientras",
    "deadline": "antes del, antes de, para el, a más tardar, como tarde, hasta el, antes de fin, para mañana, plazo",
    "recurring": "cada, todos los, todas las, siempre, diariamente, semanal*",
    "possible": "puede ser, podría ser",
    "leave": ", debe, deben, debes, ?puede, ?pueden",
    "refers": ", eso, esto, esos, esas, estos, estas, no debe, no deben, debe, deben, tiene que, tienen que",
    "because": ", porque, es que, la razón, pues",
    "finite": """es son era eran fue fueron está están estaba estaban ha han había he hay tiene tienen tenía va van puede pueden debe
        deben yo tú él ella ellos quiero quiere soy estoy tengo sé""",
    "copula": "es son era eran fue",
    "denial": "no nunca",
    "joins": "y pero sino",
    "only": "solo sólo solamente",
    "none": "ningún ninguna",
    "leading": """el la los las un una unos unas a al de del en con por para sin sobre desde hasta mi mis tu tus su sus este esta ese
        esa como""",
    "never": "nunca jamás",
    "more": "más de",
    "nobody": "nadie",
    "passive": "es son",
    "bidding": "pide piden pidió pidieron dijo dijeron dice dicen",
    "without": "sin",
    "others": "él ella ellos ellas",
}
