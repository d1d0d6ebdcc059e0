"""French."""

PHRASES = {
    "common": """le la les un une des de du et ou est c que qui dans pour sur avec au aux il elle je tu nous vous ils ce cette ces mon
        ma mes ton ta tes son sa ses notre votre leur ne pas se en y à d l j qu s plus mais si été être avoir ont sont ai as a par comme
        où aussi très bien fait faire tout quand chez lui moi toi on suis sommes êtes non oui""",
    "negation": """pas, jamais, rien, personne ne, aucun*, sans, ni, nulle part, non, ne plus, point de, guère, n est plus, éviter,
        évite, évitez""",
    "prohibition": """?jamais, n oublie pas de ne, interdit*, défense de, en aucun cas, sous aucun prétexte, surtout pas, il ne faut pas,
        ne dois pas, ne doit pas, ne doivent pas, ne faut pas, pas le droit, ?pas question, hors de question, ?^pas de, ?^aucun*, ?ne veux
        pas, ?ne veut pas, ?ne voulons pas, ^évite, ^évitez, ?plus jamais, sans me demander, sans mon accord, sans demander, ^ne, ^n,
        ^jamais, surtout ne, il ne faut jamais, ne jamais, plus jamais de, ?ne peut être, ?ne peuvent être, ?on ne, ^ne pas, merci de ne
        pas, prière de ne pas, demande de ne pas, demandé de ne pas, dit de ne pas, veille à ne pas, veillez à ne pas, surtout ne pas,
        attention à ne pas, ?à ne pas, ?^pas d""",
    "limits": """?seulement, ?uniquement, que si, ?sauf, à moins que, à moins de, excepté, au maximum, au minimum, au plus, au moins, au
        plus tard, au plus tôt, exclusivement, pas plus de, pas avant, pas après, tant que, à condition, ?maximum, ?minimum, ?limite,
        ?jusqu à, seulement si, seulement quand, que quand, uniquement si, uniquement par, ne peut que, ne peuvent que, ne doit que, peut
        seulement, ?seul, ?seule, ?seuls, ?seules""",
    "duty": """doit, doivent, ?dois, ?devez, impérativement, impératif, obligatoire*, obligatoirement, ?absolument, assure toi,
        assurez vous, veille à, veillez à, systématiquement, ?chaque fois, sans exception, il est important, ?règle, ?exige*, demande
        moi avant, demande avant, à partir de maintenant, dorénavant, désormais, ?il faut, je veux toujours, ?^toujours, ?on toujours,
        ?vous toujours""",
    "hedge": """je crois, je pense, il me semble, probablement, sans doute, je suppose, j imagine, apparemment, il paraît, possible que,
        possiblement, vraisemblablement, pas sûr, pas sûre, pas certain, pas certaine, je ne suis pas sûr, si je me souviens, autant que
        je sache, à mon avis, je dirais, semble, éventuellement, on dirait, je présume, je doute, il se peut, ça se peut""",
    "hypothetical": """supposons, imaginons, imagine, imaginez, hypothétiquement, en théorie, théoriquement, admettons, et si,
        à ta place, à supposer""",
    "condition": "si, au cas où, s",
    "conditional": "*rait, *rions, *raient, serais, aurais, pourrais, voudrais, devrais, ferais, irais",
    "decision": """décid*, décision, d accord pour, convenu, on prend, nous prenons, ?on garde, ?nous gardons, on choisit, ?choisi*,
        opté, optons, adopté, on part sur, nous partons sur, ?retenu, tranché, ?confirmé*, ?validé*, c est acté, on reste sur, ?on fait,
        ?définitif, nous utilisons, on utilise, on s est mis d accord""",
    "correction": """?en fait, correction, ne s applique plus, tu peux de nouveau, je voulais dire, je rectifie, rectification,
        ?erreur, me suis trompé, ?faux, ?inexact, ?plutôt, ?au lieu de, ?au lieu du, ?à la place, ?ne plus, ?n est plus, ?changé,
        ?maintenant c est, ?est maintenant, déplacé*, reporté*, plus exactement, faute de frappe, j ai confondu, ?finalement, trompé,
        trompée, trompés""",
    "objection": "non, attends, attendez, pardon, désolé, désolée, oups",
    "task": """?s il te plaît, ?s il vous plaît, ?stp, ?svp, ?tu peux, ?vous pouvez, rappelle moi, rappelez moi, rappelle, n oublie pas, n
        oubliez pas, ne pas oublier, pense à, pensez à, à faire, ?il faudrait, ?je dois, ?nous devons, ?on doit, ?tâche, échéance, date
        limite, prochaine étape, reste à faire, ^réserve, ^réservez, ^appelle, ^appellez, ^envoie, ^envoiez, ^achète, ^achètez, ^commande,
        ^commandez, ?^vérifie, ?^vérifiez, ^écris, ^écrivez, ^ajoute, ^ajoutez, ^supprime, ^supprimez, ^crée, ^créez, ^annule, ^annulez,
        ^paie, ^paiez, ^paye, ^payez, ^prépare, ^préparez, ?^demande, ?^demandez, ?^trouve, ?^trouvez, ?^cherche, ?^cherchez, ?^note,
        ?^notez, ^planifie, ^planifiez, ^imprime, ^imprimez, ^organise, ^organisez, ?^fais, ?^faites, ?^mets, ?^mettez, ?^prends,
        ?^prenez, ?^donne, ?^donnez, ?^dis, ?^explique, ?^expliquez, occupe toi, tu me rappelles, tu me feras penser, fais moi penser, ?il
        faut, ^peux tu, ^pourrais tu, ^pouvez vous, ^pourriez vous, ?peux tu, ?pourrais tu""",
    "promise": """?je vais, je ferai, je m en occupe, ?je te, ?je vous, je promets, promis, j enverrai, je réserverai, je vérifierai, je
        reviens vers, je *rai, j *rai, ?nous *rons""",
    "preference": """je préfère, préfère*, préféré*, ?j aime, je n aime pas, ?j adore, ?je déteste, allergi*, végétari*, végan*, vegan,
        intoléran*, ?plutôt que, ?favori*""",
    "goal": """?but, objectif, ?je veux, ?nous voulons, ?on veut, ?je voudrais, nous voudrions, ?j aimerais, ?projet, ?aide moi,
        ?aidez moi, ?essaie de, ?essayons de""",
    "reason": """parce que, car, puisque, afin de, afin que, pour que, à cause de, raison, c est pourquoi, donc, sinon, grâce à,
        en raison""",
    "done": """c est fait, est fait, est faite, c est bon, est terminé*, ai terminé, a terminé, est fini*, ai fini, a fini, résolu,
        est résolu*, est réglé*, est corrigé*, est réservé*, ai réservé, a réservé, est envoyé*, ai envoyé, a envoyé, est payé*,
        ai payé, a payé, est annulé*, ai annulé, ai acheté, a acheté, est commandé*, ai commandé, est livré*, est prêt*, est signé*,
        est installé*, est arrivé*""",
    "error": """erreur, erreurs, échoué*, échec, exception, planté*, ?panne, ?cassé*, délai dépassé, ?refusé*, injoignable, introuvable,
        ?invalide, error, timeout""",
    "open": """question ouverte, reste à décider, pas encore, indécis*, pas décidé, pas clair, en suspens, en attente, à définir,
        à clarifier""",
    "idle": """pas de problème, pas de souci, pas de soucis, pas mal, pourquoi pas, ne t inquiète pas, ne vous inquiétez pas, pas du tout,
        de rien, ce n est rien, aucune idée, aucun problème, aucun souci, ça ne fait rien, n est ce pas, non plus, pas seulement, pas
        grave, sans souci, sans problème, je ne sais pas, je sais pas, pas vraiment, rien de spécial, rien de nouveau, plus ou moins, pas
        de quoi, pas pressé, comme toujours, sans doute, n importe, tôt ou tard, on ne sait pas, on ne peut pas, on ne dirait pas, on ne
        voit pas, avec ou sans""",
    "numbers": """deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize vingt trente quarante cinquante
        soixante cent mille million douzaine""",
    "months": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "units": """minute minutes heure heures jour jours semaine semaines mois an ans année années secondes nuits euro euros personnes
        invités places pièces fois pour cent degrés pages billets bouteilles œufs kilos mètres litres grammes""",
    "when": """aujourd hui, ce soir, demain, après demain, la semaine prochaine, le mois prochain, l année prochaine, lundi, mardi,
        mercredi, jeudi, vendredi, samedi, dimanche, avant le, d ici, d ici à, avant fin, chaque jour, chaque semaine, chaque mois,
        tous les, toutes les, au plus tard, en janvier, en février, en mars, en avril, en mai, en juin, en juillet, en août,
        en septembre, en octobre, en novembre, en décembre""",
    "naming": """s appelle, appelé, appelée, nommé, nommée, mon nom, je m appelle, habite, habitons, né le, née le, anniversaire, adresse,
        numéro, se trouve, coûte, appartient, tourne sur, stocké, au total, pèse, ?ma femme, ?mon mari, ?ma fille, ?mon fils, ?ma mère,
        ?mon père, ?ma sœur, ?mon frère, ?travaille, ?coûtent, ?mesure""",
    "past": """était, étaient, avait, avaient, ai, as, a été, ont été, avons, n ai jamais, nous avons, ils ont, elles ont, il a, elle a,
        on a, j ai, l a, m a, t a, lui a, n ont, n a, jamais vu, jamais entendu, jamais eu, jamais été""",
    "until": "avant, tant que, jusqu",
    "deadline": """d ici, d ici là, avant le, avant fin, avant la fin, pour le, au plus tard, avant ce soir, avant demain, avant lundi,
        avant mardi, avant mercredi, avant jeudi, avant vendredi, avant samedi, avant dimanche, d ici lundi, d ici mardi,
        d ici mercredi, d ici jeudi, d ici vendredi, d ici samedi, d ici dimanche, pour lundi, pour mardi, pour mercredi, pour jeudi,
        pour vendredi, pour samedi, pour dimanche""",
    "recurring": "chaque, tous les, toutes les, toujours, d habitude, quotidien*, hebdomadaire*",
    "possible": "peut être",
    "leave": ", doit, doivent, dois, devez, ?peut, ?peuvent, faut",
    "refers": """, ça, cela, il doit, elle doit, ils doivent, elles doivent, c est, ce sont, celui, celle, ceux,
        celles, il ne doit, elle ne doit, ils ne doivent, elles ne doivent""",
    "because": ", car, parce que, c est que, la raison, puisque",
    "finite": """est sont était étaient ont avait avaient sera seront fait va vont peut peuvent doit doivent faut je tu il elle on nous
        vous ils elles veut veux""",
    "copula": "est sont était étaient c ce",
    "denial": "pas non jamais",
    "joins": "et mais donc",
    "only": "seulement juste",
    "none": "aucun aucune",
    "leading": """le la les l un une des du de d à au aux en dans sur pour par avec chez avant après plus pas comme mon ma mes ton ta
        tes son sa ses ce cette""",
    "never": "jamais",
    "more": "plus de",
    "first": "je j on nous",
    "nobody": "personne",
    "passive": "est sont",
    "bidding": "demande demandent demandé dit disent prie prient",
    "without": "sans",
    "others": "il elle ils elles ça",
}
