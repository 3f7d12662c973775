"""What a command cannot do; its message says what failed and what to do."""


class TrainingError(Exception):
    pass
