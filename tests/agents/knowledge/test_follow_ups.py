# ruff: noqa: RUF001  # letters of other scripts look like Latin ones
"""Which questions go on from earlier ones, and which words of those make them whole."""

import pytest

from app.domain.agents.knowledge.follow_ups import add_subject

# Earlier questions, the next one, and what is added to it.
_FOLLOW_UPS: tuple[tuple[list[str], str, str], ...] = (
    # English
    (["When does the shop open?"], "And on Sundays?", "shop open"),
    (["How long is the warranty of a pump?"], "And for valves?", "warranty pump"),
    (["How do I get to the office in Lisbon?"], "What about Halifax?", "office"),
    (["Do you have the X200 vacuum cleaner?"], "How much does it cost?", "X200 vacuum cleaner"),
    (["I bought a coffee machine."], "Can I return it after a month?", "bought coffee machine"),
    (["Do you ship to Norway?"], "How long does that take?", "ship Norway"),
    (["Which cards do you accept?"], "Why?", "cards accept"),
    (["Do you sell gift vouchers?"], "Can they be used online?", "sell gift vouchers"),
    (["Is there a student discount?"], "For teachers?", "student discount"),
    (["Do you have the X200?"], "Price?", "X200"),
    (
        ["What is the warranty of the X200?", "And of the X300?"],
        "What does it not cover?",
        "X300 warranty X200",
    ),
    (
        ["Hello! I am moving to Bern. Can I cancel my contract early?"],
        "What are the fees for that?",
        "cancel contract early",
    ),
    (["How long is the warranty of AX pumps?"], "And of the BX series?", "warranty pumps"),
    (["How do I install Parley?"], "Does it run on Windows?", "install Parley"),
    # German
    (["Wann öffnet der Laden?"], "Und sonntags?", "öffnet Laden"),
    (["Wie lange gilt die Garantie der Pumpe?"], "Was ist mit Ventilen?", "gilt Garantie Pumpe"),
    (["Liefern Sie nach Österreich?"], "Was kostet das?", "Liefern Österreich"),
    (
        ["Ich habe eine Kaffeemaschine bestellt."],
        "Kann ich die umtauschen?",
        "Kaffeemaschine bestellt",
    ),
    (["Gibt es Gutscheine?"], "Wo kann man sie einlösen?", "Gutscheine"),
    (["Haben Sie den Staubsauger X200?"], "Wie laut ist er?", "Staubsauger X200"),
    (["Kann ich mit Karte zahlen?"], "Auch im Ausland?", "Karte zahlen"),
    (["Wie lang ist die Garantie der AX-210?"], "Und der BX-300?", "Garantie"),
    (["Wie komme ich zum Büro in Lissabon?"], "Und in Wien?", "komme Büro Lissabon"),
    # French
    (["À quelle heure ouvre le magasin ?"], "Et le dimanche ?", "heure ouvre magasin"),
    (["Livrez-vous en Belgique ?"], "Combien ça coûte ?", "Livrez Belgique"),
    (["J’ai acheté un aspirateur."], "Puis-je le rendre ?", "acheté aspirateur"),
    (["Quelle est la garantie de la pompe ?"], "Qu’en est-il des vannes ?", "garantie pompe"),
    (["Avez-vous la machine à café X200 ?"], "Est-elle en stock ?", "machine café X200"),
    # Spanish
    (["¿A qué hora abre la tienda?"], "¿Y los domingos?", "hora abre tienda"),
    (["¿Envían a Portugal?"], "¿Cuánto tarda eso?", "Envían Portugal"),
    (["Compré una cafetera."], "¿Puedo devolverla?", "Compré cafetera"),
    (["¿Qué garantía tiene la bomba?"], "¿Qué hay de las válvulas?", "garantía bomba"),
    (["¿Tienen descuento para estudiantes?"], "¿Para profesores?", "descuento estudiantes"),
    # Chinese
    (["商店几点开门？"], "周日呢？", "商店 开门"),
    (["你们有X200吸尘器吗？"], "它多少钱？", "X200吸尘器"),
    (["泵的保修期是多久？"], "那阀门呢？", "泵 保修期"),
    (["可以退货吗？"], "需要多久？", "退货"),
    # Arabic
    (["متى يفتح المتجر؟"], "وماذا عن الأحد؟", "يفتح المتجر"),
    (["هل لديكم مكنسة X200؟"], "كم سعرها؟", "مكنسة X200"),
    (["ما هي مدة ضمان المضخة؟"], "وكم للصمامات؟", "ضمان المضخة"),
    # Another language, of which nothing is known
    (["Quando apre il negozio?"], "E domenica?", "Quando apre il negozio"),
    # As people write them, without marks and capitals
    (["Which phones support eSIM?"], "does the older one as well?", "phones support eSIM"),
    (["How do I reset my password?"], "it doesn't work", "reset password"),
    (["Is breakfast included?"], "until when?", "breakfast included"),
    (["wie groß ist das zelt?"], "passt es in einen rucksack?", "groß zelt"),
    (["Haben Sie einen Parkplatz?"], "ist der kostenlos?", "Parkplatz"),
    (["Wie kündige ich mein Abo?"], "bekomme ich dann mein geld zurück?", "kündige Abo"),
    (["Le petit-déjeuner est-il inclus ?"], "jusqu'à quelle heure ?", "petit-déjeuner inclus"),
    (["Comment annuler mon abonnement ?"], "et pour être remboursé ?", "annuler abonnement"),
    (["¿Tienen aparcamiento?"], "es gratis", "aparcamiento"),
    (["¿Cómo cancelo mi suscripción?"], "y si ya he pagado", "cancelo suscripción"),
    (["有停车场吗？"], "是免费的吗", "停车场"),
    (["含早餐吗？"], "到几点", "含早餐"),
    (["كيف ألغي اشتراكي؟"], "وهل أسترد أموالي", "ألغي اشتراكي"),
)
_WHOLE: tuple[tuple[list[str], str], ...] = (
    (["When does the shop open?"], "What is the refund policy?"),
    (["When does the shop open?"], "Is it possible to return shoes?"),
    (["When does the shop open?"], "Are there vegetarian dishes in the canteen?"),
    (["When does the shop open?"], "How do I register my AX-210 pump online?"),
    (["When does the shop open?"], "In which countries do you sell pumps?"),
    (["When does the shop open?"], "And what does express shipping cost?"),
    (["Wann öffnet der Laden?"], "Gibt es einen Rabatt für Studenten?"),
    (["Wann öffnet der Laden?"], "Haben Sie vegetarische Gerichte?"),
    (["Wann öffnet der Laden?"], "Ist das Sofa Oslo lieferbar?"),
    (["Wann öffnet der Laden?"], "Wie kann ich meine Bestellung stornieren?"),
    (["À quelle heure ouvre le magasin ?"], "Y a-t-il une remise pour les étudiants ?"),
    (["À quelle heure ouvre le magasin ?"], "Comment annuler ma commande ?"),
    (["À quelle heure ouvre le magasin ?"], "Est-ce que vous livrez en Belgique ?"),
    (["¿A qué hora abre la tienda?"], "¿Hay descuento para estudiantes?"),
    (["¿A qué hora abre la tienda?"], "¿Cómo cancelo mi pedido?"),
    (["¿A qué hora abre la tienda?"], "¿Cuál es la política de devolución?"),
    (["商店几点开门？"], "有没有学生折扣？"),
    (["商店几点开门？"], "如何取消我的订单？"),
    (["متى يفتح المتجر؟"], "كيف يمكنني إلغاء طلبي؟"),
    (["متى يفتح المتجر؟"], "هل هناك خصم للطلاب؟"),
    (["Quando apre il negozio?"], "Come posso annullare il mio ordine?"),
    # Nothing is asked, or nothing came before
    (["When does the shop open?"], "Thank you very much!"),
    (["When does the shop open?"], "ok"),
    (["Wann öffnet der Laden?"], "Vielen Dank!"),
    (["À quelle heure ouvre le magasin ?"], "Merci beaucoup"),
    (["¿A qué hora abre la tienda?"], "Muchas gracias"),
    (["商店几点开门？"], "好的，谢谢！"),
    (["متى يفتح المتجر؟"], "شكرا جزيلا"),
    (["When does the shop open?"], "..."),
    (["When does the shop open?"], ""),
    (["", "  "], "And on Sundays?"),
    ([], "And on Sundays?"),
)


