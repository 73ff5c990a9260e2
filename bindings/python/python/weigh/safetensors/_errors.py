"""The exception of the drop-in."""

class SafetensorError(Exception):
    def __init__(self, message, code="error"):
        super().__init__(message)
        self.code = code
