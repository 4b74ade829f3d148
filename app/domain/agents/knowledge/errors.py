from app.kit.errors import Conflict, NotFound


class DocumentNotFound(NotFound, code="document_not_found"): ...


class DocumentNameTaken(Conflict, code="document_name_taken"): ...


class TooManyDocuments(Conflict, code="too_many_documents"): ...
