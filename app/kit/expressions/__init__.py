"""Evaluates the expressions that tenants write, in processes with limits on memory and time."""

from app.kit.evaluation.values import to_text
from app.kit.expressions.budget import Budget
from app.kit.expressions.expressions import Expressions
from app.kit.expressions.problems import ExpressionProblem
from app.kit.expressions.sources import Source, has_templates, list_expressions, list_sources

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
