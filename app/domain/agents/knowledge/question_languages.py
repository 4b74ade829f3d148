# ruff: noqa: RUF001  # letters of other scripts look like Latin ones
"""The words by which a question shows that it goes on from an earlier one, by language."""

import re
from collections.abc import Sequence
from typing import Final

import msgspec


class QuestionLanguage(msgspec.Struct, frozen=True, kw_only=True):
    """All words are in small letters.

    `function_words` say nothing about the subject of a question, and a text of `courtesies` asks
    nothing. `openers` are beginnings of a
    question that goes on, and so is one of `prepositions` where few words follow. `references`
    stand for something that was named before, and so does one of `articles` without a noun behind
    it, and what `objects` finds. `idioms` have such words without that meaning.
    """

    function_words: frozenset[str]
    openers: tuple[tuple[str, ...], ...] = ()
    prepositions: frozenset[str] = frozenset()
    courtesies: frozenset[str] = frozenset()
    references: frozenset[str] = frozenset()
    articles: frozenset[str] = frozenset()
    objects: re.Pattern[str] | None = None
    idioms: re.Pattern[str] | None = None
    has_capital_nouns: bool = False


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _openers(*texts: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(text.split()) for text in texts)


_ENGLISH: Final = QuestionLanguage(
    function_words=_words("""
a about above after again all also although am an and another any anybody anyone anything are aren
as ask at available away be because been before below best better between both but by can cannot
case come could d did didn different do does doesn doing don done each either else ever every
everything exactly few first for former from further get gets getting give go goes going got had
has have having he hello help her here hers hey hi him his how however i if in instead into is isn
it its itself just kind know last latter least less let like ll long look m make makes many may
maybe me mean might mine more most much must my need needs neither new next no nor not now of off
ok okay on once one ones only or other others our ours out over own please possible put quite
rather re really regarding s said same say says see shall she should since so some somebody someone
something still such sure t take takes tell than thank thanks that the their theirs them then there
these they thing things this those though through to together too two under until up us use very
via want was way we well were what whats when where whether which while who whom whose why will
with within without won would yes yet you your yours ve
"""),
    openers=_openers(
        *("and", "what about", "how about", "what if", "or", "but", "also", "then", "why not"),
        *("ok and", "okay and", "ok but", "in that case", "same", "otherwise", "if so", "if not"),
    ),
    courtesies=_words(
        "hello hi hey good morning evening thanks thank you very much so lot a all ok okay bye "
        "great cool fine perfect goodbye cheers nice welcome please"
    ),
    prepositions=_words("at by during for from in on only to until with within without"),
    references=_words("""
it its them they their theirs this that these those he him his she her hers one ones there same
both another other others former latter either neither else such then
"""),
    idioms=re.compile(
        r"\b(is|was|would) (it|this) (ok|okay|possible|allowed|necessary|required|worth)\b"
        r"|\b(is|are|was|were|will) there( be)?\b|\bthere (is|are)\b|\bin (this|that) case\b"
        r"|\bwhat time is it\b|\bhow does (it|this) work\b|\b(how|what) else\b|\beach other\b"
    ),
)
_GERMAN: Final = QuestionLanguage(
    has_capital_nouns=True,
    function_words=_words("""
ab aber alle allem allen aller alles als also am an andere anderen anderer anders anderes auch auf
aus außer beide beiden bei beim bekomme bekommen bekommt benötige bin bis bist bitte brauche
brauchen braucht da dabei dafür dagegen daher damit danach daneben dann daran darauf daraus darf
darin darüber darum das dass davon davor dazu dein deine dem den denen denn der deren des deshalb
dessen die dies diese dieselbe diesem diesen dieser dieses doch dort du dürfen durch eigentlich ein
eine einem einen einer eines einmal er es etwa etwas euch euer eure eurem euren eurer falls ganz
geben gegen gehen geht genau gerade gern gerne gibt habe haben habt hallo hat hatte hätte hier hin
hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im immer in ins ist ja jede jeden jeder jedes
jemand jene jener jetzt kann kannst kein keine keinem keinen keiner können könnte könnten könnt
kommt lang lange lässt lassen letztere letzterer machen macht mal man manche mehr mein meine meinem
meinen meiner mich mir mit möchte möchten möglich muss müssen nach nächste neben nein nicht nichts
noch nun nur ob oder ohne sagen sehr sei sein seine seinem seinen seiner seit selbe selben sich sie
sieht sind so sobald solche soll sollen sollte sonst sowie steht trotzdem tun tut über überhaupt um
und uns unser unsere unserem unseren unter viel viele vom von vor wann war wäre waren warum was
weil weitere welche welchem welchen welcher welches wem wen wenn wer werde werden weshalb wessen
wie wieder wieso wieviel will wir wird wirklich wissen wo wobei wofür woher wohin womit woran
worauf wollen würde wurde würden zu zum zur zwei zwischen
"""),
    openers=_openers(
        *("und", "was ist mit", "wie ist es mit", "wie ist es bei", "wie sieht es mit", "aber"),
        *("wie sieht es bei", "wie steht es mit", "oder", "auch", "dann", "gilt das", "sonst"),
        *("wie sieht s mit", "was wenn", "was ist wenn", "ok und", "warum nicht", "falls ja"),
        *("falls nein", "gilt dies"),
    ),
    courtesies=_words(
        "hallo hi guten tag morgen abend danke vielen dank schön sehr ok okay tschüss super prima "
        "gut alles klar perfekt bitte ciao moin servus wiedersehen auf"
    ),
    prepositions=_words("ab als am an auf aus bei beim bis für im in mit nach nur ohne von zum"),
    references=_words("""
er ihn ihm ihnen es dies diese diesem diesen dieser dieses dieselbe selbe selben beide beiden dort
dafür damit daran darauf daraus darin darüber davon dazu dabei dagegen danach deren dessen denen
andere anderen anderer anderes letztere letzterer solche jene jener sonst dann
"""),
    articles=_words("das die der den dem"),
    objects=re.compile(
        r"\b(ich|man|wir) (das|die|den|der|dem) ((auch|noch|hier|online) )?\w+en\W*$"
        r"|\b(ist|kostet|gilt|hat|wird|geht) (das|die|der) \w+\W*$"
        r"|\b(ich|man|ist|kostet|hat|wird|kann|passt|hält|wiegt|braucht|gilt) sie\b"
    ),
    idioms=re.compile(
        r"\bgibt es\b|\bes gibt\b|\bgibt s\b|\bist es (möglich|erlaubt|nötig|notwendig|okay|ok)\b"
        r"|\bgeht es\b|\bhandelt es sich\b|\bin diesem fall\b|\bwie geht es\b|\bunter anderem\b"
        r"|\bist das (möglich|erlaubt)\b|,\s*(der|die|das|den|dem|dies|diese)\b"
    ),
)
_FRENCH: Final = QuestionLanguage(
    function_words=_words("""
a à afin ai aie ailleurs ainsi alors après as au aucun aucune aussi autre autres aux avais avait
avant avec avez avoir avons bien bonjour c ça car ce ceci cela celle celles celui cependant ces cet
cette ceux chaque chez combien comme comment d dans de dedans depuis derrière des dessus deux devant
devons dire dit dites dois doit doivent donc dont du durant elle elles en encore entre es est et
été êtes être eu fais fait faire faites faudrait faut hors il ils j jamais je jusqu jusque jusqu l
la là laquelle le lequel les lesquelles lesquels leur leurs lors lorsque lui m ma mais me même mêmes
merci mes mettre mien moi moins mon n ne ni non nos notre nous nouveau on ont or ou où oui par parce
parler pas pendant peu peut peuvent peux plaît plus plusieurs plutôt possible pour pourquoi pourrais
pourrait pouvez pouvoir pouvons prendre près prend puis puisque qu quand quant que quel quelle
quelles quelqu quelque quelques quels qui quoi s sa sais sans savoir se sera serait ses seulement si
sinon soit son sont sous suis sur t ta te tel telle tes toi ton toujours tous tout toute toutes très
trop tu un une va vais vas vers veut veux voici voilà voir vont vos votre voudrais vouloir vous vrai
vraiment y
"""),
    openers=_openers(
        *("et", "qu en est il", "mais", "ou", "aussi", "alors", "sinon", "dans ce cas", "donc"),
        *("quid", "pourquoi pas", "si oui", "si non"),
    ),
    courtesies=_words(
        "bonjour bonsoir salut merci beaucoup bien ok d accord au revoir parfait super très bonne "
        "journée s il vous te plaît génial"
    ),
    prepositions=_words("à au aux avec chez dans de des en jusqu le la les par pour sans sur"),
    references=_words("""
il ils elle elles lui leur leurs celui celle ceux celles ceci cela ça cet cette ces ce sa ses
dedans dessus là y autre autres même mêmes
"""),
    objects=re.compile(
        r"\w(er|ir|re)-(le|la|les|lui|leur|en|y)\b"
        r"|\b(je|tu|on|nous|vous|il|peux|peut|dois|doit|faut) (l'|(le|la|les) )\w+(er|ir|re)\b"
    ),
    idioms=re.compile(
        r"\best-ce qu[e']?|\bqu'est-ce qu[e']?|\bil y a\b|\by a[- ]t[- ]il\b|\by aura[- ]t[- ]il\b"
        r"|\bil faut\b|\bfaut[- ]il\b|\best[- ]il possible\b|\bil est possible\b"
        r"|\bs'il (te|vous) plaît\b|\bc'est possible\b"
        r"|\bquel(le)?s? (est|sont)\b|\bpar là\b|\ben ce moment\b|\bce que\b"
    ),
)
_SPANISH: Final = QuestionLanguage(
    function_words=_words("""
a acerca ahí ahora al algo alguien algún alguna algunas alguno algunos allí allá ambos ante antes
aquel aquella aquellas aquello aquellos aquí así aún aunque bajo bien buenas buenos cada casi caso
como cómo con conmigo contra cual cuál cuales cuáles cualquier cuando cuándo cuanta cuánta cuantas
cuántas cuanto cuánto cuantos cuántos da dar de debe deben debo decir del demás dentro desde después
dice dime días donde dónde dos durante e el él ella ellas ello ellos en entonces entre era eres es
esa esas ese eso esos esta está ésta estaba están estar estas éstas este éste esto estos éstos estoy
favor fue fuera gracias ha haber había hace hacen hacer hago hasta hay hola igual incluso ir la las
le les lo los luego más me mi mí mientras mis misma mismas mismo mismos mucha muchas mucho muchos
muy nada nadie necesita necesito ni ningún ninguna no nos nosotros nuestra nuestro nueva nuevo nunca
o os otra otras otro otros para pero podemos podría podrían por porque posible puede pueden puedo
pues que qué querer quería quiero quien quién quienes quisiera sabe saber se sé sea según ser será
si sí sido siempre sin sino sirve sobre sólo solo son soy su sus tal también tampoco tan tanto te
tener tengo ti tiene tienen toda todas todavía todo todos tras tu tú tus u un una unas uno unos
usted ustedes va vale vamos van ver vez voy y ya yo
"""),
    openers=_openers(
        *("y", "qué hay de", "que hay de", "qué pasa con", "que pasa con", "pero", "o", "también"),
        *("entonces", "en ese caso", "por qué no", "si no", "qué tal"),
    ),
    courtesies=_words(
        "hola buenos buenas días tardes noches gracias muchas muy amable ok vale de acuerdo adiós "
        "perfecto genial hasta luego bien por favor"
    ),
    prepositions=_words("a al con de del desde el en hasta la las los para por sin solo sólo"),
    references=_words("""
él ella ellas ello ellos eso esto esa esas ese esos esta estas este estos aquel aquella aquello
aquellos misma mismas mismo mismos ambos allí allá ahí otra otras otro otros
"""),
    objects=re.compile(r"\w([aeiáéí]r|ndo)(me)?(lo|la|los|las|le|les)\b"),
    idioms=re.compile(
        r"\bpor eso\b|\blo que\b|\bpor lo menos\b|\ben este momento\b|\bes posible\b|\besta bien\b"
        r"|\botra vez\b|\bpor otro lado\b"
    ),
)
_ARABIC: Final = QuestionLanguage(
    function_words=_words("""
أن أنا أنت أنتم أو أي أية أيضا أيضاً أين أحتاج إلى إن إذا أريد أستطيع الآن التي الذي الذين ان او
اي ايضا اين الى اذا اريد بأن بدون بعد بكم بل بين تلك ثم حتى حول خلال ذلك رجاء شكرا شكراً عبر عدد
عن عند عندكم عندما على غير فقط في فيه فيها قبل قد كان كانت كذلك كل كم كما كيف كيفية لا لدى لديكم
لكم لكن لكي لم لماذا لن له لها لهم لو لي ليس ما ماذا مازال متى مثل مدة مرحبا مع معه معها معكم من
منه منها منذ ممكن نحن نعم نفس نفسه نفسها هؤلاء هذا هذه هل هم هنا هناك هو هي وإن وإذا وأي وأين وبكم
وفي وكم وكيف ولكن ولماذا وما وماذا ومتى ومن وهل وهي وهو وعن وعلى ومع يا يمكن يمكنك يمكنكم يمكنني
يوجد توجد تقدمون يكون تكون طيب حسنا حسناً عليه عليها به بها لماذا
"""),
    openers=_openers(
        *("ماذا عن", "وماذا عن", "وماذا", "وكم", "وهل", "ومتى", "وكيف", "وأين", "ولماذا", "وفي"),
        *("وعن", "وما", "وإذا", "ومع", "وعلى", "لكن", "ولكن", "طيب", "أو", "او", "أيضا", "حسنا"),
        *("وبكم", "ومن"),
    ),
    courtesies=_words(
        "مرحبا أهلا السلام عليكم شكرا شكراً جزيلا جزيلاً حسنا حسناً طيب تمام ممتاز وداعا لك لكم"
    ),
    prepositions=_words("إلى بدون على عن في مع من"),
    references=_words("""
هو هي هم هذا هذه ذلك تلك هؤلاء فيه فيها منه منها له لها لهم معه معها عليه عليها به بها نفس نفسه
نفسها هناك عنه عنها إليه إليها
"""),
    objects=re.compile(r"\w{3}(ها|هما|هم)\b"),
    idioms=re.compile(r"\bهل هناك\b|\bما هو\b|\bما هي\b|\bمن هو\b|\bمن هي\b"),
)
LANGUAGES: Final[Sequence[QuestionLanguage]] = (_ENGLISH, _GERMAN, _FRENCH, _SPANISH, _ARABIC)
# Of a language that is none of these, nothing is known.
UNKNOWN: Final = QuestionLanguage(function_words=frozenset())

