"""Evaluates templates and conditions, in the child process of `expressions` alone: nothing here
bounds time. Only `values` is for its parent, too. Imports only Jinja, CEL, msgspec and modules of
the kit that have no state.
"""
