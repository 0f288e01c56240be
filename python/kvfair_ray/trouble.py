"""What a user must hear of."""


class Trouble(Exception):
    """What failed and what to do, in words, and the exit code of kvfair that stands for it."""

    def __init__(self, what, hint=None, code=1):
        super().__init__(what if hint is None else f"{what}\nhint: {hint}")
        self.code = code


USAGE = 2
NOT_HERE = 3
