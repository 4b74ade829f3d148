"""Values that several tests of fields use."""

import base64

_PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 20).decode()
SIGNATURE = f"data:image/png;base64,{_PNG}"
TABLE = {"type": "data_table", "table_id": "tbl_1", "value_column": "v", "label_column": "l"}
OPTIONS = [
    {"value": "sales", "label": "Sales"},
    {"value": "support", "label": "Support"},
    {"value": "rd", "label": "Research and Development"},
    {"value": "tech", "label": "Technical Support"},
]
HTML = "<script>alert('x')</script>&amp;"
