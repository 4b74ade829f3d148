"""What the chat widget keeps in the browser, and how it fills its texts."""

from tests.web.module_runner import ModuleRunner

_ADD = """({ StoredList }, [count, ages]) => {
    const fields = new Map();
    const get = (name) => fields.get(name);
    const set = (name, value) => fields.set(name, value);
    const list = new StoredList({ get, set }, "conversations");
    const days = (age) => Date.now() - age * 24 * 3600 * 1000;
    list.save(ages.map((age) => ({ id: `old-${age}`, title: "", at: days(age) })));
    for (let number = 0; number < count; number += 1) list.add(`new-${number}`, `Title ${number}`);
    list.add("new-0", "Another title");
    return list.list().map(({ id, title }) => [id, title]);
}"""
_READ = """({ StoredList }, text) => {
    return new StoredList({ get: () => text, set() {} }, "conversations").list();
}"""
_FILL = "({ fill }, [text, values]) => fill(text, values)"


def test_a_list_keeps_the_newest_twenty_of_ninety_days(modules: ModuleRunner) -> None:
    path = "widget/storage.js"
    few = modules.evaluate(path, _ADD, [1, [89, 91]])
    assert few == [["new-0", "Title 0"], ["old-89", ""]]
    many = modules.evaluate(path, _ADD, [25, []])
    assert len(many) == 20
    assert many[:2] == [["new-0", "Another title"], ["new-24", "Title 24"]]


def test_a_broken_list_is_empty(modules: ModuleRunner) -> None:
    for text in (None, "", "{", "7", "null"):
        assert modules.evaluate("widget/storage.js", _READ, text) == []


def test_places_of_a_text_are_filled(modules: ModuleRunner) -> None:
    cases = [
        ("{name} is writing…", {"name": "$& {name}"}, "$& {name} is writing…"),
        ("{name} is writing…", {"name": ""}, "is writing…"),
        ("{other}", {"name": "A"}, "{other}"),
    ]
    for text, values, filled in cases:
        assert modules.evaluate("widget/texts.js", _FILL, [text, values]) == filled
