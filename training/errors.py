"""A command's failure; its message says what failed and what to do."""


class TrainingError(Exception):
    pass
