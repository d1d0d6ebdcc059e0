"""Portuguese."""

PHRASES = {
    "common": """o a os as um uma de do da dos das no na nos nas em e ou é que com por para como mais mas se seu sua meu minha nosso
        nossa ele ela eles elas eu tu você vocês nós me te lhe isso isto este esta esse essa está estão são foi ser tem ter há muito
        também já quando onde quem hoje aqui ao à pelo pela não sim até sem sobre todo ainda estou""",
    "negation": "não, nunca, jamais, nada, ninguém, nenhum*, nem, tampouco, sem, evita, evite, evitar, já não, não é mais",
    "prohibition": """?nunca, ?jamais, ?^não *es, ?^não *as, ^não ligue, ^não faça, ^não use, ^não envie, ^não mande, ^não apague, ^não
        compre, ^não pague, ^não diga, ^não coloque, ^não ponha, ^não publique, ^não mexa, ^não toque, ^não altere, ^não mude, ^não
        marque, ^não reserve, ^não chame, ^não conte, ^não deixe, ^não abra, ^não peça, ^não escreva, ^não esqueça, por favor não, ?não
        pode, ?não podem, não deve, não devem, não devemos, ?não quero, ?não queremos, proibid*, em hipótese alguma, em nenhum caso, de
        jeito nenhum, de forma alguma, ?^nada de, ?^nenhum*, nem pensar, ^evite, ^evita, nunca mais, sem perguntar, sem minha, sem a
        minha, sem avisar, não é permitido, não se pode, ^nunca, ^jamais, ninguém pode, ninguém deve, pediram para não, pediu para não,
        pediram nos para não, pediu nos para não, pediu me para não, pedido para não, disse para não""",
    "limits": """?só, ?somente, ?apenas, unicamente, ?exceto, ?salvo, a menos que, a não ser que, no máximo, no mínimo, ?máximo, ?mínimo,
        pelo menos, não mais de, não mais que, não menos de, o mais tardar, não antes, não depois, exclusivamente, desde que, contanto
        que, enquanto, ?limite, só se, só quando, somente se, apenas se, só com, só pode, só podem, pode só, só se pode""",
    "duty": """deve, devem, devemos, tem que ser, obrigatóri*, imprescindível, certifique se, garanta, é importante, ?toda vez, ?cada vez,
        sem exceção, sem falta, rigorosamente, necessariamente, ?regra, ?exijo, exige, é preciso, pergunta antes, me pergunte antes, a
        partir de agora, daqui em diante, ?^sempre""",
    "hedge": """acho que, acho, creio, penso que, parece me, talvez, provavelmente, possivelmente, suponho, imagino, ao que parece,
        aparentemente, não tenho certeza, não tenho a certeza, não sei se, se bem me lembro, se não me engano, que eu saiba, diria que,
        parece que, duvido, quem sabe, pode ser que, também pode ser""",
    "hypothetical": """suponhamos, supondo, imagina, imagine, imaginemos, hipoteticamente, em teoria, teoricamente, e se, digamos que,
        no teu lugar, no seu lugar""",
    "condition": "se, caso",
    "conditional": "*ria, *ríamos, *riam, *rias, fosse, fôssemos, tivesse, pudesse, houvesse",
    "decision": """decid*, decisão, combinamos, combinado, combinámos, acordado, escolhemos, ?escolhido, escolhi, optamos, ficamos com,
        vamos com, usaremos, ?usamos, vamos usar, ?confirmad*, ?confirmo, ?aprovad*, ?definitiv*, está decidido, ficou decidido,
        ficou combinado""",
    "correction": """?na verdade, correção, não vale mais, corrijo, corrigindo, quis dizer, queria dizer, me enganei, enganei me,
        ?errei, ?errado, ?errada, meu erro, ?em vez de, ?ao invés de, em lugar de, mas sim, e sim, ?já não, ?não é mais, ?mudou,
        ?alterad*, ?agora é, agora são, passou a, foi adiad*, retifico, ?incorret*, confundi, ?aliás, ou melhor, ?de fato""",
    "objection": "não, espera, espere, desculpa, desculpe, ops, calma, peraí",
    "task": """?por favor, ?pode, ?podia, ?você pode, lembra me, me lembre, lembre me, me lembra, lembra, lembre, não esqueça, não
        esqueças, não te esqueças, ?tarefa, ?pendente, ?tenho que, ?temos que, ?tens que, preciso que, ?precisamos, quero que,
        ?deveríamos, prazo, próximo passo, por fazer, a fazer, ^reserva, ^reserve, ^liga, ^ligue, ^envia, ^envie, ^manda, ^mande, ^compra,
        ^compre, ^pede, ^peça, ?^verifica, ^verifique, ^escreve, ^escreva, ^adiciona, ^adicione, ^apaga, ^apague, ^cria, ^crie, ^cancela,
        ^cancele, ^paga, ^pague, ^prepara, ^prepare, ?^pergunta, ^pergunte, ?^procura, ^anota, ^anote, ^planeja, ^imprime, ^imprima,
        ^organiza, ?^faz, ?^faça, ?^põe, ?^diz, ?^explica, ^avisa, ^avise, me lembras, me avisas, me lembra de, ?é preciso, ?é necessário,
        ^podes, ^poderias, ^você pode, ^você poderia, ?podes, ?poderia, ?tenho de, ?temos de, ?tens de, ?ainda tenho""",
    "promise": """?vou, ?farei, eu cuido, trato disso, te aviso, aviso te, enviarei, prometo, prometido, vou verificar, reservarei, vou
        tratar, ?*arei, ?*erei, ?*irei""",
    "preference": """prefir*, prefer*, preferid*, ?gosto de, não gosto, ?adoro, ?odeio, ?detesto, alérgic*, alergia, vegetarian*,
        vegan*, intoleran*, ?favorit*""",
    "goal": """objetivo, ?meta, ?quero, ?queremos, ?gostaria, gostaríamos, ?projeto, ?ajuda me, ?me ajude, estou tentando,
        estamos tentando, propósito, a ideia é""",
    "reason": """porque, pois, já que, uma vez que, para que, devido a, razão, por isso, portanto, por causa de, senão, graças a""",
    "done": """feito, feita, terminad*, acabad*, pronto, pronta, concluíd*, resolvid*, corrigid*, reservad*, enviad*, pago, paga,
        cancelad*, comprad*, encomendad*, entregue, assinad*, instalad*, chegou""",
    "error": """erro, erros, falhou, falha, falhado, exceção, travou, ?quebrad*, avariad*, ?negad*, ?recusad*, inacessível,
        não encontrado, inválid*, timeout""",
    "open": """pergunta em aberto, por decidir, ainda não, a decidir, indecis*, não está claro, por esclarecer, pendente de, em aberto,
        falta decidir""",
    "idle": """sem problema, sem problemas, não há problema, não tem problema, não te preocupes, não se preocupe, por que não, porque
        não, nada mal, de nada, não faz mal, não importa, não sei, não só, não é, não é mesmo, não há de quê, nada de novo, nada de
        especial, não muito, sem pressa, ou não, nem ideia, mais ou menos, como sempre, mais cedo ou mais tarde, pois não, nada
        demais, com ou sem""",
    "numbers": """dois três quatro cinco seis sete oito nove dez onze doze treze catorze quinze vinte trinta quarenta cinquenta sessenta
        setenta oitenta noventa cem cento mil milhão dúzia""",
    "months": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "units": """minuto minutos hora horas dia dias semana semanas mês meses ano anos segundos noites euro euros reais pessoas convidados
        lugares peças vezes por cento graus páginas bilhetes garrafas ovos quilos metros litros gramas""",
    "when": """hoje, esta noite, amanhã, depois de amanhã, a semana que vem, próxima semana, mês que vem, segunda feira, terça feira,
        quarta feira, quinta feira, sexta feira, sábado, domingo, na segunda, na terça, na quarta, na quinta, na sexta, até segunda,
        até sexta, antes de, até o, até ao, todos os, todas as, cada dia, em janeiro, em fevereiro, em março, em abril, em maio,
        em junho, em julho, em agosto, em setembro, em outubro, em novembro, em dezembro""",
    "naming": """se chama, chama se, meu nome, me chamo, chamo me, moro, mora, vive em, vivo em, nasceu, aniversário, endereço, número é,
        fica em, custa, pertence, no total, pesa, mede, ?minha mulher, ?minha esposa, ?meu marido, ?minha filha, ?meu filho, ?minha mãe,
        ?meu pai, ?trabalha, ?custam, ?chamad*""",
    "past": """era, eram, foi, foram, tinha, estava, estavam, havia, *ava, *avam, *aram, *iram, *ávamos, nunca vi, nunca tinha, nunca fui,
        nunca ouvi, nunca *ou""",
    "until": "antes, até, enquanto",
    "deadline": "até, até o, até ao, antes do, o mais tardar, prazo, para amanhã, até amanhã",
    "recurring": "cada, todos os, todas as, toda a, todo o, sempre, semanal*",
    "possible": "pode ser, poderia ser",
    "leave": ", deve, devem, ?pode, ?podem",
    "refers": ", isso, isto, esses, essas, não deve, não devem, não pode, não podem, deve, devem",
    "because": ", porque, é que, o motivo, a razão",
    "finite": "é são era eram foi foram está estão estava tem têm tinha há vai vão pode podem deve devem eu ele ela eles quero quer sei",
    "copula": "é são era eram foi",
    "denial": "não nunca",
    "joins": "e mas",
    "only": "só apenas somente",
    "none": "nenhum nenhuma",
    "leading": "o a os as um uma de do da dos em no na nos com por para ao à meu minha teu seu sua este esta esse como",
    "never": "nunca jamais",
    "more": "mais de",
    "nobody": "ninguém",
    "passive": "é são",
    "bidding": "pede pedem pediu pediram disse disseram",
    "without": "sem",
    "others": "ele ela eles elas",
}
