"""Texts with links and without."""

# Texts with links, then the same with the texts of the links.
LINKS = {
    "[a](https://example.com)": "a",
    "See [our terms](http://example.com:8080/a/b?c=d&e=f#g) and [us](mailto:a@example.com).": (
        "See our terms and us."
    ),
    "[é ü](https://bücher.example/ä)": "é ü",
    "[a](https://a)[b](https://b)": "ab",
    "[[a](https://a)]": "[a]",
    "![a](https://a)": "!a",
    "[<b>](https://a)": "<b>",
}
TEXTS = [
    "",
    "[a]",
    "[a](b)",
    "[a] (https://a)",
    "[a](javascript:alert(1))",
    "[a](JAVASCRIPT:alert)",
    "[a](data:text/html,x)",
    "[a](vbscript:x)",
    "[a](file:///etc/passwd)",
    "[a](//evil.example)",
    "[a](/path)",
    "[a](https://)",
    "[a](https:///x)",
    "[a](https://bank.example@evil.example)",
    "[a](https://user:secret@evil.example/)",
    "[a](https://a b)",
    "[a](https://a\n)",
    '[a](https://a"onclick="x)',
    "[a](https://a<b>)",
    "[a](https://a\\b)",
    "[a](https://a(b))",
    "[](https://a)",
    "[a\nb](https://a)",
    "[a](mailto:)",
    "[a](tel:123)",
    "https://example.com",
    "<https://example.com>",
    '<a href="https://example.com">a</a>',
]
