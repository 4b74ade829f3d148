"""The numbers of Postgres' advisory locks, which all share one space."""

from enum import IntEnum, unique


@unique
class AdvisoryLock(IntEnum):
    MIGRATE = 7_210_030
    PREPARE = 7_210_031
    ADMINISTER_USERS = 7_210_032
    CLEAN_UP = 7_210_033
    CREATE_DEMO = 7_210_034
