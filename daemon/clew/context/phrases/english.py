"""English."""

PHRASES = {
    "common": """the a an and or of to in is it that this for on with as are was were be been have has had do does did you i we they he
        she my your our their me us them at by from if so but what which who when where how there here will would can could should about
        just some any all more than then too very also get got let know like out up into over after before because again still now no
        not never yes please""",
    "negation": """not, no, never, none, nobody, nothing, nowhere, neither, nor, cannot, without, no one, no longer, don t, doesn t, didn
        t, isn t, aren t, wasn t, weren t, won t, wouldn t, can t, couldn t, shouldn t, mustn t, hasn t, haven t, hadn t, ain t, needn t,
        dont, doesnt, didnt, isnt, cant, wont, shouldnt, mustnt, refuse, refuses, avoid, not anymore""",
    "prohibition": """^don t, ^do not, ^dont, please don t, please do not, please dont, you don t, you do not, must not, mustn t, mustnt,
        may not, should not, shouldn t, shouldnt, shall not, not to be, not allowed, not permitted, nobody may, no one may, under no
        circumstances, in no case, on no account, forbidden, prohibited, off limits, ^avoid, ^stop, ?^no, ?we don t, do not want, don t
        want, without asking, without my, is not to, are not to, ?no more, cannot be, can t be, ?won t accept, don t let, never ever,
        ^never, must never, should never, may never, can never, shall never, ?we never, ?you never, ?they never, never again, and never,
        but never, to never, please never, is never to, are never to, nobody should, no one should, nobody touches, do not ever, don t
        ever, ?never, ?not to, nobody ever, no one ever, said don t, says don t, said dont, says dont, said do not, said not to, says not
        to, told me not to, told us not to, asked not to, asked us not to, asked me not to, is never *ed, are never *ed, is never *en, are
        never *en""",
    "limits": """?only, unless, ?except, at most, at least, no more than, no less than, not more than, no later than, no earlier than, not
        before, not after, ?maximum, ?minimum, exclusively, solely, as long as, provided that, no other than, nothing but, ?limit, limited
        to, not over, not above, not below, only ever, ever only, only from, only after, only when, only with, only if, only then, only
        by, only on, not a day before, not until, no one but, nobody but, all but, may only, it may only, can only, must only""",
    "duty": """must, ?required, mandatory, make sure, be sure to, ensure, ?strictly, ?every time, without exception, ?insist, ?shall, is
        important that, ?has to be, ?have to be, ?needs to be, ?need to be, rule, ask before, ask me before, ask first, check with me, ask
        me first, from now on, by default, at all times, i always want, we always want, ?^always, ?we always, ?you always, ?must always,
        has to stay, have to stay""",
    "hedge": """i think, i guess, i believe, i suppose, i assume, i suspect, i reckon, we think, maybe, perhaps, probably, possibly,
        presumably, apparently, supposedly, might, could be, not sure, not certain, unsure, seems, seem, looks like, likely, unlikely, if
        i remember, if i recall, as far as i know, afaik, iirc, my guess, i d say, i d guess, i doubt, i imagine, hopefully, tentatively,
        rumour, rumor, guessing, not entirely sure, don t know if, don t know whether, or so, it may not, that may not, this may not, may
        be that""",
    "hypothetical": """suppose, supposing, imagine, hypothetically, hypothetical, what if, in theory, theoretically, let s say,
        let s assume, assuming, were to, if i were, if we were, if it were""",
    "condition": "if, in case",
    "conditional": "would, wouldn t, could, d",
    "decision": """decid*, decision, agreed, we agree, settle on, ?settled, settled on, go with, going with, went with, opt for, ?opted,
        ?chose, ?chosen, ?picked, we ll take, we take, let s take, let s use, ?let s go, ?let s do, let s stick, stick with, ?final,
        ?confirmed, ?approved, signed off, we ll use, ?we use, we will use, we will take, will be used, the choice, we ll keep,
        ?we keep, ?it ll be, ?resolved to""",
    "correction": """actually, correction, you may now, you can now, is lifted, no longer applies, doesn t apply, ?forget about, ?i meant,
        i misspoke, my mistake, ?typo, that s wrong, that is wrong, ?was wrong, ?were wrong, ?wrong, ?mistake, ?mistaken, ?instead of,
        ?instead, ?rather than, make that, scratch that, ?no longer, not anymore, ?any more, ?anymore, changed to, has changed, changed
        from, has moved to, was moved to, is moved to, moved from, rescheduled to, postponed to, pushed to, ?is now, ?it s now, ?are now,
        but rather, i was confused, to correct, ?not right, ?incorrect, ?updated, strike that, ?mixed up, i meant to say, what i meant, i
        meant the, that should be, should have been, make it, scratch the, ?postponed, ?rescheduled, ?moved the, ?moved it, ?moved our,
        ?changed the, ?changed it, i was wrong, we were wrong, i got it wrong""",
    "objection": "no, nope, nah, wait, sorry, oops, hold on, hang on",
    "task": """?please, please don t forget, please do not forget, please remember, remind me, remind us, remember to, don t forget, do
        not forget, todo, ?to do, ?need to, ?needs to, ?have to, ?has to, ?we should, ?you should, i want you to, i need you, i d like you
        to, make a note, ?due, deadline, open task, next step, follow up, ?task, ?someone should, ?i should, ?i must, ?we must, ^book,
        ^call, ^send, ^buy, ^order, ?^check, ^fix, ^write, ^add, ^remove, ^update, ^create, ^schedule, ^cancel, ^pay, ^prepare, ?^ask,
        ?^find, ?^set, ^draft, ^review, ?^test, ^install, ?^keep, ^move, ^rename, ^translate, ^email, ?^tell, ?^get, ^finish, ^plan,
        ^reserve, ^print, ^upload, ^download, ^compare, ^summarise, ^summarize, ^arrange, ^renew, ^return, ^pick, ?^look, ?^make, ?^take,
        ?^give, ?^show, ?^explain, ?^note, ^remember, ^remind, ^collect, ^deliver, ^replace, ^clean, ^water, ^register, ^confirm,
        ^contact, ^invite, ^back, ^please, and please, so please, ^can you, ^could you, ?would you, ?will you, ?can you, ?could you""",
    "promise": """i ll, i will, i am going to, i m going to, i promise, i shall, we ll, we will, ?will do, will get back, ?let me""",
    "preference": """prefer*, ?i like, ?i love, ?i hate, i dislike, favourite, favorite, allergic, allergy, can t stand, i d rather,
        ?i enjoy, vegetarian, vegan, intoleran*, ?likes, ?loves, ?hates""",
    "goal": """?goal, ?aim, objective, ?i want to, we want to, ?i d like to, we d like to, ?trying to, the plan is, the project is,
        planning to, i m planning, we re planning, ?help me, ?working on, ?purpose, ?^we re *ing, ?^i m *ing, ?^we are *ing, ?^i am *ing,
        ?we have to, ?i have to""",
    "reason": """because, so that, due to, reason, that s why, since, therefore, otherwise, in order to, as we, as it, as i""",
    "done": """done, finished, completed, complete, fixed, resolved, solved, booked, sent, paid, works now, merged, closed, cancelled,
        canceled, bought, ordered, delivered, ready, submitted, sorted, installed, uploaded, signed, arrived, went through""",
    "error": """error, errors, failed, failure, ?fails, ?failing, exception, traceback, crash*, ?broken, timeout, timed out, ?denied,
        ?refused, unreachable, corrupt*, not found, unable to, ?invalid, panic, fatal, ?warning, no space left, permission denied, no such
        file, no such column, no such""",
    "open": """open question, still open, undecided, not decided, to be decided, tbd, unclear, still need, pending, unresolved, not yet,
        still waiting, remains open, remains to""",
    "idle": """i ll keep that in mind, i ll keep it in mind, i will keep that in mind, i ll remember that, i ll remember, i ll make a
        note, i ll note that, i ll be here, i ll do that, i ll do my best, we ll see, i ll see, no problem, no worries, not bad, why not,
        don t worry, do not worry, no idea, not only, not at all, no doubt, never mind, nevermind, no thanks, not really, no need, can t
        wait, no wonder, don t mind, isn t it, aren t we, aren t they, doesn t it, don t you, isn t that, whether or not, if not, or not,
        no matter, couldn t agree more, not a problem, nothing special, nothing much, no rush, no hurry, no big deal, not too bad, nothing
        new, can t complain, you never know, can t believe, didn t know, don t know, nothing else, as always, no luck, no news, wouldn t
        it, never gets old, no kidding, in no time, not much, no surprise, can t help, don t think so, more or less, sooner or later, i
        think so, no pressure, don t quote me, don t half, don t tempt me, don t tell me, don t ask, don t get me, since 1*, since 2*, can
        you believe, can you imagine, would you believe, could you believe, you don t need, you don t have to, you don t half, you don t
        know, you don t say, with or without""",
    "numbers": """two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
        nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million dozen twice""",
    "months": """january february march april may june july august september october november december jan feb mar apr jun jul aug sep
        oct nov dec""",
    "units": """minute minutes hour hours day days week weeks month months year years second seconds night nights people persons guests
        seats pieces times percent euro euros dollars pounds degrees pages tickets boxes bottles eggs copies kilos metres meters miles
        litres liters grams inch inches foot feet yard yards pound ounce ounces gallon gallons pint pints mile acre acres room rooms
        floor floors storeys shelves bedroom bedrooms cubic square packages""",
    "when": """today, tonight, tomorrow, next week, next month, next year, this week, this weekend, by monday, by tuesday, by wednesday,
        by thursday, by friday, by saturday, by sunday, on monday, on tuesday, on wednesday, on thursday, on friday, on saturday,
        on sunday, until monday, until friday, by then, by the end, before the, in the morning, at noon, at midnight, every day,
        every week, every month, every monday, every tuesday, every wednesday, every thursday, every friday, every saturday,
        every sunday, every morning, every evening, daily, weekly, monthly, in january, in february, in march, in april, in may,
        in june, in july, in august, in september, in october, in november, in december, next monday, next tuesday, next wednesday,
        next thursday, next friday, next saturday, next sunday""",
    "naming": """named, my name, name is, name s, names are, known as, lives in, lives at, live in, live at, born in, birthday, address
        is, password is, is at, number is, code is, stands for, works at, works as, belongs to, is kept in, lives on, runs on, listens on,
        stored in, is in the, account is, path is, version is, came to, amounts to, total is, weighs, ?my wife, ?my husband, ?my daughter,
        ?my son, ?my partner, ?my mother, ?my father, ?my sister, ?my brother, ?called, ?costs, ?cost, ?i work, ?measures, is called, are
        called, was called, s called, it called, one called""",
    "past": """was, were, had, been, did, ve never, have never, has never, used to, never *ed, never seen, never been, never had, never
        heard, never thought, never knew, never saw, never met, never felt, never found, never got""",
    "until": "before, until, till, unless",
    "deadline": """by monday, by tuesday, by wednesday, by thursday, by friday, by saturday, by sunday, by tomorrow, by tonight,
        by then, by the end, before the end, by next, by noon, by midnight, by easter, by christmas, at the latest, no later than,
        in time for, deadline, due""",
    "recurring": "every, each, daily, weekly, monthly, always, from now on, usually",
    "possible": "may be, may have, it may, may also be, might also be, may well be",
    "leave": ", may, must, should, shall",
    "refers": """, it, they, those, these, that is, that s, that must, that may, that has, this is, this must,
        this may, he must, she must, he may, she may""",
    "because": ", because, that s because, that is because, the reason is, reason",
    "finite": """is are am was were be been have has had do does did will would can could should may might must shall i you we they he she
        it there who which that let isn aren don doesn didn won want wants need needs""",
    "copula": "is are s re was were wasn isn aren weren",
    "denial": "not never wasn isn aren weren doesn didn don",
    "joins": "and so but also",
    "only": "only just",
    "none": "no",
    "leading": "the a an in on at to for from with by of my your his her our their its this that these those as before after until",
    "object": """the a an my your our his her their its it them him me us this that these those all every each both everything
        everybody everyone""",
    "adverb": """half quite such almost even nearly yesterday once perhaps maybe both though although while until since because whether
        unless like only tomorrow hardly besides despite inside outside behind below beneath under above along across around between
        against during within without via per plus minus not never always sometimes often usually then than rather instead apart thank
        thanks well right meanwhile hence thus everywhere found gave hung left told took made got brought bought sold went came saw said
        sent kept lost held built paid met ran sat stood thought felt broke chose drove wrote wore fell knew grew drew threw caught taught
        fought spent its thats theres im nah ok okay oh good nice fine great sure first second third last next consider beside""",
    "never": "never",
    "bidding": "ask asks asked tell tells told want wants wanted warn warned beg begged",
    "more": "more than",
    "first": "i we",
    "nobody": "nobody noone nothing",
    "passive": "is are",
    "without": "without",
    "others": "he she it they",
}
