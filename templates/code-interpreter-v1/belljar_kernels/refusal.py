"""Why something was not done, in a word for programs and a sentence for people."""


class Refusal(Exception):
    def __init__(self, code: str, message: str):
        super().__init__(message)
        self.code = code
        self.message = message
