"""The name of a user in SQL."""


def user_name_sql(users: str) -> str:
    """Returns the first and last name in a row of `users`, or the e-mail address of a user without
    a name.
    """
    name = f"concat({users}.first_name, ' ', {users}.last_name)"
    return f"coalesce(nullif(trim({name}), ''), {users}.email)"