# The share of function words by which a language is told.
_MIN_SHARE: Final = 0.2
_WORD = re.compile(r"[^\W_]+")
_AFTER_LATIN = "\u0250"


def find_language(words: Sequence[str]) -> QuestionLanguage:
    """Returns the language of words in small letters by the function words among them."""
    counts = [sum(word in language.function_words for word in words) for language in LANGUAGES]
    best = max(counts)
    return LANGUAGES[counts.index(best)] if best > _MIN_SHARE * len(words) else UNKNOWN


def may_be_english(text: str) -> bool:
    """Returns False for a question in another script, or with another language's function words."""
    letters = list(filter(str.isalpha, text))
    if 2 * sum(letter < _AFTER_LATIN for letter in letters) < len(letters):
        return False
    language = find_language(_WORD.findall(text.lower()))
    return language is _ENGLISH or language is UNKNOWN


# Chinese has no spaces: the words of a question are what remains between these.
CHINESE_FUNCTION_WORDS: Final = re.compile(
    "多长时间|什么时候|能不能|有没有|可不可以|是不是|怎么样|怎么办|为什么|多少钱|请问一下|"
    "什么|怎么|怎样|如何|多少|多久|几点|几天|几个|哪里|哪儿|哪些|哪个|哪种|可以|是否|如果|还有|另外|"
    "需要|想要|关于|告诉|知道|请问|一下|一个|一些|我们|你们|您们|他们|她们|它们|这个|那个|这些|那些|这种|"
    "那种|这款|那款|这里|那里|这样|那样|那么|以及|或者|还是|但是|而且|因为|所以|都是|也是|就是|还能|还要|"
    "的|了|吗|呢|吧|啊|呀|是|我|你|您|他|她|它|这|那|请|也|都|"
    "(?<![所没拥享])有(?![效限机关害用])"
)
CHINESE_OPENERS: Final = re.compile(
    "那|是(?!否|不是)|还有|另外|而且|但是|可是|不过|或者|如果|要是|换成|同样"
)
CHINESE_REFERENCES: Final = re.compile(
    "它|这个|那个|这些|那些|这种|那种|这款|那款|该|他们|她们|其他|其它|一样"
)
CHINESE_ENDING: Final = "呢"
CHINESE_COURTESIES: Final = re.compile(
    "(你好|您好|谢谢|多谢|感谢|好的|好|再见|不客气|明白|你|您|了|吧)+"
)