def test_a_question_that_goes_on_gets_the_words_of_the_earlier_one(
    subtests: pytest.Subtests,
) -> None:
    for earlier, question, added in _FOLLOW_UPS:
        with subtests.test(question=question):
            assert add_subject(question, earlier) == f"{question} {added}"


def test_a_question_with_a_subject_of_its_own_stays_as_it_is(subtests: pytest.Subtests) -> None:
    for earlier, question in _WHOLE:
        with subtests.test(question=question):
            assert add_subject(question, earlier) == question


def test_the_words_of_a_long_message_are_few_and_from_its_question() -> None:
    story = "I live in Bern with two dogs. " * 500
    question = "And on Sundays?"
    assert add_subject(question, [f"When does the shop open? {story}"]) == f"{question} shop open"
    words = " ".join(f"word{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")
    numbers = " ".join(f"{number}{number}{number}" for number in range(500))
    for text in (words, numbers, numbers.replace(" ", "")):
        added = add_subject(question, [f"What is {text}?"]).removeprefix(question)
        assert len(added.split()) <= 12
        assert len(added) <= 1100
    assert add_subject(story, ["When does the shop open?"]) == story


def test_questions_are_never_older_than_two() -> None:
    earlier = ["When does the shop open?", "Why?", "Why not?"]
    assert add_subject("How?", earlier) == "How?"
    assert add_subject("How?", earlier[:2]) == "How? shop open"
