"""Evaluates the expressions that tenants write, in processes with limits on memory and time."""

from app.templating.evaluation.values import to_text
from app.templating.expressions.budget import Budget
from app.templating.expressions.expressions import Expressions
from app.templating.expressions.problems import ExpressionProblem
from app.templating.expressions.sources import Source, has_templates, list_expressions, list_sources

__all__ = [
    "Budget",
    "ExpressionProblem",
    "Expressions",
    "Source",
    "has_templates",
    "list_expressions",
    "list_sources",
    "to_text",
]
