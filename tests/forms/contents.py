"""The beginnings of files of some types."""

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"
ELF = b"\x7fELF\x02\x01\x01" + bytes(20)
HTML = b"<!doctype html><script>alert(1)</script>"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
